//! Shared data of a worker: stretches of the client's memory, or bytes of its own.

use std::collections::HashMap;
use std::sync::Arc;

use gridrpc_link::payload::Incoming;
use gridrpc_link::{LinkError, Stream};
use gridrpc_shm::borrowed::{Mapped, Reading, Unread};
use gridrpc_wire::{Place, Section};

#[derive(Debug, Default)]
pub(super) struct Blobs {
    /// The parts of each, and a guard that reports when it is gone.
    known: HashMap<u64, (Vec<Incoming>, Arc<Reading>)>,
    unread: Unread,
}

impl Blobs {
    /// Adds received data: stretches of the client's segments, or streamed bytes.
    pub(super) fn add(
        &mut self,
        blob: u64,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
        mapped: &Mapped,
    ) -> Result<(), LinkError> {
        let reading = Arc::new(Reading::new(blob, &self.unread));
        let mut streams = streams.into_iter();
        let part = |section: &Section<'_>| match section.place {
            Place::Shared(lease) => {
                mapped.borrow_shared_data(lease, section.len, &reading).map(Incoming::Shared)
            }
            _ => streams.next().map(|stream| Incoming::Kept(Arc::new(stream.into_bytes()))),
        };
        let parts = sections.iter().map(part).collect::<Option<_>>().ok_or_else(|| {
            LinkError::Unexpected("shared data that lies outside its memory".into())
        })?;
        self.known.insert(blob, (parts, reading));
        Ok(())
    }

    pub(super) fn parts(&self, blob: u64) -> Option<&[Incoming]> {
        self.known.get(&blob).map(|(parts, _)| parts.as_slice())
    }

    /// Removes data that no later call refers to.
    pub(super) fn remove(&mut self, blob: u64) {
        self.known.remove(&blob);
    }

    /// Data that is gone since the last call, and whether no reader remains.
    pub(super) fn gone(&self) -> Vec<(u64, bool)> {
        self.unread.take()
    }
}
