//! Shared-memory segments: made once, mapped once on either side, used again and again.
//!
//! A page that is touched for the first time costs four times as much as a copy into one that
//! is warm, so the owner of a segment keeps it when its reader has done with it, for some seconds
//! or until memory is short. Each segment carries one section at a time.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gridrpc_wire::Lease;

use crate::forks;
use crate::memory;
use crate::pages::{HUGE, HUGE_FROM, Memory};
use crate::passing::{FIRST_OF_PASSED_ON, Passing};
use crate::sys::{self, Mapping};
use crate::worker::blobs::Reading;
use crate::worker::progress::GivingBack;

const NAME: &CStr = c"gridrpc-segment";
/// Numbers of the segments that callers' arrays lie in, apart from those of the grids' own.
pub const FIRST_OF_ARRAYS: u32 = 1 << 31;
/// Numbers from here up to those hold shared data: only their owner can write to them.
pub(crate) const FIRST_OF_SHARED_DATA: u32 = 1 << 30;
/// The smallest segment, bytes.
const SMALLEST: u64 = 32 << 10;
/// Lengths of segments between one power of two and the next.
const STEPS: u64 = 4;
/// How long a free segment is kept that nobody takes, and how often it is looked for such.
const KEPT_FOR: Duration = Duration::from_secs(10);
pub(crate) const LOOKED_FOR: Duration = Duration::from_secs(5);
/// Before so much memory and more is made, it is seen whether there is any, bytes.
const MUCH: u64 = 4 << 20;
/// Of the memory that a process may have, the free segments of a pool take at most one part in so many.
const PART: u64 = 16;
/// Pages made beforehand at most, bytes: who asks for more may not use all of it.
const MOST_READY: u64 = 1 << 30;

/// A segment of this process's own.
#[derive(Debug)]
pub struct Segment {
    number: u32,
    memory: Memory,
}

impl Segment {
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

    /// What to pass to a reader.
    #[must_use]
    pub fn file(&self) -> Arc<OwnedFd> {
        self.memory.file()
    }
}

/// A segment taken from a pool for one section; it goes back when the last clone is dropped.
#[derive(Debug)]
pub struct Lent {
    segment: Arc<Segment>,
    pool: Arc<Pool>,
    spent: AtomicBool,
}

impl Lent {
    fn new(segment: Arc<Segment>, pool: &Arc<Pool>) -> Lent {
        Lent { segment, pool: Arc::clone(pool), spent: AtomicBool::new(false) }
    }
}

impl Lent {
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
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.segment.memory.write(offset, bytes)
    }

    /// Has nobody else write to the segment from now on.
    ///
    /// # Errors
    /// When it cannot be mapped or sealed.
    pub(crate) fn protect(&self) -> io::Result<()> {
        self.segment.memory.protect()
    }

    /// The segment will not go back, but be gone: somebody else may still read it.
    pub(crate) fn spend(&self) {
        self.spent.store(true, Ordering::Relaxed);
    }

    /// Where its memory starts, if it has at least `len` bytes.
    ///
    /// # Errors
    /// When it cannot be mapped or is too short.
    pub fn start(&self, len: u64) -> io::Result<NonNull<u8>> {
        self.stretch(0, len)
    }

    /// Where `len` bytes from `offset` on are.
    ///
    /// # Errors
    /// When they cannot be mapped or lie outside.
    pub fn stretch(&self, offset: u64, len: u64) -> io::Result<NonNull<u8>> {
        let outside = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let (offset, len) = (usize::try_from(offset).map_err(outside)?, usize::try_from(len));
        self.segment.memory.at(offset, len.map_err(outside)?)
    }

    /// Makes the pages of the first `len` bytes beforehand, where that takes less time than later.
    pub fn make_ready(&self, len: u64) {
        let end = len.min(self.segment.len()).min(MOST_READY) as usize;
        if self.segment.len() >= HUGE as u64 {
            self.segment.memory.make_ready(end);
        }
    }
}

/// A stretch of this process's own memory that an answer refers to: the worker has left its result there.
#[derive(Clone, Debug)]
pub struct Left {
    lent: Arc<Lent>,
    offset: u64,
    len: u64,
}

impl Left {
    /// The first `len` bytes of a stretch of `lent`.
    ///
    /// # Errors
    /// When they are not all there, or cannot be mapped.
    pub fn new(lent: &Arc<Lent>, offset: u64, len: u64) -> io::Result<Left> {
        lent.stretch(offset, len)?;
        Ok(Left { lent: Arc::clone(lent), offset, len })
    }

    /// Where it starts.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        // Mapped and checked in `new`.
        self.lent.stretch(self.offset, self.len).unwrap_or(NonNull::dangling())
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the stretch has been checked and stays mapped; the worker has let go of it.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len as usize) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.take_back(&self.segment, !self.spent.load(Ordering::Relaxed));
    }
}

/// A segment that nobody uses.
#[derive(Debug)]
struct Free {
    segment: Arc<Segment>,
    /// Since when, ns.
    since: u64,
}

#[derive(Debug, Default)]
struct Shelf {
    /// Free segments by length; the one used last is at the end.
    free: BTreeMap<u64, Vec<Free>>,
    free_bytes: u64,
    next: u32,
    /// Numbers that can be used again, if the pool does that.
    unused: Vec<u32>,
    /// Which process made the free ones.
    generation: u64,
    /// Segments that went: readers have to be told.
    gone: Vec<u32>,
}

impl Shelf {
    /// A free segment of this length, or a longer one that is not twice as long.
    fn take(&mut self, len: u64) -> Option<Arc<Segment>> {
        let fitting = self.free.range_mut(len..len.saturating_mul(2));
        let free = fitting.map(|(_, free)| free).find_map(Vec::pop)?;
        self.free_bytes -= free.segment.len();
        Some(free.segment)
    }

    /// Takes out for good what has been free since before that time, ns.
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

/// The segments that a process owns.
#[derive(Debug)]
pub struct Pool {
    shelf: Mutex<Shelf>,
    /// How many segments there are, lent or free.
    count: AtomicUsize,
    /// Free bytes kept at most.
    keep: u64,
    /// Whether numbers of segments that went are given to others.
    reuses_numbers: bool,
}

/// All pools of this process, for when memory is short.
static POOLS: Mutex<Vec<Weak<Pool>>> = Mutex::new(Vec::new());

impl Pool {
    /// A pool that keeps at most so many free bytes.
    #[must_use]
    pub fn new(keep: u64) -> Arc<Pool> {
        Pool::with(0, keep, false)
    }

    /// A pool whose segments have numbers from `first` on, so that those of several can be told
    /// apart.
    #[must_use]
    pub fn numbered_from(first: u32, keep: u64) -> Arc<Pool> {
        Pool::with(first, keep, false)
    }

    /// A pool for one reader, which hears of what went ([`Pool::gone`]) before anything else: numbers are
    /// used again, as there are marks for the lowest only.
    pub(crate) fn for_one_reader(keep: u64) -> Arc<Pool> {
        Pool::with(0, keep, true)
    }

    fn with(first: u32, keep: u64, reuses_numbers: bool) -> Arc<Pool> {
        let shelf = Shelf { next: first, generation: forks::generation(), ..Shelf::default() };
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

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Segments of another pool that went: the readers of this one have to be told as well.
    pub(crate) fn others_gone(&self, numbers: &[u32]) {
        self.shelf().gone.extend_from_slice(numbers);
    }

    /// A segment for `len` bytes, warm if there is one.
    ///
    /// # Errors
    /// When there are no descriptors or no memory.
    pub fn take(self: &Arc<Pool>, len: u64) -> io::Result<Lent> {
        // The kernel gives memory files of any size, and ends processes when they are filled.
        if len > memory::most() {
            return Err(memory::too_little(len, memory::most(), "this machine has"));
        }
        let want = rounded(len).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut shelf = self.shelf();
        if shelf.generation != forks::generation() {
            // This process has been forked: what was free is its parent's to use.
            shelf.generation = forks::generation();
            let free = shelf.free.values().map(Vec::len).sum();
            self.count.fetch_sub(free, Ordering::Relaxed);
            shelf.free_bytes = 0;
            shelf.free.clear();
        }
        if let Some(segment) = shelf.take(want) {
            return Ok(Lent::new(segment, self));
        }
        drop(shelf);
        if want >= MUCH {
            see_to_memory(want)?;
        }
        let file = sys::memory_file(NAME, want)?;
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
        Ok(Lent::new(Arc::new(Segment { number, memory }), self))
    }

    fn take_back(&self, segment: &Arc<Segment>, usable: bool) {
        let since = sys::monotonic_ns();
        let mut shelf = self.shelf();
        if !usable || shelf.free_bytes + segment.len() > self.keep {
            self.count.fetch_sub(1, Ordering::Relaxed);
            shelf.gone.push(segment.number);
            drop(shelf);
            if usable && memory::is_bounded() {
                // Else it goes when its readers have been told, and somebody may need it before.
                segment.memory.empty();
            }
            return;
        }
        shelf.free_bytes += segment.len();
        let segment = Arc::clone(segment);
        shelf.free.entry(segment.len()).or_default().push(Free { segment, since });
    }

    /// Numbers of the segments that have gone since the last time.
    #[must_use]
    pub fn gone(&self) -> Vec<u32> {
        let mut shelf = self.shelf();
        let gone = std::mem::take(&mut shelf.gone);
        if self.reuses_numbers {
            // Those of other pools are above.
            shelf.unused.extend(gone.iter().filter(|number| **number < FIRST_OF_SHARED_DATA));
        }
        gone
    }

    /// Whether it has any segments, lent or free.
    pub(crate) fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Gives up segments that nobody has taken for some time.
    pub(crate) fn give_up_old(&self) {
        let kept_for = u64::try_from(KEPT_FOR.as_nanos()).unwrap_or(u64::MAX);
        self.give_up(sys::monotonic_ns().saturating_sub(kept_for));
    }

    /// Gives up what has been free since before that time, ns. Its memory goes at once, though readers
    /// have it mapped until they are told.
    fn give_up(&self, before: u64) {
        let given_up = self.shelf().give_up(before);
        self.count.fetch_sub(given_up.len(), Ordering::Relaxed);
        given_up.iter().for_each(|free| free.segment.memory.empty());
    }
}

fn is_want_of_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory || sys::is_out_of_descriptors(error)
}

/// The length of the segment for so many bytes.
fn rounded(len: u64) -> Option<u64> {
    let least = if len > HUGE_FROM { HUGE as u64 } else { SMALLEST };
    let len = len.max(least);
    let step = len.checked_next_power_of_two()? / (2 * STEPS);
    // Whole huge pages, where there is more than one.
    let step = if len > HUGE as u64 { step.max(HUGE as u64) } else { step };
    len.checked_next_multiple_of(step)
}

/// Before so much memory is made: gives up all that is free in this process if there is not enough.
///
/// # Errors
/// When a control group does not allow it even then: who writes to it would be killed.
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

/// A stretch of somebody else's segment, lent to this process.
#[derive(Clone, Debug)]
pub struct Borrowed {
    mapping: Arc<Mapping>,
    /// For passing it on, where that can be done.
    passing: Option<Arc<Passing>>,
    offset: u64,
    len: u64,
    /// Returns the stretch to its owner when the last clone is dropped.
    guard: Option<Arc<Returner>>,
    /// Held as long as this is a part of shared data.
    _reading: Option<Arc<Reading>>,
    /// Which section of its message it is.
    section: u16,
}

impl Borrowed {
    /// Where it starts.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.mapping.at(self.offset, self.len).unwrap_or(NonNull::dangling())
    }

    /// Its length, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `at` has checked the stretch, the mapping lives as long as `self`, and the owner
        // does not touch what it has lent.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len()) }
    }

    /// Which section of its message it is.
    #[must_use]
    pub fn section(&self) -> u16 {
        self.section
    }

    /// The same as section number `section` of a message.
    #[must_use]
    pub fn as_section(mut self, section: u16) -> Borrowed {
        self.section = section;
        self
    }

    /// Whether it is memory of the caller's own, which only functions of modules may change.
    #[must_use]
    pub fn is_callers(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.lease.segment >= FIRST_OF_ARRAYS)
    }

    /// What it takes to pass it on, and where it lies in its segment.
    pub(crate) fn passing(&self) -> Option<(&Arc<Passing>, u64)> {
        Some((self.passing.as_ref()?, self.offset))
    }

    /// Whether somebody else also holds this stretch.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| Arc::strong_count(guard) > 1)
    }

    /// The lease to give back, if the owner gets it back.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.guard.as_ref().map(|guard| guard.lease)
    }

    /// The stretch goes back by other means: dropping it need not say so.
    pub fn forget(mut self) {
        if let Some(guard) = self.guard.take().and_then(|guard| Arc::try_unwrap(guard).ok()) {
            guard.disarm();
        }
    }
}

/// How leases that are read no more go back to their owner: by a mark in shared memory at once, or
/// collected here until they are sent.
#[derive(Clone, Debug, Default)]
pub struct Returns {
    marks: GivingBack,
    waiting: Arc<Mutex<Vec<Lease>>>,
}

impl Returns {
    fn give_back(&self, lease: Lease) {
        // A mark stands for the segment, whose only section is at its start.
        if lease.offset != 0 || !self.marks.mark(lease.segment) {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        }
    }

    /// What is to be sent.
    #[must_use]
    pub fn take(&self) -> Vec<Lease> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Returner {
    lease: Lease,
    returns: Option<Returns>,
    /// The process that borrowed: a child forked since then has nothing to give back.
    generation: u64,
}

impl Returner {
    fn disarm(mut self) {
        self.returns = None;
    }
}

impl Drop for Returner {
    fn drop(&mut self) {
        if let Some(returns) = &self.returns
            && self.generation == forks::generation()
        {
            returns.give_back(self.lease);
        }
    }
}

/// Somebody else's segments, as far as they have been announced to this process.
#[derive(Debug, Default)]
pub struct Mapped {
    segments: HashMap<u32, Theirs>,
    /// Why these could not be mapped.
    unmapped: HashMap<u32, String>,
    returns: Returns,
    /// Who tells others of segments that are passed on to them.
    passed_on_by: Option<Arc<Pool>>,
}

#[derive(Debug)]
struct Theirs {
    mapping: Arc<Mapping>,
    passing: Option<Arc<Passing>>,
}

impl Mapped {
    /// Stretches of these segments go back by marks, as far as there is room for them.
    pub(crate) fn given_back(marks: GivingBack) -> Mapped {
        let returns = Returns { marks, ..Returns::default() };
        let (segments, unmapped) = (HashMap::new(), HashMap::new());
        Mapped { segments, unmapped, returns, passed_on_by: None }
    }

    /// These segments may be passed on to those that `pool` serves.
    pub(crate) fn passed_on_by(mut self, pool: &Arc<Pool>) -> Mapped {
        self.passed_on_by = Some(Arc::clone(pool));
        self
    }

    /// Maps a segment that its owner has announced.
    ///
    /// # Errors
    /// When it cannot be mapped, is shorter than announced, or could become shorter.
    pub fn add(&mut self, number: u32, len: u64, file: OwnedFd) -> io::Result<()> {
        if !sys::keeps_its_length(file.as_fd()) {
            let text = "shared memory that somebody can shorten";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let shared = (FIRST_OF_SHARED_DATA..FIRST_OF_ARRAYS).contains(&number);
        let writable = !shared && number < FIRST_OF_PASSED_ON;
        let mapping = Arc::new(Mapping::new(file.as_fd(), len as usize, writable)?);
        let pool = self.passed_on_by.as_ref();
        let passing = pool.and_then(|pool| Passing::keep(file, len, pool)).map(Arc::new);
        self.unmapped.remove(&number);
        self.segments.insert(number, Theirs { mapping, passing });
        Ok(())
    }

    /// The same, but where there is no room for it, only what refers to it is lost. No file: it was lost
    /// on the way, as this process may have no more descriptors.
    ///
    /// # Errors
    /// When it is shorter than announced, or could become shorter.
    pub(crate) fn add_if_there_is_room(
        &mut self,
        number: u32,
        len: u64,
        file: Option<OwnedFd>,
    ) -> io::Result<()> {
        let too_many = || io::Error::from_raw_os_error(libc::EMFILE);
        match file.ok_or_else(too_many).and_then(|file| self.add(number, len, file)) {
            Err(error) if is_want_of_room(&error) => {
                self.segments.remove(&number);
                self.unmapped.insert(number, error.to_string());
                Ok(())
            }
            added => added,
        }
    }

    /// Forgets a segment; its memory goes with the last stretch of it.
    pub fn remove(&mut self, number: u32) {
        self.segments.remove(&number);
        self.unmapped.remove(&number);
    }

    /// Why a segment could not be mapped, if so. The stretch that the lease names goes back.
    pub(crate) fn no_room(&self, lease: Lease) -> Option<&str> {
        let why = self.unmapped.get(&lease.segment)?;
        self.returns.give_back(lease);
        Some(why)
    }

    /// The stretch of `len` bytes that a lease names, if it lies within a known segment.
    #[must_use]
    pub fn borrow(&self, lease: Lease, len: u64) -> Option<Borrowed> {
        let Theirs { mapping, passing } = self.segments.get(&lease.segment)?;
        mapping.at(lease.offset, len)?;
        let returns = Some(self.returns.clone());
        let generation = forks::generation();
        let guard = Some(Arc::new(Returner { lease, returns, generation }));
        Some(Borrowed {
            mapping: Arc::clone(mapping),
            passing: passing.clone(),
            offset: lease.offset,
            len,
            guard,
            _reading: None,
            section: 0,
        })
    }

    /// The stretch of shared data that a lease names, if it lies within a known segment. It does not go
    /// back with the answer to a call.
    pub(crate) fn borrow_shared_data(
        &self,
        lease: Lease,
        len: u64,
        reading: &Arc<Reading>,
    ) -> Option<Borrowed> {
        let mapping = Arc::clone(&self.segments.get(&lease.segment)?.mapping);
        mapping.at(lease.offset, len)?;
        let _reading = Some(Arc::clone(reading));
        let (offset, guard, passing) = (lease.offset, None, None);
        Some(Borrowed { mapping, passing, offset, len, guard, _reading, section: 0 })
    }

    /// Where stretches of these segments are collected that are read no more.
    #[must_use]
    pub fn returns(&self) -> Returns {
        self.returns.clone()
    }

    /// Leases that are read no more, to be sent to their owner.
    #[must_use]
    pub fn returned(&self) -> Vec<Lease> {
        self.returns.take()
    }
}

impl Drop for Mapped {
    /// The owner is gone, or will be: nothing goes back to whoever takes its place.
    fn drop(&mut self) {
        self.returns.marks.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(rounded >= len && rounded - len <= (len / STEPS).max(HUGE as u64), "{len}");
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
        assert!(!pool.has_any());
        assert_eq!((pool.gone(), blocks()), (vec![0], 0));
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

    /// The file as a reader gets it.
    fn reopened(lent: &Lent) -> OwnedFd {
        lent.segment().file().try_clone().unwrap()
    }

    #[test]
    fn a_borrowed_stretch_goes_back_once_when_its_last_holder_drops_it() {
        let pool = Pool::new(0);
        let lent = pool.take(10).unwrap();
        lent.write(b"0123456789").unwrap();
        let mut mapped = Mapped::default();
        mapped.add(0, lent.segment().len(), reopened(&lent)).unwrap();
        let stretch = mapped.borrow(Lease { segment: 0, offset: 2 }, 3).unwrap();
        assert_eq!(stretch.bytes(), b"234");
        let second = stretch.clone();
        assert!(stretch.is_held());
        drop(stretch);
        assert!(mapped.returned().is_empty());
        drop(second);
        assert_eq!(mapped.returned(), [Lease { segment: 0, offset: 2 }]);
    }

    #[test]
    fn stretches_outside_a_segment_are_refused() {
        let pool = Pool::new(0);
        let lent = pool.take(10).unwrap();
        let mut mapped = Mapped::default();
        let len = lent.segment().len();
        assert!(mapped.add(1, len * 2, reopened(&lent)).is_err());
        // SAFETY: plain system call; the descriptor is new.
        let loose = unsafe {
            let file = libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING);
            libc::ftruncate(file, 4096);
            std::os::fd::FromRawFd::from_raw_fd(file)
        };
        let error = mapped.add(2, 4096, loose).unwrap_err().to_string();
        assert!(error.contains("shorten"), "{error}");
        mapped.add(0, len, reopened(&lent)).unwrap();
        assert!(mapped.borrow(Lease { segment: 0, offset: len }, 1).is_none());
        assert!(mapped.borrow(Lease { segment: 0, offset: u64::MAX }, 2).is_none());
        assert!(mapped.borrow(Lease { segment: 9, offset: 0 }, 1).is_none());
    }
}
