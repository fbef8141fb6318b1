//! Asking the spawner for worker processes, and making the connections that they inherit.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::pipe2;

use crate::client::grid::{Launch, Transport};
use crate::link::{Receiver, Sender, Socket};

/// The process that starts workers, and the connection to it.
#[derive(Debug)]
pub(crate) struct Spawner {
    pub(crate) child: Child,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

/// Two ends of a connection: ours does not block, the worker's does.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) ours: Socket,
    pub(crate) theirs: Arc<OwnedFd>,
}

/// Messages from the spawner are small.
const NO_PAYLOAD: u64 = 0;

impl Spawner {
    /// Starts the program with its control connection as standard input.
    pub(crate) fn start(launch: &Launch) -> io::Result<Spawner> {
        let pair = unix_pair()?;
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments);
        for (name, value) in &launch.environment {
            command.env(name, value);
        }
        let control = pair.theirs.as_fd().try_clone_to_owned()?;
        let child = command.stdin(control).stderr(Stdio::piped()).spawn()?;
        let sender = Sender::new(Arc::clone(&pair.ours));
        let receiver = Receiver::new(pair.ours, NO_PAYLOAD);
        Ok(Spawner { child, sender, receiver })
    }
}

/// A connection for one worker on this host.
pub(crate) fn connect(transport: Transport) -> io::Result<Pair> {
    match transport {
        Transport::Unix => unix_pair(),
        Transport::Tcp => tcp_pair(),
    }
}

/// A pipe for a worker's standard output or error: our end, which does not block, and the worker's.
pub(crate) fn output_pipe() -> io::Result<(OwnedFd, Arc<OwnedFd>)> {
    let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
    do_not_block(&ours)?;
    Ok((ours, Arc::new(theirs)))
}

pub(crate) fn do_not_block(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: plain system calls on a descriptor that lives as long as `file`.
    let result = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn unix_pair() -> io::Result<Pair> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)?;
    do_not_block(&ours)?;
    Ok(Pair { ours: Arc::new(ours), theirs: Arc::new(theirs) })
}

fn tcp_pair() -> io::Result<Pair> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let theirs = TcpStream::connect(listener.local_addr()?)?;
    let expected = theirs.local_addr()?;
    // Another user of this host may be first at the open port.
    let ours = loop {
        let (stream, peer) = listener.accept()?;
        if peer == expected {
            break stream;
        }
    };
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    ours.set_nonblocking(true)?;
    Ok(Pair { ours: Arc::new(ours.into()), theirs: Arc::new(theirs.into()) })
}
