//! What the client sends to this host: large sections are received straight into shared memory, where
//! workers read them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_wire::{HostCall, Message, Place, Section};

use crate::client::{Grid, SharedData};
use crate::link::{Placement, Stream};
use crate::loan::Sink;
use crate::payload::{Outgoing, Payload};
use crate::segment::{Lent, Pool};

/// Memory for sections that are on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<Key, Kept>>>);

/// What a message is that has streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Call(u64),
    Blob(u64),
}

#[derive(Debug)]
enum Kept {
    /// One for each streamed section of a call, if it is long enough.
    Sections(Vec<Option<Arc<Lent>>>),
    Shared(SharedData),
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where streamed sections are to lie.
    pub(super) fn placement(&self, grid: &Grid) -> Placement {
        let (places, pool, shared_pool) =
            (self.clone(), Arc::clone(grid.pool()), Arc::clone(grid.shared_pool()));
        let threshold = grid.shared_threshold();
        Box::new(move |message, lengths| match message {
            Message::HostCall(HostCall { call, .. }) => {
                let lents: Vec<_> =
                    lengths.iter().map(|len| take(&pool, *len, threshold)).collect();
                let sinks = lents.iter().zip(lengths).map(|(lent, len)| {
                    let lent = lent.as_ref()?;
                    let start = lent.start(*len as u64).ok()?;
                    // SAFETY: the segment is this call's alone, and stays in `places` until all has come.
                    Some(Arc::new(unsafe { Sink::new(start, *len) }))
                });
                let sinks = sinks.collect();
                places.lock().insert(Key::Call(*call), Kept::Sections(lents));
                sinks
            }
            Message::Blob { blob, sections } => {
                let all_come = sections.iter().all(|section| section.place == Place::Stream);
                let data =
                    SharedData::to_be_filled(lengths, &shared_pool).ok().filter(|_| all_come);
                let Some(data) = data else { return Vec::new() };
                let sinks = data.sinks().into_iter().map(Some).collect();
                places.lock().insert(Key::Blob(*blob), Kept::Shared(data));
                sinks
            }
            _ => Vec::new(),
        })
    }

    /// The shared data that has come, if there was memory for it.
    pub(super) fn take_blob(&self, blob: u64) -> Option<SharedData> {
        match self.lock().remove(&Key::Blob(blob)) {
            Some(Kept::Shared(data)) => Some(data),
            _ => None,
        }
    }

    /// The arguments of a call that has come, for the grid's own call, and where each of them lies in shared
    /// memory, if it does.
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
        let placed = call.and_then(|call| self.lock().remove(&Key::Call(call)));
        let mut placed = match placed {
            Some(Kept::Sections(lents)) => lents,
            _ => Vec::new(),
        }
        .into_iter();
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

fn take(pool: &Arc<Pool>, len: usize, threshold: usize) -> Option<Arc<Lent>> {
    if len < threshold {
        return None;
    }
    let lent = pool.take(len as u64).ok()?;
    lent.make_ready(len as u64);
    Some(Arc::new(lent))
}
