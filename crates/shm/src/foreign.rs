//! Segments that a client without trust shares with a server: read, written, and lent to the server's workers.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use gridrpc_sys::{Mapping, lock};

use crate::pages::Memory;
use crate::passing::FIRST_OF_PASSED_ON;
use crate::segment::{FIRST_OF_ARRAYS, Held, Pool, PooledSegment, Segment};

/// First number of these segments for workers. As callers' arrays, whose numbers are lower, they may be written to, and
/// sections may overlap.
const FIRST: u32 = FIRST_OF_ARRAYS + (1 << 29);

/// A segment of another process.
#[derive(Debug)]
pub struct ForeignSegment {
    file: Arc<OwnedFd>,
    len: u64,
    mapping: OnceLock<Mapping>,
    /// The same segment for the readers of each of these pools.
    lent_by: Mutex<Vec<(Weak<Pool>, Arc<PooledForeign>)>>,
}

/// A foreign segment under a number that the readers of a pool know.
#[derive(Debug)]
struct PooledForeign {
    segment: Arc<Segment>,
    pool: Weak<Pool>,
}

impl Drop for PooledForeign {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.others_gone(&[self.segment.number()]);
        }
    }
}

/// What a section keeps alive until no worker uses it.
#[derive(Debug)]
struct InUse {
    _segment: Arc<PooledForeign>,
    _call: Arc<dyn Held>,
}

impl Held for InUse {}

impl ForeignSegment {
    /// Checks a file that another process has sent as a segment of `len` bytes.
    ///
    /// # Errors
    /// When using it could end a process: it is shorter, could become shorter or unwritable, or is no plain memory.
    pub fn new(file: OwnedFd, len: u64) -> io::Result<ForeignSegment> {
        gridrpc_sys::check_foreign_memory(file.as_fd(), len)?;
        let file = Arc::new(gridrpc_sys::beyond_select(file));
        Ok(ForeignSegment { file, len, mapping: OnceLock::new(), lent_by: Mutex::default() })
    }

    /// Its length, bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether `len` bytes from `offset` lie inside.
    #[must_use]
    pub fn has(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Copies `len` bytes from `offset` to the start of `to`.
    ///
    /// # Errors
    /// When they lie outside, or one of them cannot be mapped.
    pub fn copy_to(&self, offset: u64, len: u64, to: &PooledSegment) -> io::Result<()> {
        let from = self.at(offset, len)?;
        // SAFETY: `at` has checked the stretch, and the file keeps its length. The other process may change the bytes
        // meanwhile: then it gets a mixture of both.
        to.write(unsafe { std::slice::from_raw_parts(from, len as usize) })
    }

    /// Copies bytes to `offset`.
    ///
    /// # Errors
    /// When they lie outside, or the segment cannot be mapped.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let to = self.at(offset, bytes.len() as u64)?;
        // SAFETY: `at` has checked the stretch, and this process holds no references into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn at(&self, offset: u64, len: u64) -> io::Result<*mut u8> {
        if self.mapping.get().is_none() {
            let _ = self.mapping.set(Mapping::new(self.file.as_fd(), self.len as usize, true)?);
        }
        let place = self.mapping.get().and_then(|mapping| mapping.at(offset, len));
        Ok(place.ok_or(io::ErrorKind::InvalidInput)?.as_ptr())
    }

    /// Lends it to the readers of `pool`, for one section. `call` lives until they use that no more.
    pub fn lend(&self, pool: &Arc<Pool>, call: Arc<dyn Held>) -> PooledSegment {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut lent_by = lock(&self.lent_by);
        let known =
            lent_by.iter().find(|(known, _)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(pool)));
        let lent_by_pool = match known {
            Some((_, known)) => Arc::clone(known),
            None => {
                lent_by.retain(|(known, _)| known.strong_count() > 0);
                // When all numbers have been used, the first ones are long obsolete.
                let next = NEXT.fetch_add(1, Ordering::Relaxed);
                let number = FIRST + next % (FIRST_OF_PASSED_ON - FIRST);
                let memory = Memory::of(Arc::clone(&self.file), self.len as usize);
                let segment = Arc::new(Segment::new(number, memory));
                let new = Arc::new(PooledForeign { segment, pool: Arc::downgrade(pool) });
                lent_by.push((Arc::downgrade(pool), Arc::clone(&new)));
                new
            }
        };
        let segment = Arc::clone(&lent_by_pool.segment);
        PooledSegment::foreign(&segment, Arc::new(InUse { _segment: lent_by_pool, _call: call }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Call;

    impl Held for Call {}

    fn announced(lent: &PooledSegment) -> io::Result<ForeignSegment> {
        gridrpc_sys::seal_for_strangers(lent.segment().file().as_fd())?;
        ForeignSegment::new(lent.segment().file().try_clone()?, lent.segment().len())
    }

    #[test]
    fn a_foreign_segment_is_read_and_written_within_its_bounds() {
        let pool = Pool::new(0);
        let (theirs, own) = (pool.take(10).unwrap(), pool.take(10).unwrap());
        theirs.write(b"0123456789").unwrap();
        let segment = announced(&theirs).unwrap();
        segment.copy_to(2, 3, &own).unwrap();
        // SAFETY: nobody writes to it now.
        let read = |lent: &PooledSegment, len| unsafe {
            std::slice::from_raw_parts(lent.start(len).unwrap().as_ptr(), len as usize).to_vec()
        };
        assert_eq!(read(&own, 3), b"234");
        segment.write(8, b"ab").unwrap();
        assert_eq!(read(&theirs, 10), b"01234567ab");
        let len = segment.len();
        assert!(segment.has(len, 0) && !segment.has(len, 1) && !segment.has(u64::MAX, 2));
        assert!(segment.write(len - 1, b"ab").is_err());
        assert!(segment.copy_to(len - 1, 2, &own).is_err());
    }

    #[test]
    fn readers_of_a_pool_are_notified_when_the_segment_and_its_last_section_are_gone() {
        let pool = Pool::new(0);
        let theirs = pool.take(10).unwrap();
        let segment = announced(&theirs).unwrap();
        let call: Arc<dyn Held> = Arc::new(Call);
        let first = segment.lend(&pool, Arc::clone(&call));
        let second = segment.lend(&pool, Arc::clone(&call));
        let number = first.segment().number();
        assert_eq!(second.segment().number(), number);
        assert!((FIRST..FIRST_OF_PASSED_ON).contains(&number));
        drop((segment, first));
        assert_eq!((pool.gone(), Arc::strong_count(&call)), (vec![], 2));
        drop(second);
        assert_eq!((pool.gone(), Arc::strong_count(&call)), (vec![number], 1));
    }
}
