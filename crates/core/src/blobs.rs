//! Shared data: which workers have it, and who still needs it.

use std::collections::{HashMap, HashSet};

use crate::ids::{BlobId, WorkerId};
use crate::interface::Action;

#[derive(Debug, Default)]
pub(crate) struct Blob {
    /// Calls that refer to it and have not ended.
    pub(crate) calls: usize,
    /// The owner has given it up: it goes when no call refers to it.
    pub(crate) dropped: bool,
    /// Workers that have it.
    pub(crate) holders: HashSet<WorkerId>,
    /// The holders were told to let go of it.
    pub(crate) leaving: bool,
    /// Somebody may read it who will not say when that is over.
    passed_on: bool,
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

    /// Has its holders let go of it if nobody needs it any more.
    pub(crate) fn leave_if_unused<T>(&mut self, id: BlobId, out: &mut Vec<Action<T>>) {
        let Some(blob) = self.table.get_mut(&id) else { return };
        if blob.dropped && blob.calls == 0 && !blob.leaving {
            blob.leaving = true;
            let holders = blob.holders.iter();
            out.extend(holders.map(|worker| Action::Unshare { worker: *worker, blob: id }));
            self.free_if_left(id, out);
        }
    }

    /// A holder has let go of it; `unread`: nobody has got it from there who still reads it.
    pub(crate) fn let_go<T>(
        &mut self,
        worker: WorkerId,
        id: BlobId,
        unread: bool,
        out: &mut Vec<Action<T>>,
    ) {
        let Some(blob) = self.table.get_mut(&id).filter(|blob| blob.leaving) else { return };
        if blob.holders.remove(&worker) {
            blob.passed_on |= !unread;
            self.free_if_left(id, out);
        }
    }

    /// A worker is gone. Processes that it has forked may not be.
    pub(crate) fn forget_worker<T>(&mut self, worker: WorkerId, out: &mut Vec<Action<T>>) {
        let mut leaving = Vec::new();
        for (id, blob) in &mut self.table {
            if blob.holders.remove(&worker) {
                blob.passed_on = true;
                leaving.extend(blob.leaving.then_some(*id));
            }
        }
        leaving.into_iter().for_each(|id| self.free_if_left(id, out));
    }

    fn free_if_left<T>(&mut self, id: BlobId, out: &mut Vec<Action<T>>) {
        let left = |blob: &&Blob| blob.leaving && blob.holders.is_empty();
        if let Some(blob) = self.table.get(&id).filter(left) {
            out.push(Action::Free { blob: id, unread: !blob.passed_on });
            self.table.remove(&id);
        }
    }
}
