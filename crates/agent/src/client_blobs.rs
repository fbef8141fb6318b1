//! Shared data of a client, and its copies for the grids of offered functions.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridrpc_client::{Grid, SharedData};
use gridrpc_core::BlobId;
use gridrpc_link::payload::section_bytes;
use gridrpc_link::{LinkError, Stream};
use gridrpc_wire::{RemoteError, Section};

use crate::incoming::{Places, is_dropped, streamed};
use crate::named_data::NamedData;
use crate::service::{Access, Denied, Permit};
use crate::shared_data::PartialData;

/// Numbers of shared data that the clients of a grid use. Clients draw them, at random, since they are in pickles; two
/// clients with the same number would read each other's data.
#[derive(Debug, Default)]
pub(super) struct BlobNumbers(Mutex<HashSet<u64>>);

impl BlobNumbers {
    /// Returns whether the number was free.
    fn claim(&self, blob: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(blob)
    }

    fn free(&self, blob: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&blob);
    }
}

/// Shared data.
#[derive(Debug)]
struct Blob {
    data: Arc<SharedData>,
    /// Grids of offered functions that have copies.
    copies: Vec<Weak<Grid>>,
    /// Permission to keep it, where that needs one.
    _permit: Option<Box<dyn Permit>>,
}

/// The shared data of one client.
pub(super) struct ClientBlobs {
    grid: Arc<Grid>,
    access: Option<Arc<dyn Access>>,
    places: Places,
    blobs: HashMap<u64, Blob>,
    /// Named data of the daemon that calls have used.
    named: HashMap<u64, Arc<NamedData>>,
    /// Data that the client may not keep.
    denied: HashMap<u64, Denied>,
    /// Data that the client has dropped before it has come.
    missing: HashSet<u64>,
    numbers: Arc<BlobNumbers>,
}

impl ClientBlobs {
    pub(super) fn new(
        grid: &Arc<Grid>,
        access: Option<Arc<dyn Access>>,
        places: &Places,
        numbers: Arc<BlobNumbers>,
    ) -> ClientBlobs {
        let (grid, places) = (Arc::clone(grid), places.clone());
        let (blobs, named, denied) = (HashMap::new(), HashMap::new(), HashMap::new());
        let missing = HashSet::new();
        ClientBlobs { grid, access, places, blobs, named, denied, missing, numbers }
    }

    /// Why calls that use these data may not run.
    pub(super) fn denied(&self, blobs: &[u64]) -> Option<&Denied> {
        blobs.iter().find_map(|blob| self.denied.get(blob))
    }

    /// Finds the named data among these. The client keeps it until it drops its number.
    ///
    /// # Errors
    /// When the client may not read one of them, or there is none.
    pub(super) fn find_named(&mut self, blobs: &[u64]) -> Result<(), Denied> {
        for &blob in blobs {
            if BlobId(blob).is_named() && !self.named.contains_key(&blob) {
                let access = self.access.as_ref().ok_or_else(|| Denied {
                    error: RemoteError::DataNotFound.name().to_owned(),
                    message: "only servers keep data under names".to_owned(),
                })?;
                self.named.insert(blob, access.named_data(BlobId(blob))?);
            }
        }
        Ok(())
    }

    /// Whether some of these will not arrive.
    pub(super) fn lacks(&self, blobs: &[u64]) -> bool {
        blobs.iter().any(|blob| self.missing.contains(blob))
    }

    /// Whether all of these have arrived.
    pub(super) fn has(&self, blobs: &[u64]) -> bool {
        blobs.iter().all(|blob| self.blobs.contains_key(blob) || self.named.contains_key(blob))
    }

    /// Receives data.
    pub(super) fn receive(
        &mut self,
        blob: u64,
        sections: &[Section<'_>],
        streams: Vec<Stream>,
    ) -> Result<(), LinkError> {
        if BlobId(blob).is_named() {
            let what = format!("shared data {blob}, a number of named data");
            return Err(LinkError::Unexpected(what));
        }
        if let (true, Some(access)) = (is_dropped(&streams), &self.access) {
            self.denied.insert(blob, access.exceeds_payload(streamed(sections)));
            return Ok(());
        }
        let placed = streams.iter().all(|stream| matches!(stream, Stream::Placed(..)));
        if !placed || streams.is_empty() {
            let parts = section_bytes(sections, streams);
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let data = SharedData::new(&parts, self.grid.shared_pool())?;
            if self.places.blobs.add(blob, PartialData::whole(data)).is_none() {
                // It has arrived on another route meanwhile.
                return Ok(());
            }
        }
        self.places.blobs.complete(blob);
        Ok(())
    }

    /// Shares fully arrived data with the workers. Returns whether there was any.
    pub(super) fn share_arrived(&mut self) -> Result<bool, LinkError> {
        let arrived = self.places.blobs.take_arrived();
        if arrived.is_empty() {
            return Ok(false);
        }
        for (blob, filling) in arrived {
            if !self.blobs.contains_key(&blob) {
                let bytes = filling.lengths().iter().map(|len| *len as u64).sum();
                let permit = match self.access.as_ref().map(|access| access.share(bytes)) {
                    Some(Err(denied)) => {
                        self.places.blobs.forget(blob);
                        self.denied.insert(blob, denied);
                        continue;
                    }
                    permit => permit.and_then(Result::ok),
                };
                if !self.numbers.claim(blob) {
                    let what = format!("shared data {blob}, a number that another client uses");
                    return Err(LinkError::Unexpected(what));
                }
                filling.data().protect()?;
                let data = Arc::clone(filling.data());
                self.blobs.insert(blob, Blob { data, copies: Vec::new(), _permit: permit });
                self.grid.share_as(BlobId(blob), Arc::clone(filling.data()));
            }
        }
        Ok(true)
    }

    /// Copies shared data to the grid of an offered function, once for each grid.
    pub(super) fn copy_to(&mut self, grid: &Arc<Grid>, blobs: &[u64]) -> io::Result<()> {
        for number in blobs {
            if let Some(named) = self.named.get(number) {
                named.copy_to(grid)?;
            }
            let Some(blob) = self.blobs.get_mut(number) else { continue };
            if blob.copies.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(grid))) {
                continue;
            }
            let copy = blob.data.copy_to(grid.shared_pool())?;
            grid.share_as(BlobId(*number), Arc::new(copy));
            blob.copies.push(Arc::downgrade(grid));
        }
        Ok(())
    }

    /// Drops data.
    pub(super) fn drop_one(&mut self, number: u64) {
        self.denied.remove(&number);
        let is_named = self.named.remove(&number).is_some();
        if let Some(blob) = self.blobs.remove(&number) {
            self.end(number, blob);
        } else if !is_named && self.access.is_none() {
            self.missing.insert(number);
        }
        self.places.blobs.forget(number);
    }

    /// Drops all data.
    pub(super) fn drop_all(&mut self) {
        self.named.clear();
        for (number, blob) in std::mem::take(&mut self.blobs) {
            self.end(number, blob);
        }
    }

    fn end(&self, number: u64, blob: Blob) {
        self.grid.unshare_named(BlobId(number));
        for grid in blob.copies.iter().filter_map(Weak::upgrade) {
            grid.unshare_named(BlobId(number));
        }
        self.numbers.free(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_shared_data_belongs_to_one_client_at_a_time() {
        let numbers = BlobNumbers::default();
        assert!(numbers.claim(7));
        assert!(!numbers.claim(7));
        assert!(numbers.claim(8));
        numbers.free(7);
        assert!(numbers.claim(7));
    }
}
