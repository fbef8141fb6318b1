//! Dialling a socket of this machine.

use std::collections::VecDeque;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use gridrpc_transport::{Transport as _, dial_local};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(20);

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("gridrpc-local-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A listener at `socket` in a folder, whose path may be too long to bind.
fn listener_in(folder: &Path) -> UnixListener {
    let handle = fs::File::open(folder).unwrap();
    UnixListener::bind(format!("/proc/self/fd/{}/socket", handle.as_raw_fd())).unwrap()
}

#[test]
fn a_socket_with_a_long_path_is_dialled() {
    let folder = Folder::new("long");
    let deep = folder.0.join("d".repeat(100)).join("e".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let listener = listener_in(&deep);
    let path = deep.join("socket");
    assert!(SocketAddr::from_pathname(&path).is_err(), "{} is too long", path.display());
    for timeout in [Duration::ZERO, LONG] {
        let unix = dial_local(&path, timeout).unwrap();
        let (mut daemon, _) = listener.accept().unwrap();
        daemon.write_all(b"join").unwrap();
        assert_eq!(unix.send(b"serve", &[]).unwrap(), 5);
        let mut greeting = [0; 5];
        daemon.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"serve");
        let (mut heard, mut descriptors) = ([0; 8], VecDeque::new());
        assert_eq!(unix.receive(&mut heard, &mut descriptors).unwrap(), 4);
        assert_eq!(&heard[..4], b"join");
        let empty = unix.receive(&mut heard, &mut descriptors).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::WouldBlock, "the connection does not block");
        let flags = fcntl(unix.socket(), FcntlArg::F_GETFD).unwrap();
        assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
    }
}

#[test]
fn a_socket_that_nobody_listens_at_is_an_error_at_once() {
    let folder = Folder::new("missing");
    let path = folder.0.join("socket");
    assert_eq!(dial_local(&path, LONG).unwrap_err().kind(), ErrorKind::NotFound);
    drop(listener_in(&folder.0));
    assert_eq!(dial_local(&path, LONG).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let deep = folder.0.join("d".repeat(200)).join("socket");
    assert_eq!(dial_local(&deep, LONG).unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(folder.0.join("file"), "").unwrap();
    let no_socket = dial_local(&folder.0.join("file"), LONG).unwrap_err();
    assert_eq!(no_socket.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_daemon_that_accepts_nothing_is_waited_for_until_the_timeout() {
    let folder = Folder::new("full");
    let path = folder.0.join("socket");
    let unaccepting =
        socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(unaccepting.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
    listen(&unaccepting, Backlog::new(0).unwrap()).unwrap();
    let waiting = dial_local(&path, LONG).expect("there is room for one");
    for timeout in [Duration::ZERO, SHORT] {
        assert_eq!(dial_local(&path, timeout).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    // With room again, the wait succeeds.
    let listener = UnixListener::from(unaccepting);
    let accepted: UnixStream = std::thread::scope(|scope| {
        let dialled = scope.spawn(|| dial_local(&path, LONG));
        let accepted = listener.accept().unwrap().0;
        dialled.join().unwrap().expect("room was made");
        accepted
    });
    drop((waiting, accepted));
}

#[test]
fn a_socket_of_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("only root can listen as another user");
        return;
    }
    let folder = Folder::new("foreign");
    fs::set_permissions(&folder.0, Permissions::from_mode(0o777)).unwrap();
    let path = folder.0.join("socket");
    let script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); \
                  s.listen(); print(flush=True); sys.stdin.read()";
    let mut command = Command::new("/usr/bin/env");
    command.args(["python3", "-c", script]).arg(&path).uid(4711).current_dir("/");
    let mut other = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut listens = [0; 1];
    other.stdout.take().unwrap().read_exact(&mut listens).unwrap();
    let refused = dial_local(&path, LONG).unwrap_err();
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    assert!(refused.to_string().starts_with("a process of user 4711 listens at `"), "{refused}");
}

#[test]
fn a_connection_never_blocks() {
    let folder = Folder::new("flags");
    let _listener = listener_in(&folder.0);
    let unix = dial_local(&folder.0.join("socket"), LONG).unwrap();
    let flags = fcntl(unix.socket().as_fd(), FcntlArg::F_GETFL).unwrap();
    assert!(OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK));
}
