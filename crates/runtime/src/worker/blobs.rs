//! Shared data that a worker has got: stretches of the client's memory, or bytes of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_wire::{Place, Section};

use crate::borrowed::Mapped;
use crate::forks;
use crate::link::{LinkError, Stream};
use crate::payload::Incoming;

/// Numbers of shared data that nothing here reads any more, and whether nobody else does who might
/// have it from this process.
type Gone = Arc<Mutex<Vec<(u64, bool)>>>;

#[derive(Debug, Default)]
pub(super) struct Blobs {
    /// The parts of each, and what notices that it is gone.
    known: HashMap<u64, (Vec<Incoming>, Arc<Reading>)>,
    gone: Gone,
}

/// Goes with a dropped blob and the last view of it, and says so.
#[derive(Debug)]
pub(crate) struct Reading {
    blob: u64,
    /// How often this process had forked when the blob came.
    forks: u64,
    gone: Gone,
}

impl Drop for Reading {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the memory mapped as well.
        let unread = forks::count() == self.forks;
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).push((self.blob, unread));
    }
}

impl Blobs {
    /// Takes what has come: stretches of the client's segments, or streamed bytes.
    pub(super) fn add(
        &mut self,
        blob: u64,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
        mapped: &Mapped,
    ) -> Result<(), LinkError> {
        forks::notice();
        let gone = Arc::clone(&self.gone);
        let reading = Arc::new(Reading { blob, forks: forks::count(), gone });
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

    /// No later call refers to it.
    pub(super) fn remove(&mut self, blob: u64) {
        self.known.remove(&blob);
    }

    /// What is gone since this was asked last, and whether nobody can read it.
    pub(super) fn gone(&self) -> Vec<(u64, bool)> {
        std::mem::take(&mut self.gone.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
