//! Waits that signals and keys interrupt.

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that end this program or report a change of the terminal.
#[derive(Debug)]
pub(super) struct Signals(SignalFd);

/// Result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalEvent {
    Nothing,
    Resized,
    End,
}

impl Signals {
    /// Receives these signals here from now on.
    pub(super) fn new() -> io::Result<Signals> {
        let ends = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGWINCH];
        let mask: SigSet = ends.into_iter().collect();
        mask.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals(SignalFd::with_flags(&mask, flags)?))
    }

    /// Waits for `timeout` or until something happens; with `keys` also for a key that quits.
    pub(super) fn wait(&self, timeout: Duration, keys: bool) -> io::Result<TerminalEvent> {
        let timeout = PollTimeout::try_from(timeout.as_millis() + 1).unwrap_or(PollTimeout::MAX);
        let stdin = io::stdin();
        let mut ready = vec![PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        if keys {
            ready.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut ready, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(TerminalEvent::Nothing),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if ready.get(1).is_some_and(|keys| keys.any() == Some(true)) {
            let mut key = [0; 64];
            let count = stdin.lock().read(&mut key)?;
            let quits = |key: &u8| matches!(key, b'q' | b'Q' | 3 | 4);
            if count == 0 || key[..count].iter().any(quits) {
                return Ok(TerminalEvent::End);
            }
        }
        Ok(match self.0.read_signal()? {
            None => TerminalEvent::Nothing,
            Some(info) if info.ssi_signo == Signal::SIGWINCH as u32 => TerminalEvent::Resized,
            Some(_) => TerminalEvent::End,
        })
    }
}
