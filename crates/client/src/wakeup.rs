//! Wake-up of the thread that holds the reactor lock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::reactor_lock::Wake;

/// A descriptor that becomes readable when somebody wants the reactor.
#[derive(Debug)]
pub(crate) struct Wakeup(EventFd);

impl Wakeup {
    pub(crate) fn new() -> io::Result<Wakeup> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Wakeup(EventFd::from_value_and_flags(0, flags)?))
    }

    /// Clears the wake-up.
    pub(crate) fn clear(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Wake for Wakeup {
    fn wake(&self) {
        // Fails only when the counter is full, and then the reactor is awake.
        let _ = self.0.write(1);
    }
}
