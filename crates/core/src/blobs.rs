//! Shared data: which workers hold it, and which calls need it.

use std::collections::{HashMap, HashSet};

use crate::ids::{BlobId, WorkerId};
use crate::interface::Action;

#[derive(Debug, Default)]
pub(crate) struct Blob {
    /// Live calls that refer to it.
    pub(crate) calls: usize,
    /// The owner has dropped it: it is freed when no call refers to it.
    pub(crate) dropped: bool,
    /// Workers that hold it.
    pub(crate) holders: HashSet<WorkerId>,
    /// A request to release it was sent to the holders.
    pub(crate) leaving: bool,
    /// A reader may keep it without reporting when it is done.
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

    /// Makes its holders release it if nobody needs it any more.
    pub(crate) fn leave_if_unused<T>(&mut self, id: BlobId, out: &mut Vec<Action<T>>) {
        let Some(blob) = self.table.get_mut(&id) else { return };
        if blob.dropped && blob.calls == 0 && !blob.leaving {
            blob.leaving = true;
            let holders = blob.holders.iter();
            out.extend(holders.map(|worker| Action::Unshare { worker: *worker, blob: id }));
            self.free_if_left(id, out);
        }
    }

    /// Records that a holder has released it; `unread`: no reader that got it from there remains.
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

    /// Removes a lost worker. Processes that it forked may still be alive.
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
