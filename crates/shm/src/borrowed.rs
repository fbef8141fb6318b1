//! Shared-memory segments of other processes: mapped once; stretches of them are lent to this process until the last
//! holder drops them.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_sys::{Mapping, forks};
use gridrpc_wire::Lease;

use crate::passing::{FIRST_OF_PASSED_ON, ForwardableSegment};
use crate::progress::ReturnMarks;
use crate::segment::{FIRST_OF_ARRAYS, FIRST_OF_SHARED_DATA, Pool};

/// A stretch of another process's segment, lent to this process.
#[derive(Clone, Debug)]
pub struct Borrowed {
    mapping: Arc<Mapping>,
    /// Used to pass it on, where that is possible.
    passing: Option<Arc<ForwardableSegment>>,
    offset: u64,
    len: u64,
    /// Returns the stretch to its owner when the last clone is dropped.
    guard: Option<Arc<LeaseReturner>>,
    /// Held as long as this is a part of shared data.
    _reading: Option<Arc<Reading>>,
    /// Number of its section in the message.
    section: u16,
}

impl Borrowed {
    /// Its start address.
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
        // SAFETY: `at` has checked the stretch, the mapping lives as long as `self`, and the owner does not modify
        // lent memory.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len()) }
    }

    /// Number of its section in the message.
    #[must_use]
    pub fn section(&self) -> u16 {
        self.section
    }

    /// The same stretch as section number `section` of a message.
    #[must_use]
    pub fn as_section(mut self, section: u16) -> Borrowed {
        self.section = section;
        self
    }

    /// Whether it is the caller's own memory, which only functions of modules may change.
    #[must_use]
    pub fn is_callers(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.lease.segment >= FIRST_OF_ARRAYS)
    }

    /// The data needed to pass it on, and its offset in the segment.
    pub fn passing(&self) -> Option<(&Arc<ForwardableSegment>, u64)> {
        Some((self.passing.as_ref()?, self.offset))
    }

    /// Whether another holder of this stretch exists.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| Arc::strong_count(guard) > 1)
    }

    /// The lease to return, if the owner expects it back.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.guard.as_ref().map(|guard| guard.lease)
    }

    /// Forgets the stretch without returning it: it is returned by other means.
    pub fn forget(mut self) {
        if let Some(guard) = self.guard.take().and_then(|guard| Arc::try_unwrap(guard).ok()) {
            guard.disarm();
        }
    }
}

/// Returns unused leases to their owner: by a mark in shared memory at once, or collected here until they are sent.
#[derive(Clone, Debug, Default)]
pub struct LeaseReturns {
    marks: ReturnMarks,
    waiting: Arc<Mutex<Vec<Lease>>>,
}

impl LeaseReturns {
    fn give_back(&self, lease: Lease) {
        // A mark stands for the segment, whose only section is at its start.
        if lease.offset != 0 || !self.marks.mark(lease.segment) {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        }
    }

    /// Takes the leases to send.
    #[must_use]
    pub fn take(&self) -> Vec<Lease> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct LeaseReturner {
    lease: Lease,
    returns: Option<LeaseReturns>,
    /// The process that borrowed: a child forked since then has nothing to return.
    generation: u64,
}

impl LeaseReturner {
    fn disarm(mut self) {
        self.returns = None;
    }
}

impl Drop for LeaseReturner {
    fn drop(&mut self) {
        if let Some(returns) = &self.returns
            && self.generation == forks::generation()
        {
            returns.give_back(self.lease);
        }
    }
}

/// Numbers of shared data that this process no longer reads, and whether no other process that may have got it from
/// this one reads it.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<Mutex<Vec<(u64, bool)>>>);

impl Unread {
    /// Takes the numbers collected since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<(u64, bool)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A reader of shared data. When the data and the last view of it are dropped, its number goes to [`Unread`].
#[derive(Debug)]
pub struct Reading {
    blob: u64,
    /// How often this process had forked when the data arrived.
    forks: u64,
    unread: Unread,
}

impl Reading {
    /// Registers the arrival of shared data number `blob`.
    #[must_use]
    pub fn new(blob: u64, unread: &Unread) -> Reading {
        forks::notice();
        Reading { blob, forks: forks::count(), unread: unread.clone() }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // A child forked in between has the memory mapped too.
        let by_nobody = forks::count() == self.forks;
        self.unread.0.lock().unwrap_or_else(PoisonError::into_inner).push((self.blob, by_nobody));
    }
}

/// Segments of another process that have been announced to this process.
#[derive(Debug, Default)]
pub struct Mapped {
    segments: HashMap<u32, MappedSegment>,
    /// Why these could not be mapped.
    unmapped: HashMap<u32, String>,
    returns: LeaseReturns,
    /// Notifies others about segments that are passed on to them.
    passed_on_by: Option<Arc<Pool>>,
}

#[derive(Debug)]
struct MappedSegment {
    mapping: Arc<Mapping>,
    passing: Option<Arc<ForwardableSegment>>,
}

impl Mapped {
    /// Creates a map whose stretches are returned by marks, as long as there is room for them.
    pub fn given_back(marks: ReturnMarks) -> Mapped {
        let returns = LeaseReturns { marks, ..LeaseReturns::default() };
        let (segments, unmapped) = (HashMap::new(), HashMap::new());
        Mapped { segments, unmapped, returns, passed_on_by: None }
    }

    /// Allows these segments to be passed on to the readers of `pool`.
    pub fn passed_on_by(mut self, pool: &Arc<Pool>) -> Mapped {
        self.passed_on_by = Some(Arc::clone(pool));
        self
    }

    /// Maps a segment that its owner has announced.
    ///
    /// # Errors
    /// When it cannot be mapped, is shorter than announced, or could become shorter.
    pub fn add(&mut self, number: u32, len: u64, file: OwnedFd) -> io::Result<()> {
        if !gridrpc_sys::keeps_its_length(file.as_fd()) {
            let text = "shared memory that somebody can shorten";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let shared = (FIRST_OF_SHARED_DATA..FIRST_OF_ARRAYS).contains(&number);
        let writable = !shared && number < FIRST_OF_PASSED_ON;
        let mapping = Arc::new(Mapping::new(file.as_fd(), len as usize, writable)?);
        let pool = self.passed_on_by.as_ref();
        let passing = pool.and_then(|pool| ForwardableSegment::keep(file, len, pool)).map(Arc::new);
        self.unmapped.remove(&number);
        self.segments.insert(number, MappedSegment { mapping, passing });
        Ok(())
    }

    /// Maps a segment. If there is no room for it, only the data that refers to it is lost. `file` is `None` if it
    /// was lost in transit because this process may have no more descriptors.
    ///
    /// # Errors
    /// When it is shorter than announced, or could become shorter.
    pub fn add_if_there_is_room(
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

    /// Removes a segment; its memory is freed with the last stretch of it.
    pub fn remove(&mut self, number: u32) {
        self.segments.remove(&number);
        self.unmapped.remove(&number);
    }

    /// Whether no segment is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Why a segment could not be mapped, if it could not. Returns the lease's stretch to its owner.
    pub fn no_room(&self, lease: Lease) -> Option<&str> {
        let why = self.unmapped.get(&lease.segment)?;
        self.returns.give_back(lease);
        Some(why)
    }

    /// The stretch of `len` bytes of a lease, if it lies within a known segment.
    #[must_use]
    pub fn borrow(&self, lease: Lease, len: u64) -> Option<Borrowed> {
        let MappedSegment { mapping, passing } = self.segments.get(&lease.segment)?;
        mapping.at(lease.offset, len)?;
        let returns = Some(self.returns.clone());
        let generation = forks::generation();
        let guard = Some(Arc::new(LeaseReturner { lease, returns, generation }));
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

    /// The stretch of shared data of a lease, if it lies within a known segment. It is not returned with the answer
    /// to a call.
    pub fn borrow_shared_data(
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

    /// The collector of unused stretches of these segments.
    #[must_use]
    pub fn returns(&self) -> LeaseReturns {
        self.returns.clone()
    }

    /// Takes unused leases, to be sent to their owner.
    #[must_use]
    pub fn returned(&self) -> Vec<Lease> {
        self.returns.take()
    }
}

impl Drop for Mapped {
    /// The owner is gone, or will be: nothing must be returned to its successor.
    fn drop(&mut self) {
        self.returns.marks.close();
    }
}

fn is_want_of_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory || gridrpc_sys::is_out_of_descriptors(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::PooledSegment;

    /// The file as a reader gets it.
    fn reopened(lent: &PooledSegment) -> OwnedFd {
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
