//! The spawner ends with its client whatever it is doing: also while it imports a module, or is in a
//! long call of foreign code, and so does not look at its connection.
//!
//! The kernel tells a process when the thread that started it ends. That thread may be one that waited
//! for a call just then, and end long before the client. So the signal asks first whether the client
//! is still the parent; the kernel then gives the process to another of the client's threads, and
//! tells again.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet};

/// Whether the spawner does not look at its connection. When it does, it sees by itself that the client
/// is gone, and ends more thoroughly than a signal's handler can.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whose ends matter: the parent of the spawner, and the spawner itself.
static CLIENT: AtomicI32 = AtomicI32::new(0);
static SPAWNER: AtomicI32 = AtomicI32::new(0);

/// A signal that nobody else uses: the first ones for users are the C library's or tools'.
fn number() -> libc::c_int {
    libc::SIGRTMAX() - 5
}

/// Has this process end, and its workers with it, when the client does, which `control` leads to.
///
/// # Errors
/// When the system refuses it.
pub(crate) fn end_with_client(control: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain system calls.
    let (ours, client) = unsafe { (libc::getpid(), libc::getppid()) };
    SPAWNER.store(ours, Ordering::Relaxed);
    CLIENT.store(client, Ordering::Relaxed);
    set_handler(SigHandler::Handler(parent_changed))?;
    // SAFETY: plain system call.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, number()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if has_hung_up(control)? {
        // It ended before we asked to be told.
        end();
    }
    Ok(())
}

/// Does something that may take long, or never end.
pub(crate) fn while_busy<R>(work: impl FnOnce() -> R) -> R {
    BUSY.store(true, Ordering::SeqCst);
    if has_another_parent() {
        end();
    }
    let result = work();
    BUSY.store(false, Ordering::SeqCst);
    result
}

/// In a new worker, which has the kernel end it with the spawner.
pub(crate) fn leave_to_spawner() -> io::Result<()> {
    SPAWNER.store(0, Ordering::Relaxed);
    set_handler(SigHandler::SigDfl)
}

fn set_handler(handler: SigHandler) -> io::Result<()> {
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: nix knows no signals for users; the structure is the kernel's own, and the handler only
    // makes system calls.
    let result = unsafe {
        let action: libc::sigaction = action.into();
        libc::sigaction(number(), &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn has_hung_up(control: BorrowedFd<'_>) -> io::Result<bool> {
    let mut waited = [PollFd::new(control, PollFlags::empty())];
    poll(&mut waited, PollTimeout::ZERO)?;
    Ok(waited[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP)))
}

extern "C" fn parent_changed(_: libc::c_int) {
    // SAFETY: it may be called in a signal handler.
    let ours = unsafe { libc::getpid() };
    let is_spawner = ours == SPAWNER.load(Ordering::Relaxed);
    if is_spawner && BUSY.load(Ordering::SeqCst) && has_another_parent() {
        end();
    }
}

fn has_another_parent() -> bool {
    // SAFETY: it may be called in a signal handler.
    let parent = unsafe { libc::getppid() };
    parent != CLIENT.load(Ordering::Relaxed)
}

/// Ends this process, and so its workers: the kernel kills them with it.
fn end() -> ! {
    // SAFETY: it may be called in a signal handler.
    unsafe { libc::_exit(0) }
}
