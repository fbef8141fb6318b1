//! Arrays of callers in shared memory: calls refer to them in place.

use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use gridrpc_sys::{forks, lock};

use crate::segment::{FIRST_OF_ARRAYS, Pool, PooledSegment};

/// Free memory kept for later arrays, bytes.
const KEEP_FREE: u64 = 256 << 20;

/// An array in memory that workers can share.
#[derive(Debug)]
pub struct SharedArray {
    _lent: Arc<PooledSegment>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory, valid from any thread while the array lives; writers are responsible for races.
unsafe impl Send for SharedArray {}
// SAFETY: as above.
unsafe impl Sync for SharedArray {}

struct Arrays {
    pool: Arc<Pool>,
    /// By start address: the length and the segment.
    live: Mutex<BTreeMap<usize, (usize, Weak<PooledSegment>)>>,
    count: AtomicUsize,
    /// The pools of the grids, which tell their workers about dropped segments.
    grids: Mutex<Vec<Weak<Pool>>>,
}

fn arrays() -> &'static Arrays {
    static ARRAYS: OnceLock<Arrays> = OnceLock::new();
    ARRAYS.get_or_init(|| Arrays {
        pool: Pool::numbered_from(FIRST_OF_ARRAYS, KEEP_FREE),
        live: Mutex::default(),
        count: AtomicUsize::new(0),
        grids: Mutex::default(),
    })
}

/// Registers a grid whose workers may receive arrays.
pub fn announce_to(pool: &Arc<Pool>) {
    let mut grids = lock(&arrays().grids);
    grids.retain(|grid| grid.strong_count() > 0);
    grids.push(Arc::downgrade(pool));
}

impl SharedArray {
    /// Allocates `len` bytes: zeros, or the content of an earlier array.
    ///
    /// # Errors
    /// When there is no memory or no descriptor for it.
    pub fn new(len: usize) -> io::Result<SharedArray> {
        forks::notice();
        let arrays = arrays();
        let lent = arrays.pool.take(len.max(1) as u64)?;
        lent.make_ready(len as u64);
        let start = lent.start(len.max(1) as u64)?;
        let lent = Arc::new(lent);
        lock(&arrays.live).insert(start.as_ptr() as usize, (len, Arc::downgrade(&lent)));
        arrays.count.fetch_add(1, Ordering::Release);
        Ok(SharedArray { _lent: lent, start, len })
    }

    /// Its start address.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for SharedArray {
    fn drop(&mut self) {
        let arrays = arrays();
        lock(&arrays.live).remove(&(self.start.as_ptr() as usize));
        arrays.count.fetch_sub(1, Ordering::Release);
        arrays.mark_gone();
    }
}

impl Arrays {
    /// Makes the grids tell their workers which segments are gone.
    fn mark_gone(&self) {
        let gone = self.pool.gone();
        if !gone.is_empty() {
            for grid in lock(&self.grids).iter().filter_map(Weak::upgrade) {
                grid.others_gone(&gone);
            }
        }
    }
}

/// Frees memory of arrays that has been unused for some time.
pub fn give_up_old() {
    let arrays = arrays();
    arrays.pool.give_up_old();
    arrays.mark_gone();
}

/// Whether any memory of arrays exists, in use or free.
pub fn have_memory() -> bool {
    arrays().pool.has_any()
}

/// The segment and offset of a stretch of memory, if it is part of a shared array.
#[must_use]
pub fn find(start: *const u8, len: usize) -> Option<(Arc<PooledSegment>, u64)> {
    let arrays = arrays();
    if arrays.count.load(Ordering::Acquire) == 0 {
        return None;
    }
    let live = lock(&arrays.live);
    let (first, (whole, lent)) = live.range(..=start as usize).next_back()?;
    let offset = start as usize - first;
    if offset.checked_add(len)? > *whole {
        return None;
    }
    Some((lent.upgrade()?, offset as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_arrays_are_found_while_they_live() {
        let array = SharedArray::new(1000).unwrap();
        let start = array.start().as_ptr().cast_const();
        // SAFETY: within the array.
        let inside = unsafe { start.add(100) };
        let (lent, offset) = find(inside, 900).unwrap();
        assert_eq!((lent.segment().number() >= FIRST_OF_ARRAYS, offset), (true, 100));
        assert!(find(inside, 901).is_none());
        let other = [0_u8; 8];
        assert!(find(other.as_ptr(), 8).is_none());
        drop(lent);
        drop(array);
        assert!(find(inside, 1).is_none());
    }
}
