//! Where grids can be looked at: sockets with abstract names, which the kernel lists, and which end with the last
//! process that has them. So there is no folder to be made, and no file to be left behind.
//!
//! Everybody may connect to such a socket, and everybody may make one under any name. So both sides ask the kernel who
//! the other is: a grid answers its own user and root, and whoever looks believes a process of the user and of the
//! number that the name has, and no other.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use gridrpc_sys::timed_stream::TimedStream;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt,
};
use thiserror::Error;

use crate::live::Stats;

/// How long a grid has to answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest document that is read, bytes.
const LONGEST: u64 = 16 << 20;
/// Names tried for a grid: one may be taken, by a process of another container that has the same number.
const TRIES: u32 = 16;

/// Where a grid can be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Whose it is.
    pub user: u32,
    /// Its process.
    pub pid: u32,
    /// Which of that process, from 1 on.
    pub grid: u32,
}

/// Why nothing is known of a grid.
#[derive(Debug, Error)]
pub enum LookError {
    /// It is gone.
    #[error("it has ended")]
    Gone,
    /// It is another user's.
    #[error("it is of user {0}, and only that user and root can look at it")]
    NotYours(u32),
    /// Somebody else has taken its name.
    #[error("process {pid} of user {user} listens in its place, and is not believed")]
    Impostor {
        /// Who listens.
        user: u32,
        /// Its process.
        pid: i32,
    },
    /// It takes longer than a grid does.
    #[error("it has not answered within {} s: its process may have been stopped", HANDSHAKE_TIMEOUT.as_secs())]
    Late,
    /// It does not answer as it should.
    #[error("it does not answer: {0}")]
    Silent(io::Error),
    /// It answers something else.
    #[error("what it answers makes no sense: {0}")]
    Nonsense(serde_json::Error),
}

impl Place {
    fn name(&self) -> String {
        format!("gridrpc-{}-{}-{}", self.user, self.pid, self.grid)
    }

    fn named(name: &str) -> Option<Place> {
        let mut parts = name.strip_prefix("gridrpc-")?.split('-').map(str::parse);
        let mut next = || parts.next()?.ok();
        let place = Place { user: next()?, pid: next()?, grid: next()? };
        (place.name() == name).then_some(place)
    }

    /// Listens there, or at the next place that is free.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn listen(mut self) -> io::Result<UnixListener> {
        for _ in 1..TRIES {
            match UnixListener::bind_addr(&SocketAddr::from_abstract_name(self.name())?) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => self.grid += 1,
                other => return other,
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// What the grid there tells.
    ///
    /// # Errors
    /// When it tells nothing.
    pub fn look(&self) -> Result<Stats, LookError> {
        let mut stream = TimedStream::new(self.connect()?, HANDSHAKE_TIMEOUT).take(LONGEST);
        let mut text = Vec::new();
        stream.read_to_end(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionReset => LookError::Gone,
            io::ErrorKind::TimedOut => LookError::Late,
            _ => LookError::Silent(error),
        })?;
        if text.is_empty() {
            return Err(LookError::Gone);
        }
        serde_json::from_slice(&text).map_err(LookError::Nonsense)
    }

    /// Whether somebody else has taken the name of a grid.
    pub fn is_impostor(&self) -> bool {
        matches!(self.connect(), Err(LookError::Impostor { .. }))
    }

    /// Connects to a process that may be believed.
    fn connect(&self) -> Result<UnixStream, LookError> {
        let silent = |errno: Errno| LookError::Silent(errno.into());
        // A process that accepts nobody would keep a blocking one for ever.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd =
            socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(silent)?;
        let address = UnixAddr::new_abstract(self.name().as_bytes()).map_err(silent)?;
        connect(socket.as_raw_fd(), &address).map_err(|errno| match errno {
            Errno::ECONNREFUSED => LookError::Gone,
            Errno::EAGAIN => LookError::Late,
            other => silent(other),
        })?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false).map_err(LookError::Silent)?;
        let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(silent)?;
        let (user, pid) = (peer.uid(), peer.pid());
        if user != self.user || !is_called(pid, self.pid) {
            return Err(LookError::Impostor { user, pid });
        }
        let me = nix::unistd::geteuid().as_raw();
        if user != me && me != 0 {
            return Err(LookError::NotYours(user));
        }
        Ok(stream)
    }
}

/// Whether a process has this number, perhaps in a container. One that cannot be seen from here may have it.
fn is_called(process: i32, number: u32) -> bool {
    if u32::try_from(process) == Ok(number) {
        return true;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_none_or(|all| all.split_whitespace().any(|one| one.parse() == Ok(number)))
}

/// Who is at the other end.
pub(crate) fn user_of(stream: &impl AsFd) -> io::Result<u32> {
    Ok(getsockopt(stream, sockopt::PeerCredentials)?.uid())
}

/// All grids of this machine that can be looked at, of all users, by process.
///
/// # Errors
/// When the kernel does not list them.
pub fn all() -> io::Result<Vec<Place>> {
    let list = fs::read("/proc/net/unix")?;
    let list = String::from_utf8_lossy(&list);
    let mut places: Vec<Place> = list.lines().filter_map(listed).collect();
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// The place that a line of /proc/net/unix tells of. Only the listening socket counts, not its connections.
fn listed(line: &str) -> Option<Place> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, flags, .., path] = fields[..] else { return None };
    let listens = flags == "00010000";
    path.strip_prefix('@').filter(|_| listens).and_then(Place::named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_of_grids_are_found_in_the_kernels_list() {
        let line = |flags, path| {
            format!("0000000000000000: 00000002 00000000 {flags} 0001 01 4242 {path}")
        };
        let place = Place { user: 1000, pid: 77, grid: 2 };
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-77-2")), Some(place));
        assert_eq!(listed(&line("00000000", "@gridrpc-1000-77-2")), None, "a connection");
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-77")), None);
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-077-2")), None);
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-77-2-1")), None);
        assert_eq!(listed(&line("00010000", "/run/gridrpc-1000-77-2")), None);
    }

    #[test]
    fn a_place_that_is_taken_is_left_to_its_owner() {
        let place = Place { user: 0, pid: std::process::id(), grid: 900 };
        let first = place.clone().listen().expect("it is free");
        let second = place.clone().listen().expect("the next one is");
        let mine = |other: &Place| other.pid == place.pid && other.grid >= place.grid;
        let there = all().expect("the kernel lists them").into_iter().filter(mine);
        assert_eq!(there.map(|other| other.grid).collect::<Vec<_>>(), [900, 901]);
        drop((first, second));
        assert!(!all().expect("the kernel lists them").iter().any(mine));
        assert!(matches!(place.look(), Err(LookError::Gone)));
    }
}
