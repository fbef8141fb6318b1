//! Incoming data from the client: large sections are received directly into shared memory, where workers read
//! them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gridrpc_client::Grid;
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::{Outgoing, Payload};
use gridrpc_link::{Placement, Stream};
use gridrpc_shm::segment::{Lent, Pool};
use gridrpc_wire::{HostCall, Message, Place, Section};

use crate::held_results::KeptResults;
use crate::shared_data::{Filling, Fillings};

/// By call, one entry for each streamed section.
type Calls = HashMap<u64, Vec<Option<Arc<Lent>>>>;

/// Memory for sections in transit.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// One for each streamed section of a call that is long enough.
    calls: Arc<Mutex<Calls>>,
    pub(super) blobs: Fillings,
    memory: Arc<OnceLock<Memory>>,
    /// Results that have stayed on this host.
    kept: KeptResults,
}

/// The source of memory, once there is a grid.
#[derive(Debug)]
struct Memory {
    pool: Arc<Pool>,
    shared_pool: Arc<Pool>,
    threshold: usize,
}

impl Places {
    pub(super) fn new(kept: KeptResults) -> Places {
        Places { kept, ..Places::default() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory from this grid.
    pub(super) fn belong_to(&self, grid: &Grid) {
        let (pool, shared_pool) = (Arc::clone(grid.pool()), Arc::clone(grid.shared_pool()));
        let threshold = grid.shared_threshold();
        // There is only one grid, and this runs once.
        let _ = self.memory.set(Memory { pool, shared_pool, threshold });
    }

    /// Where to place streamed sections of calls and of shared data.
    pub(super) fn placement(&self) -> Placement {
        let places = self.clone();
        Box::new(move |message, lengths| {
            let Some(memory) = places.memory.get() else { return Vec::new() };
            match message {
                Message::HostCall(HostCall { call, .. }) => {
                    places.place_call(memory, *call, lengths)
                }
                Message::Blob { blob, sections } => {
                    let streamed = sections.iter().all(|section| section.place == Place::Stream);
                    let filling = streamed
                        .then(|| Filling::begin(lengths, &memory.shared_pool).ok())
                        .flatten();
                    let added = filling.and_then(|filling| places.blobs.add(*blob, filling));
                    let sinks = added.iter().flat_map(|filling| filling.sinks());
                    sinks.map(|sink| Some(Arc::clone(sink))).collect()
                }
                _ => Vec::new(),
            }
        })
    }

    fn place_call(&self, memory: &Memory, call: u64, lengths: &[usize]) -> Vec<Option<Arc<Sink>>> {
        let is_long = |len: &usize| *len >= memory.threshold;
        let take = |len: &usize| memory.pool.take(*len as u64).ok().map(Arc::new);
        let lents: Vec<_> = lengths.iter().map(|len| is_long(len).then(|| take(len))?).collect();
        let sinks = lents.iter().zip(lengths).map(|(lent, len)| {
            // SAFETY: the segment belongs to this call alone.
            unsafe { Sink::segment(lent.as_ref()?, *len) }.ok().map(Arc::new)
        });
        let sinks = sinks.collect();
        self.calls().insert(call, lents);
        sinks
    }

    /// The arguments of an arrived call for the grid's call, and the location of each in shared memory, if it
    /// is there.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(super) fn arguments(
        &self,
        grid: &Grid,
        call: Option<u64>,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
    ) -> io::Result<(Payload, Vec<Option<Arc<Lent>>>)> {
        let placed = call.and_then(|call| self.calls().remove(&call));
        let mut placed = placed.unwrap_or_default().into_iter();
        let mut streams = streams.into_iter();
        let mut payload = grid.payload();
        for section in sections {
            match section.place {
                Place::Inline(bytes) => payload.add(bytes)?,
                Place::Stream => match (placed.next().flatten(), streams.next()) {
                    (Some(lent), Some(Stream::Placed(..))) => {
                        payload.add_shared(lent, 0, section.len, section.len);
                    }
                    (_, Some(stream)) => payload.add_owned(stream.into_bytes())?,
                    (_, None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                },
                Place::Blob { blob, part } => payload.add_blob(blob, part, section.len),
                Place::Kept { call, section } => {
                    let kept = self.kept.section(call, section);
                    payload.pass_on(&kept.ok_or(io::ErrorKind::NotFound)?)?;
                }
                Place::Shared(_) | Place::Argument(_) => {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
            }
        }
        let payload = payload.finish();
        let lies = |part: &Outgoing| match part {
            Outgoing::Shared { lent, .. } => Some(Arc::clone(lent)),
            _ => None,
        };
        let lents = payload.parts.iter().map(lies).collect();
        Ok((payload, lents))
    }
}

/// The bytes of each section.
pub(super) fn all(sections: &[Section<'_>], streams: Vec<Stream>) -> Vec<Vec<u8>> {
    let mut streams = streams.into_iter();
    sections
        .iter()
        .map(|section| match section.place {
            Place::Inline(bytes) => bytes.to_vec(),
            _ => streams.next().map(Stream::into_bytes).unwrap_or_default(),
        })
        .collect()
}

/// The bytes of the first section.
pub(super) fn whole(sections: &[Section<'_>], streams: Vec<Stream>) -> Vec<u8> {
    all(sections, streams).into_iter().next().unwrap_or_default()
}
