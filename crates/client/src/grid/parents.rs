//! Clients that a grid works for, each the owner of its calls.

use std::sync::Arc;

use gridrpc_core::{Owner, Quota, Time};

use crate::grid::Grid;
use crate::parent::Parent;

impl Grid {
    /// Adds an owner of calls, with a quota.
    pub fn add_owner(&self, quota: Quota) -> Owner {
        self.common.lock().core.add_owner(quota)
    }

    /// Changes the quota of an owner. Its running calls continue, even if they exceed it.
    pub fn set_quota(&self, owner: Owner, quota: Quota) {
        let mut state = self.common.lock();
        let now = Time(gridrpc_sys::monotonic_ns());
        state.drive(|core, out| core.set_quota(now, owner, quota, out));
        self.common.finish(state);
    }

    /// Cancels all calls of an owner, which submits no more.
    pub fn remove_owner(&self, owner: Owner) {
        let mut state = self.common.lock();
        let now = Time(gridrpc_sys::monotonic_ns());
        state.drive(|core, out| core.remove_owner(now, owner, out));
        self.common.finish(state);
    }

    /// Reports events to another client from now on. If the grid can start no workers any more, reports that at once.
    pub fn attach(&self, parent: &Arc<dyn Parent>) {
        self.common.parents.add(Arc::clone(parent));
        let broken = self.common.lock().core.broken().cloned();
        if let Some(loss) = broken {
            parent.has_no_workers(&loss);
        }
    }

    /// Reports no more events to a client.
    pub fn detach(&self, parent: &Arc<dyn Parent>) {
        self.common.parents.remove(parent);
    }
}
