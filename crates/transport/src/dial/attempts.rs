//! Attempts to reach one of several addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;

use crate::{Tcp, Tls, Transport};

/// Every address that was tried, and its result.
#[derive(Debug)]
pub struct Attempts(pub Vec<DialFailure>);

/// An address that was tried.
#[derive(Debug)]
pub struct DialFailure {
    /// The name in the ticket, `host:port`.
    pub name: String,
    /// The resolved address, if any.
    pub address: Option<SocketAddr>,
    /// Result of the attempt.
    pub failure: Failure,
}

/// Result of an attempt.
#[derive(Debug, Error)]
pub enum Failure {
    /// The name has no address.
    #[error("no address is known by this name: {0}")]
    Unknown(io::Error),
    /// The name was not resolved in time.
    #[error("no name server has answered in time")]
    Unresolved,
    /// Nothing listens there.
    #[error("{0}")]
    Unconnected(io::Error),
    /// No answer arrived in time.
    #[error("no answer")]
    Silent,
    /// The connection was accepted, but nothing answered as the client.
    #[error("the connection was accepted, but no answer came in time")]
    Mute,
    /// Another program answered.
    #[error("whoever is there is not the client of this ticket: {0}")]
    Stranger(io::Error),
    /// Time ran out before its turn.
    #[error("not tried, as time was over")]
    Untried,
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client cannot be reached from this host")?;
        for DialFailure { name, address, failure } in &self.0 {
            match address {
                Some(address) if address.to_string() != *name => {
                    write!(f, "\n  {name} ({address}): {failure}")?;
                }
                _ => write!(f, "\n  {name}: {failure}")?,
            }
        }
        f.write_str(
            "\nLet the firewall of the client's host have this host in, at the ports that `ports` in its \
             grid.toml names, or name there in `addresses` how the client is reached from here.",
        )
    }
}

/// How long after one attempt the next one starts, if the first is still pending.
const STAGGER: Duration = Duration::from_millis(300);

/// Resolved addresses, by the name's position in the ticket.
type Resolved = (usize, io::Result<Vec<SocketAddr>>);

/// How connections are encrypted, and the name that the other end has to prove.
pub(super) struct Encryption {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

pub(super) struct Dialling {
    names: Vec<String>,
    encryption: Option<Encryption>,
    until: Instant,
    /// Names being resolved, each by its own thread because it may take long.
    unresolved: Vec<usize>,
    resolved: mpsc::Receiver<Resolved>,
    news: Arc<EventFd>,
    /// Addresses to try, in the order of the names.
    waiting: BTreeMap<(usize, usize), SocketAddr>,
    attempts: Vec<Attempt>,
    tried: Vec<DialFailure>,
    /// Start of the next attempt.
    next: Instant,
}

impl Dialling {
    pub(super) fn begin(
        names: &[String],
        encryption: Option<Encryption>,
        until: Instant,
    ) -> io::Result<Dialling> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let news = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let (sender, resolved) = mpsc::channel::<Resolved>();
        let mut waiting = BTreeMap::new();
        let mut unresolved = Vec::new();
        for (index, name) in names.iter().enumerate() {
            if let Ok(address) = name.parse() {
                waiting.insert((index, 0), address);
                continue;
            }
            let (sender, news, name) = (sender.clone(), Arc::clone(&news), name.clone());
            thread::Builder::new().name("gridrpc-dial".to_owned()).spawn(move || {
                let found = name.to_socket_addrs().map(Iterator::collect);
                // Nobody may be waiting any more.
                let _ = sender.send((index, found));
                let _ = news.write(1);
            })?;
            unresolved.push(index);
        }
        Ok(Dialling {
            names: names.to_vec(),
            encryption,
            until,
            unresolved,
            resolved,
            news,
            waiting,
            attempts: Vec::new(),
            tried: Vec::new(),
            next: Instant::now(),
        })
    }

    /// The attempt that has reached the other end, if one does in time.
    pub(super) fn run(&mut self) -> io::Result<Option<Attempt>> {
        loop {
            if let Some(winner) = self.turn()? {
                return Ok(Some(winner));
            }
            if self.is_over() {
                return Ok(None);
            }
            self.wait()?;
        }
    }

    /// Makes all possible progress. Returns the attempt that has reached the other end, if any.
    fn turn(&mut self) -> io::Result<Option<Attempt>> {
        self.take_resolved();
        let mut index = 0;
        while index < self.attempts.len() {
            match self.attempts[index].advance(self.encryption.as_ref()) {
                Ok(true) => return Ok(Some(self.attempts.swap_remove(index))),
                Ok(false) => index += 1,
                Err(failure) => {
                    let failed = self.attempts.swap_remove(index);
                    self.note(failed.name, Some(failed.address), failure);
                    self.next = Instant::now();
                }
            }
        }
        while self.next <= Instant::now()
            && let Some(((name, _), address)) = self.waiting.pop_first()
        {
            match Attempt::begin(&self.names[name], address) {
                Ok(attempt) => {
                    self.attempts.push(attempt);
                    self.next = Instant::now() + STAGGER;
                }
                Err(error) => {
                    self.note(self.names[name].clone(), Some(address), Failure::Unconnected(error));
                }
            }
        }
        Ok(None)
    }

    fn take_resolved(&mut self) {
        // Read first: later news wakes this up again.
        let _ = self.news.read();
        loop {
            let (name, found) = match self.resolved.try_recv() {
                Ok(resolved) => resolved,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            };
            self.unresolved.retain(|one| *one != name);
            match found {
                Ok(addresses) => {
                    let numbered = addresses.into_iter().enumerate();
                    self.waiting.extend(numbered.map(|(number, one)| ((name, number), one)));
                }
                Err(error) => self.note(self.names[name].clone(), None, Failure::Unknown(error)),
            }
        }
    }

    fn note(&mut self, name: String, address: Option<SocketAddr>, failure: Failure) {
        self.tried.push(DialFailure { name, address, failure });
    }

    fn is_over(&self) -> bool {
        let nothing_left =
            self.attempts.is_empty() && self.waiting.is_empty() && self.unresolved.is_empty();
        nothing_left || Instant::now() >= self.until
    }

    fn wait(&self) -> io::Result<()> {
        let due = if self.waiting.is_empty() { self.until } else { self.until.min(self.next) };
        let wait = due.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        let mut waited = vec![PollFd::new(self.news.as_fd(), PollFlags::POLLIN)];
        waited.extend(self.attempts.iter().map(|one| PollFd::new(one.socket(), one.awaits())));
        match poll(&mut waited, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The results of all addresses, in arbitrary order.
    pub(super) fn give_up(mut self) -> Attempts {
        for one in std::mem::take(&mut self.attempts) {
            let silent = matches!(one.line, DialledStream::Connecting(_));
            let failure = if silent { Failure::Silent } else { Failure::Mute };
            self.note(one.name, Some(one.address), failure);
        }
        for ((name, _), address) in std::mem::take(&mut self.waiting) {
            self.note(self.names[name].clone(), Some(address), Failure::Untried);
        }
        for name in std::mem::take(&mut self.unresolved) {
            self.note(self.names[name].clone(), None, Failure::Unresolved);
        }
        Attempts(self.tried)
    }
}

/// An attempt to reach one address.
pub(super) struct Attempt {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) line: DialledStream,
}

pub(super) enum DialledStream {
    Connecting(TcpStream),
    Encrypted(Arc<Tls>),
    Plain(Tcp),
    /// Placeholder during a transition.
    Moving,
}

impl Attempt {
    fn begin(name: &str, address: SocketAddr) -> io::Result<Attempt> {
        let family = if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Stream, flags, None)?;
        setsockopt(&socket, sockopt::TcpNoDelay, &true)?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(address)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let line = DialledStream::Connecting(TcpStream::from(socket));
        Ok(Attempt { name: name.to_owned(), address, line })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        match &self.line {
            DialledStream::Connecting(stream) => stream.as_fd(),
            DialledStream::Encrypted(tls) => tls.socket(),
            DialledStream::Plain(tcp) => tcp.socket(),
            DialledStream::Moving => unreachable!("a line moves only within `advance`"),
        }
    }

    fn awaits(&self) -> PollFlags {
        match &self.line {
            DialledStream::Connecting(_) => PollFlags::POLLOUT,
            _ => PollFlags::POLLIN,
        }
    }

    /// Continues without blocking. `Ok(true)`: it has reached the other end.
    fn advance(&mut self, encryption: Option<&Encryption>) -> Result<bool, Failure> {
        if let DialledStream::Connecting(stream) = &self.line {
            if let Some(error) = stream.take_error().map_err(Failure::Unconnected)? {
                return Err(Failure::Unconnected(error));
            }
            match stream.peer_addr() {
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(Failure::Unconnected(error)),
                Ok(_) => {}
            }
            if let DialledStream::Connecting(stream) =
                std::mem::replace(&mut self.line, DialledStream::Moving)
            {
                let socket = OwnedFd::from(stream);
                self.line = match encryption {
                    None => DialledStream::Plain(Tcp(socket)),
                    Some(Encryption { config, name }) => {
                        let tls = Tls::connect_with(socket, Arc::clone(config), name.clone());
                        let tls = tls.map_err(Failure::Unconnected)?;
                        DialledStream::Encrypted(Arc::new(tls))
                    }
                };
            }
        }
        match &self.line {
            DialledStream::Encrypted(tls) => tls.advance().map_err(Failure::Stranger),
            _ => Ok(true),
        }
    }
}
