//! Shared data: which workers have it, and who still needs it.

use std::collections::{HashMap, HashSet};

use crate::ids::{BlobId, WorkerId};

#[derive(Debug, Default)]
pub(crate) struct Blob {
    /// Calls that refer to it and have not ended.
    pub(crate) calls: usize,
    /// The owner has given it up: it goes when no call refers to it.
    pub(crate) dropped: bool,
    /// Workers that have it.
    pub(crate) holders: HashSet<WorkerId>,
}

#[derive(Debug, Default)]
pub(crate) struct Blobs {
    pub(crate) table: HashMap<BlobId, Blob>,
}

impl Blobs {
    pub(crate) fn usable(&self, blob: BlobId) -> bool {
        self.table.get(&blob).is_some_and(|blob| !blob.dropped)
    }

    pub(crate) fn add_call(&mut self, blobs: &[BlobId]) {
        for blob in blobs {
            self.table.entry(*blob).or_default().calls += 1;
        }
    }

    /// Takes the blob out and returns it if nobody needs it any more.
    pub(crate) fn remove_unused(&mut self, blob: BlobId) -> Option<Blob> {
        let unused = self.table.get(&blob).is_some_and(|blob| blob.dropped && blob.calls == 0);
        if unused { self.table.remove(&blob) } else { None }
    }

    pub(crate) fn forget_worker(&mut self, worker: WorkerId) {
        for blob in self.table.values_mut() {
            blob.holders.remove(&worker);
        }
    }
}
