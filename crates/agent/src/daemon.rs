//! A daemon: serves any number of clients of one user, which connect to a Unix socket, on one grid.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gridrpc_client::{Grid, Parent};
use gridrpc_core::Quota;
use gridrpc_link::{LinkError, Socket};
use gridrpc_sys::forks;
use gridrpc_transport::{Unix, listen_local, may_connect, user_of};
use gridrpc_wire::{HostLoss, Message};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::connection::Connection;
use crate::error::AgentError;
use crate::handshake::{greet, wait_for_request};
use crate::requests::{Asked, Requests};
use crate::serving::{self, BlobNumbers, Terms};

/// How long the daemon stops accepting when the system is short of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);
/// How long `close` waits for connections to end.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Serves clients until it is closed. The grid belongs to the caller, who may run calls on it too.
pub struct Daemon {
    clients: Arc<Clients>,
    end: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

struct Clients {
    grid: Arc<Grid>,
    requests: Arc<dyn Requests>,
    most: usize,
    numbers: Arc<BlobNumbers>,
    /// The connections, by a number of each.
    open: Mutex<Open>,
    /// Signalled when a connection ends.
    ended: Condvar,
}

#[derive(Default)]
struct Open {
    sockets: HashMap<u64, Socket>,
    next: u64,
}

impl Daemon {
    /// Listens at a Unix socket, and replaces an old file there. `most`: maximum number of connections; the next ones
    /// are refused.
    ///
    /// # Errors
    /// When the system refuses the socket or a thread.
    pub fn open(
        grid: Arc<Grid>,
        socket: &Path,
        requests: Arc<dyn Requests>,
        most: usize,
    ) -> io::Result<Daemon> {
        let listener = listen_local(socket)?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let end = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let (numbers, open, ended) = (Arc::default(), Mutex::default(), Condvar::new());
        let clients = Arc::new(Clients { grid, requests, most, numbers, open, ended });
        forks::close_in_children(listener.as_raw_fd());
        let (all, until) = (Arc::clone(&clients), Arc::clone(&end));
        let accepting = move || {
            accept(&all, &listener, &until);
            forks::forget(listener.as_raw_fd());
        };
        let thread = thread::Builder::new().name("gridrpc-daemon".to_owned()).spawn(accepting)?;
        Ok(Daemon { clients, end, thread: Some(thread) })
    }

    /// Number of connections.
    #[must_use]
    pub fn attached(&self) -> usize {
        self.clients.lock().sockets.len()
    }

    /// Ends all connections, and waits a moment until they have ended.
    pub fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // It cannot be full.
        let _ = self.end.write(1);
        // Its panic has been reported where it happened.
        let _ = thread.join();
        let open = self.clients.lock();
        for socket in open.sockets.values() {
            // Fails for a connection that has ended.
            let _ = nix::sys::socket::shutdown(
                socket.socket().as_raw_fd(),
                nix::sys::socket::Shutdown::Both,
            );
        }
        let some = |open: &mut Open| !open.sockets.is_empty();
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

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection in a thread of its own, or refuses it.
    fn admit(self: &Arc<Clients>, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        if !may_connect(user_of(stream.as_fd())?) {
            return Ok(());
        }
        let socket: Socket = Arc::new(Unix(stream.into()));
        let mut open = self.lock();
        if open.sockets.len() >= self.most {
            drop(open);
            return refuse(&socket, &format!("there are {} connections already", self.most));
        }
        open.next += 1;
        let number = open.next;
        open.sockets.insert(number, Arc::clone(&socket));
        drop(open);
        let (clients, line) = (Arc::clone(self), Arc::clone(&socket));
        let attending = move || {
            if let Err(error) = clients.attend(line)
                && !is_end(&error)
            {
                eprintln!("gridrpc: a connection of a program ends: {error}");
            }
            clients.forget(number);
        };
        let name = "gridrpc-client".to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(attending) {
            self.forget(number);
            return refuse(&socket, &format!("no thread can be started: {error}"));
        }
        Ok(())
    }

    fn forget(&self, number: u64) {
        let socket = self.lock().sockets.remove(&number);
        if let Some(socket) = socket {
            forks::forget(socket.socket().as_raw_fd());
        }
        self.ended.notify_all();
    }

    /// Answers requests of a program, or serves it as a client.
    fn attend(&self, socket: Socket) -> Result<(), AgentError> {
        forks::close_in_children(socket.socket().as_raw_fd());
        let opened = Connection::new(socket);
        let mut connection = opened
            .map_err(|error| AgentError::System { what: "making an event descriptor", error })?;
        let answers = Arc::clone(&connection.answers);
        greet(&answers, self.grid.workers(), 0);
        let mut asked = Asked::new(Arc::clone(&self.requests));
        let Some(wanted) = wait_for_request(&mut connection, &mut asked)? else { return Ok(()) };
        let parent: Arc<dyn Parent> = answers;
        let owner = self.grid.add_owner(Quota::NONE);
        self.grid.attach(&parent);
        let terms = Terms {
            owner,
            heartbeat: wanted.heartbeat,
            compression: wanted.compression,
            modules: wanted.modules,
            spreading: None,
            numbers: Arc::clone(&self.numbers),
            unwanted: Arc::new(AtomicBool::new(false)),
        };
        let served = serving::serve(&self.grid, connection, terms);
        self.grid.detach(&parent);
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
        let accepted = listener.accept().and_then(|(stream, _)| clients.admit(stream));
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
                        eprintln!("gridrpc: no connection can be accepted: {error}; trying again");
                    }
                    was_short = true;
                    thread::sleep(PAUSE);
                }
            },
        }
    }
}

/// Sends a program away, with the reason.
fn refuse(socket: &Socket, why: &str) -> io::Result<()> {
    eprintln!("gridrpc: a program cannot connect: {why}");
    let connection = Connection::new(Arc::clone(socket))?;
    let why = &format!("takes no other program now: {why}. Try again");
    let cause = HostLoss::FAILED;
    connection.answers.tell(&Message::NoWorkers(HostLoss { cause, why, ..HostLoss::default() }));
    // A new connection takes that much at once.
    connection.answers.settle();
    Ok(())
}

/// Whether the client has only closed its connection.
fn is_end(error: &AgentError) -> bool {
    let AgentError::Link(LinkError::Io(error)) = error else { return false };
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}
