//! Partial results: what the items of a call have returned so far, in memory that survives the worker.
//!
//! A call may have thousands of items. When its worker dies, the items that have ended keep their results,
//! the one that was running is lost, and the others run elsewhere. So the worker writes results where its
//! client can read them, and counts items in a word beside them: twice the items that have ended, plus 1
//! while the next one runs. The client reads both only when the process is gone.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gridrpc_sys::{Mapping, forks};

use crate::progress::{self, WorkerProgress};

/// The memory of one worker, bytes. Only the pages that are touched take memory.
pub const PARTIAL: u64 = 1 << 20;
/// Words: the number of the call plus 1, or 0; the count of items; how many sections there are. Behind them
/// each section has two: where it is, and its length.
const CALL: u64 = 0;
const COUNT: u64 = 8;
const SECTIONS: u64 = 16;
const TABLE: u64 = 64;
const ENTRY: u64 = 16;
/// Where contents begin.
const CONTENTS: u64 = 16 << 10;
/// How parts of the contents are aligned, bytes.
pub const ALIGNED: usize = 64;

fn word(memory: &Mapping, at: u64) -> Option<&AtomicU64> {
    let place = memory.at(at, 8)?;
    // SAFETY: inside the mapping, aligned to 8 bytes, used as an atomic by everybody.
    Some(unsafe { place.cast::<AtomicU64>().as_ref() })
}

/// The items of a call that runs: the worker's end.
#[derive(Debug)]
pub struct Items {
    memory: Option<Arc<Mapping>>,
    progress: Option<WorkerProgress>,
    process: u64,
    /// How many have ended.
    ended: u64,
    sections: u64,
    used: u64,
}

impl Items {
    /// Those of a call. Without memory, results are kept here alone.
    pub fn open(
        memory: Option<Arc<Mapping>>,
        progress: Option<WorkerProgress>,
        call: u64,
    ) -> Items {
        forks::notice();
        let process = forks::generation();
        let items = Items { memory, progress, process, ended: 0, sections: 0, used: CONTENTS };
        items.set(CALL, 0);
        items.set(COUNT, 0);
        items.set(SECTIONS, 0);
        items.set(CALL, call.wrapping_add(1));
        items
    }

    /// Items within an item, or in no worker: they are lost and run again with what is around them.
    #[must_use]
    pub fn inner() -> Items {
        Items::open(None, None, 0)
    }

    fn set(&self, at: u64, value: u64) {
        if let Some(word) = self.memory.as_ref().and_then(|memory| word(memory, at)) {
            word.store(value, Ordering::Release);
        }
    }

    /// Bytes that are left for results.
    #[must_use]
    pub fn room(&self) -> usize {
        self.memory.as_ref().map_or(0, |_| (PARTIAL - self.used) as usize)
    }

    /// Memory for so many bytes of results, which come one behind the other. `None`: there is not enough.
    pub fn section(&mut self, capacity: usize) -> Option<Stretch> {
        let memory = Arc::clone(self.memory.as_ref()?);
        let entry = TABLE + self.sections * ENTRY;
        if entry + ENTRY > CONTENTS || capacity > self.room() {
            return None;
        }
        let start = memory.at(self.used, capacity as u64)?;
        word(&memory, entry)?.store(self.used, Ordering::Relaxed);
        let told = word(&memory, entry + 8)?;
        told.store(0, Ordering::Relaxed);
        let told = NonNull::from(told);
        self.used = (self.used + capacity as u64).next_multiple_of(ALIGNED as u64).min(PARTIAL);
        self.sections += 1;
        self.set(SECTIONS, self.sections);
        Some(Stretch { start, capacity, len: 0, told, _memory: memory })
    }

    /// Whether this is still the process that has the call, and not a child that its function has forked.
    #[inline]
    #[must_use]
    pub fn are_ours(&self) -> bool {
        forks::generation() == self.process
    }

    /// The next item begins.
    #[inline]
    pub fn begin(&mut self) {
        if self.ended == 0 {
            self.set(COUNT, 1);
            // From here on the call cannot be run again as a whole.
            if let Some((progress, worker)) = &self.progress {
                progress::enter(progress, *worker);
            }
            return;
        }
        self.set(COUNT, 2 * self.ended + 1);
    }

    /// It has ended, and its results are there.
    #[inline]
    pub fn end(&mut self) {
        self.ended += 1;
        self.set(COUNT, 2 * self.ended);
    }

    /// Results of this call are not kept: they are larger than the memory for them.
    pub fn give_up(&mut self) {
        self.set(CALL, 0);
        self.memory = None;
    }
}

/// Memory for results that come one behind the other.
#[derive(Debug)]
pub struct Stretch {
    start: NonNull<u8>,
    capacity: usize,
    len: usize,
    /// Its length, for the client.
    told: NonNull<AtomicU64>,
    _memory: Arc<Mapping>,
}

// SAFETY: the memory is mapped as long as this lives; whoever has the stretch writes there alone.
unsafe impl Send for Stretch {}
// SAFETY: as above.
unsafe impl Sync for Stretch {}

impl Stretch {
    fn lengthen(&mut self, len: usize) {
        self.len += len;
        // SAFETY: in the mapping that this holds.
        unsafe { self.told.as_ref() }.store(self.len as u64, Ordering::Release);
    }

    /// Appends bytes. `false`: there is no room for them.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.capacity - self.len {
            return false;
        }
        // SAFETY: there is room for them behind those that are there, and nobody else writes there.
        unsafe {
            let end = self.start.as_ptr().add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
        }
        self.lengthen(bytes.len());
        true
    }
}

/// What is left of a call with many items whose worker is gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Recovered {
    /// How many items have ended.
    pub ended: u64,
    /// Whether the one behind them was running.
    pub running: bool,
    /// Their results, perhaps with a part of those of the next one.
    pub sections: Vec<Vec<u8>>,
}

/// Takes what a worker that is gone has left: the call, and its results. The memory may hold anything; the
/// process that takes the worker's place finds no call there.
pub fn recover(memory: &Mapping) -> Option<(u64, Recovered)> {
    let read = |at| Some(word(memory, at)?.load(Ordering::Acquire));
    let call = word(memory, CALL)?.swap(0, Ordering::AcqRel).checked_sub(1)?;
    let count = read(COUNT)?;
    if count == 0 {
        return None;
    }
    let sections = read(SECTIONS)?.min((CONTENTS - TABLE) / ENTRY);
    let sections = (0..sections).map(|number| {
        let entry = TABLE + number * ENTRY;
        let (at, len) = (read(entry)?, read(entry + 8)?);
        let start = memory.at(at, len)?;
        // SAFETY: inside the mapping, whose writer is gone.
        Some(unsafe { slice::from_raw_parts(start.as_ptr(), len as usize) }.to_vec())
    });
    let sections = sections.collect::<Option<Vec<_>>>()?;
    Some((call, Recovered { ended: count / 2, running: count % 2 == 1, sections }))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use gridrpc_sys::memory_file;

    fn memory() -> Arc<Mapping> {
        let file = memory_file(c"test", PARTIAL).unwrap();
        Arc::new(Mapping::new(file.as_fd(), PARTIAL as usize, true).unwrap())
    }

    #[test]
    fn results_are_there_for_the_items_that_have_ended() {
        let (ours, progress) = (memory(), memory());
        let open = || Items::open(Some(Arc::clone(&ours)), Some((Arc::clone(&progress), 2)), 7);
        assert!(progress::begin(&progress, 2));
        open();
        assert_eq!(recover(&ours), None, "no item has begun");
        let mut items = open();
        let (mut one, mut other) = (items.section(100).unwrap(), items.section(8).unwrap());
        assert_eq!(progress::entered(&progress, 2), Some(0));
        items.begin();
        assert_eq!(progress::entered(&progress, 2), Some(1));
        assert!(one.push(b"abc"));
        items.end();
        items.begin();
        assert!(other.push(b"part"));
        assert!(!other.push(b"12345"), "8 bytes are all");
        let sections = vec![b"abc".to_vec(), b"part".to_vec()];
        let left = Recovered { ended: 1, running: true, sections };
        assert_eq!(recover(&ours), Some((7, left)));
        assert_eq!(recover(&ours), None, "it is taken once");
    }

    #[test]
    fn results_that_are_given_up_are_not_recovered() {
        let ours = memory();
        let mut items = Items::open(Some(Arc::clone(&ours)), None, 7);
        items.begin();
        items.end();
        items.give_up();
        items.begin();
        assert_eq!(recover(&ours), None);
    }

    #[test]
    fn memory_that_holds_anything_is_not_read_beyond_its_end() {
        let ours = memory();
        let set = |at, value| word(&ours, at).unwrap().store(value, Ordering::Relaxed);
        for (at, len, readable) in
            [(PARTIAL - 8, 8, true), (PARTIAL - 8, 9, false), (8, u64::MAX, false)]
        {
            set(CALL, 8);
            set(COUNT, u64::MAX);
            set(SECTIONS, 1);
            set(TABLE, at);
            set(TABLE + 8, len);
            assert_eq!(recover(&ours).is_some(), readable);
        }
    }

    #[test]
    fn there_are_sections_as_long_as_there_is_room() {
        let ours = memory();
        let mut items = Items::open(Some(ours), None, 0);
        let half = items.room() / 2;
        assert!(items.section(half + 1).is_some());
        assert!(items.section(half).is_none());
        assert!(items.section(half - 64).is_some());
        assert!(items.section(1).is_none());
    }
}
