//! Memory of the workers' outboxes: one file for several workers, created on demand. Also contains the memory for
//! partial results, after the outboxes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use gridrpc_sys::Mapping;

use crate::outbox::{Memory, reset};
use crate::partial::{self, PARTIAL, Recovered};
use crate::sync::AtomicU64;

/// Number of workers whose boxes share a file. A few descriptors and mappings serve many workers, and the file stays
/// small where file sizes are limited.
const TOGETHER: u32 = 16;
/// Size of a box with its header, bytes. Only touched pages take memory.
const BOX: u64 = 64 << 10;
/// Size of the header, bytes: the word and the base, in a separate cache line.
const HEAD: u64 = 64;
const BASE: u64 = 8;

/// A worker's box.
#[derive(Clone, Debug)]
pub struct BoxMemory {
    memory: Arc<Mapping>,
    start: u64,
}

impl BoxMemory {
    /// Opens a worker's box in its file.
    ///
    /// # Errors
    /// When the file is too short or cannot be mapped.
    pub fn open(file: &OwnedFd, worker: u32) -> io::Result<BoxMemory> {
        let memory = Arc::new(Mapping::new(file.as_fd(), len(), true)?);
        Ok(BoxMemory::of(&memory, worker))
    }

    fn of(memory: &Arc<Mapping>, worker: u32) -> BoxMemory {
        let start = u64::from(worker % TOGETHER) * BOX;
        BoxMemory { memory: Arc::clone(memory), start }
    }

    fn at(&self, offset: u64, len: usize) -> *mut u8 {
        let place = self.memory.at(self.start + offset, len as u64);
        place.expect("a mapping holds all boxes of its file").as_ptr()
    }

    fn counter(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: inside the mapping, aligned to 8 bytes, used as an atomic by everybody.
        unsafe { &*self.at(offset, 8).cast::<AtomicU64>() }
    }
}

impl Memory for BoxMemory {
    fn word(&self) -> &AtomicU64 {
        self.counter(0)
    }

    fn base(&self) -> &AtomicU64 {
        self.counter(BASE)
    }

    fn capacity(&self) -> usize {
        (BOX - HEAD) as usize
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.capacity(), "a box overflows");
        let place = self.at(HEAD + at as u64, bytes.len());
        // SAFETY: inside the mapping; nobody else writes there, and a concurrent reader discards what it has read.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }

    fn read(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        assert!(at + len <= self.capacity(), "more than a box holds");
        let place = self.at(HEAD + at as u64, len);
        // SAFETY: inside the mapping, for as long as `self` lives. Byte by byte, as each may change.
        let bytes = unsafe { std::slice::from_raw_parts(place.cast::<AtomicU8>(), len) };
        out.extend(bytes.iter().map(|byte| byte.load(Ordering::Relaxed)));
    }
}

fn len() -> usize {
    (u64::from(TOGETHER) * BOX) as usize
}

/// Offset of a worker's partial results in the file.
fn place_of_partial(worker: u32) -> u64 {
    len() as u64 + u64::from(worker % TOGETHER) * PARTIAL
}

/// The memory for a worker's partial results. `None` where file sizes are limited.
pub fn partial_memory(file: &OwnedFd, worker: u32) -> Option<Mapping> {
    Mapping::part(file.as_fd(), place_of_partial(worker), PARTIAL as usize).ok()
}

/// The boxes of all workers of a grid, by their files.
#[derive(Debug, Default)]
pub struct Outboxes(Vec<Option<(Arc<OwnedFd>, Arc<Mapping>)>>);

impl Outboxes {
    /// Prepares the box for a new process in this worker's place. Returns the box and the file to pass to the
    /// process.
    ///
    /// # Errors
    /// When there is no memory or descriptor for it.
    pub fn prepare(&mut self, worker: u32) -> io::Result<(Arc<OwnedFd>, BoxMemory)> {
        let index = (worker / TOGETHER) as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, None);
        }
        let (file, memory) = match &mut self.0[index] {
            Some(known) => known,
            new => {
                // Only touched pages take memory.
                let whole = place_of_partial(TOGETHER - 1) + PARTIAL;
                let len_of_file =
                    if whole <= gridrpc_sys::file_size_limit() { whole } else { len() as u64 };
                let file = Arc::new(gridrpc_sys::memory_file(c"gridrpc-outboxes", len_of_file)?);
                let memory = Arc::new(Mapping::new(file.as_fd(), len(), true)?);
                new.insert((file, memory))
            }
        };
        let memory = BoxMemory::of(memory, worker);
        reset(&memory);
        Ok((Arc::clone(file), memory))
    }

    /// Takes the partial results of a worker that is gone: the call, and its results.
    pub fn recover(&self, worker: u32) -> Option<(u64, Recovered)> {
        let (file, _) = self.0.get((worker / TOGETHER) as usize)?.as_ref()?;
        partial::recover(&partial_memory(file, worker)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::{Outbox, Take, take, take_rest};

    fn both_ends(worker: u32) -> (Outbox<BoxMemory>, BoxMemory) {
        let (file, ours) = Outboxes::default().prepare(worker).unwrap();
        (Outbox::new(BoxMemory::open(&file, worker).unwrap()), ours)
    }

    #[test]
    fn what_is_laid_there_is_taken_once_and_in_order() {
        let (mut outbox, ours) = both_ends(35);
        let mut got = Vec::new();
        assert_eq!(take(&ours, 100, &mut got), Take::Nothing);
        outbox.put(100, b"one");
        outbox.put(100, b"two");
        assert_eq!(take(&ours, 99, &mut got), Take::Again, "a byte before is still to come");
        assert_eq!(take(&ours, 100, &mut got), Take::Taken);
        assert_eq!(take(&ours, 106, &mut got), Take::Nothing);
        outbox.put(100, b"three");
        assert_eq!(take(&ours, 106, &mut got), Take::Taken);
        assert_eq!(got, b"onetwothree");
        assert_eq!((outbox.begin_sending(), outbox.filled()), (11, 11));
        outbox.empty();
        take_rest(&ours, 111, &mut got);
        assert_eq!(got, b"onetwothree");
    }

    #[test]
    fn what_is_being_sent_is_left_to_the_socket_until_the_worker_is_gone() {
        let (mut outbox, ours) = both_ends(0);
        let mut got = Vec::new();
        outbox.put(7, b"abcdef");
        assert_eq!(outbox.begin_sending(), 0);
        assert_eq!(take(&ours, 7, &mut got), Take::Nothing);
        // It dies when the socket has got two bytes, or all, or more than was in the box.
        for (received, rest) in [(7, &b"abcdef"[..]), (9, b"cdef"), (13, b""), (50, b"")] {
            got.clear();
            take_rest(&ours, received, &mut got);
            assert_eq!(got, rest);
        }
    }

    #[test]
    fn boxes_of_one_file_do_not_touch_and_hold_what_they_say() {
        let mut all = Outboxes::default();
        let mut ends: Vec<_> = (0..40)
            .map(|worker| {
                let (file, ours) = all.prepare(worker).unwrap();
                (Outbox::new(BoxMemory::open(&file, worker).unwrap()), ours)
            })
            .collect();
        let full = |worker: usize| vec![worker as u8; (BOX - HEAD) as usize];
        for (worker, (outbox, _)) in ends.iter_mut().enumerate() {
            assert!(outbox.holds(full(worker).len()) && !outbox.holds(full(worker).len() + 1));
            outbox.put(0, &full(worker));
        }
        for (worker, (_, ours)) in ends.iter().enumerate() {
            let mut got = Vec::new();
            assert_eq!(take(ours, 0, &mut got), Take::Taken);
            assert!(got == full(worker), "worker {worker}");
        }
    }

    #[test]
    fn a_broken_box_is_not_read_beyond_its_end() {
        let (_, ours) = both_ends(3);
        let mut got = Vec::new();
        ours.word().store(0xffff, Ordering::Relaxed);
        assert_eq!(take(&ours, 0, &mut got), Take::Nothing);
        take_rest(&ours, 0, &mut got);
        ours.word().store(10, Ordering::Relaxed);
        ours.base().store(u64::MAX, Ordering::Relaxed);
        take_rest(&ours, 0, &mut got);
        assert_eq!(got.len(), 9, "the first byte was sent before");
    }
}
