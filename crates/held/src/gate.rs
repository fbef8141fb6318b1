//! The page of memory that a waiting process shares with the one that lets it go.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::{Error, stub};

const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Of the page, the stub's instructions included.
pub(crate) const SIZE: usize = 4096;

/// What both sides read and write. The stub knows these fields by their places.
#[repr(C)]
pub(crate) struct Fields {
    /// 1: the process may continue at `at`. A futex.
    open: AtomicU32,
    /// 1: it has a real-time priority, which it is to give up when it begins.
    urgent: AtomicU32,
    /// The instant: seconds and nanoseconds of the monotonic clock.
    at: [AtomicI64; 2],
    /// When the process continued; 0: it has not.
    began: [AtomicI64; 2],
    /// The priority that it gets when it begins: a `sched_param`.
    usual: AtomicI32,
    /// The process that waits before it executes its program; 0: none does.
    waits: AtomicI32,
    /// The address where the program begins.
    entry: AtomicU64,
}

/// The page, mapped here.
#[derive(Debug)]
pub(crate) struct Gate {
    page: NonNull<Fields>,
    memory: OwnedFd,
}

// SAFETY: the page is only used through atomics.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl Gate {
    /// A closed one.
    pub(crate) fn new() -> Result<Gate, Error> {
        let memory = executable_memory()?;
        let file = File::from(memory);
        file.set_len(SIZE as u64).map_err(Error::System)?;
        let size = const { std::num::NonZeroUsize::new(SIZE).unwrap() };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of memory that is there.
        let page = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, &file, 0) }?;
        let gate = Gate { page: page.cast(), memory: file.into() };
        // SAFETY: the page has room for the stub, and nobody else uses it yet.
        unsafe { stub::write_to(page.cast().as_ptr()) };
        Ok(gate)
    }

    /// The memory of the page.
    pub(crate) fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    fn fields(&self) -> &Fields {
        // SAFETY: the mapping lives as long as this.
        unsafe { self.page.as_ref() }
    }

    /// Where the stub continues when its instant has come.
    pub(crate) fn leads_to(&self, entry: u64) {
        self.fields().entry.store(entry, Ordering::Release);
    }

    /// The process gives its priority up when it begins.
    pub(crate) fn set_urgent(&self) {
        self.fields().urgent.store(1, Ordering::Release);
    }

    /// Lets the process continue at this time of the monotonic clock, nanoseconds.
    pub(crate) fn open(&self, at: i64) {
        let fields = self.fields();
        fields.at[0].store(at.div_euclid(1_000_000_000), Ordering::Relaxed);
        fields.at[1].store(at.rem_euclid(1_000_000_000), Ordering::Relaxed);
        fields.open.store(1, Ordering::Release);
        futex_wake(fields.open.as_ptr());
    }

    /// When the process continued, nanoseconds of the monotonic clock.
    pub(crate) fn began(&self) -> Option<i64> {
        let [seconds, nanoseconds] = &self.fields().began;
        let at =
            seconds.load(Ordering::Acquire) * 1_000_000_000 + nanoseconds.load(Ordering::Acquire);
        (at > 0).then_some(at)
    }

    /// Until a process waits before its exec, which it is; None: none will.
    pub(crate) fn until_waiting(&self) -> Option<i32> {
        let waits = &self.fields().waits;
        loop {
            match waits.load(Ordering::Acquire) {
                0 => futex_wait(waits.as_ptr().cast()),
                pid => return (pid > 0).then_some(pid),
            }
        }
    }

    /// No process waits that does not already.
    pub(crate) fn will_not_wait(&self) {
        let waits = &self.fields().waits;
        let _ = waits.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Acquire);
        futex_wake(waits.as_ptr().cast());
    }

    /// Waits as the stub does, in the process itself. Only system calls, as between fork and exec.
    pub(crate) fn pass(&self) {
        let fields = self.fields();
        let urgent = has_priority(0);
        // SAFETY: a number.
        fields.waits.store(unsafe { libc::getpid() }, Ordering::Release);
        futex_wake(fields.waits.as_ptr().cast());
        while fields.open.load(Ordering::Acquire) == 0 {
            futex_wait(fields.open.as_ptr());
        }
        let (at, began) =
            ((&raw const fields.at).cast(), (&raw const fields.began).cast_mut().cast());
        // SAFETY: the addresses are those of times in a page that is mapped.
        unsafe {
            while libc::clock_nanosleep(CLOCK, libc::TIMER_ABSTIME, at, std::ptr::null_mut())
                == libc::EINTR
            {}
            libc::clock_gettime(CLOCK, began);
        }
        if urgent {
            has_usual_priority();
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.page.cast(), SIZE) };
    }
}

/// Gives a process a real-time priority, if that is allowed and it has none of another kind; 0: this
/// thread.
pub(crate) fn has_priority(pid: i32) -> bool {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: system calls, the second with the address of its parameter.
    unsafe {
        libc::sched_getscheduler(pid) == libc::SCHED_OTHER
            && libc::sched_setscheduler(pid, libc::SCHED_FIFO, &raw const priority) == 0
    }
}

/// Takes it away from this one.
pub(crate) fn has_usual_priority() {
    let usual = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const usual) };
}

/// Until it is woken, or is not 0.
fn futex_wait(word: *mut u32) {
    let no_limit = std::ptr::null::<libc::timespec>();
    // SAFETY: a system call with addresses; the kernel refuses what is no futex.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, 0, no_limit) };
}

fn futex_wake(word: *mut u32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
}

/// Memory that may be executed also where the system requires a declaration.
fn executable_memory() -> Result<OwnedFd, Error> {
    let executable = MFdFlags::from_bits_retain(libc::MFD_EXEC);
    memfd_create(c"gridbench-gate", MFdFlags::MFD_CLOEXEC | executable)
        .or_else(|_| memfd_create(c"gridbench-gate", MFdFlags::MFD_CLOEXEC)) // before Linux 6.3
        .map_err(Error::from)
}
