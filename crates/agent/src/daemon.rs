//! A daemon: serves any number of clients, which connect to it, on one grid.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gridrpc_client::{Grid, Parent};
use gridrpc_link::{LinkError, Socket};
use gridrpc_sys::forks;
use gridrpc_transport::certificates::ServerKeys;
use gridrpc_transport::listener::{Admission, Listener, OnRefused};
use gridrpc_transport::{Unix, listen_local, user_of};
use gridrpc_wire::{HostLoss, Message};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::answers::Answers;
use crate::client_blobs::BlobNumbers;
use crate::client_memory::UserMemory;
use crate::connection::{Connection, MAX_PAYLOAD};
use crate::error::AgentError;
use crate::handshake::{greet, wait_for_request};
use crate::heartbeat::Heartbeats;
use crate::requests::ClientRequests;
use crate::service::Service;
use crate::serving::{self, Terms};
use crate::user::User;

/// How long the daemon stops accepting when the system is short of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);
/// How long `close` waits for connections to end.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Largest payload of a request, bytes.
const MAX_REQUEST: u64 = 256 << 20;

/// Serves clients until it is closed. The grid belongs to the caller, who may run calls on it too.
pub struct Daemon {
    clients: Arc<Clients>,
    end: Arc<EventFd>,
    threads: Vec<JoinHandle<()>>,
    listeners: Vec<Listener>,
}

/// A connection.
struct Open {
    user: Arc<User>,
    socket: Socket,
    /// Asks the thread that serves the client to part from it, if one does.
    parting: Option<(Arc<AtomicBool>, Arc<Answers>)>,
}

struct Clients {
    grid: Arc<Grid>,
    service: Arc<dyn Service>,
    most: usize,
    numbers: Arc<BlobNumbers>,
    heartbeats: Arc<Heartbeats>,
    /// Shared memory of users of this machine.
    memory: Mutex<HashMap<Arc<str>, Weak<UserMemory>>>,
    /// The connections, by a number of each.
    open: Mutex<HashMap<u64, Open>>,
    next: AtomicU64,
    /// Signalled when a connection ends.
    ended: Condvar,
}

impl Daemon {
    /// Listens nowhere yet. `most`: maximum number of connections; the next ones are refused.
    ///
    /// # Errors
    /// When the system refuses an event descriptor.
    pub fn new(grid: Arc<Grid>, service: Arc<dyn Service>, most: usize) -> io::Result<Daemon> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let end = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let clients = Arc::new(Clients {
            grid,
            service,
            most,
            numbers: Arc::default(),
            heartbeats: Arc::default(),
            memory: Mutex::default(),
            open: Mutex::default(),
            next: AtomicU64::new(0),
            ended: Condvar::new(),
        });
        Ok(Daemon { clients, end, threads: Vec::new(), listeners: Vec::new() })
    }

    /// Listens at a Unix socket, and replaces an old file there.
    ///
    /// # Errors
    /// When the system refuses the socket or a thread.
    pub fn listen_at(&mut self, socket: &Path) -> io::Result<()> {
        let listener = listen_local(socket)?;
        forks::close_in_children(listener.as_raw_fd());
        let (all, until) = (Arc::clone(&self.clients), Arc::clone(&self.end));
        let accepting = move || {
            accept(&all, &listener, &until);
            forks::forget(listener.as_raw_fd());
        };
        let thread = thread::Builder::new().name("gridrpc-daemon".to_owned()).spawn(accepting)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Listens at a port of each of these addresses, for users with certificates. `ports`: the first and last to try;
    /// none: the system chooses. `refused` gets the address of each connection that was not admitted, and the reason;
    /// it must not block. Returns the port.
    ///
    /// # Errors
    /// When no port is free, or an address is none of this host's.
    pub fn listen_with(
        &mut self,
        addresses: &[IpAddr],
        ports: Option<(u16, u16)>,
        keys: ServerKeys,
        refused: OnRefused,
    ) -> io::Result<u16> {
        let clients = Arc::clone(&self.clients);
        let admission = Admission::Certificate { keys, refused };
        let listener = Listener::open(addresses, ports, admission, move |admitted| {
            let Some(user) = User::admitted(&admitted) else { return };
            // Connections are admitted one after the other; a refusal has been reported.
            let _ = clients.admit(admitted.transport, user);
        })?;
        let port = listener.port();
        self.listeners.push(listener);
        Ok(port)
    }

    /// Number of connections.
    #[must_use]
    pub fn attached(&self) -> usize {
        self.clients.lock().len()
    }

    /// The users of all connections.
    #[must_use]
    pub fn users(&self) -> Vec<Arc<User>> {
        self.clients.lock().values().map(|open| Arc::clone(&open.user)).collect()
    }

    /// Ends the connections of some users, and returns how many.
    pub fn disconnect(&self, whose: impl Fn(&User) -> bool) -> usize {
        let open = self.clients.lock();
        let chosen = open.values().filter(|open| whose(&open.user));
        chosen.map(|open| shut_down(&open.socket)).count()
    }

    /// Gives calls that have not begun back to their clients, ends all connections, and waits a moment until they have
    /// ended.
    pub fn close(&mut self) {
        // It cannot be full.
        let _ = self.end.write(1);
        for thread in self.threads.drain(..) {
            // Its panic has been reported where it happened.
            let _ = thread.join();
        }
        self.listeners.clear();
        let open = self.clients.lock();
        for (unwanted, answers) in open.values().filter_map(|open| open.parting.as_ref()) {
            unwanted.store(true, Ordering::Release);
            let _ = answers.wake.write(1);
        }
        let is_served =
            |open: &mut HashMap<u64, Open>| open.values().any(|one| one.parting.is_some());
        drop(self.clients.ended.wait_timeout_while(open, CLOSE_GRACE, is_served));
        self.disconnect(|_| true);
        let open = self.clients.lock();
        let some = |open: &mut HashMap<u64, Open>| !open.is_empty();
        drop(self.clients.ended.wait_timeout_while(open, CLOSE_GRACE, some));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("attached", &self.attached()).finish_non_exhaustive()
    }
}

fn shut_down(socket: &Socket) {
    let both = nix::sys::socket::Shutdown::Both;
    // Fails for a connection that has ended.
    let _ = nix::sys::socket::shutdown(socket.socket().as_raw_fd(), both);
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection in a thread of its own, or refuses it.
    fn admit(self: &Arc<Clients>, socket: Socket, user: User) -> io::Result<()> {
        if let Err(why) = self.service.admit(&user) {
            return refuse(&*self.service, &socket, &why);
        }
        let mut open = self.lock();
        if open.len() >= self.most {
            drop(open);
            let why = format!("there are {} connections already", self.most);
            return refuse(&*self.service, &socket, &too_busy(&why));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let user = Arc::new(user);
        open.insert(
            number,
            Open { user: Arc::clone(&user), socket: Arc::clone(&socket), parting: None },
        );
        drop(open);
        let (clients, line) = (Arc::clone(self), Arc::clone(&socket));
        let attending = move || {
            if let Err(error) = clients.attend(number, line, &user)
                && !is_end(&error)
            {
                clients.service.warn(&format!("the connection of {user} ends: {error}"));
            }
            clients.forget(number);
        };
        let name = "gridrpc-client".to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(attending) {
            self.forget(number);
            return refuse(
                &*self.service,
                &socket,
                &too_busy(&format!("no thread can be started: {error}")),
            );
        }
        Ok(())
    }

    fn forget(&self, number: u64) {
        let open = self.lock().remove(&number);
        if let Some(open) = open {
            forks::forget(open.socket.socket().as_raw_fd());
        }
        self.ended.notify_all();
    }

    /// The shared memory of a user, over all connections.
    fn memory_of(&self, user: &Arc<str>) -> Arc<UserMemory> {
        let mut all = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = all.get(user).and_then(Weak::upgrade) {
            return memory;
        }
        all.retain(|_, memory| memory.strong_count() > 0);
        let memory = Arc::new(UserMemory::new(user));
        all.insert(Arc::clone(user), Arc::downgrade(&memory));
        memory
    }

    /// Answers requests of a program, or serves it as a client.
    fn attend(&self, number: u64, socket: Socket, user: &Arc<User>) -> Result<(), AgentError> {
        forks::close_in_children(socket.socket().as_raw_fd());
        let opened = Connection::new(socket, MAX_REQUEST);
        let mut connection = opened
            .map_err(|error| AgentError::System { what: "making an event descriptor", error })?;
        let answers = Arc::clone(&connection.answers);
        greet(&answers, self.grid.workers(), 0);
        let mut client_requests = ClientRequests::new(Arc::clone(&self.service), Arc::clone(user));
        let Some(wanted) = wait_for_request(&mut connection, &mut client_requests)? else {
            return Ok(());
        };
        let rights = match self.service.open(user) {
            Ok(rights) => rights,
            Err(why) => {
                reject(&answers, &why);
                return Ok(());
            }
        };
        connection.receiver.limit_payload(MAX_PAYLOAD);
        if let Some(access) = &rights.access {
            connection.receiver.limit_payload(access.max_payload());
            connection.receiver.drop_payloads(MAX_PAYLOAD);
            answers.silence();
        }
        if connection.receiver.carries_descriptors() {
            connection.places.segments().accept(self.memory_of(&user.name));
        }
        let unwanted = Arc::new(AtomicBool::new(false));
        if let Some(open) = self.lock().get_mut(&number) {
            open.parting = Some((Arc::clone(&unwanted), Arc::clone(&answers)));
        }
        if self.grid.has_hosts_on_demand() {
            answers.stay();
        }
        let parent: Arc<dyn Parent> = answers;
        self.grid.attach(&parent);
        let terms = Terms {
            owner: rights.owner,
            access: rights.access,
            takes_code: self.service.may_send_code(user),
            heartbeat: wanted.heartbeat,
            heartbeats: Arc::clone(&self.heartbeats),
            compression: wanted.compression,
            modules: wanted.modules,
            spreading: None,
            numbers: Arc::clone(&self.numbers),
            unwanted,
        };
        let served = serving::serve(&self.grid, connection, terms);
        self.grid.detach(&parent);
        self.service.close(user, rights.owner);
        served
    }
}

/// Accepts connections until `end` is signalled.
fn accept(clients: &Arc<Clients>, listener: &UnixListener, end: &EventFd) {
    let mut was_short = false;
    loop {
        let mut waited = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
        ];
        if poll(&mut waited, PollTimeout::NONE).is_err() {
            // A signal, or no memory for a moment.
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        if waited[1].any().unwrap_or(false) {
            return;
        }
        let accepted = listener.accept().and_then(|(stream, _)| {
            stream.set_nonblocking(true)?;
            let user = User::local(user_of(stream.as_fd())?);
            clients.admit(Arc::new(Unix(stream.into())), user)
        });
        match accepted {
            Ok(()) => was_short = false,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => {}
                // Programs that connect meanwhile wait in the backlog.
                _ => {
                    if !was_short {
                        let message =
                            format!("no connection can be accepted: {error}; trying again");
                        clients.service.warn(&message);
                    }
                    was_short = true;
                    thread::sleep(PAUSE);
                }
            },
        }
    }
}

/// Sends a program away, with the reason.
fn refuse(service: &dyn Service, socket: &Socket, why: &str) -> io::Result<()> {
    service.warn(&format!("a program cannot connect: {why}"));
    reject(&Connection::new(Arc::clone(socket), MAX_REQUEST)?.answers, why);
    Ok(())
}

/// Tells a program why it is not served.
fn reject(answers: &Answers, why: &str) {
    let cause = HostLoss::FAILED;
    answers.tell(&Message::NoWorkers(HostLoss { cause, why, ..HostLoss::default() }));
    // A new connection takes that much at once.
    answers.send();
}

fn too_busy(why: &str) -> String {
    format!("takes no other program now: {why}. Try again")
}

/// Whether the client has only closed its connection.
fn is_end(error: &AgentError) -> bool {
    let AgentError::Link(LinkError::Io(error)) = error else { return false };
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}
