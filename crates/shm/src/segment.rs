//! Shared-memory segments of this process: created once, mapped once on either side, and reused.
//!
//! Touching a page for the first time costs four times as much as a copy into a warm one. So the owner of a segment
//! keeps it when its reader is done, for some seconds or until memory is short. Each segment carries one section at a
//! time.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gridrpc_sys::{HUGE_PAGE, forks, memory};

use crate::pages::{HUGE_FROM, Memory};

const NAME: &CStr = c"gridrpc-segment";
/// First number of segments of callers' arrays, distinct from those of the grids.
pub const FIRST_OF_ARRAYS: u32 = 1 << 31;
/// First number of segments with shared data: only their owner can write to them.
pub const FIRST_OF_SHARED_DATA: u32 = 1 << 30;
/// The smallest segment, bytes.
const SMALLEST: u64 = 32 << 10;
/// Segment lengths between two powers of two.
const STEPS: u64 = 4;
/// How long an unused free segment is kept.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Interval of searches for unused free segments.
pub const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Allocations of this size or more first check the available memory, bytes.
const MUCH: u64 = 4 << 20;
/// Share of this process's memory that the free segments of a pool may take, as a divisor.
const PART: u64 = 16;
/// A segment longer than the pool's limit is kept alone if this many times its size is available.
const PLENTY: u64 = 4;
/// Maximum size of pages made in advance, bytes: the caller may not use all of them.
const MOST_READY: u64 = 1 << 30;

/// A segment of this process.
#[derive(Debug)]
pub struct Segment {
    number: u32,
    memory: Memory,
}

impl Segment {
    pub(crate) fn new(number: u32, memory: Memory) -> Segment {
        Segment { number, memory }
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its length, bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    /// The file to pass to a reader.
    #[must_use]
    pub fn file(&self) -> Arc<OwnedFd> {
        self.memory.file()
    }
}

/// A segment taken from a pool for one section. It is returned when the last clone is dropped.
#[derive(Debug)]
pub struct PooledSegment {
    segment: Arc<Segment>,
    origin: Origin,
    spent: AtomicBool,
}

/// Where a lent segment comes from.
#[derive(Debug)]
enum Origin {
    /// A pool, which takes it back.
    Pool(Arc<Pool>),
    /// Another process. Dropping this reports that nobody here uses the section any more.
    Foreign(#[allow(dead_code)] Arc<dyn Held>),
}

/// What a section of another process's memory keeps alive.
pub trait Held: std::fmt::Debug + Send + Sync {}

impl PooledSegment {
    fn new(segment: Arc<Segment>, pool: &Arc<Pool>) -> PooledSegment {
        PooledSegment {
            segment,
            origin: Origin::Pool(Arc::clone(pool)),
            spent: AtomicBool::new(false),
        }
    }

    /// A segment that belongs to no pool of this process. `held` lives as long as this.
    pub(crate) fn foreign(segment: &Arc<Segment>, held: Arc<dyn Held>) -> PooledSegment {
        let segment = Arc::clone(segment);
        PooledSegment { segment, origin: Origin::Foreign(held), spent: AtomicBool::new(false) }
    }

    /// The segment.
    #[must_use]
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Copies `bytes` to the start of the segment.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_at(0, bytes)
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// When there is no memory for it, or it would lie outside.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.segment.memory.write(offset, bytes)
    }

    /// Write-protects the segment for everybody else.
    ///
    /// # Errors
    /// When it cannot be mapped or sealed.
    pub fn protect(&self) -> io::Result<()> {
        self.segment.memory.protect()
    }

    /// Marks the segment as not reusable: another process may still read it.
    pub fn spend(&self) {
        self.spent.store(true, Ordering::Relaxed);
    }

    /// Start of its memory, if it has at least `len` bytes.
    ///
    /// # Errors
    /// When it cannot be mapped or is too short.
    pub fn start(&self, len: u64) -> io::Result<NonNull<u8>> {
        self.stretch(0, len)
    }

    /// A pointer to `len` bytes from `offset`.
    ///
    /// # Errors
    /// When they cannot be mapped or lie outside.
    pub fn stretch(&self, offset: u64, len: u64) -> io::Result<NonNull<u8>> {
        let outside = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let (offset, len) = (usize::try_from(offset).map_err(outside)?, usize::try_from(len));
        self.segment.memory.at(offset, len.map_err(outside)?)
    }

    /// Makes the pages of the next bytes up to `end` while a segment is filled from its start and has been filled up
    /// to `filled`.
    pub fn make_ready_behind(&self, filled: usize, end: usize) {
        let memory = &self.segment.memory;
        memory.is_written(filled);
        memory.make_ready(end.min(memory.len()));
    }

    /// Records that the first `len` bytes have been written, so their pages exist.
    pub fn is_written(&self, len: u64) {
        self.segment.memory.is_written(len as usize);
    }

    /// Makes the pages of the first `len` bytes in advance, where that is faster than later.
    pub fn make_ready(&self, len: u64) {
        let end = len.min(self.segment.len()).min(MOST_READY) as usize;
        if self.segment.len() >= HUGE_PAGE as u64 {
            self.segment.memory.make_ready(end);
        }
    }
}

/// A stretch of this process's memory that an answer refers to: the worker has left its result there.
#[derive(Clone, Debug)]
pub struct InPlaceResult {
    lent: Arc<PooledSegment>,
    offset: u64,
    len: u64,
}

impl InPlaceResult {
    /// The first `len` bytes of a stretch of `lent`.
    ///
    /// # Errors
    /// When they are not all there, or cannot be mapped.
    pub fn new(lent: &Arc<PooledSegment>, offset: u64, len: u64) -> io::Result<InPlaceResult> {
        lent.stretch(offset, len)?;
        Ok(InPlaceResult { lent: Arc::clone(lent), offset, len })
    }

    /// Its start address.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        // Mapped and checked in `new`.
        self.lent.stretch(self.offset, self.len).unwrap_or(NonNull::dangling())
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the stretch has been checked and stays mapped; the worker has released it.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len as usize) }
    }
}

impl Drop for PooledSegment {
    fn drop(&mut self) {
        if let Origin::Pool(pool) = &self.origin {
            pool.take_back(&self.segment, !self.spent.load(Ordering::Relaxed));
        }
    }
}

/// An unused segment.
#[derive(Debug)]
struct Free {
    segment: Arc<Segment>,
    /// Since when, ns.
    since: u64,
}

#[derive(Debug, Default)]
struct FreeList {
    /// Free segments by length; the most recently used one is last.
    free: BTreeMap<u64, Vec<Free>>,
    free_bytes: u64,
    next: u32,
    /// Numbers to reuse, if the pool does that.
    unused: Vec<u32>,
    /// The process that made the free ones.
    generation: u64,
    /// Segments that are gone: readers have to be notified.
    gone: Vec<u32>,
}

impl FreeList {
    /// A free segment of this length, or a longer one of less than twice the length.
    fn take(&mut self, len: u64) -> Option<Arc<Segment>> {
        let fitting = self.free.range_mut(len..len.saturating_mul(2));
        let free = fitting.map(|(_, free)| free).find_map(Vec::pop)?;
        self.free_bytes -= free.segment.len();
        Some(free.segment)
    }

    /// Removes the segments that have been free since before this time, ns.
    fn give_up(&mut self, before: u64) -> Vec<Free> {
        let mut given_up = Vec::new();
        for free in self.free.values_mut() {
            let old = free.partition_point(|free| free.since < before);
            given_up.extend(free.drain(..old));
        }
        self.free.retain(|_, free| !free.is_empty());
        self.free_bytes -= given_up.iter().map(|free| free.segment.len()).sum::<u64>();
        self.gone.extend(given_up.iter().map(|free| free.segment.number));
        given_up
    }
}

/// A pool of segments that a process owns.
#[derive(Debug)]
pub struct Pool {
    shelf: Mutex<FreeList>,
    /// Number of segments, lent or free.
    count: AtomicUsize,
    /// Maximum number of free bytes kept.
    keep: u64,
    /// Whether numbers of dropped segments are reused.
    reuses_numbers: bool,
}

/// All pools of this process, to free memory when it is short.
static POOLS: Mutex<Vec<Weak<Pool>>> = Mutex::new(Vec::new());

impl Pool {
    /// A pool that keeps at most `keep` free bytes.
    #[must_use]
    pub fn new(keep: u64) -> Arc<Pool> {
        Pool::with(0, keep, false)
    }

    /// A pool whose segment numbers start at `first`, so that those of several pools differ.
    #[must_use]
    pub fn numbered_from(first: u32, keep: u64) -> Arc<Pool> {
        Pool::with(first, keep, false)
    }

    /// A pool for one reader, which is notified of dropped segments ([`Pool::gone`]) before anything else. It reuses
    /// numbers, because only the lowest ones have marks.
    pub fn for_one_reader(keep: u64) -> Arc<Pool> {
        Pool::with(0, keep, true)
    }

    fn with(first: u32, keep: u64, reuses_numbers: bool) -> Arc<Pool> {
        let shelf =
            FreeList { next: first, generation: forks::generation(), ..FreeList::default() };
        let keep = keep.min(memory::most() / PART);
        let pool = Arc::new(Pool {
            shelf: Mutex::new(shelf),
            count: AtomicUsize::new(0),
            keep,
            reuses_numbers,
        });
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        pool
    }

    fn shelf(&self) -> MutexGuard<'_, FreeList> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds dropped segments of another pool: the readers of this pool are notified of them too.
    pub fn others_gone(&self, numbers: &[u32]) {
        self.shelf().gone.extend_from_slice(numbers);
    }

    /// Takes a segment for `len` bytes, warm if there is one.
    ///
    /// # Errors
    /// When there are no descriptors or no memory.
    pub fn take(self: &Arc<Pool>, len: u64) -> io::Result<PooledSegment> {
        // The kernel creates memory files of any size, and kills processes when they are filled.
        if len > memory::most() {
            return Err(memory::too_little(len, memory::most(), "this machine has"));
        }
        let want = rounded(len).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut shelf = self.shelf();
        if shelf.generation != forks::generation() {
            // This process has been forked: the free segments belong to the parent.
            shelf.generation = forks::generation();
            let free = shelf.free.values().map(Vec::len).sum();
            self.count.fetch_sub(free, Ordering::Relaxed);
            shelf.free_bytes = 0;
            shelf.free.clear();
        }
        if let Some(segment) = shelf.take(want) {
            return Ok(PooledSegment::new(segment, self));
        }
        drop(shelf);
        if want >= MUCH {
            see_to_memory(want)?;
        }
        let file = gridrpc_sys::memory_file(NAME, want)?;
        let mut shelf = self.shelf();
        let number = if let Some(number) = shelf.unused.pop() {
            number
        } else {
            let number = shelf.next;
            shelf.next = number.checked_add(1).ok_or(io::ErrorKind::OutOfMemory)?;
            number
        };
        drop(shelf);
        self.count.fetch_add(1, Ordering::Relaxed);
        let memory = Memory::new(file, want as usize);
        Ok(PooledSegment::new(Arc::new(Segment { number, memory }), self))
    }

    fn take_back(&self, segment: &Arc<Segment>, usable: bool) {
        let since = gridrpc_sys::monotonic_ns();
        let len = segment.len();
        // The next segment will usually be as long, and making its pages takes longer than everything else done with
        // it.
        let alone = usable && self.keeps_alone(len);
        let mut shelf = self.shelf();
        let given_up = if alone { shelf.give_up(u64::MAX) } else { Vec::new() };
        if !usable || !alone && shelf.free_bytes + len > self.keep {
            self.count.fetch_sub(1, Ordering::Relaxed);
            shelf.gone.push(segment.number);
            drop(shelf);
            if usable && memory::is_bounded() {
                // Otherwise the memory is freed when its readers have been notified, and may be needed before.
                segment.memory.empty();
            }
            return;
        }
        shelf.free_bytes += len;
        let segment = Arc::clone(segment);
        shelf.free.entry(len).or_default().push(Free { segment, since });
        drop(shelf);
        self.let_go(&given_up);
    }

    /// Whether a segment longer than the pool's limit is kept in place of others.
    fn keeps_alone(&self, len: u64) -> bool {
        self.keep > 0 && len > self.keep && memory::left() / PLENTY >= len
    }

    /// Numbers of the segments dropped since the last call.
    #[must_use]
    pub fn gone(&self) -> Vec<u32> {
        let mut shelf = self.shelf();
        let gone = std::mem::take(&mut shelf.gone);
        if self.reuses_numbers {
            // Numbers of other pools are higher.
            shelf.unused.extend(gone.iter().filter(|number| **number < FIRST_OF_SHARED_DATA));
        }
        gone
    }

    /// Whether it has any segments, lent or free, or readers to notify of dropped ones.
    pub fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0 || !self.shelf().gone.is_empty()
    }

    /// Drops segments that have been unused for some time.
    pub fn give_up_old(&self) {
        let kept_for = u64::try_from(KEPT_FOR.as_nanos()).unwrap_or(u64::MAX);
        self.give_up(gridrpc_sys::monotonic_ns().saturating_sub(kept_for));
    }

    /// Drops segments that have been free since before this time, ns. Their memory is freed at once, although readers
    /// have it mapped until they are notified.
    fn give_up(&self, before: u64) {
        let given_up = self.shelf().give_up(before);
        self.let_go(&given_up);
    }

    fn let_go(&self, given_up: &[Free]) {
        self.count.fetch_sub(given_up.len(), Ordering::Relaxed);
        given_up.iter().for_each(|free| free.segment.memory.empty());
    }
}

/// The length of the segment for this many bytes.
fn rounded(len: u64) -> Option<u64> {
    let least = if len > HUGE_FROM { HUGE_PAGE as u64 } else { SMALLEST };
    let len = len.max(least);
    let step = len.checked_next_power_of_two()? / (2 * STEPS);
    // Whole huge pages, if more than one.
    let step = if len > HUGE_PAGE as u64 { step.max(HUGE_PAGE as u64) } else { step };
    len.checked_next_multiple_of(step)
}

/// Before this much memory is allocated: drops all free segments of this process if there is not enough.
///
/// # Errors
/// When a control group does not allow it even then: a writer would be killed.
fn see_to_memory(want: u64) -> io::Result<()> {
    if memory::left() >= want {
        return Ok(());
    }
    let pools: Vec<Arc<Pool>> = {
        let all = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    };
    for pool in &pools {
        pool.give_up(u64::MAX);
    }
    match memory::left_in_groups() {
        Some(left) if left < want => {
            Err(memory::too_little(want, left, "the control group allows"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridrpc_sys::Mapping;
    use std::os::fd::AsFd;

    #[test]
    fn a_segment_is_used_again_while_it_is_warm() {
        let pool = Pool::new(1 << 20);
        let first = pool.take(100_000).unwrap();
        first.write(&[7; 100_000]).unwrap();
        let number = first.segment().number();
        drop(first);
        let second = pool.take(90_000).unwrap();
        assert_eq!(second.segment().number(), number, "a longer one will do");
        let third = pool.take(90_000).unwrap();
        assert_ne!(third.segment().number(), number, "it is taken");
        drop(third);
        second.write(&[8; 90_000]).unwrap();
        // SAFETY: nobody else uses the segment.
        let byte = unsafe { second.start(1).unwrap().as_ptr().read() };
        assert_eq!(byte, 8);
        assert!(pool.gone().is_empty());
    }

    #[test]
    fn more_than_the_machine_has_is_refused() {
        let refused = Pool::new(0).take(1 << 46).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::OutOfMemory);
        assert!(refused.to_string().contains("this machine has"), "{refused}");
    }

    #[test]
    fn lengths_waste_little_and_are_whole_huge_pages() {
        assert_eq!(rounded(1), Some(SMALLEST));
        assert_eq!(rounded(33_600), Some(40 << 10));
        assert_eq!(rounded(HUGE_FROM), Some(HUGE_FROM));
        assert_eq!(rounded(HUGE_FROM + 1), Some(2 << 20));
        assert_eq!(rounded((2 << 20) + 1), Some(4 << 20));
        assert_eq!(rounded(10_000_000), Some(10 << 20));
        assert_eq!(rounded((33 << 20) + 1), Some(40 << 20));
        assert_eq!(rounded(u64::MAX), None);
        for len in (40_000_u64..100_000_000).step_by(777_777) {
            let rounded = rounded(len).unwrap();
            assert!(
                rounded >= len && rounded - len <= (len / STEPS).max(HUGE_PAGE as u64),
                "{len}"
            );
        }
    }

    #[test]
    fn what_is_free_for_long_goes_and_takes_no_memory_though_a_reader_has_it_mapped() {
        let pool = Pool::for_one_reader(1 << 30);
        let lent = pool.take(1 << 20).unwrap();
        lent.write(&[7; 1 << 20]).unwrap();
        let file = reopened(&lent);
        let reader = Mapping::new(file.as_fd(), 1 << 20, true).unwrap();
        let blocks = || nix::sys::stat::fstat(&file).unwrap().st_blocks;
        drop(lent);
        pool.give_up_old();
        assert!(pool.has_any() && pool.gone().is_empty() && blocks() > 0, "it was used just now");
        pool.give_up(u64::MAX);
        assert_eq!((pool.gone(), blocks()), (vec![0], 0));
        assert!(!pool.has_any());
        // SAFETY: nobody writes to it.
        assert_eq!(unsafe { reader.at(5, 1).unwrap().read() }, 0);
        assert_eq!(pool.take(1).unwrap().segment().number(), 0, "its number is free again");
    }

    #[test]
    fn more_than_the_pool_may_keep_goes() {
        let pool = Pool::new(50_000);
        let lent = [pool.take(1).unwrap(), pool.take(1).unwrap()];
        drop(lent);
        assert_eq!(pool.gone().len(), 1);
    }

    #[test]
    fn a_segment_longer_than_all_that_is_kept_is_kept_alone() {
        let pool = Pool::new(50_000);
        drop(pool.take(1).unwrap());
        let long = pool.take(1 << 20).unwrap().segment().number();
        assert_eq!(pool.gone(), vec![0], "the short one has made way");
        assert_eq!(pool.take(1 << 20).unwrap().segment().number(), long);
        let none = Pool::new(0);
        drop(none.take(1 << 20).unwrap());
        assert_eq!(none.gone(), vec![0], "who wants nothing kept has nothing kept");
    }

    /// The file as a reader gets it.
    fn reopened(lent: &PooledSegment) -> OwnedFd {
        lent.segment().file().try_clone().unwrap()
    }
}
