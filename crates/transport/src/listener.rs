//! Listener that other hosts dial. It admits agents that present a secret they have been given, over TLS only those
//! with the key of the grid, or users with a certificate of a trusted authority.
//!
//! Anybody who reaches the port may connect. So one thread handles all connections, never blocks on one, and drops
//! those that do not present a secret or a certificate soon.

mod admission;
mod error;
mod handshake;
mod pending;
mod sockets;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gridrpc_sys::forks;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::SECRET;

pub use admission::{Admission, OnRefused};
pub use error::HandshakeError;
pub use handshake::{ADMITTED, Admitted};
use handshake::{Handshake, HandshakeState};
use pending::PendingConnections;
pub use sockets::listen;

/// A port that other hosts dial. Dropping it closes the port.
pub struct Listener {
    port: u16,
    refused: Arc<AtomicU64>,
    invitations: Arc<Invitations>,
    end: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// Maximum number of connections that have not been admitted.
const PENDING: usize = 256;
/// How long each connection has to present its secret or certificate.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of connections accepted before the others are handled.
const AT_ONCE: usize = 16;
/// How long the listener stops accepting when the system has no room for more connections.
const PAUSE: Duration = Duration::from_millis(100);

/// Receives the admitted agents and users.
type Admit = Box<dyn Fn(Admitted) + Send + Sync>;

/// Expected agents, by the hash of the secret: the duration of a lookup reveals nothing about secrets.
struct Invitations {
    known: Mutex<Invited>,
    admit: Admit,
    /// How many agents may wait for their invitation.
    early: usize,
}

#[derive(Default)]
struct Invited {
    invited: HashMap<[u8; 32], u32>,
    /// Agents that connected before their invitation: the oldest first, with the hash of the secret and the end of
    /// the wait.
    early: Vec<([u8; 32], Instant, Admitted)>,
}

impl Invitations {
    fn lock(&self) -> MutexGuard<'_, Invited> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a connection that has presented this secret, which becomes invalid.
    fn shown(&self, secret: &[u8; SECRET], who: Admitted) {
        let hash = *blake3::hash(secret).as_bytes();
        let mut known = self.lock();
        if let Some(agent) = known.invited.remove(&hash) {
            drop(known);
            return (self.admit)(Admitted { agent, ..who });
        }
        let now = Instant::now();
        known.early.retain(|(_, until, _)| *until > now);
        if self.early > 0 {
            if known.early.len() >= self.early {
                known.early.remove(0);
            }
            known.early.push((hash, now + HANDSHAKE_TIMEOUT, who));
        }
    }

    fn invite(&self, agent: u32, secret: &[u8; SECRET]) {
        let hash = *blake3::hash(secret).as_bytes();
        let mut known = self.lock();
        known.invited.retain(|_, invited| *invited != agent);
        let Some(place) = known.early.iter().position(|(shown, ..)| *shown == hash) else {
            known.invited.insert(hash, agent);
            return;
        };
        let (.., who) = known.early.remove(place);
        drop(known);
        (self.admit)(Admitted { agent, ..who });
    }
}

impl Listener {
    /// Opens a port at each of these addresses, or at all addresses of this host if there are none: one in `ports`,
    /// from the first to the last, or else one that the system chooses. `admit` is called by the listener's thread, or
    /// by the thread that invites, and must not block.
    ///
    /// # Errors
    /// When no port is free, or an address is none of this host's.
    pub fn open(
        addresses: &[IpAddr],
        ports: Option<(u16, u16)>,
        admission: Admission,
        admit: impl Fn(Admitted) + Send + Sync + 'static,
    ) -> io::Result<Listener> {
        let (listeners, port) = sockets::listen(addresses, ports)?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let end = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let (known, admit) = (Mutex::default(), Box::new(admit));
        let early = if let Admission::Secret { early, .. } = &admission { *early } else { 0 };
        let refused = Arc::new(AtomicU64::new(0));
        let invitations = Arc::new(Invitations { known, admit, early });
        let porter = ListenerThread {
            listeners,
            admission,
            refused: Arc::clone(&refused),
            invitations: Arc::clone(&invitations),
            end: Arc::clone(&end),
            pending: PendingConnections::new(PENDING),
            pause: None,
        };
        // A forked child must not keep the port.
        porter.listeners.iter().for_each(|one| forks::close_in_children(one.as_raw_fd()));
        let name = "gridrpc-door".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || porter.serve())?;
        Ok(Listener { port, refused, invitations, end, thread: Some(thread) })
    }

    /// The port, the same at all addresses.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of connections that were not admitted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Admits the first connection that presents this secret, as this agent. Its earlier invitation becomes invalid.
    pub fn invite(&self, agent: u32, secret: &[u8; SECRET]) {
        self.invitations.invite(agent, secret);
    }

    /// Revokes the invitation of this agent. An admitted agent stays.
    pub fn revoke(&self, agent: u32) {
        self.invitations.lock().invited.retain(|_, invited| *invited != agent);
    }

    /// Closes the port and all connections that have not been admitted. Nobody is admitted after it has returned,
    /// unless `admit` itself calls it.
    pub fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // It cannot be full.
        let _ = self.end.write(1);
        if thread.thread().id() != thread::current().id() {
            // Its panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("port", &self.port).finish_non_exhaustive()
    }
}

/// State of the listener's thread.
struct ListenerThread {
    listeners: Vec<TcpListener>,
    admission: Admission,
    refused: Arc<AtomicU64>,
    invitations: Arc<Invitations>,
    end: Arc<EventFd>,
    pending: PendingConnections<Handshake>,
    /// Time until which nothing is accepted.
    pause: Option<Instant>,
}

impl ListenerThread {
    fn serve(mut self) {
        loop {
            let now = Instant::now();
            for late in self.pending.take_expired(now) {
                self.refuse(late.from, HandshakeError::Timeout);
            }
            self.pause = self.pause.filter(|until| *until > now);
            let Some((newcomers, ready)) = self.wait(now) else { return };
            self.advance(&ready);
            if newcomers {
                self.accept();
            }
        }
    }

    /// Continues the connections that are ready.
    fn advance(&mut self, ready: &[bool]) {
        let mut ready = ready.iter();
        let mut ended = Vec::new();
        for mut one in self.pending.take_all() {
            if !*ready.next().unwrap_or(&false) {
                self.pending.push(one);
                continue;
            }
            match one.advance() {
                HandshakeState::Pending => self.pending.push(one),
                progress => ended.push((one, progress)),
            }
        }
        for (one, progress) in ended {
            match progress {
                HandshakeState::Pending => {}
                HandshakeState::Refused(reason) => self.refuse(one.from, reason),
                HandshakeState::Secret(secret) => {
                    self.invitations.shown(&secret, one.admitted(None))
                }
                HandshakeState::Certificate(who) => {
                    (self.invitations.admit)(one.admitted(Some(who)))
                }
            }
        }
    }

    fn refuse(&self, from: SocketAddr, reason: HandshakeError) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if let Admission::Certificate { refused, .. } = &self.admission {
            refused(from, reason);
        }
    }

    /// Waits for events. Returns whether there are new connections, and which of the others are readable; `None`: the
    /// listener is to be closed.
    fn wait(&self, now: Instant) -> Option<(bool, Vec<bool>)> {
        let dues = self.pending.iter().map(|one| one.until).chain(self.pause);
        let timeout = dues.min().map_or(PollTimeout::NONE, |due| {
            let wait = due.saturating_duration_since(now) + Duration::from_millis(1);
            PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
        });
        let listeners = if self.pause.is_none() { self.listeners.as_slice() } else { &[] };
        let mut waited = vec![PollFd::new(self.end.as_fd(), PollFlags::POLLIN)];
        waited.extend(listeners.iter().map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN)));
        waited.extend(self.pending.iter().map(|one| PollFd::new(one.socket(), PollFlags::POLLIN)));
        if poll(&mut waited, timeout).is_err() {
            // A signal, or no memory for a moment: do not spin on it.
            thread::sleep(Duration::from_millis(1));
            return Some((false, Vec::new()));
        }
        let ready: Vec<bool> = waited
            .iter()
            .map(|one| one.revents().is_none_or(|events| !events.is_empty()))
            .collect();
        let (first, others) = ready[1..].split_at(listeners.len());
        (!ready[0]).then(|| (first.contains(&true), others.to_vec()))
    }

    fn accept(&mut self) {
        for index in 0..self.listeners.len() {
            for _ in 0..AT_ONCE {
                let (stream, from) = match self.listeners[index].accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Connections that are already closed, and signals.
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                        ) =>
                    {
                        continue;
                    }
                    // They are still queued when there is room again.
                    Err(_) => {
                        self.pause = Some(Instant::now() + PAUSE);
                        return;
                    }
                };
                let until = Instant::now() + HANDSHAKE_TIMEOUT;
                // A connection that is already closed can be ignored.
                let Ok(one) = Handshake::new(stream, from, &self.admission, until) else {
                    continue;
                };
                if let Some(dropped) = self.pending.make_room() {
                    self.refuse(dropped.from, HandshakeError::Crowded);
                }
                self.pending.push(one);
            }
        }
    }
}

impl Drop for ListenerThread {
    fn drop(&mut self) {
        self.listeners.iter().for_each(|one| forks::forget(one.as_raw_fd()));
    }
}
