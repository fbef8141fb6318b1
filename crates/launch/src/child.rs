//! Child process that one thread waits for and others may end.

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
    /// Whether it has been reaped: another process may reuse its id then.
    gone: Mutex<bool>,
    ended: Condvar,
}

/// Our ends of the pipes that the command asked for.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Child {
    /// Starts a command. The calling thread must live as long as the child: the kernel takes the thread's end
    /// for the parent's (`PR_SET_PDEATHSIG`). Writing to a child that has ended does not kill this process.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Arc<Child>, Pipes)> {
        // Ctrl-C on the terminal is meant for the client, which then ends its agents.
        let mut child = command.process_group(0).spawn()?;
        // After the spawn, since the child would inherit it. C programs keep the signal's default.
        block_broken_pipe();
        let pipes = Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        };
        let pid = Pid::from_raw(child.id().cast_signed());
        Ok((Arc::new(Child { pid, gone: Mutex::new(false), ended: Condvar::new() }), pipes))
    }

    /// Waits for its end. None if the exit status is unknown because this process ignores SIGCHLD.
    pub(super) fn wait(&self) -> Option<ExitStatus> {
        // Leave it unreaped, so that nobody signals another process with the same id meanwhile.
        let kinds = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(self.pid), kinds) == Err(Errno::EINTR) {}
        let mut gone = self.lock();
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        let waited = unsafe { libc::waitpid(self.pid.as_raw(), &raw mut status, libc::WNOHANG) };
        *gone = true;
        self.ended.notify_all();
        (waited == self.pid.as_raw()).then(|| ExitStatus::from_raw(status))
    }

    /// Whether it has ended, reaped or not.
    pub(super) fn has_ended(&self) -> bool {
        let kinds = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        let gone = self.lock();
        *gone || !matches!(waitid(Id::Pid(self.pid), kinds), Ok(status) if status.pid().is_none())
    }

    /// Signals its process group, unless it has ended.
    fn signal(&self, signal: Signal) {
        let gone = self.lock();
        if !*gone {
            // Fails only if it has just ended.
            let _ = killpg(self.pid, signal);
        }
    }

    /// Waits for its end until `until`. Returns whether it ended in time.
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

    /// Asks it to exit.
    pub(super) fn ask(&self) {
        self.signal(Signal::SIGTERM);
        // A stopped process would not see the signal otherwise.
        self.signal(Signal::SIGCONT);
    }

    /// Kills it.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Asks it to exit after `first` and kills it after `timeout_option`, in a thread. Another thread waits for it.
    pub(super) fn end_soon(self: Arc<Child>, first: Duration, stop_timeout: Duration) {
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
            if !child.ends_before(begin + stop_timeout) {
                child.kill();
            }
        });
        if ends.is_err() {
            // Without the thread, nobody could do it later.
            self.kill();
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a process ended, in words.
pub(super) fn how(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "it is not known how".to_owned(), |status| status.to_string())
}

/// Makes writing to a broken pipe an error in this thread instead of a signal.
pub(super) fn block_broken_pipe() {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGPIPE);
    // Cannot fail with these arguments.
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&mask), None);
}
