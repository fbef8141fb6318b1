//! Requests worker processes from the spawner, and makes the connections that they inherit.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use gridrpc_link::{Receiver, Sender, Socket};
use gridrpc_sys::depth;
use gridrpc_sys::worker_limits::Grouped;
use gridrpc_transport::Unix;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, pipe2};

use crate::config::Launch;
use crate::sync::{Time, now};

/// The process that starts workers, and the connection to it.
#[derive(Debug)]
pub(crate) struct Spawner {
    child: Pid,
    /// Its standard error, until somebody takes it.
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Whether it is a fork of this process and not a separate program.
    pub(super) forked: bool,
}

/// How a spawner ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) how: String,
    /// The signal of another process that ended it.
    pub(crate) signal: Option<i32>,
}

/// Two ends of a connection: ours is non-blocking, the worker's blocks.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) ours: Socket,
    pub(crate) theirs: Arc<OwnedFd>,
}

/// Number of retries when the kernel's queue of descriptors in flight is full, and the delay between them.
const FULL_TRIES: u32 = 2000;
const FULL_WAIT: Duration = Duration::from_millis(1);
/// How long the spawner has to answer before the reactor checks on it, ns.
pub(super) const ANSWER: u64 = 2_000_000_000;
/// How long a killed process may take to end.
const DYING: Duration = Duration::from_secs(2);

/// Messages from the spawner are small.
const NO_PAYLOAD: u64 = 0;

impl Spawner {
    /// Starts the program with its control connection as standard input.
    /// `grouped`: limits that control groups hold. `workers`: the number of workers.
    pub(crate) fn start(launch: &Launch, grouped: Grouped, workers: u32) -> io::Result<Spawner> {
        let pair = pair()?;
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments);
        for (name, value) in &launch.environment {
            command.env(name, value);
        }
        let (name, value) = depth::for_workers();
        command.env(name, value);
        launch.limits.apply(&mut command, grouped, workers);
        let control = pair.theirs.as_fd().try_clone_to_owned()?;
        let mut child = command.stdin(control).stderr(Stdio::piped()).spawn()?;
        let stderr = child.stderr.take().map(OwnedFd::from);
        let child = Pid::from_raw(child.id() as i32);
        Ok(Spawner::new(child, pair.ours, stderr, false))
    }

    /// Takes over a spawner that this process has forked.
    pub(crate) fn take_over(mut forked: Forked) -> io::Result<Spawner> {
        let (control, stderr) = forked.ends.take().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Spawner::new(forked.child, Arc::new(Unix(control)), Some(stderr), true))
    }

    fn new(child: Pid, control: Socket, stderr: Option<OwnedFd>, forked: bool) -> Spawner {
        let sender = Sender::new(Arc::clone(&control));
        Spawner { child, stderr, sender, receiver: Receiver::new(control, NO_PAYLOAD), forked }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_raw().unsigned_abs()
    }

    /// Continues the process if it has been stopped.
    pub(crate) fn urge(&self) {
        let _ = kill(self.child, Signal::SIGCONT);
    }

    /// Waits up to `timeout` for the process to end by itself, then kills it, whatever its state. Returns how it
    /// ended. A process that survives this hangs in the kernel and cannot be ended.
    pub(crate) fn end(&mut self, timeout: Duration) -> Ending {
        let by_itself = self.ends_before(now() + timeout.as_nanos() as u64);
        by_itself.unwrap_or_else(|| {
            // It has not been reaped, so the process id is still its own.
            let _ = kill(self.child, Signal::SIGKILL);
            let ended = self.ends_before(now() + DYING.as_nanos() as u64);
            let how = ended.map_or_else(|| "it does not end".to_owned(), |ending| ending.how);
            Ending { how, signal: None }
        })
    }

    /// Waits until `until` for the process to end. Returns how it ended.
    fn ends_before(&self, until: Time) -> Option<Ending> {
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place to write a number to.
            match unsafe { libc::waitpid(self.child.as_raw(), &raw mut status, libc::WNOHANG) } {
                0 if now() >= until => return None,
                0 => std::thread::sleep(Duration::from_millis(1)),
                -1 => {
                    let how = io::Error::last_os_error().to_string();
                    return Some(Ending { how, signal: None });
                }
                _ => {
                    let status = ExitStatus::from_raw(status);
                    return Some(Ending { how: status.to_string(), signal: status.signal() });
                }
            }
        }
    }
}

/// A spawner forked from this process, for a grid that is opened later. Dropping it ends it.
#[derive(Debug)]
pub struct Forked {
    child: Pid,
    /// Our ends of its connection and its standard error, until a grid takes them.
    ends: Option<(OwnedFd, OwnedFd)>,
}

impl Forked {
    /// Forks this process by `fork`, which returns the child's process id, or 0 in the child. In the child the
    /// connection becomes standard input, standard error goes to the client, and this returns `None`.
    ///
    /// The child has the client's state and one thread. It resets all signal handlers except those for crashes.
    ///
    /// The child has the state of the client, and one thread. Handlers of signals are reset in it, but
    /// for those of crashes.
    ///
    /// # Errors
    /// When the system refuses something, or `fork` fails.
    pub fn fork<E: From<io::Error>>(
        fork: impl FnOnce() -> Result<i32, E>,
    ) -> Result<Option<Forked>, E> {
        gridrpc_sys::open_standard_streams()?;
        let pair = pair()?;
        let (stderr, their_stderr) = output_pipe()?;
        // Buffered output would be written twice.
        // SAFETY: plain call of the C library.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let mut old_mask = SigSet::empty();
        // Handlers of the client must not run in the child.
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut old_mask))
            .map_err(io::Error::from)?;
        let forked = fork();
        if matches!(forked, Ok(0)) {
            reset_handlers();
        }
        let unmasked = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&old_mask), None);
        let child = forked?;
        unmasked.map_err(io::Error::from)?;
        if child == 0 {
            nix::unistd::dup2_stdin(&pair.theirs).map_err(io::Error::from)?;
            nix::unistd::dup2_stderr(&their_stderr).map_err(io::Error::from)?;
            return Ok(None);
        }
        let child = Pid::from_raw(child);
        let control = pair.ours.socket().try_clone_to_owned()?;
        Ok(Some(Forked { child, ends: Some((control, stderr)) }))
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if let Some(ends) = self.ends.take() {
            // It ends as soon as its connection closes.
            drop(ends);
            let _ = waitpid(self.child, None);
        }
    }
}

/// Signals that report a crash.
const CRASHES: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

fn reset_handlers() {
    for number in (1..=libc::SIGRTMAX()).filter(|number| !CRASHES.contains(number)) {
        // SAFETY: an all-zero structure is valid, and means the default; signals that have no handler
        // for programs are refused.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(number, std::ptr::null(), &raw mut action) == 0;
            if known && action.sa_sigaction != libc::SIG_IGN {
                action = std::mem::zeroed();
                libc::sigaction(number, &raw const action, std::ptr::null_mut());
            }
        }
    }
}

/// A pipe for a worker's standard output or error: our end, which is non-blocking, and the worker's.
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

/// A connection to a process of this machine.
pub(crate) fn pair() -> io::Result<Pair> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, flags);
    let (ours, theirs) = pair.map_err(|errno| gridrpc_sys::naming("socketpair", errno.into()))?;
    do_not_block(&ours)?;
    Ok(Pair { ours: Arc::new(Unix(ours)), theirs: Arc::new(theirs) })
}

/// Sends everything; blocking is safe because the spawner only reads.
pub(super) fn flush_control(sender: &mut Sender) -> io::Result<()> {
    for _ in 0..FULL_TRIES {
        match sender.flush() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Too many descriptors in flight: the spawner is about to receive some.
            Err(error) if error.raw_os_error() == Some(libc::ETOOMANYREFS) => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(FULL_WAIT);
    }
    Err(io::ErrorKind::TimedOut.into())
}
