//! Connections between a worker and its ranks: a Unix socket where all are on one node, TCP otherwise.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gridrpc_transport::addresses;
use nix::unistd::{gethostname, mkdtemp};

use super::protocol::Connection;

/// Environment variable with the secret that ranks on other nodes send first.
pub(super) const SECRET: &str = "GRIDRPC_RANKS_SECRET";
/// Start of the place of a worker with ranks on several nodes; `HOST:PORT` follows, several with commas.
const TCP: &str = "tcp://";
/// Length of a secret, bytes.
const SECRET_LEN: usize = 32;
/// How long one address may take to answer, and a rank to send the secret.
const PATIENCE: Duration = Duration::from_secs(5);

/// The worker's end, for as long as ranks are started.
#[derive(Debug)]
pub(super) enum Listener {
    /// All ranks are on this node.
    Local(UnixListener, Folder),
    /// Ranks are on several nodes.
    Remote(TcpListener, String),
}

impl Listener {
    pub(super) fn local() -> io::Result<Listener> {
        let folder = Folder::new()?;
        let listener = UnixListener::bind(folder.place())?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Local(listener, folder))
    }

    pub(super) fn remote() -> io::Result<Listener> {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        listener.set_nonblocking(true)?;
        let secret: [u8; SECRET_LEN / 2] = gridrpc_sys::random()?;
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Listener::Remote(listener, secret))
    }

    /// Where ranks connect to, as an argument for them.
    pub(super) fn place(&self) -> io::Result<OsString> {
        match self {
            Listener::Local(_, folder) => Ok(folder.place().into()),
            Listener::Remote(listener, _) => {
                let port = listener.local_addr()?.port();
                let hosts = hosts();
                let all = hosts.iter().map(|host| addresses::with_port(host, port));
                Ok(format!("{TCP}{}", all.collect::<Vec<_>>().join(",")).into())
            }
        }
    }

    /// The secret that ranks have to know, if any.
    pub(super) fn secret(&self) -> Option<&str> {
        match self {
            Listener::Local(..) => None,
            Listener::Remote(_, secret) => Some(secret),
        }
    }

    /// Accepts a connection of a rank, if there is one.
    pub(super) fn accept(&self) -> io::Result<Connection> {
        match self {
            Listener::Local(listener, _) => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                Ok(Connection { socket: socket.into(), passes_memory: true })
            }
            Listener::Remote(listener, secret) => {
                let (mut socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                let mut sent = [0; SECRET_LEN];
                socket.read_exact(&mut sent)?;
                // Takes as long for a wrong secret as for a right one.
                let pairs = sent.iter().zip(secret.as_bytes());
                if pairs.fold(0, |differs, (sent, right)| differs | (sent ^ right)) != 0 {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                socket.set_read_timeout(None)?;
                Ok(Connection { socket: socket.into(), passes_memory: false })
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Local(listener, _) => listener.as_fd(),
            Listener::Remote(listener, _) => listener.as_fd(),
        }
    }
}

/// Names and addresses of this node for the others, the most likely first.
pub fn hosts() -> Vec<String> {
    let name = gethostname().ok().and_then(|name| name.into_string().ok());
    name.into_iter().chain(addresses::of_this_host()).collect()
}

/// Connects a rank to its worker.
pub(super) fn connect(place: &OsStr) -> io::Result<Connection> {
    let remote = place.to_str().and_then(|place| place.strip_prefix(TCP));
    let Some(remote) = remote else {
        let socket: OwnedFd = UnixStream::connect(Path::new(place))?.into();
        return Ok(Connection { socket, passes_memory: true });
    };
    let secret = std::env::var(SECRET).map_err(|_| {
        io::Error::other(format!("{SECRET} is not set: `mpirun` has not passed it on"))
    })?;
    let mut why = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in remote.split(',').filter_map(|host| host.to_socket_addrs().ok()).flatten() {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(mut socket) => {
                socket.set_nodelay(true)?;
                socket.write_all(secret.as_bytes())?;
                return Ok(Connection { socket: socket.into(), passes_memory: false });
            }
            Err(error) => why = error,
        }
    }
    Err(io::Error::new(why.kind(), format!("the worker at {remote} cannot be reached: {why}")))
}

/// A private folder of this user, for as long as ranks are started.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        Ok(Folder(mkdtemp(&std::env::temp_dir().join("gridrpc-ranks-XXXXXX"))?))
    }

    fn place(&self) -> PathBuf {
        self.0.join("worker")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_is_let_in() {
        let listener = Listener::remote().unwrap();
        let place = listener.place().unwrap().into_string().unwrap();
        let port: u16 = place.rsplit_once(':').unwrap().1.parse().unwrap();
        let came = || loop {
            match listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                came => return came,
            }
        };
        let mut wrong = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        wrong.write_all(&[b'0'; SECRET_LEN]).unwrap();
        assert_eq!(came().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let mut right = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        right.write_all(listener.secret().unwrap().as_bytes()).unwrap();
        assert!(!came().unwrap().passes_memory);
    }
}
