//! Nodes: network namespaces that workers live in, so that their bytes pass what links the
//! namespaces, such as pairs of virtual Ethernet devices whose rate is limited.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use thiserror::Error;

use crate::client::launch::Pair;

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
    /// A socket stays in the namespace that it was made in, and so does what it accepts.
    listener: TcpListener,
    address: SocketAddr,
}

/// How long one end waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

impl Node {
    /// Enters the namespace once, listens there, and sees that it can be reached from here.
    pub(crate) fn open(path: &Path) -> Result<Node, NodeError> {
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
        let mut failed = NodeError::NoAddress(owned());
        for address in addresses {
            let address = SocketAddr::from((address, port));
            match connect(&listener, address) {
                Ok(_) => return Ok(Node { path: owned(), listener, address }),
                Err(error) => {
                    let address = address.ip();
                    failed = NodeError::Unreachable { path: owned(), address, error };
                }
            }
        }
        Err(failed)
    }

    /// A connection for one worker, whose end is in the namespace.
    pub(crate) fn connect(&self) -> Result<Pair, NodeError> {
        connect(&self.listener, self.address).map_err(|error| NodeError::Unreachable {
            path: self.path.clone(),
            address: self.address.ip(),
            error,
        })
    }
}

/// A connection from here to the listener, which is at this address.
fn connect(listener: &TcpListener, address: SocketAddr) -> io::Result<Pair> {
    let until = Instant::now() + PATIENCE;
    let ours = TcpStream::connect_timeout(&address, PATIENCE)?;
    let expected = ours.local_addr()?;
    // Anyone in the namespace may be first at the open port.
    let theirs = loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let mut waited = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waited, timeout) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        match listener.accept() {
            Ok((stream, peer)) if peer == expected => break stream,
            Ok(_) => {}
            // Who was there has gone again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    };
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    ours.set_nonblocking(true)?;
    Ok(Pair { ours: Arc::new(ours.into()), theirs: Arc::new(theirs.into()) })
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
