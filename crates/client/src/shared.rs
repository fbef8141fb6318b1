//! Shared data: sent once, stored once on this machine for any number of workers.
//!
//! Allocating new memory takes several times as long as a copy into existing memory. So the memory of shared data is
//! kept until all workers have released it, and is then reused for later data.

use std::collections::VecDeque;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use gridrpc_core::BlobId;
use gridrpc_link::buffers::{PinnedBytes, Sink, Source};
use gridrpc_shm::segment::{Pool, PooledSegment, Segment};
use gridrpc_wire::{Lease, Place, Section, Sections};

/// Alignment of parts, which suits arrays of any type.
const ALIGNMENT: u64 = 64;

/// Data in memory that its readers map.
#[derive(Debug)]
pub struct SharedData {
    lent: PooledSegment,
    /// Offset and length of each part.
    parts: Vec<(u64, u64)>,
    hash: OnceLock<blake3::Hash>,
}

impl SharedData {
    /// Copies the parts into memory that nobody else can write to.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(parts: &[&[u8]], pool: &Arc<Pool>) -> io::Result<SharedData> {
        let (placed, end) = placed(parts.iter().map(|part| part.len() as u64));
        let lent = pool.take(end)?;
        for (part, (offset, _)) in parts.iter().zip(&placed) {
            lent.write_at(*offset, part)?;
        }
        lent.protect()?;
        Ok(SharedData { lent, parts: placed, hash: OnceLock::new() })
    }

    /// A copy in memory of another pool.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn copy_to(&self, pool: &Arc<Pool>) -> io::Result<SharedData> {
        let parts: Vec<&[u8]> = (0..self.parts()).map(|part| self.part(part)).collect();
        SharedData::new(&parts, pool)
    }

    /// Allocates memory for parts of these lengths, to be filled by [`SharedData::sinks`] and then protected.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn to_be_filled(lengths: &[usize], pool: &Arc<Pool>) -> io::Result<SharedData> {
        let (placed, end) = placed(lengths.iter().map(|len| *len as u64));
        let lent = pool.take(end)?;
        // Maps the memory for writing.
        lent.start(end)?;
        Ok(SharedData { lent, parts: placed, hash: OnceLock::new() })
    }

    /// Destinations for the parts. Nobody reads the parts until they are complete.
    pub fn sinks(&self) -> Vec<Arc<Sink>> {
        let sink = |&(offset, len): &(u64, u64)| {
            let start = self.lent.stretch(offset, len).unwrap_or(NonNull::dangling());
            // SAFETY: the stretch lies in memory that belongs to this data alone and stays mapped as long as it
            // lives.
            Arc::new(unsafe { Sink::new(start, len as usize) })
        };
        self.parts.iter().map(sink).collect()
    }

    /// Write-protects the memory.
    ///
    /// # Errors
    /// When its memory cannot be sealed.
    pub fn protect(&self) -> io::Result<()> {
        self.lent.protect()
    }

    /// Whether it consists of parts of these lengths.
    #[must_use]
    pub fn has_lengths(&self, parts: &[&[u8]]) -> bool {
        let lengths = parts.iter().map(|part| part.len() as u64);
        self.parts.iter().map(|(_, len)| *len).eq(lengths)
    }

    /// Hash of the content. Computed only when similar data is shared: a pass over the data takes a third of the time
    /// of sharing it.
    pub fn hash(&self) -> blake3::Hash {
        *self.hash.get_or_init(|| {
            let read = |&(offset, len): &(u64, u64)| self.read(offset, len);
            hash(&self.parts.iter().map(read).collect::<Vec<_>>())
        })
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// One of its parts.
    pub fn part(&self, index: usize) -> &[u8] {
        let (offset, len) = self.parts[index];
        self.read(offset, len)
    }

    /// Its length, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, len)| len).sum()
    }

    /// The memory of the data.
    pub(crate) fn segment(&self) -> &Segment {
        self.lent.segment()
    }

    /// Marks the memory as not reusable: a reader may keep it indefinitely.
    pub(crate) fn spend(&self) {
        self.lent.spend();
    }

    /// The parts as sections in shared memory, for workers of this machine.
    pub(crate) fn sections(&self) -> Sections<'static> {
        let segment = self.segment().number();
        let place = |offset| Place::Shared(Lease { segment, offset });
        self.parts.iter().map(|&(offset, len)| Section { len, place: place(offset) }).collect()
    }

    /// The parts as streamed sections, for hosts.
    pub(crate) fn streamed_sections(&self) -> Sections<'static> {
        let place = Place::Stream;
        self.parts.iter().map(|&(_, len)| Section { len, place }).collect()
    }

    /// The parts as data sources, for hosts.
    pub(crate) fn sources(self: &Arc<SharedData>) -> VecDeque<Arc<Source>> {
        let part = |index| Part { data: Arc::clone(self), index };
        (0..self.parts.len()).map(|index| Arc::new(Source::held(part(index)))).collect()
    }

    fn read(&self, offset: u64, len: u64) -> &[u8] {
        // Mapped when this was created.
        let start = self.lent.stretch(offset, len).unwrap_or(NonNull::dangling());
        // SAFETY: `stretch` has checked the place; nobody writes there as long as this lives.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len as usize) }
    }
}

/// One part of shared data in transit.
#[derive(Debug)]
struct Part {
    data: Arc<SharedData>,
    index: usize,
}

impl PinnedBytes for Part {
    fn bytes(&self) -> &[u8] {
        self.data.part(self.index)
    }
}

/// The place of each part, and the total length.
fn placed(lengths: impl Iterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
    let mut end = 0_u64;
    let place = |len: u64| {
        let start = end;
        end = (end + len).next_multiple_of(ALIGNMENT);
        (start, len)
    };
    let placed = lengths.map(place).collect();
    (placed, end.max(1))
}

/// Hashes the parts. The lengths come first, so that different divisions of the same bytes differ.
pub fn hash(parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
    }
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Shared data and its owners.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) blob: BlobId,
    /// None: a server keeps it under a name.
    pub(crate) data: Option<Arc<SharedData>>,
    pub(crate) owners: usize,
}
