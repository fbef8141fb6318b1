//! Ends the spawner with its client, even while it imports a module or is in a long call of foreign code and does not
//! watch its connection.
//!
//! The kernel signals a process when the thread that started it ends. That thread may have been waiting for a call,
//! and may end long before the client. So the signal handler first checks whether the client is still the parent. In
//! that case the kernel makes another of the client's threads the parent, and signals again.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use gridrpc_sys::process::leftovers_end;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet};
use nix::unistd::Pid;

/// Whether the spawner is not watching its connection. When it is, it notices the client's end itself, and ends more
/// thoroughly than a signal handler can.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether leftover processes end with their workers.
static END_LEFTOVERS: AtomicBool = AtomicBool::new(false);
/// Children that are not ended with the others; only the first ones if there are very many.
static OWN: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];
/// Processes whose end matters: the parent of the spawner, and the spawner itself.
static CLIENT: AtomicI32 = AtomicI32::new(0);
static SPAWNER: AtomicI32 = AtomicI32::new(0);

/// An otherwise unused signal: the C library or tools use the first real-time signals.
fn number() -> libc::c_int {
    libc::SIGRTMAX() - 5
}

/// Makes this process end, together with its workers, when the client does, which `control` leads to.
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
        // It ended before the signal was set up.
        end();
    }
    Ok(())
}

/// Runs work that may take long or never end. `own`: children of the spawner that are neither workers nor leftovers.
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

/// In a new worker, which the kernel ends with the spawner.
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

/// Ends the workers and leftovers: all children of this process that are not its own. Only system calls, as in a
/// signal handler.
fn end_leftovers() {
    let own = |child: &i32| OWN.iter().any(|one| one.load(Ordering::Relaxed) == *child);
    let mut children = Children::new();
    loop {
        children.look();
        // Their own leftovers arrive here too.
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

/// The children of this process, which has one thread; only the first ones if there are very many.
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

/// File name in the `/proc` folder of a process, built without heap memory.
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

/// Reads as much of the file as fits. Returns the number of bytes.
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
