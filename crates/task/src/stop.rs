//! Signals that ask the program to end: tasks look for them between two pieces of work, so that they
//! can remove what they made.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::failure::Failure;

/// The signal that came; 0: none has.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn remember(signal: i32) {
    CAME.store(signal, Ordering::Relaxed);
}

/// From now on [`look`] reports signals that ask to end. A second one ends the process at once. A
/// file that is to grow beyond the limit of a process is an error like others, and not a signal.
pub fn watch() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: a zeroed sigaction is one without flags and with an empty mask, and the handler
        // only stores a number.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = remember as extern "C" fn(i32) as usize;
            // Without SA_RESTART: what waits is interrupted.
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    // SAFETY: no handler of ours runs.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Whether a signal asked the process to end.
///
/// # Errors
///
/// [`Failure::Stopped`] if one did.
pub fn look() -> Result<(), Failure> {
    match CAME.load(Ordering::Relaxed) {
        0 => Ok(()),
        signal => Err(Failure::Stopped(signal)),
    }
}

/// Have a signal end the process, as if nobody had caught it.
pub fn end_by(signal: i32) -> u8 {
    // SAFETY: both are always allowed.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    1
}
