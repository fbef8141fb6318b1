//! Builder for payloads: selects how each section is transferred.

use std::io;
use std::sync::Arc;

use gridrpc_shm::borrowed::Borrowed;
use gridrpc_shm::lendings::Lendings;
use gridrpc_shm::segment::{Pool, PooledSegment};
use gridrpc_wire::{MAX_SECTIONS, Order};

use super::{Incoming, KeepAlive, Outgoing, Payload};
use crate::buffers::Source;

/// Maximum number of inline bytes of a frame, all sections together.
const MAX_INLINE: usize = 512 << 10;
/// Copies of this size or more use memory of the pool even if it is not shared. The allocator would take new memory
/// for each of them, and its pages cost five times as much as the copy.
const WORTH_A_SEGMENT: u64 = 4 << 20;

/// Builds a payload and selects how each section is transferred.
#[derive(Debug)]
pub struct PayloadBuilder<'p> {
    pool: &'p Arc<Pool>,
    /// Whether the receiver can map the pool's memory.
    shares: bool,
    /// Memory lent from the pool, which may be returned at any time.
    lendings: Option<&'p Lendings>,
    threshold: usize,
    inline: usize,
    bytes: u64,
    order: Order,
    parts: Vec<Outgoing>,
}

impl<'p> PayloadBuilder<'p> {
    /// Sections of `threshold` bytes or more use memory of the pool, if the receiver `shares` it.
    #[must_use]
    pub fn new(pool: &'p Arc<Pool>, shares: bool, threshold: usize) -> Self {
        let (inline, bytes, parts) = (0, 0, Vec::new());
        let order = Order::NATIVE;
        PayloadBuilder { pool, shares, lendings: None, threshold, inline, bytes, order, parts }
    }

    /// Continues with the sections of an unsent payload.
    #[must_use]
    pub fn go_on_with(self, payload: Payload) -> Self {
        let inline = |part: &Outgoing| match part {
            Outgoing::Inline(bytes) => bytes.len(),
            _ => 0,
        };
        let inline = payload.parts.iter().map(inline).sum();
        let Payload { parts, bytes, order } = payload;
        PayloadBuilder { inline, bytes, order, parts, ..self }
    }

    /// The numbers in its sections have this byte order.
    #[must_use]
    pub fn in_order(self, order: Order) -> Self {
        PayloadBuilder { order, ..self }
    }

    /// Uses no memory that the receiver could map.
    #[must_use]
    pub fn without_shared_memory(self) -> Self {
        PayloadBuilder { shares: false, ..self }
    }

    /// Reuses memory that is returned to these.
    pub fn lending(self, lendings: &'p Lendings) -> Self {
        PayloadBuilder { lendings: Some(lendings), ..self }
    }

    /// Takes a segment of shared memory for `len` bytes, to be filled and added. Returns `None` if the data has to go
    /// through the socket, because no memory is shared or no more descriptors should be used.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn take_shared(&self, len: u64) -> io::Result<Option<PooledSegment>> {
        if self.shares { self.take(len) } else { Ok(None) }
    }

    /// Takes a segment for a copy of `len` bytes, to be shared or sent. Returns `None` if the copy is too small, or
    /// no more descriptors should be used.
    fn take_for_copy(&self, len: u64) -> io::Result<Option<PooledSegment>> {
        if self.shares || len >= WORTH_A_SEGMENT { self.take(len) } else { Ok(None) }
    }

    fn take(&self, len: u64) -> io::Result<Option<PooledSegment>> {
        if let Some(lendings) = self.lendings {
            lendings.end_marked();
            if lendings.are_many() {
                return Ok(None);
            }
        }
        match self.pool.take(len) {
            Ok(lent) => Ok(Some(lent)),
            Err(error) if gridrpc_sys::is_out_of_descriptors(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds a section with a copy of `bytes`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let small = self.is_small(bytes.len());
        let part = if small {
            self.inline += bytes.len();
            Outgoing::Inline(bytes.to_vec())
        } else if let Some(lent) = self.take_for_copy(bytes.len() as u64)? {
            lent.write(bytes)?;
            Outgoing::Shared { lent: Arc::new(lent), offset: 0, len: bytes.len() as u64 }
        } else {
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
            copy.extend_from_slice(bytes);
            Outgoing::Stream(Arc::new(Source::owned(copy)))
        };
        self.push(part, bytes.len() as u64);
        Ok(())
    }

    /// Adds a section with these bytes.
    ///
    /// # Errors
    /// As [`PayloadBuilder::add`].
    pub fn add_owned(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let len = bytes.len();
        if !self.is_small(len) {
            return self.add(&bytes);
        }
        self.inline += len;
        self.push(Outgoing::Inline(bytes), len as u64);
        Ok(())
    }

    /// Whether a section of `len` bytes is sent inline.
    #[must_use]
    pub fn is_small(&self, len: usize) -> bool {
        len < self.threshold && self.inline + len <= MAX_INLINE
    }

    /// Whether sections can lie in shared memory.
    #[must_use]
    pub fn has_shared_memory(&self) -> bool {
        self.shares
    }

    /// Adds a section that already lies in shared memory. `moved`: the size that counts for the limit on waiting
    /// data, bytes.
    pub fn add_shared(&mut self, lent: Arc<PooledSegment>, offset: u64, len: u64, moved: u64) {
        self.push(Outgoing::Shared { lent, offset, len }, moved);
    }

    /// Adds a section received from another process: passed on in place where possible, otherwise copied.
    ///
    /// # Errors
    /// As [`PayloadBuilder::add`].
    pub fn pass_on(&mut self, section: &Incoming) -> io::Result<()> {
        if let Incoming::Shared(stretch) = section
            && self.passes_on(section)
        {
            self.push(Outgoing::Passed(stretch.clone()), 0);
            return Ok(());
        }
        self.add(section.bytes())
    }

    /// Whether a received section can be passed on without a copy.
    #[must_use]
    pub fn passes_on(&self, section: &Incoming) -> bool {
        let can = |stretch: &Borrowed| stretch.passing().is_some();
        self.shares && matches!(section, Incoming::Shared(stretch) if can(stretch))
    }

    /// Adds a section that is sent without a copy.
    pub fn add_source(&mut self, source: Arc<Source>) {
        let len = source.len() as u64;
        self.push(Outgoing::Stream(source), len);
    }

    /// Adds a section of the answered call, with the result left in it.
    pub fn add_argument(&mut self, index: u16, len: u64) {
        self.push(Outgoing::Argument { index, len }, 0);
    }

    /// Adds a section of `len` bytes that `fill` writes in place.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn add_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<()> {
        let small = self.is_small(len);
        if !small && let Some(lent) = self.take_for_copy(len as u64)? {
            lent.make_ready(len as u64);
            let start = lent.start(len as u64)?;
            // SAFETY: the segment is ours alone until it is lent; its pages read as zero if new.
            fill(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) });
            lent.is_written(len as u64);
            let lent = Arc::new(lent);
            self.push(Outgoing::Shared { lent, offset: 0, len: len as u64 }, len as u64);
            return Ok(());
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        fill(&mut bytes);
        let part = if small {
            self.inline += len;
            Outgoing::Inline(bytes)
        } else {
            Outgoing::Stream(Arc::new(Source::owned(bytes)))
        };
        self.push(part, len as u64);
        Ok(())
    }

    /// Inserts a section before all others: values, which are known only when their contents are.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn add_first(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes)?;
        self.parts.rotate_right(1);
        Ok(())
    }

    /// Adds a section that is part of shared data.
    pub fn add_blob(&mut self, blob: u64, part: u32, len: u64) {
        self.parts.push(Outgoing::Blob { blob, part, len });
    }

    /// Adds a section of another call's result, which the receiver keeps. `part`: its number among those of the
    /// result that are kept.
    pub fn add_remote(
        &mut self,
        call: u64,
        section: u16,
        part: u32,
        len: u64,
        keeper: Arc<dyn KeepAlive>,
    ) {
        self.push(Outgoing::Kept { call, section, part, len, keeper }, 0);
    }

    fn push(&mut self, part: Outgoing, bytes: u64) {
        self.bytes += bytes;
        self.parts.push(part);
    }

    /// Number of sections so far.
    #[must_use]
    pub fn sections(&self) -> usize {
        self.parts.len()
    }

    /// Number of sections that can still be added.
    #[must_use]
    pub fn room(&self) -> usize {
        MAX_SECTIONS - self.parts.len()
    }

    /// The payload.
    #[must_use]
    pub fn finish(self) -> Payload {
        Payload { parts: self.parts, bytes: self.bytes, order: self.order }
    }
}

#[cfg(test)]
mod tests {
    use gridrpc_wire::Place;

    use super::*;

    #[test]
    fn large_copies_for_a_receiver_that_shares_nothing_use_the_same_memory_again() {
        let pool = Pool::new(64 << 20);
        let bytes = vec![7; WORTH_A_SEGMENT as usize];
        let copy = || {
            let mut payload = PayloadBuilder::new(&pool, false, 16 << 10);
            payload.add(&bytes).unwrap();
            payload.add(&bytes[1..]).unwrap();
            let payload = payload.finish();
            let places: Vec<_> =
                payload.streamed_sections().into_iter().map(|section| section.place).collect();
            assert!(matches!(places[..], [Place::Stream, Place::Stream]), "{places:?}");
            let sources = payload.sources().unwrap();
            sources[0].with(|sent| assert!(sent == bytes));
            sources[1].with(|sent| assert!(sent == &bytes[1..]));
            match &payload.parts[..] {
                [Outgoing::Shared { lent, .. }, Outgoing::Stream(_)] => lent.segment().number(),
                parts => panic!("{parts:?}"),
            }
        };
        assert_eq!(copy(), copy());
    }
}
