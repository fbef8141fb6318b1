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

use gridrpc_sys::process::leftovers_end;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet};
use nix::unistd::Pid;

/// Whether the spawner does not look at its connection. When it does, it sees by itself that the client
/// is gone, and ends more thoroughly than a signal's handler can.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether what workers leave behind ends with them.
static END_LEFTOVERS: AtomicBool = AtomicBool::new(false);
/// Children that stay when others are ended; of very many, the first.
static OWN: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];
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
    END_LEFTOVERS.store(leftovers_end(), Ordering::Relaxed);
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

/// Does something that may take long, or never end. `own`: children of the spawner that are no workers,
/// and that no worker has left behind.
pub(crate) fn while_busy<R>(own: impl Iterator<Item = Pid>, work: impl FnOnce() -> R) -> R {
    let own = own.map(Pid::as_raw).chain(std::iter::repeat(0));
    OWN.iter().zip(own).for_each(|(place, child)| place.store(child, Ordering::Relaxed));
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
    if END_LEFTOVERS.load(Ordering::Relaxed) {
        end_leftovers();
    }
    // SAFETY: it may be called in a signal handler.
    unsafe { libc::_exit(0) }
}

/// Ends the workers and what they have left behind: all children of this process that are not its own.
/// Only system calls, as in a signal handler.
fn end_leftovers() {
    let own = |child: &i32| OWN.iter().any(|one| one.load(Ordering::Relaxed) == *child);
    let mut children = Children::new();
    loop {
        children.look();
        // What each leaves behind in turn comes here as well.
        let mut others = children.known().iter().filter(|child| !own(child)).peekable();
        if others.peek().is_none() {
            return;
        }
        others.for_each(|child| kill_and_reap(*child));
    }
}

fn kill_and_reap(child: i32) {
    // SAFETY: they may be called in a signal handler. A child that is not reaped keeps its number.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// The children of this process, which has one thread; of very many, the first.
struct Children {
    known: [i32; 4096],
    count: usize,
}

impl Children {
    fn new() -> Children {
        Children { known: [0; 4096], count: 0 }
    }

    fn known(&self) -> &[i32] {
        &self.known[..self.count]
    }

    fn look(&mut self) {
        // SAFETY: it may be called in a signal handler.
        let ours = unsafe { libc::getpid() };
        let mut text = [0; 32 << 10];
        let read = read_into(&ProcFile::new(b"/proc/self/task/", ours, b"/children"), &mut text);
        self.count = 0;
        for word in text[..read].split(|byte| *byte == b' ') {
            let number = word.iter().try_fold(0_i32, |sum, digit| {
                sum.checked_mul(10)?.checked_add(i32::from(digit.wrapping_sub(b'0')))
            });
            if let (Some(child @ 1..), Some(place)) = (number, self.known.get_mut(self.count)) {
                *place = child;
                self.count += 1;
            }
        }
    }
}

/// The name of a file of a process, put together without memory from the heap.
struct ProcFile([u8; 64]);

impl ProcFile {
    fn new(before: &[u8], pid: i32, behind: &[u8]) -> ProcFile {
        let mut digits = [0; 10];
        let mut first = digits.len();
        let mut rest = pid.unsigned_abs();
        while rest > 0 {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let mut path = [0; 64];
        let all = before.iter().chain(&digits[first..]).chain(behind);
        path.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        ProcFile(path)
    }
}

/// How many bytes of the file there are, up to those that have room.
fn read_into(path: &ProcFile, room: &mut [u8]) -> usize {
    // SAFETY: they may be called in a signal handler; the path ends with a zero, and the room is ours.
    unsafe {
        let file = libc::open(path.0.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let mut count = 0;
        while let read @ 1.. =
            libc::read(file, room[count..].as_mut_ptr().cast(), room.len() - count)
        {
            count += read.unsigned_abs();
        }
        libc::close(file);
        count
    }
}
