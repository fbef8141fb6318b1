//! The Unix socket of a daemon, for programs of this machine.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen,
    setsockopt, socket, sockopt,
};
use nix::sys::stat::Mode;
use nix::sys::time::TimeVal;
use nix::unistd::geteuid;

use crate::{Unix, set_blocking};

/// Connects to the Unix stream socket at `path`, which may be longer than an address of a socket. The connection does
/// not block. `timeout`: how long to wait if the daemon has not accepted earlier connections; zero: not at all.
///
/// # Errors
/// `WouldBlock` if the daemon has not made room in time, `NotFound` and `ConnectionRefused` if there is no daemon, and
/// `PermissionDenied` if another user's process listens there.
pub fn dial_local(path: &Path, timeout: Duration) -> io::Result<Unix> {
    dial(path, timeout, may_connect)
}

/// As [`dial_local`], to a server that another user may run: the owner of the socket's folder, who alone decides what
/// is there. In a folder where everybody can write, such as `/tmp`, nobody but this user and root is accepted.
///
/// # Errors
/// As `dial_local`.
pub fn dial_local_server(path: &Path, timeout: Duration) -> io::Result<Unix> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = std::fs::metadata(folder.unwrap_or(Path::new(".")))?;
    let is_shared = folder.mode() & OTHERS_WRITE != 0;
    dial(path, timeout, |user| may_connect(user) || (!is_shared && user == folder.uid()))
}

fn dial(path: &Path, timeout: Duration, may_serve: impl Fn(u32) -> bool) -> io::Result<Unix> {
    let mut flags = SockFlag::SOCK_CLOEXEC;
    flags.set(SockFlag::SOCK_NONBLOCK, timeout.is_zero());
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let (address, folder) = address_of(path)?;
    let until = Instant::now() + timeout;
    loop {
        if !timeout.is_zero() {
            // A limit of zero would mean none.
            let left = until.saturating_duration_since(Instant::now()).max(SHORTEST);
            setsockopt(&socket, sockopt::SendTimeout, &time_value(left))?;
        }
        match connect(socket.as_raw_fd(), &address) {
            // A signal ended the wait for room.
            Err(Errno::EINTR) => {}
            ended => break ended?,
        }
    }
    drop(folder);
    let user = user_of(socket.as_fd())?;
    if !may_serve(user) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("a process of user {user} listens at `{}`", path.display()),
        ));
    }
    set_blocking(socket.as_fd(), false)?;
    Ok(Unix(socket))
}

/// Listens at a path, which may be as long, and replaces an old file there. The connections do not block.
///
/// # Errors
/// When its folder is missing, or the system refuses the socket.
pub fn listen_local(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let (address, folder) = address_of(path)?;
    bind(socket.as_raw_fd(), &address)?;
    drop(folder);
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(socket.into())
}

/// The user at the other end of a connection.
///
/// # Errors
/// When the system does not know.
pub fn user_of(socket: BorrowedFd<'_>) -> io::Result<u32> {
    Ok(getsockopt(&socket, sockopt::PeerCredentials)?.uid())
}

/// Whether a process of this one's user may be connected to one of that user.
#[must_use]
pub fn may_connect(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Connections that wait to be accepted; the next one waits before it connects.
const BACKLOG: i32 = 64;

/// Permission of a folder where everybody can write.
const OTHERS_WRITE: u32 = 0o002;

/// Shortest limit that the system accepts.
const SHORTEST: Duration = Duration::from_micros(1);

fn time_value(time: Duration) -> TimeVal {
    let seconds = time.as_secs().try_into().unwrap_or(i64::MAX);
    TimeVal::new(seconds, time.subsec_micros().into())
}

/// The address of a socket, and the descriptor of its folder if the address refers to it.
fn address_of(path: &Path) -> io::Result<(UnixAddr, Option<OwnedFd>)> {
    match UnixAddr::new(path) {
        Err(Errno::ENAMETOOLONG) => {}
        address => return Ok((address?, None)),
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = open(folder, flags, Mode::empty())?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((UnixAddr::new(&short)?, Some(folder)))
}
