//! Addresses of grid statistics: sockets with abstract names. The kernel lists them, and they end with the last
//! process that holds them, so no folder has to be created and no file is left behind.
//!
//! Every user may connect to such a socket, and every user may create one under any name. So both sides get the
//! peer's identity from the kernel: a grid answers its own user and root, and a reader trusts only a process with the
//! user and process id in the name.

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

/// How long a grid may take to answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of a document, bytes.
const LONGEST: u64 = 16 << 20;
/// Names tried for a grid. A process with the same id in another container may have taken one.
const TRIES: u32 = 16;

/// Address of a grid's statistics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatsAddress {
    /// User id of its owner.
    pub user: u32,
    /// Its process id.
    pub pid: u32,
    /// Number of the grid in its process, from 1.
    pub grid: u32,
}

/// Reason why a grid's statistics are not available.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// It is gone.
    #[error("it has ended")]
    Gone,
    /// It belongs to another user.
    #[error("it is of user {0}, and only that user and root can look at it")]
    NotYours(u32),
    /// Another process has taken its name.
    #[error("process {pid} of user {user} listens in its place, and is not believed")]
    Impostor {
        /// User id of the listening process.
        user: u32,
        /// Its process id.
        pid: i32,
    },
    /// It did not answer in time.
    #[error("it has not answered within {} s: its process may have been stopped", HANDSHAKE_TIMEOUT.as_secs())]
    Late,
    /// It did not answer correctly.
    #[error("it does not answer: {0}")]
    Silent(io::Error),
    /// Its answer is not valid.
    #[error("what it answers makes no sense: {0}")]
    Nonsense(serde_json::Error),
}

impl StatsAddress {
    fn name(&self) -> String {
        format!("gridrpc-{}-{}-{}", self.user, self.pid, self.grid)
    }

    fn named(name: &str) -> Option<StatsAddress> {
        let mut parts = name.strip_prefix("gridrpc-")?.split('-').map(str::parse);
        let mut next = || parts.next()?.ok();
        let place = StatsAddress { user: next()?, pid: next()?, grid: next()? };
        (place.name() == name).then_some(place)
    }

    /// Listens at this address, or at the next free one.
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

    /// Reads the statistics of the grid.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn look(&self) -> Result<Stats, SnapshotError> {
        let mut stream = TimedStream::new(self.connect()?, HANDSHAKE_TIMEOUT).take(LONGEST);
        let mut text = Vec::new();
        stream.read_to_end(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionReset => SnapshotError::Gone,
            io::ErrorKind::TimedOut => SnapshotError::Late,
            _ => SnapshotError::Silent(error),
        })?;
        if text.is_empty() {
            return Err(SnapshotError::Gone);
        }
        serde_json::from_slice(&text).map_err(SnapshotError::Nonsense)
    }

    /// Whether another process has taken the name of the grid.
    pub fn is_impostor(&self) -> bool {
        matches!(self.connect(), Err(SnapshotError::Impostor { .. }))
    }

    /// Connects to a process after verifying its identity.
    fn connect(&self) -> Result<UnixStream, SnapshotError> {
        let silent = |errno: Errno| SnapshotError::Silent(errno.into());
        // A process that accepts no connection would block a blocking socket forever.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd =
            socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(silent)?;
        let address = UnixAddr::new_abstract(self.name().as_bytes()).map_err(silent)?;
        connect(socket.as_raw_fd(), &address).map_err(|errno| match errno {
            Errno::ECONNREFUSED => SnapshotError::Gone,
            Errno::EAGAIN => SnapshotError::Late,
            other => silent(other),
        })?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false).map_err(SnapshotError::Silent)?;
        let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(silent)?;
        let (user, pid) = (peer.uid(), peer.pid());
        if user != self.user || !is_called(pid, self.pid) {
            return Err(SnapshotError::Impostor { user, pid });
        }
        let me = nix::unistd::geteuid().as_raw();
        if user != me && me != 0 {
            return Err(SnapshotError::NotYours(user));
        }
        Ok(stream)
    }
}

/// Whether a process has this id, perhaps in a container. A process that is not visible from here may have it.
fn is_called(process: i32, number: u32) -> bool {
    if u32::try_from(process) == Ok(number) {
        return true;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_none_or(|all| all.split_whitespace().any(|one| one.parse() == Ok(number)))
}

/// User id of the peer.
pub(crate) fn user_of(stream: &impl AsFd) -> io::Result<u32> {
    Ok(getsockopt(stream, sockopt::PeerCredentials)?.uid())
}

/// All observable grids of this machine, of all users, by process.
///
/// # Errors
/// When the kernel does not list them.
pub fn all() -> io::Result<Vec<StatsAddress>> {
    let list = fs::read("/proc/net/unix")?;
    let list = String::from_utf8_lossy(&list);
    let mut places: Vec<StatsAddress> = list.lines().filter_map(listed).collect();
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// Parses a line of /proc/net/unix. Only the listening socket counts, not its connections.
fn listed(line: &str) -> Option<StatsAddress> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, flags, .., path] = fields[..] else { return None };
    let listens = flags == "00010000";
    path.strip_prefix('@').filter(|_| listens).and_then(StatsAddress::named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_of_grids_are_found_in_the_kernels_list() {
        let line = |flags, path| {
            format!("0000000000000000: 00000002 00000000 {flags} 0001 01 4242 {path}")
        };
        let place = StatsAddress { user: 1000, pid: 77, grid: 2 };
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-77-2")), Some(place));
        assert_eq!(listed(&line("00000000", "@gridrpc-1000-77-2")), None, "a connection");
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-77")), None);
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-077-2")), None);
        assert_eq!(listed(&line("00010000", "@gridrpc-1000-77-2-1")), None);
        assert_eq!(listed(&line("00010000", "/run/gridrpc-1000-77-2")), None);
    }

    #[test]
    fn a_place_that_is_taken_is_left_to_its_owner() {
        let place = StatsAddress { user: 0, pid: std::process::id(), grid: 900 };
        let first = place.clone().listen().expect("it is free");
        let second = place.clone().listen().expect("the next one is");
        let mine = |other: &StatsAddress| other.pid == place.pid && other.grid >= place.grid;
        let there = all().expect("the kernel lists them").into_iter().filter(mine);
        assert_eq!(there.map(|other| other.grid).collect::<Vec<_>>(), [900, 901]);
        drop((first, second));
        assert!(!all().expect("the kernel lists them").iter().any(mine));
        assert!(matches!(place.look(), Err(SnapshotError::Gone)));
    }
}
