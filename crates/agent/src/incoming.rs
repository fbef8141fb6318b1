//! Incoming data from the client: large sections are received directly into shared memory, where workers read
//! them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gridrpc_client::Grid;
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::{Outgoing, Payload, section_bytes};
use gridrpc_link::{Placement, Stream};
use gridrpc_shm::segment::{Held, Pool, PooledSegment};
use gridrpc_wire::{HostCall, Message, Order, Place, Section, TraceContext};

use crate::client_memory::{ArgumentPlace, ClientSegments, FindError, MemoryInUse};
use crate::held_results::HeldResults;
use crate::service::{Denied, ServedFunction, Target};
use crate::shared_data::{PartialData, SharedDataTable};

/// A call whose streamed sections are arriving.
#[derive(Debug)]
enum Placed {
    /// Its beginning, and one entry for each streamed section.
    At(Begun, Vec<Option<Arc<PooledSegment>>>),
    /// It may not run.
    Denied(Denied),
}

/// Memory for sections in transit.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Calls with streamed sections, until all of them have arrived.
    calls: Arc<Mutex<HashMap<u64, Placed>>>,
    pub(super) blobs: SharedDataTable,
    offered: Arc<Mutex<OfferedFunctions>>,
    memory: Arc<OnceLock<Memory>>,
    /// Results that have stayed on this host.
    held_results: HeldResults,
    segments: Arc<Mutex<ClientSegments>>,
}

#[derive(Debug, Default)]
struct OfferedFunctions {
    /// Functions that the daemon offers, by the client's numbers.
    by_number: HashMap<u32, Arc<dyn ServedFunction>>,
    /// The span of the call that comes next, if the client has announced one.
    next_trace: Option<(u64, TraceContext)>,
}

/// A call that has begun to arrive.
#[derive(Debug, Default)]
struct Begun {
    /// Where it runs, if its function is offered.
    target: Option<Target>,
    /// The client's span, if its function is not offered.
    trace: Option<TraceContext>,
}

/// The source of memory, once there is a grid.
#[derive(Debug)]
struct Memory {
    pool: Arc<Pool>,
    shared_pool: Arc<Pool>,
    threshold: usize,
}

/// The arguments of an arrived call.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) payload: Payload,
    /// The location of each in shared memory, if it is there.
    pub(super) places: Vec<Option<ArgumentPlace>>,
    /// The use of the client's memory, if workers use that.
    pub(super) in_use: Option<Arc<MemoryInUse>>,
    /// Where the call runs, if its function is offered.
    pub(super) target: Option<Target>,
    /// The client's span, if its function is not offered.
    pub(super) trace: Option<TraceContext>,
}

impl Places {
    pub(super) fn new(held_results: HeldResults) -> Places {
        Places { held_results, ..Places::default() }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Placed>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client's shared memory.
    pub(super) fn segments(&self) -> MutexGuard<'_, ClientSegments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for large sections; none: there is no grid yet.
    pub(super) fn pool(&self) -> Option<Arc<Pool>> {
        self.memory.get().map(|memory| Arc::clone(&memory.pool))
    }

    fn offered(&self) -> MutexGuard<'_, OfferedFunctions> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a function that the daemon offers.
    pub(super) fn offer(&self, function: u32, offered: Arc<dyn ServedFunction>) {
        self.offered().by_number.insert(function, offered);
    }

    /// Records the client's span of a call, which comes next.
    pub(super) fn announce_trace(&self, call: u64, context: TraceContext) {
        self.offered().next_trace = Some((call, context));
    }

    /// Begins a call.
    fn begin(&self, message: &HostCall<'_>) -> Result<Begun, Denied> {
        let mut offered = self.offered();
        let trace = offered.next_trace.take().filter(|(call, _)| *call == message.call);
        let trace = trace.map(|(_, context)| context);
        let Some(function) = offered.by_number.get(&message.function).cloned() else {
            return Ok(Begun { target: None, trace });
        };
        drop(offered);
        let moved = message.sections.iter().filter(|section| {
            matches!(
                section.place,
                Place::Inline(_) | Place::Stream | Place::Kept { .. } | Place::Shared(_)
            )
        });
        let target = function.begin(moved.map(|section| section.len).sum(), trace)?;
        Ok(Begun { target: Some(target), trace: None })
    }

    /// Why a call may not run whose payload was not received, if its function is offered.
    pub(super) fn denial_of(&self, message: &HostCall<'_>) -> Option<Denied> {
        self.begin(message).err()
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
                Message::HostCall(message) => match places.begin(message) {
                    Ok(begun) => {
                        let grid = begun.target.as_ref().map(|target| Arc::clone(&target.grid));
                        let (pool, threshold) = match &grid {
                            None => (&memory.pool, memory.threshold),
                            Some(grid) => (grid.pool(), grid.shared_threshold()),
                        };
                        places.place_call(pool, threshold, message.call, begun, lengths)
                    }
                    Err(denied) => {
                        places.calls().insert(message.call, Placed::Denied(denied));
                        Vec::new()
                    }
                },
                Message::Blob { blob, sections } => {
                    let streamed = sections.iter().all(|section| section.place == Place::Stream);
                    let filling = streamed
                        .then(|| PartialData::begin(lengths, &memory.shared_pool).ok())
                        .flatten();
                    let added = filling.and_then(|filling| places.blobs.add(*blob, filling));
                    let sinks = added.iter().flat_map(|filling| filling.sinks());
                    sinks.map(|sink| Some(Arc::clone(sink))).collect()
                }
                _ => Vec::new(),
            }
        })
    }

    fn place_call(
        &self,
        pool: &Arc<Pool>,
        threshold: usize,
        call: u64,
        begun: Begun,
        lengths: &[usize],
    ) -> Vec<Option<Arc<Sink>>> {
        let is_long = |len: &usize| *len >= threshold;
        let take = |len: &usize| pool.take(*len as u64).ok().map(Arc::new);
        let lents: Vec<_> = lengths.iter().map(|len| is_long(len).then(|| take(len))?).collect();
        let sinks = lents.iter().zip(lengths).map(|(lent, len)| {
            // SAFETY: the segment belongs to this call alone.
            unsafe { Sink::segment(lent.as_ref()?, *len) }.ok().map(Arc::new)
        });
        let sinks = sinks.collect();
        self.calls().insert(call, Placed::At(begun, lents));
        sinks
    }

    /// The arguments of an arrived call, in the byte order of its frame. `grid`: where it runs if its function is not
    /// offered; `uses_memory`: whether its workers may then use memory of the client.
    ///
    /// # Errors
    /// When its grid cannot start, or there is no memory for them.
    pub(super) fn arguments_of(
        &self,
        grid: &Grid,
        uses_memory: bool,
        message: &HostCall<'_>,
        order: Order,
        streams: Vec<Stream>,
    ) -> Result<Arguments, ArgumentsError> {
        let placed = self.calls().remove(&message.call);
        let (Begun { target, trace }, placed) = match placed {
            Some(Placed::At(begun, placed)) => (begun, placed),
            Some(Placed::Denied(denied)) => return Err(denied.into()),
            None => (self.begin(message)?, Vec::new()),
        };
        let grid = target.as_ref().map_or(grid, |target| &*target.grid);
        let passes_on = target.is_none();
        // Functions of modules keep no arguments beyond their call.
        let uses_memory = target
            .as_ref()
            .map_or(uses_memory, |target| target.uses_memory && target.function.is_native());
        let mut sharing =
            SharedSections { in_use: uses_memory.then(Arc::default), places: HashMap::new() };
        let from = (&*message.sections, streams, placed);
        let payload = self.payload(grid, from, passes_on, Some(&mut sharing))?;
        let payload = Payload { order, ..payload };
        let SharedSections { in_use, mut places } = sharing;
        let is_at_client = |place: &ArgumentPlace| matches!(place, ArgumentPlace::AtClient { .. });
        let in_use = in_use.filter(|_| places.values().any(is_at_client));
        let lies = |(index, part): (usize, &Outgoing)| match (places.remove(&index), part) {
            (None, Outgoing::Shared { lent, .. }) => Some(ArgumentPlace::Here(Arc::clone(lent))),
            (place, _) => place,
        };
        let places = payload.parts.iter().enumerate().map(lies).collect();
        Ok(Arguments { payload, places, in_use, target, trace })
    }

    /// The answer of the client's program to a callback, in the byte order of its frame.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn answer(
        &self,
        grid: &Grid,
        sections: &[Section<'_>],
        order: Order,
        streams: Vec<Stream>,
    ) -> io::Result<Payload> {
        let payload = self.payload(grid, (sections, streams, Vec::new()), true, None);
        let payload = payload.map(|payload| Payload { order, ..payload });
        payload.map_err(|error| match error {
            ArgumentsError::System(error) => error,
            ArgumentsError::Denied(denied) => io::Error::other(denied.message),
        })
    }

    /// `passes_on`: whether kept results lie in memory that the grid's workers can map. `sharing`: none: nothing may lie
    /// in memory of the client.
    fn payload(
        &self,
        grid: &Grid,
        (sections, streams, placed): Arrived<'_>,
        passes_on: bool,
        mut sharing: Option<&mut SharedSections>,
    ) -> Result<Payload, ArgumentsError> {
        let mut placed = placed.into_iter();
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
                    (_, None) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                },
                Place::Blob { blob, part } => payload.add_blob(blob, part, section.len),
                Place::Kept { call, section } => {
                    let held_results = self.held_results.section(call, section);
                    let held_results =
                        held_results.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                    if passes_on {
                        payload.pass_on(&held_results)?;
                    } else {
                        payload.add(held_results.bytes())?;
                    }
                }
                Place::Shared(lease) if let Some(sharing) = &mut sharing => {
                    let segment = self.segments().find(lease, section.len)?;
                    let (index, pool) = (payload.sections(), grid.pool());
                    // Workers decode the first section, which must not change meanwhile.
                    let in_use = sharing.in_use.clone().filter(|_| index > 0);
                    let in_use = in_use.map(|in_use| in_use as Arc<dyn Held>);
                    let place = ArgumentPlace::add(
                        segment,
                        lease.offset,
                        section.len,
                        in_use,
                        pool,
                        &mut payload,
                    )?;
                    sharing.places.insert(index, place);
                }
                Place::Shared(_) | Place::Argument(_) => {
                    return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
                }
            }
        }
        Ok(payload.finish())
    }
}

/// Sections of a message, their streams, and where those were placed.
type Arrived<'a> = (&'a [Section<'a>], Vec<Stream>, Vec<Option<Arc<PooledSegment>>>);

/// Sections of a call in memory of the client.
#[derive(Debug)]
struct SharedSections {
    /// None: workers get copies.
    in_use: Option<Arc<MemoryInUse>>,
    /// By their numbers.
    places: HashMap<usize, ArgumentPlace>,
}

/// Why the arguments of a call cannot be taken.
#[derive(Debug)]
pub(super) enum ArgumentsError {
    Denied(Denied),
    System(io::Error),
}

impl From<Denied> for ArgumentsError {
    fn from(denied: Denied) -> ArgumentsError {
        ArgumentsError::Denied(denied)
    }
}

impl From<FindError> for ArgumentsError {
    fn from(error: FindError) -> ArgumentsError {
        match error {
            FindError::Denied(denied) => ArgumentsError::Denied(denied),
            FindError::Outside => {
                let text = "a section lies outside the shared memory of the client";
                ArgumentsError::System(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
        }
    }
}

impl From<io::Error> for ArgumentsError {
    fn from(error: io::Error) -> ArgumentsError {
        ArgumentsError::System(error)
    }
}

/// Whether the payload of a message was dropped, as it is larger than the client may send.
pub(super) fn is_dropped(streams: &[Stream]) -> bool {
    streams.iter().any(|stream| matches!(stream, Stream::Dropped(_)))
}

/// Number of streamed bytes of these sections.
pub(super) fn streamed(sections: &[Section<'_>]) -> u64 {
    let streamed = sections.iter().filter(|section| section.place == Place::Stream);
    streamed.map(|section| section.len).sum()
}

/// The bytes of the first section.
pub(super) fn whole(sections: &[Section<'_>], streams: Vec<Stream>) -> Vec<u8> {
    section_bytes(sections, streams).into_iter().next().unwrap_or_default()
}
