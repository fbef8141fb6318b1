//! A child process that one thread waits for, and that others may end meanwhile.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, pthread_sigmask};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// A child with a process group of its own.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    /// Whether it has been waited for: its number may be another process's from then on.
    gone: Mutex<bool>,
    ended: Condvar,
}

/// Our ends of the pipes to a child, as far as its command asked for them.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Child {
    /// Starts a command. The thread that does has to stay as long as the child: the kernel takes its end
    /// for the end of the parent (`PR_SET_PDEATHSIG`). It is not ended by writing to the child
    /// when that is gone.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Arc<Child>, Pipes)> {
        // Ctrl-C on the terminal is for the client, which then ends its agents.
        let mut child = command.process_group(0).spawn()?;
        // Only now: the child would inherit it. Programs in C keep the signal's default.
        block_broken_pipe();
        let pipes = Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        };
        let pid = Pid::from_raw(child.id().cast_signed());
        Ok((Arc::new(Child { pid, gone: Mutex::new(false), ended: Condvar::new() }), pipes))
    }

    /// Waits for its end; none if the system does not tell how it ended, since the program that
    /// this is part of ignores the ends of its children.
    pub(super) fn wait(&self) -> Option<ExitStatus> {
        // Left to be waited for, so that nobody signals another process by its number meanwhile.
        let kinds = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(self.pid), kinds) == Err(Errno::EINTR) {}
        let mut gone = self.lock();
        let mut status = 0;
        // SAFETY: `status` is a valid place to write a number to.
        let waited = unsafe { libc::waitpid(self.pid.as_raw(), &raw mut status, libc::WNOHANG) };
        *gone = true;
        self.ended.notify_all();
        (waited == self.pid.as_raw()).then(|| ExitStatus::from_raw(status))
    }

    /// Whether it has ended, be it waited for or not.
    pub(super) fn has_ended(&self) -> bool {
        let kinds = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        let gone = self.lock();
        *gone || !matches!(waitid(Id::Pid(self.pid), kinds), Ok(status) if status.pid().is_none())
    }

    /// Sends a signal to it and what it has started in its group, unless it has ended.
    fn signal(&self, signal: Signal) {
        let gone = self.lock();
        if !*gone {
            // Fails only if it has ended just now.
            let _ = killpg(self.pid, signal);
        }
    }

    /// Waits until somebody has waited for its end, or until it is too late. Says which.
    pub(super) fn ends_before(&self, until: Instant) -> bool {
        let mut gone = self.lock();
        while !*gone {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            gone = self.ended.wait_timeout(gone, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Asks it to end.
    pub(super) fn ask(&self) {
        self.signal(Signal::SIGTERM);
        // One that somebody has stopped does not see it else.
        self.signal(Signal::SIGCONT);
    }

    /// Ends it, whatever it does.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Asks it to end when `first` is over, and kills it when `patience` is, in a thread. Somebody else
    /// waits for it.
    pub(super) fn end_soon(self: Arc<Child>, first: Duration, patience: Duration) {
        let begin = Instant::now();
        if first.is_zero() {
            self.ask();
        }
        let child = Arc::clone(&self);
        let thread = std::thread::Builder::new().name("gridrpc-stop".into());
        let ends = thread.spawn(move || {
            if !first.is_zero() && !child.ends_before(begin + first) {
                child.ask();
            }
            if !child.ends_before(begin + patience) {
                child.kill();
            }
        });
        if ends.is_err() {
            // Nobody could do it later.
            self.kill();
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a process ended, for people.
pub(super) fn how(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "it is not known how".to_owned(), |status| status.to_string())
}

/// In this thread, writing to a pipe that nobody reads is an error and no signal.
pub(super) fn block_broken_pipe() {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGPIPE);
    // Cannot fail with these arguments.
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&mask), None);
}
