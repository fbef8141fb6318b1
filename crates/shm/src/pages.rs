//! Filling memory files: huge pages where the kernel provides them, and optimizations where it does not.
//!
//! A new page costs more than a copy into it, four times as much with pages of 4 KiB, and each reader has to map the
//! pages one by one. Pages of 2 MiB are allocated and mapped at almost no cost. On most systems memory files do not get
//! them automatically, but `MADV_COLLAPSE` (Linux 6.1) makes them on demand.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gridrpc_sys::{HUGE_PAGE, Mapping};

/// Data longer than this gets a huge page even if it does not fill it, bytes.
pub const HUGE_FROM: u64 = 768 << 10;

/// When huge pages may be requested again, ns on the monotonic clock. Used while this process shares no state with
/// others.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// The same, shared by the processes forked by one parent.
static IN_COMMON: OnceLock<&AtomicU64> = OnceLock::new();
/// Processor time, ns, above which a huge page takes longer than small ones would.
const SLOW: u64 = 1_000_000;
/// Wait, ns, that indicates a queue behind others' requests: each request waits for all processors.
const LONG: u64 = 5_000_000;
/// Maximum number of huge pages in one request: its duration is known only afterwards.
const MOST_AT_ONCE: usize = 32;
/// How long small pages are used after a slow request.
const PAUSE: u64 = 250_000_000;

/// Lets forked processes share the observation that huge pages are slow, so that not each of hundreds of workers has
/// to find out. Without memory for that, each finds out by itself.
pub fn mark_forked() {
    if let (None, Ok(number)) = (IN_COMMON.get(), gridrpc_sys::common_number()) {
        let _ = IN_COMMON.set(number);
    }
}

fn not_before() -> &'static AtomicU64 {
    IN_COMMON.get().copied().unwrap_or(&NOT_BEFORE)
}

/// A memory file that is written from its start, and the part of it whose pages exist.
#[derive(Debug)]
pub struct Memory {
    file: Arc<OwnedFd>,
    len: usize,
    mapping: OnceLock<Mapping>,
    /// Bytes from the start whose pages exist; huge pages if it is protected.
    ready: AtomicUsize,
    /// Number of huge pages in the next request.
    at_once: AtomicUsize,
    /// Whether it can be written to through the mapping only.
    protected: AtomicBool,
}

impl Memory {
    /// Creates unwritten memory.
    pub fn new(file: OwnedFd, len: usize) -> Memory {
        Memory::of(Arc::new(file), len)
    }

    /// Memory of a file that others use too.
    pub fn of(file: Arc<OwnedFd>, len: usize) -> Memory {
        Memory {
            file,
            len,
            mapping: OnceLock::new(),
            ready: AtomicUsize::new(0),
            at_once: AtomicUsize::new(1),
            protected: AtomicBool::new(false),
        }
    }

    /// Write-protects the memory, except for its owner's existing mapping.
    ///
    /// # Errors
    /// When it cannot be mapped or sealed.
    pub fn protect(&self) -> io::Result<()> {
        if self.protected.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.map()?;
        gridrpc_sys::seal_for_others(self.file.as_fd())
    }

    /// The file to pass to a reader.
    pub fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// Its length, bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The mapping, created on first use.
    ///
    /// # Errors
    /// When there is no room in the address space.
    pub fn map(&self) -> io::Result<&Mapping> {
        if self.mapping.get().is_none() {
            let mapping = Mapping::new(self.file.as_fd(), self.len, true)?;
            // No other thread can be here: a writer has exclusive access.
            let _ = self.mapping.set(mapping);
        }
        self.mapping.get().ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Copies `bytes` to `offset`, which nobody else may access meanwhile: through the mapping where pages exist or
    /// can be huge, otherwise by `pwrite`, which takes half the time on new pages.
    ///
    /// # Errors
    /// When there is no memory for it, or it would lie outside.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len()).filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        self.make_ready(end);
        // Pages below exist; pages above are new.
        let ready = self.ready.load(Ordering::Relaxed);
        let there = if self.protected.load(Ordering::Relaxed) { end } else { ready };
        let there = there.clamp(offset, end) - offset;
        let (known, new) = bytes.split_at(there);
        if !known.is_empty() {
            let start = self.at(offset, known.len())?;
            // SAFETY: `at` has checked the place, which is ours alone until it is lent.
            unsafe { start.as_ptr().copy_from_nonoverlapping(known.as_ptr(), known.len()) };
        }
        if !new.is_empty() {
            write_at(&self.file, new, (offset + there) as u64)?;
            self.ready.fetch_max(end, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A pointer to `len` writable bytes from `offset`.
    ///
    /// # Errors
    /// When they lie outside, or cannot be mapped.
    pub fn at(&self, offset: usize, len: usize) -> io::Result<NonNull<u8>> {
        let place = self.map()?.at(offset as u64, len as u64);
        place.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Returns its memory to the system; the contents are lost. Where the kernel does not allow that, the memory is
    /// freed with its last reader.
    pub fn empty(&self) {
        if gridrpc_sys::empty(self.file.as_fd(), self.len as u64).is_ok() {
            self.ready.store(0, Ordering::Relaxed);
        }
    }

    /// Records that the pages up to `end` exist because they have been written. Not for protected memory, whose pages
    /// are to be huge.
    pub fn is_written(&self, end: usize) {
        self.ready.fetch_max(end.min(self.len), Ordering::Relaxed);
    }

    /// Makes missing huge pages up to `end`, as long as that is fast.
    pub fn make_ready(&self, end: usize) {
        let ready = self.ready.load(Ordering::Relaxed);
        if end <= ready || self.len < HUGE_PAGE {
            return;
        }
        let Ok(mapping) = self.map() else { return };
        let (mut at, last) = (ready / HUGE_PAGE, end.div_ceil(HUGE_PAGE));
        // Request more at a time while it is fast: each request waits for all processors.
        while at < last {
            let pages = self.at_once.load(Ordering::Relaxed);
            let count = pages.min(last - at);
            if !make_huge(mapping, at, count) {
                return self.at_once.store(1, Ordering::Relaxed);
            }
            at += count;
            self.ready.fetch_max(at * HUGE_PAGE, Ordering::Relaxed);
            self.at_once.store((2 * pages).min(MOST_AT_ONCE), Ordering::Relaxed);
        }
    }
}

/// Makes the kernel create `count` huge pages from page `first` of the mapping.
fn make_huge(mapping: &Mapping, first: usize, count: usize) -> bool {
    let begun = gridrpc_sys::monotonic_ns();
    if begun < not_before().load(Ordering::Relaxed) {
        return false;
    }
    let (from, len) = (first * HUGE_PAGE, count * HUGE_PAGE);
    let Some(start) = mapping.at(from as u64, len as u64) else { return false };
    let busy_before = gridrpc_sys::thread_ns();
    for at in (0..len).step_by(HUGE_PAGE) {
        // The kernel needs an existing small page to collapse.
        // SAFETY: `at` has checked the stretch; its content does not matter.
        unsafe { start.add(at).as_ptr().read_volatile() };
    }
    let collapsed = gridrpc_sys::collapse(start, len);
    let busy = gridrpc_sys::thread_ns() - busy_before;
    let waited = (gridrpc_sys::monotonic_ns() - begun).saturating_sub(busy);
    let pause = match &collapsed {
        // An older kernel, or one configured without: never ask again.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => u64::MAX - begun,
        Ok(()) if busy < SLOW * count as u64 && waited < LONG => return true,
        // Contiguous memory is short; or this is a virtual machine, whose host has reclaimed the pages and has to
        // provide them again; or hundreds of workers request pages at once.
        _ => PAUSE,
    };
    not_before().store(begun + pause, Ordering::Relaxed);
    collapsed.is_ok()
}

/// Writes all of `bytes` at `offset`.
fn write_at(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let at = i64::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let count = match nix::sys::uio::pwrite(file, bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        bytes = &bytes[count..];
        offset += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_whatever_the_pages() {
        for (len, offset) in
            [(100, 7), (HUGE_PAGE, 0), (3 * HUGE_PAGE + 5, 11), (5 * HUGE_PAGE, HUGE_PAGE - 1)]
        {
            let file = gridrpc_sys::memory_file(c"test", (6 * HUGE_PAGE) as u64).unwrap();
            let memory = Memory::new(file, 6 * HUGE_PAGE);
            let bytes: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
            for _ in 0..2 {
                memory.write(offset, &bytes).unwrap();
                let start = memory.at(offset, len).unwrap();
                // SAFETY: within the memory, which nobody writes to now.
                let read = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
                assert!(read == bytes.as_slice(), "{len} bytes at {offset}");
            }
            assert!(memory.write(6 * HUGE_PAGE - 1, &[1, 2]).is_err());
        }
    }

    #[test]
    fn a_forked_process_tells_that_huge_pages_take_long() {
        mark_forked();
        let before = not_before().load(Ordering::Relaxed);
        let until = gridrpc_sys::monotonic_ns() + 1;
        // SAFETY: the child does nothing but store a number and end.
        match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Child => {
                not_before().store(until, Ordering::Relaxed);
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(0) }
            }
            nix::unistd::ForkResult::Parent { child } => {
                nix::sys::wait::waitpid(child, None).unwrap();
            }
        }
        let after = not_before().load(Ordering::Relaxed);
        assert!(after != before && after >= until, "{before} {until} {after}");
    }

    #[test]
    fn protected_memory_can_be_written_to_by_its_owner_alone() {
        let memory = Memory::new(
            gridrpc_sys::memory_file(c"test", 2 * HUGE_PAGE as u64).unwrap(),
            2 * HUGE_PAGE,
        );
        memory.write(0, &[1; 5000]).unwrap();
        memory.protect().unwrap();
        assert!(Mapping::new(memory.file.as_fd(), 2 * HUGE_PAGE, true).is_err());
        assert!(write_at(&memory.file, &[2], 0).is_err());
        let reader = Mapping::new(memory.file.as_fd(), 2 * HUGE_PAGE, false).unwrap();
        memory.write(4000, &[3; HUGE_PAGE]).unwrap();
        // SAFETY: within the memory, which nobody writes to now.
        let read =
            unsafe { std::slice::from_raw_parts(reader.at(0, 9000).unwrap().as_ptr(), 9000) };
        assert_eq!((read[3999], read[4000], read[8999]), (1, 3, 3));
    }

    #[test]
    fn making_pages_keeps_what_is_there() {
        let memory = Memory::new(
            gridrpc_sys::memory_file(c"test", 2 * HUGE_PAGE as u64).unwrap(),
            2 * HUGE_PAGE,
        );
        write_at(&memory.file, &[5; 9000], 100).unwrap();
        memory.make_ready(HUGE_PAGE + 1);
        // SAFETY: within the memory, which nobody writes to now.
        let read = unsafe {
            std::slice::from_raw_parts(memory.at(0, HUGE_PAGE).unwrap().as_ptr(), HUGE_PAGE)
        };
        assert_eq!((read[99], read[100], read[9099], read[9100]), (0, 5, 5, 0));
    }
}
