//! Partial results: the results of a call's items so far, in memory that survives the worker.
//!
//! A call may have thousands of items. When its worker dies, the items that have ended keep their results, the
//! running one is lost, and the others run elsewhere. So the worker writes results where its client can read them,
//! and counts items in a word beside them: twice the number of ended items, plus 1 while the next one runs. The
//! client reads both only when the process is gone.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gridrpc_sys::{Mapping, forks};

use crate::progress::{self, WorkerProgress};

/// Size of one worker's memory, bytes. Only touched pages take memory.
pub const PARTIAL: u64 = 1 << 20;
/// Words: the number of the call plus 1, or 0; the count of items; the number of sections. Two words for each section
/// follow: its offset and its length.
const CALL: u64 = 0;
const COUNT: u64 = 8;
const SECTIONS: u64 = 16;
const TABLE: u64 = 64;
const ENTRY: u64 = 16;
/// Start of the contents.
const CONTENTS: u64 = 16 << 10;
/// Alignment of parts of the contents, bytes.
pub const ALIGNED: usize = 64;

fn word(memory: &Mapping, at: u64) -> Option<&AtomicU64> {
    let place = memory.at(at, 8)?;
    // SAFETY: inside the mapping, aligned to 8 bytes, used as an atomic by everybody.
    Some(unsafe { place.cast::<AtomicU64>().as_ref() })
}

/// The items of a running call: the worker's end.
#[derive(Debug)]
pub struct Items {
    memory: Option<Arc<Mapping>>,
    progress: Option<WorkerProgress>,
    process: u64,
    /// Number of ended items.
    ended: u64,
    sections: u64,
    used: u64,
}

impl Items {
    /// Opens the items of a call. Without memory, results are kept only in this process.
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

    /// Items within an item, or in no worker: they are lost and run again with the enclosing item.
    #[must_use]
    pub fn inner() -> Items {
        Items::open(None, None, 0)
    }

    fn set(&self, at: u64, value: u64) {
        if let Some(word) = self.memory.as_ref().and_then(|memory| word(memory, at)) {
            word.store(value, Ordering::Release);
        }
    }

    /// Bytes left for results.
    #[must_use]
    pub fn room(&self) -> usize {
        self.memory.as_ref().map_or(0, |_| (PARTIAL - self.used) as usize)
    }

    /// Allocates this many bytes for results, which are appended one by one. Returns `None` if there is not enough
    /// memory.
    pub fn section(&mut self, capacity: usize) -> Option<AppendBuffer> {
        let memory = Arc::clone(self.memory.as_ref()?);
        let entry = TABLE + self.sections * ENTRY;
        if entry + ENTRY > CONTENTS || capacity > self.room() {
            return None;
        }
        let start = memory.at(self.used, capacity as u64)?;
        word(&memory, entry)?.store(self.used, Ordering::Relaxed);
        let length = word(&memory, entry + 8)?;
        length.store(0, Ordering::Relaxed);
        let length = NonNull::from(length);
        self.used = (self.used + capacity as u64).next_multiple_of(ALIGNED as u64).min(PARTIAL);
        self.sections += 1;
        self.set(SECTIONS, self.sections);
        Some(AppendBuffer { start, capacity, len: 0, length, _memory: memory })
    }

    /// Whether this is still the process that has the call, and not a child that its function has forked.
    #[inline]
    #[must_use]
    pub fn are_ours(&self) -> bool {
        forks::generation() == self.process
    }

    /// Marks the start of the next item.
    #[inline]
    pub fn begin(&mut self) {
        if self.ended == 0 {
            self.set(COUNT, 1);
            // From here on the call as a whole cannot run again.
            if let Some((progress, worker)) = &self.progress {
                progress::enter(progress, *worker);
            }
            return;
        }
        self.set(COUNT, 2 * self.ended + 1);
    }

    /// Marks the end of the item, whose results are stored.
    #[inline]
    pub fn end(&mut self) {
        self.ended += 1;
        self.set(COUNT, 2 * self.ended);
    }

    /// Stops keeping results of this call: they are larger than the memory for them.
    pub fn give_up(&mut self) {
        self.set(CALL, 0);
        self.memory = None;
    }
}

/// Memory for results that are appended one by one.
#[derive(Debug)]
pub struct AppendBuffer {
    start: NonNull<u8>,
    capacity: usize,
    len: usize,
    /// Its length, for the client.
    length: NonNull<AtomicU64>,
    _memory: Arc<Mapping>,
}

// SAFETY: the memory is mapped as long as this lives; only the holder of the stretch writes there.
unsafe impl Send for AppendBuffer {}
// SAFETY: as above.
unsafe impl Sync for AppendBuffer {}

impl AppendBuffer {
    fn lengthen(&mut self, len: usize) {
        self.len += len;
        // SAFETY: in the mapping that this holds.
        unsafe { self.length.as_ref() }.store(self.len as u64, Ordering::Release);
    }

    /// Appends bytes. Returns `false` if there is no room for them.
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

/// Remains of a call with many items whose worker is gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Number of ended items.
    pub ended: u64,
    /// Whether the next one was running.
    pub running: bool,
    /// Their results, possibly with a part of those of the next one.
    pub sections: Vec<Vec<u8>>,
}

/// Takes the partial results of a worker that is gone: the call, and its results. The memory may contain anything.
/// The process that takes the worker's place finds no call there.
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
