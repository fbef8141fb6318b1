//! What is known of calls and workers.

use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::end::Loss;
use crate::ids::{BlobId, CallId, WorkerId};
use crate::interface::Task;
use crate::policy::Policy;

impl<T: Clone, P: Policy> Core<T, P> {
    /// The caller's own of a call that has not ended.
    #[must_use]
    pub fn payload(&self, id: CallId) -> Option<&T> {
        self.calls.get(id).map(|call| &call.task.payload)
    }

    /// The same, if this executor has been sent the call, or a reserved worker there.
    #[must_use]
    pub fn payload_at(&self, id: CallId, at: WorkerId) -> Option<&T> {
        let call = self.calls.get(id)?;
        let CallState::Sent(worker) = call.state else { return None };
        (worker == at || self.home(worker) == Some(at)).then_some(&call.task.payload)
    }

    /// What a call that has not ended was submitted as.
    #[must_use]
    pub fn task(&self, id: CallId) -> Option<&Task<T>> {
        self.calls.get(id).map(|call| &call.task)
    }

    /// Whether a call that has not ended may be run again, and the shared data that it refers to.
    #[must_use]
    pub fn terms(&self, id: CallId) -> Option<(bool, &[BlobId])> {
        let call = self.calls.get(id)?;
        Some((call.task.options.idempotent, &call.task.blobs))
    }

    /// Calls that wait for a worker.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.calls.all_waiting().0
    }

    /// Calls that have not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.calls.live()
    }

    /// Workers that have answered and are at hand.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready + self.host_slots
    }

    /// How many workers there are to be now, as far as it is known: hosts tell when they join.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// How many there are to be on hosts, at most where these come and go.
    #[must_use]
    pub fn places_on_hosts(&self) -> usize {
        let wanted = |id: &WorkerId| {
            let worker = &self.workers[id.index()];
            worker.host.as_ref().filter(|_| !worker.given_up).map_or(0, |host| host.wanted)
        };
        self.hosts.iter().map(wanted).sum()
    }

    /// Whether all hosts have told how many workers they are to have, or will not.
    #[must_use]
    pub fn knows_places(&self) -> bool {
        let known = |id: &WorkerId| {
            let worker = &self.workers[id.index()];
            worker.given_up
                || worker.is_asleep()
                || worker.host.as_ref().is_some_and(|host| host.known)
        };
        self.hosts.iter().all(known)
    }

    /// How the last start failed, if workers cannot be started at all.
    #[must_use]
    pub fn broken(&self) -> Option<&Arc<Loss>> {
        self.broken.as_ref()
    }
}
