//! Owners and their quotas.

use crate::core::Core;
use crate::end::End;
use crate::ids::{CallId, Owner, Time};
use crate::interface::Action;
use crate::owners::Quota;
use crate::policy::Policy;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Adds an owner, whose calls may be submitted from now on.
    pub fn add_owner(&mut self, quota: Quota) -> Owner {
        let owner = self.calls.owners.add(quota);
        self.calls.add_owner();
        owner
    }

    /// Changes the quota of an owner. Running calls continue, even if they exceed it.
    pub fn set_quota(&mut self, now: Time, owner: Owner, quota: Quota, out: &mut Vec<Action<T>>) {
        self.calls.owners.set_quota(owner, quota);
        self.pump(now, out);
    }

    /// Ends all calls of an owner, which submits no more. The calls of others continue, except those that need a
    /// result of its calls.
    pub fn remove_owner(&mut self, now: Time, owner: Owner, out: &mut Vec<Action<T>>) {
        self.calls.owners.leave(owner);
        let calls = self.calls.iter().filter(|(_, call)| call.task.owner == owner);
        let calls: Vec<CallId> = calls.map(|(id, _)| id).collect();
        for id in calls {
            self.end_early(now, id, End::Cancelled, out);
        }
        self.pump(now, out);
    }

    /// Number of live calls of an owner, and number of its calls that have been sent to workers and not answered,
    /// including cancelled ones.
    #[must_use]
    pub fn calls_of(&self, owner: Owner) -> (usize, usize) {
        (self.calls.owners.alive(owner), self.calls.owners.running(owner))
    }
}
