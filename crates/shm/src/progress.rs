//! Progress of each worker, in memory that the client shares with all of them.
//!
//! A worker may hold calls ahead. When it dies, the client must know which of them had begun, because only those may
//! not run again. When one of them takes long, the client takes back those behind it. So each worker has a word in a
//! separate cache line. Its low half counts the calls that the worker has begun; its high half, set by the client, is
//! the count below which the worker skips calls instead of running them. Both change by compare-and-swap, so that
//! each call is either begun or taken back.
//!
//! The rest of the cache line tells the worker which of its segments the client no longer reads, so that it can put
//! its next result there. A message would only come with the worker's next call, which is sent before its last result
//! has been read; sending one at once would wake the worker.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_sys::Mapping;

/// One cache line for each worker, so that they don't slow each other down.
const SLOT: u64 = 64;

/// Places for workers that may be added later.
const MORE: usize = 1 << 16;

/// The memory in the client: a file for workers to map, and the client's mapping.
#[derive(Clone, Debug)]
pub struct ProgressMemory {
    /// The file to pass to workers.
    pub file: Arc<OwnedFd>,
    /// The mapping in this process.
    pub mapping: Arc<Mapping>,
}

impl ProgressMemory {
    /// Allocates memory for this many workers, and for more that may be added later.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(workers: u32) -> io::Result<ProgressMemory> {
        // Only touched pages take memory.
        let len = len(workers as usize, MORE, gridrpc_sys::file_size_limit());
        let file = gridrpc_sys::memory_file(c"gridrpc-progress", len as u64)?;
        let mapping = Mapping::new(file.as_fd(), len, true)?;
        Ok(ProgressMemory { file: Arc::new(file), mapping: Arc::new(mapping) })
    }
}

/// The length of the memory for this many workers, and for as many of `more` as the file size limit allows, bytes.
fn len(workers: usize, more: usize, limit: u64) -> usize {
    let most = usize::try_from(limit / SLOT).unwrap_or(usize::MAX);
    (workers + more).min(most).max(workers) * SLOT as usize
}

fn slot(memory: &Mapping, worker: u32) -> Option<&AtomicU64> {
    let place = memory.at(u64::from(worker) * SLOT, SLOT)?;
    // SAFETY: inside the mapping, aligned to 64 bytes, used as an atomic by everybody.
    Some(unsafe { place.cast::<AtomicU64>().as_ref() })
}

fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn join(begun: u32, pass_below: u32) -> u64 {
    u64::from(pass_below) << 32 | u64::from(begun)
}

/// Whether one count comes after another; both wrap around.
fn is_after(count: u32, other: u32) -> bool {
    count.wrapping_sub(other).cast_signed() > 0
}

/// Resets the state for a new process in the worker's place.
pub fn reset(memory: &Mapping, worker: u32) {
    if let Some(slot) = slot(memory, worker) {
        slot.store(0, Ordering::Release);
    }
    if let Some(entered) = entered_word(memory, worker) {
        entered.store(0, Ordering::Release);
    }
    take_given_back(memory, worker).for_each(drop);
}

/// Offset of a worker's segment bits in its cache line, bytes, and their number of words.
const BITS: u64 = 16;
const WORDS: u32 = 5;
/// Offset of the count of calls whose functions have been entered.
const ENTERED: u64 = 56;

/// Bits for the first segments of a worker, by word.
fn bits(memory: &Mapping, worker: u32, word: u32) -> Option<&AtomicU64> {
    let place = memory.at(u64::from(worker) * SLOT + BITS + u64::from(word) * 8, 8)?;
    // SAFETY: inside the mapping, aligned to 8 bytes, used as an atomic by everybody.
    Some(unsafe { place.cast::<AtomicU64>().as_ref() })
}

/// The client's way to return segments to one process of a worker. Closed when that process is gone: its results may
/// outlive it, and its successor has other segments.
#[derive(Clone, Debug, Default)]
pub struct ReturnMarks(Arc<Mutex<Option<WorkerProgress>>>);

/// The memory for all workers, and a worker's number.
pub type WorkerProgress = (Arc<Mapping>, u32);

impl ReturnMarks {
    /// Creates marks in the memory of this worker.
    pub fn new(memory: &Arc<Mapping>, worker: u32) -> ReturnMarks {
        ReturnMarks(Arc::new(Mutex::new(Some((Arc::clone(memory), worker)))))
    }

    /// Marks a segment as no longer read. Returns `false` if there is no room for its number.
    pub fn mark(&self, segment: u32) -> bool {
        // Held during the marking, so that nothing is marked after this has been closed.
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((memory, worker)) = &*open else { return false };
        let word = segment / u64::BITS;
        let Some(bits) = (word < WORDS).then(|| bits(memory, *worker, word)).flatten() else {
            return false;
        };
        bits.fetch_or(1 << (segment % u64::BITS), Ordering::Release);
        true
    }

    /// Stops marking: the reader is gone.
    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The worker's segments that were returned since the last call.
pub fn take_given_back(memory: &Mapping, worker: u32) -> impl Iterator<Item = u32> + '_ {
    (0..WORDS).flat_map(move |word| {
        let taken = bits(memory, worker, word).map_or(0, |bits| {
            // Usually there is nothing, and no need to write.
            if bits.load(Ordering::Relaxed) == 0 { 0 } else { bits.swap(0, Ordering::Acquire) }
        });
        (0..u64::BITS)
            .filter(move |bit| taken >> bit & 1 == 1)
            .map(move |bit| word * u64::BITS + bit)
    })
}

/// Words after the counts: the processor on which each side ran last, plus 1; 0 while unknown. A side that shares a
/// processor with the other end should not spin, because the other end cannot run.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// The client waits.
    Client = 2,
    /// The worker waits.
    Worker = 3,
}

/// Beside the processor of the client: it passes calls on for other processes.
const PASSES_ON: u32 = 1 << 31;

/// The other end, at its last wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    /// Whether it ran on this processor.
    pub is_here: bool,
    /// Whether it passes calls on for other processes, which need a processor too.
    pub passes_on: bool,
}

/// Records the processor of this side, and whether it passes calls on. Returns the same of the other side.
pub fn meet(memory: &Mapping, worker: u32, side: Side, passes_on: bool) -> Option<OtherEnd> {
    let word = |side: Side| {
        let place = memory.at(u64::from(worker) * SLOT + side as u64 * 4, 4)?;
        // SAFETY: inside the mapping, aligned to 4 bytes, used as an atomic by everybody.
        Some(unsafe { place.cast::<AtomicU32>().as_ref() })
    };
    let (ours, theirs) = match side {
        Side::Client => (word(Side::Client)?, word(Side::Worker)?),
        Side::Worker => (word(Side::Worker)?, word(Side::Client)?),
    };
    let here = current_processor()?;
    ours.store(if passes_on { here | PASSES_ON } else { here }, Ordering::Relaxed);
    let theirs = theirs.load(Ordering::Relaxed);
    Some(OtherEnd { is_here: theirs & !PASSES_ON == here, passes_on: theirs & PASSES_ON != 0 })
}

fn current_processor() -> Option<u32> {
    // SAFETY: plain call; -1 where it is not known.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok().map(|processor| processor + 1)
}

/// Number of calls that the worker has begun or skipped. `None`: there is no place for this worker.
pub fn begun(memory: &Mapping, worker: u32) -> Option<u32> {
    Some(split(slot(memory, worker)?.load(Ordering::Acquire)).0)
}

fn entered_word(memory: &Mapping, worker: u32) -> Option<&AtomicU32> {
    let place = memory.at(u64::from(worker) * SLOT + ENTERED, 4)?;
    // SAFETY: inside the mapping, aligned to 4 bytes, used as an atomic by everybody.
    Some(unsafe { place.cast::<AtomicU32>().as_ref() })
}

/// The worker enters the function of its current call: from now on that call cannot run again. Before, it only reads
/// arguments.
pub fn enter(memory: &Mapping, worker: u32) {
    if let (Some(slot), Some(entered)) = (slot(memory, worker), entered_word(memory, worker)) {
        // Nobody else increments the count of begun calls.
        entered.store(split(slot.load(Ordering::Relaxed)).0, Ordering::Release);
    }
}

/// Number of calls whose functions the worker has entered, including skipped calls. `None`: there is no place for
/// this worker.
pub fn entered(memory: &Mapping, worker: u32) -> Option<u32> {
    Some(entered_word(memory, worker)?.load(Ordering::Acquire))
}

/// Begins the worker's next call. Returns `false` if the call has been taken back and must not run.
pub fn begin(memory: &Mapping, worker: u32) -> bool {
    let Some(slot) = slot(memory, worker) else { return true };
    let next = |word| {
        let (begun, pass_below) = split(word);
        let begun = begun.wrapping_add(1);
        // Moved along, so that it never falls so far behind that it seems to be ahead.
        Some(join(begun, if is_after(pass_below, begun) { pass_below } else { begun }))
    };
    let old = slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_default();
    let (begun, pass_below) = split(old);
    !is_after(pass_below, begun)
}

/// Makes the worker skip the calls below `below` that it has not begun. Returns how many it has begun, or `None` if
/// it has not begun call number `head` and so is merely late.
pub fn take_back(memory: &Mapping, worker: u32, head: Option<u32>, below: u32) -> Option<u32> {
    let next = |word| {
        let (begun, _) = split(word);
        head.is_none_or(|head| is_after(begun, head)).then(|| join(begun, below))
    };
    let old = slot(memory, worker)?.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    old.ok().map(|word| split(word).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridrpc_sys::memory_file;

    fn memory() -> Mapping {
        let file = memory_file(c"test", 4096).unwrap();
        Mapping::new(file.as_fd(), 4096, true).unwrap()
    }

    #[test]
    fn there_are_places_for_as_many_more_as_the_limit_allows() {
        assert_eq!(len(4, 1000, u64::MAX), 1004 * 64);
        assert_eq!(len(4, 1000, 128 * 64), 128 * 64);
        assert_eq!(len(4, 1000, 64), 4 * 64, "those that are wanted now are never left out");
        assert_eq!(begun(&memory(), 4096 / 64 - 1), Some(0));
        assert_eq!(begun(&memory(), 4096 / 64), None);
    }

    #[test]
    fn calls_that_were_taken_back_are_passed_over_and_later_ones_run() {
        let memory = memory();
        assert_eq!(take_back(&memory, 3, Some(0), 5), None, "the head has not begun");
        assert!(begin(&memory, 3));
        assert_eq!(take_back(&memory, 3, Some(0), 4), Some(1));
        let ran: Vec<bool> = (1..6).map(|_| begin(&memory, 3)).collect();
        assert_eq!(ran, [false, false, false, true, true]);
        assert_eq!(begun(&memory, 3), Some(6));
        assert_eq!(begun(&memory, 2), Some(0), "workers have words of their own");
    }

    #[test]
    fn a_call_counts_as_entered_after_it_was_taken_up() {
        let memory = memory();
        assert!(begin(&memory, 3));
        enter(&memory, 3);
        assert!(begin(&memory, 3));
        assert_eq!((begun(&memory, 3), entered(&memory, 3)), (Some(2), Some(1)));
        enter(&memory, 3);
        assert_eq!(entered(&memory, 3), Some(2));
        reset(&memory, 3);
        assert_eq!((begun(&memory, 3), entered(&memory, 3)), (Some(0), Some(0)));
    }

    #[test]
    fn what_is_given_back_is_taken_once_by_its_worker_alone() {
        let memory = Arc::new(memory());
        let giving = ReturnMarks::new(&memory, 3);
        let numbers = [0, 5, 63, 64, 200, 319];
        assert!(numbers.iter().all(|number| giving.mark(*number)));
        assert!(!giving.mark(320), "there is no room for more");
        assert!(!giving.mark(u32::MAX));
        assert_eq!(take_given_back(&memory, 2).count(), 0);
        assert_eq!(take_given_back(&memory, 4).count(), 0);
        assert_eq!(take_given_back(&memory, 3).collect::<Vec<_>>(), numbers);
        assert_eq!(take_given_back(&memory, 3).count(), 0);
        assert_eq!(begun(&memory, 3), Some(0), "the counts are not touched");
    }

    #[test]
    fn nothing_of_an_earlier_process_is_given_back_to_the_next() {
        let memory = Arc::new(memory());
        let before = ReturnMarks::new(&memory, 1);
        assert!(before.mark(7));
        let late = before.clone();
        before.close();
        reset(&memory, 1);
        assert!(!late.mark(8));
        assert_eq!(take_given_back(&memory, 1).count(), 0);
    }

    #[test]
    fn counts_wrap_around() {
        let memory = memory();
        let word = slot(&memory, 0).unwrap();
        word.store(join(u32::MAX, u32::MAX), Ordering::Relaxed);
        assert!(begin(&memory, 0));
        assert_eq!(word.load(Ordering::Relaxed), join(0, 0));
        assert_eq!(take_back(&memory, 0, Some(u32::MAX), 2), Some(0));
        assert!(!begin(&memory, 0));
        assert!(!begin(&memory, 0));
        assert!(begin(&memory, 0));
    }
}
