//! Memory that callers lend for the duration of a call: data is sent from it, and received into it.
//!
//! Over a socket, an array goes from the caller's memory to the kernel and back without a copy in between. A call may
//! end before its data has been sent or received, by a deadline for example, and then the memory belongs to the
//! caller again: [`Source::detach`] and [`Sink::close`] ensure that.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_shm::segment::PooledSegment;
use gridrpc_sys::lock;
use gridrpc_transport::Transport;

/// Bytes to be sent through a socket.
#[derive(Debug)]
pub struct Source {
    bytes: Mutex<Bytes>,
    len: usize,
}

#[derive(Debug)]
enum Bytes {
    Owned(Vec<u8>),
    Lent(Foreign),
    Held(Box<dyn PinnedBytes>),
}

#[derive(Debug, Clone, Copy)]
struct Foreign(NonNull<u8>);

// SAFETY: lent memory is only read, under the lock, while its owner has promised to keep it.
unsafe impl Send for Foreign {}

/// Keeps bytes in place as long as it lives.
pub trait PinnedBytes: std::fmt::Debug + Send {
    /// The bytes, always the same ones.
    fn bytes(&self) -> &[u8];
}

impl Source {
    /// Owned bytes.
    #[must_use]
    pub fn owned(bytes: Vec<u8>) -> Source {
        Source { len: bytes.len(), bytes: Mutex::new(Bytes::Owned(bytes)) }
    }

    /// Bytes lent by a caller.
    ///
    /// # Safety
    /// They must stay readable and unchanged until the source is dropped or detached.
    #[must_use]
    pub unsafe fn lent(start: NonNull<u8>, len: usize) -> Source {
        Source { len, bytes: Mutex::new(Bytes::Lent(Foreign(start))) }
    }

    /// Bytes kept in place by another object.
    #[must_use]
    pub fn held(held: impl PinnedBytes + 'static) -> Source {
        Source { len: held.bytes().len(), bytes: Mutex::new(Bytes::Held(Box::new(held))) }
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Passes the bytes to `use_them`.
    pub fn with<R>(&self, use_them: impl FnOnce(&[u8]) -> R) -> R {
        match &*lock(&self.bytes) {
            Bytes::Owned(bytes) => use_them(bytes),
            Bytes::Held(held) => use_them(held.bytes()),
            Bytes::Lent(Foreign(start)) => {
                // SAFETY: lent for as long as this variant exists, see `lent`.
                use_them(unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) })
            }
        }
    }

    /// Returns the memory to the caller: copies what may still be sent.
    pub fn detach(&self) {
        let mut bytes = lock(&self.bytes);
        if let Bytes::Lent(Foreign(start)) = *bytes {
            // SAFETY: as in `with`.
            let copy = unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }.to_vec();
            *bytes = Bytes::Owned(copy);
        }
    }

    /// The buffer, if it is owned.
    #[must_use]
    pub fn into_owned(self) -> Option<Vec<u8>> {
        match self.bytes.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Bytes::Owned(bytes) => Some(bytes),
            Bytes::Lent(_) | Bytes::Held(_) => None,
        }
    }
}

/// Destination of a section that is received through a socket.
#[derive(Debug)]
pub struct Sink {
    start: Mutex<Option<Pointer>>,
    len: usize,
    /// Number of bytes received, from the first one on.
    filled: AtomicUsize,
    /// The segment whose pages are made while it is filled.
    segment: Option<Arc<PooledSegment>>,
}

#[derive(Debug)]
struct Pointer(NonNull<u8>);

// SAFETY: it is only written to, under the lock, while its owner has promised to keep it.
unsafe impl Send for Pointer {}

/// Scratch buffer for data whose destination has been closed, bytes.
const SCRATCH: usize = 16 << 10;
/// Step for allocating the pages of a segment ahead of use, bytes. Making them all at once would block
/// a process that has other calls to answer.
const AHEAD: usize = 64 << 20;

impl Sink {
    /// A destination in a caller's memory.
    ///
    /// # Safety
    /// It must stay writable, and nobody else may use it, until the sink is dropped or closed.
    #[must_use]
    pub unsafe fn new(start: NonNull<u8>, len: usize) -> Sink {
        let (start, filled) = (Mutex::new(Some(Pointer(start))), AtomicUsize::new(0));
        Sink { start, len, filled, segment: None }
    }

    /// A destination at the start of a segment.
    ///
    /// # Errors
    /// When it cannot be mapped or is shorter.
    ///
    /// # Safety
    /// Nobody else may use it until the sink is dropped or closed.
    pub unsafe fn segment(lent: &Arc<PooledSegment>, len: usize) -> io::Result<Sink> {
        let start = lent.start(len as u64)?;
        // SAFETY: the segment stays mapped as long as the sink holds it.
        let sink = unsafe { Sink::new(start, len) };
        Ok(Sink { segment: Some(Arc::clone(lent)), ..sink })
    }

    /// Its capacity, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether its capacity is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes received, from the first one on.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.filled.load(Ordering::Acquire)
    }

    /// Returns the memory to the caller: nothing is written to it from here on.
    pub fn close(&self) {
        *lock(&self.start) = None;
    }

    /// Receives at most `limit` bytes at offset `at`.
    ///
    /// # Errors
    /// As [`Transport::receive_into`].
    pub(crate) fn receive(
        &self,
        transport: &dyn Transport,
        at: usize,
        limit: usize,
    ) -> io::Result<usize> {
        let room = limit.min(self.len.saturating_sub(at));
        if let Some(segment) = &self.segment {
            segment.make_ready_behind(at, self.len.min((at / AHEAD + 2) * AHEAD));
        }
        let got = match &*lock(&self.start) {
            // SAFETY: `at + room` is within the memory that `new` was promised.
            Some(Pointer(start)) => unsafe {
                let place = std::slice::from_raw_parts_mut(start.add(at).as_ptr(), room);
                transport.receive_into(place)
            },
            None => {
                let mut scratch = [0; SCRATCH];
                let room = room.min(SCRATCH);
                transport.receive_into(&mut scratch[..room])
            }
        }?;
        self.filled.store(at + got, Ordering::Release);
        Ok(got)
    }

    /// Copies bytes that have been received elsewhere.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let count = bytes.len().min(self.len.saturating_sub(at));
        if let Some(Pointer(start)) = &*lock(&self.start) {
            // SAFETY: `at + count` is within the memory that `new` was promised.
            unsafe { start.add(at).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), count) };
        }
        self.filled.store(at + count, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detached_bytes_no_longer_depend_on_their_owner() {
        let mut memory = [1_u8, 2, 3];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: `memory` outlives the source.
        let source = unsafe { Source::lent(start, 3) };
        assert_eq!(source.with(<[u8]>::to_vec), [1, 2, 3]);
        source.detach();
        memory[0] = 9;
        assert_eq!(memory[0], 9);
        assert_eq!(source.with(<[u8]>::to_vec), [1, 2, 3]);
        assert_eq!(source.into_owned(), Some(vec![1, 2, 3]));
    }

    #[test]
    fn a_closed_sink_is_not_written_to() {
        let mut memory = [0_u8; 4];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: `memory` outlives the sink.
        let sink = unsafe { Sink::new(start, 4) };
        sink.write(1, &[7, 8]);
        sink.write(3, &[9, 9, 9]);
        sink.close();
        sink.write(0, &[5]);
        assert_eq!(memory, [0, 7, 8, 9]);
    }
}
