//! Unix sockets with a name in the file system, wherever it is: a path that is too long for an address is reached
//! through its folder.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

use crate::{Unix, set_blocking};

/// Listens at a path, and replaces an old file there.
///
/// # Errors
/// When its folder is missing or the system refuses the socket.
pub fn listen_local(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    within(path, |short| UnixListener::bind(short))
}

/// Connects to a socket, as a connection that does not block. `timeout`: how long it may take to be accepted.
///
/// # Errors
/// When nobody listens there (`NotFound`, `ConnectionRefused`), or has not accepted earlier connections in time
/// (`WouldBlock`).
pub fn dial_local(path: &Path, timeout: Duration) -> io::Result<Unix> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let line = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // Without a timeout it would wait for room in the backlog for ever.
    let microseconds = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX).max(1);
    setsockopt(&line, sockopt::SendTimeout, &TimeVal::microseconds(microseconds))?;
    within(path, |short| Ok(connect(line.as_raw_fd(), &UnixAddr::new(short)?)?))?;
    setsockopt(&line, sockopt::SendTimeout, &TimeVal::zero())?;
    set_blocking(line.as_fd(), false)?;
    Ok(Unix(line))
}

/// The user at the other end of a connection.
///
/// # Errors
/// When the system does not know.
pub fn user_of(line: BorrowedFd<'_>) -> io::Result<u32> {
    Ok(getsockopt(&line, sockopt::PeerCredentials)?.uid())
}

/// Runs `with` with a short path of the same file.
fn within<T>(path: &Path, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let name = path.file_name().ok_or(Errno::EINVAL)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let folder: OwnedFd = File::options()
        .read(true)
        .custom_flags(flags.bits())
        .open(folder.unwrap_or(Path::new(".")))?
        .into();
    with(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}
