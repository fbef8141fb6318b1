//! Filling memory files: huge pages where the kernel gives them, and what helps where it does not.
//!
//! A new page costs more than a copy into it, four times as much with pages of 4 KiB, and each
//! reader has to map them one by one. Pages of 2 MiB are made and mapped in no time. Memory files get
//! none by themselves on most systems, but `MADV_COLLAPSE` (Linux 6.1) makes them on demand.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gridrpc_sys::{HUGE_PAGE, Mapping};

/// What is longer than this gets a huge page, though it does not fill it, bytes.
pub const HUGE_FROM: u64 = 768 << 10;

/// When the kernel may be asked for huge pages again, ns on the monotonic clock: as long as this
/// process has nothing in common with others.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// The same, in common with those that were forked by the same process.
static IN_COMMON: OnceLock<&AtomicU64> = OnceLock::new();
/// A huge page that takes longer than this takes longer than small ones would, ns of processor time.
const SLOW: u64 = 1_000_000;
/// A request that waits for longer than this does so behind others' requests, as each waits for all processors, ns.
const LONG: u64 = 5_000_000;
/// Huge pages asked for in one request at most: whether it takes long is known behind it.
const MOST_AT_ONCE: usize = 32;
/// How long small pages are used then, ns.
const PAUSE: u64 = 250_000_000;

/// Has processes that this one forks tell each other when huge pages take long, so that not each of
/// hundreds of workers has to find out. Where there is no memory for that, each finds out.
pub fn tell_forked() {
    if let (None, Ok(number)) = (IN_COMMON.get(), gridrpc_sys::common_number()) {
        let _ = IN_COMMON.set(number);
    }
}

fn not_before() -> &'static AtomicU64 {
    IN_COMMON.get().copied().unwrap_or(&NOT_BEFORE)
}

/// A memory file that is written from its start on, and the part of it whose pages are there.
#[derive(Debug)]
pub struct Memory {
    file: Arc<OwnedFd>,
    len: usize,
    mapping: OnceLock<Mapping>,
    /// Bytes from the start whose pages are there, huge ones if it is protected.
    ready: AtomicUsize,
    /// Huge pages that are asked for in the next request.
    at_once: AtomicUsize,
    /// It can be written to through the mapping only.
    protected: AtomicBool,
}

impl Memory {
    /// Memory that nobody has written to.
    pub fn new(file: OwnedFd, len: usize) -> Memory {
        Memory {
            file: Arc::new(file),
            len,
            mapping: OnceLock::new(),
            ready: AtomicUsize::new(0),
            at_once: AtomicUsize::new(1),
            protected: AtomicBool::new(false),
        }
    }

    /// Has nobody write to it from now on but its owner, through the mapping that is there.
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

    /// What to pass to a reader.
    pub fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// How long it is, bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where it lies, mapped when it is first asked for.
    ///
    /// # Errors
    /// When there is no room in the address space.
    pub fn map(&self) -> io::Result<&Mapping> {
        if self.mapping.get().is_none() {
            let mapping = Mapping::new(self.file.as_fd(), self.len, true)?;
            // Another thread cannot be at it: whoever writes has the memory for itself.
            let _ = self.mapping.set(mapping);
        }
        self.mapping.get().ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Copies `bytes` to `offset`, which nobody else may touch meanwhile: through the mapping where
    /// pages are there or can be huge, else by `pwrite`, which takes half the time on new pages.
    ///
    /// # Errors
    /// When there is no memory for it, or it would lie outside.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len()).filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        self.make_ready(end);
        // What lies below is there, above it pages are new.
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

    /// Where `len` bytes from `offset` on are, to be written to.
    ///
    /// # Errors
    /// When they lie outside, or cannot be mapped.
    pub fn at(&self, offset: usize, len: usize) -> io::Result<NonNull<u8>> {
        let place = self.map()?.at(offset as u64, len as u64);
        place.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Gives its memory back to the system. Nobody needs what it holds. Where the kernel does not allow that,
    /// it goes with its last reader.
    pub fn empty(&self) {
        if gridrpc_sys::empty(self.file.as_fd(), self.len as u64).is_ok() {
            self.ready.store(0, Ordering::Relaxed);
        }
    }

    /// Its pages are there up to `end`: it has been written to. Not for protected memory, whose pages are to be
    /// huge.
    pub fn is_written(&self, end: usize) {
        self.ready.fetch_max(end.min(self.len), Ordering::Relaxed);
    }

    /// Makes huge pages up to `end` where there are none, as long as that is fast.
    pub fn make_ready(&self, end: usize) {
        let ready = self.ready.load(Ordering::Relaxed);
        if end <= ready || self.len < HUGE_PAGE {
            return;
        }
        let Ok(mapping) = self.map() else { return };
        let (mut at, last) = (ready / HUGE_PAGE, end.div_ceil(HUGE_PAGE));
        // More at a time as long as it goes well: each request waits for all processors.
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

/// Has the kernel make huge pages, number `first` of the mapping and those behind it.
fn make_huge(mapping: &Mapping, first: usize, count: usize) -> bool {
    let begun = gridrpc_sys::monotonic_ns();
    if begun < not_before().load(Ordering::Relaxed) {
        return false;
    }
    let (from, len) = (first * HUGE_PAGE, count * HUGE_PAGE);
    let Some(start) = mapping.at(from as u64, len as u64) else { return false };
    let busy_before = gridrpc_sys::thread_ns();
    for at in (0..len).step_by(HUGE_PAGE) {
        // There has to be a small page for the others to join.
        // SAFETY: `at` has checked the stretch; what is there does not matter.
        unsafe { start.add(at).as_ptr().read_volatile() };
    }
    let collapsed = gridrpc_sys::collapse(start, len);
    let busy = gridrpc_sys::thread_ns() - busy_before;
    let waited = (gridrpc_sys::monotonic_ns() - begun).saturating_sub(busy);
    let pause = match &collapsed {
        // An older kernel, or one that was told not to: no use in asking again.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => u64::MAX - begun,
        Ok(()) if busy < SLOW * count as u64 && waited < LONG => return true,
        // Large stretches of memory are short; or this is a virtual machine, whose host has taken
        // them back and has to give them again; or hundreds of workers ask at the same time.
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
        tell_forked();
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
