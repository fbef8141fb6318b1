//! How far each worker has come, in memory that the client shares with all of them.
//!
//! A worker may hold calls ahead. When it dies, the client must know which of them had begun,
//! because only those may not be run again. So each worker counts the calls that it begins
//! in a cache line of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::Mapping;

/// One cache line for each worker, so that they don't slow each other down.
const SLOT: u64 = 64;

/// The length of the memory for so many workers, bytes.
pub(crate) fn len(workers: usize) -> usize {
    workers * SLOT as usize
}

fn slot(memory: &Mapping, worker: u32) -> Option<&AtomicU64> {
    let place = memory.at(u64::from(worker) * SLOT, SLOT)?;
    // SAFETY: inside the mapping, aligned to 64 bytes, used as an atomic by everybody.
    Some(unsafe { place.cast::<AtomicU64>().as_ref() })
}

/// A new process takes the worker's place.
pub(crate) fn reset(memory: &Mapping, worker: u32) {
    if let Some(slot) = slot(memory, worker) {
        slot.store(0, Ordering::Release);
    }
}

/// How many calls the worker has begun.
pub(crate) fn read(memory: &Mapping, worker: u32) -> u64 {
    slot(memory, worker).map_or(0, |slot| slot.load(Ordering::Acquire))
}

/// The worker begins a call.
pub(crate) fn begin(memory: &Mapping, worker: u32) {
    if let Some(slot) = slot(memory, worker) {
        slot.fetch_add(1, Ordering::Release);
    }
}
