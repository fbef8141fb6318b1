//! Nodes: network namespaces that workers live in, so that their bytes pass what links the
//! namespaces, such as pairs of virtual Ethernet devices whose rate is limited.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
use thiserror::Error;

use crate::client::launch::Pair;
use crate::transport::Tcp;

/// Why workers cannot live in a network namespace.
#[derive(Debug, Error)]
pub enum NodeError {
    /// There is no such file.
    #[error(
        "there is no network namespace `{0}`: give paths such as /run/netns/NAME; \
         `ip netns list` shows the names"
    )]
    Missing(PathBuf),
    /// The file is something else.
    #[error("`{0}` is not a network namespace: give paths such as /run/netns/NAME")]
    Foreign(PathBuf),
    /// Only root may go there.
    #[error("entering the network namespace `{0}` is not permitted: it needs root")]
    NotPermitted(PathBuf),
    /// Nothing leads there.
    #[error("the network namespace `{0}` has no IPv4 address: give its interface one")]
    NoAddress(PathBuf),
    /// It does not answer.
    #[error(
        "no connection to the network namespace `{path}` at {address}: {error}; \
         see that its link is up and that there is a route"
    )]
    Unreachable {
        /// Its file.
        path: PathBuf,
        /// Where it was tried.
        address: IpAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The system refused something else.
    #[error("in the network namespace `{path}`: {error}")]
    System {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A namespace that is ready for connections of workers.
#[derive(Debug)]
pub(crate) struct Node {
    path: PathBuf,
    /// A socket stays in the namespace that it was made in, and so does what it accepts. It does not
    /// block.
    listener: TcpListener,
    address: SocketAddrV4,
}

/// How long one end waits for the other.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Enters each namespace once, listens there, and sees that it can be reached from here. All are tried
/// at once.
pub(crate) fn open_all(paths: &[PathBuf]) -> Result<Vec<Node>, NodeError> {
    let opening = paths.iter().map(|path| Opening::begin(path)).collect::<Result<Vec<_>, _>>()?;
    let until = Instant::now() + PATIENCE;
    opening.into_iter().map(|opening| opening.finish(until)).collect()
}

impl Node {
    /// Begins a connection whose other end is in the namespace.
    pub(crate) fn begin(&self) -> Result<Attempt, NodeError> {
        Attempt::begin(self.address).map_err(|error| self.unreachable(error))
    }

    /// The next connection that has come to the namespace, and from where. Anyone there may be the
    /// first at the open port.
    pub(crate) fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        accept(&self.listener)
    }

    /// What tells, by being readable, that there is something to accept.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(crate) fn unreachable(&self, error: io::Error) -> NodeError {
        unreachable(&self.path, self.address, error)
    }

    /// A node whose connections come to this address, and are accepted by this listener.
    #[cfg(test)]
    pub(crate) fn at(listener: TcpListener, address: SocketAddr) -> Node {
        listener.set_nonblocking(true).expect("a listener that does not block");
        let SocketAddr::V4(address) = address else { panic!("{address} is not of IPv4") };
        Node { path: "/run/netns/test".into(), listener, address }
    }
}

/// Our end of a connection to a node that is being made, by the system alone.
#[derive(Debug)]
pub(crate) struct Attempt {
    ours: TcpStream,
    from: SocketAddr,
    to: SocketAddrV4,
}

impl Attempt {
    fn begin(to: SocketAddrV4) -> io::Result<Attempt> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let ours = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        match connect(ours.as_raw_fd(), &SockaddrIn::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ours = TcpStream::from(ours);
        let from = ours.local_addr()?;
        Ok(Attempt { ours, from, to })
    }

    /// Whom the other end, once it is accepted, is connected to.
    pub(crate) fn from(&self) -> SocketAddr {
        self.from
    }

    /// Why it has failed, if it has.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.ours.take_error().unwrap_or_else(Some)
    }

    /// The connection, as its other end has been accepted.
    pub(crate) fn join(self, theirs: TcpStream) -> io::Result<Pair> {
        self.ours.set_nodelay(true)?;
        theirs.set_nodelay(true)?;
        Ok(Pair { ours: Arc::new(Tcp(self.ours.into())), theirs: Arc::new(theirs.into()) })
    }
}

impl AsFd for Attempt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

/// A namespace that has a listener, and of which it is not known whether it can be reached.
struct Opening {
    path: PathBuf,
    listener: TcpListener,
    /// One for each of its addresses, without those that have failed.
    attempts: Vec<Attempt>,
    /// How the last one failed.
    failed: NodeError,
}

impl Opening {
    fn begin(path: &Path) -> Result<Opening, NodeError> {
        let owned = || path.to_owned();
        let system = |error| NodeError::System { path: owned(), error };
        let namespace = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NodeError::Missing(owned()),
            io::ErrorKind::PermissionDenied => NodeError::NotPermitted(owned()),
            _ => system(error),
        })?;
        // A thread of its own enters: the others stay where they are.
        let entered = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("gridrpc-node".into());
            let listened = thread.spawn_scoped(scope, || listen_in(&namespace));
            listened
                .map(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
        });
        let (listener, addresses) =
            entered.and_then(|listened| listened).map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM) => NodeError::NotPermitted(owned()),
                Some(libc::EINVAL) => NodeError::Foreign(owned()),
                _ => system(error),
            })?;
        let port = listener.local_addr().map_err(system)?.port();
        let mut attempts = Vec::with_capacity(addresses.len());
        let mut failed = NodeError::NoAddress(owned());
        for address in addresses {
            let address = SocketAddrV4::new(address, port);
            match Attempt::begin(address) {
                Ok(attempt) => attempts.push(attempt),
                Err(error) => failed = unreachable(path, address, error),
            }
        }
        Ok(Opening { path: owned(), listener, attempts, failed })
    }

    /// Waits for the first address that a connection comes about to.
    fn finish(mut self, until: Instant) -> Result<Node, NodeError> {
        while !self.attempts.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut waited = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            // Of our ends only failures matter, which are always told.
            waited.extend(
                self.attempts.iter().map(|one| PollFd::new(one.as_fd(), PollFlags::empty())),
            );
            match poll(&mut waited, timeout) {
                Ok(0) => {
                    let error = io::ErrorKind::TimedOut.into();
                    return Err(unreachable(&self.path, self.attempts[0].to, error));
                }
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(self.system(errno.into())),
            }
            while let Some((_, from)) =
                accept(&self.listener).map_err(|error| self.system(error))?
            {
                let attempt = self.attempts.iter().find(|one| one.from == from);
                if let Some(address) = attempt.map(|attempt| attempt.to) {
                    let Opening { path, listener, .. } = self;
                    return Ok(Node { path, listener, address });
                }
            }
            let Opening { path, attempts, failed, .. } = &mut self;
            attempts.retain(|attempt| match attempt.failure() {
                None => true,
                Some(error) => {
                    *failed = unreachable(path, attempt.to, error);
                    false
                }
            });
        }
        Err(self.failed)
    }

    fn system(&self, error: io::Error) -> NodeError {
        NodeError::System { path: self.path.clone(), error }
    }
}

fn unreachable(path: &Path, address: SocketAddrV4, error: io::Error) -> NodeError {
    NodeError::Unreachable { path: path.to_owned(), address: IpAddr::V4(*address.ip()), error }
}

/// The next connection that has come, if there is one, and from where.
fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        match listener.accept() {
            Ok(accepted) => return Ok(Some(accepted)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                // Who was there has gone again.
                io::ErrorKind::ConnectionAborted => {}
                _ => return Err(error),
            },
        }
    }
}

/// Moves this thread into the namespace. Returns a listener there, and the namespace's addresses.
fn listen_in(namespace: &File) -> io::Result<(TcpListener, Vec<Ipv4Addr>)> {
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    listener.set_nonblocking(true)?;
    let addresses = getifaddrs()?
        .filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()))
        .filter(|address| !address.is_loopback())
        .collect();
    Ok((listener, addresses))
}
