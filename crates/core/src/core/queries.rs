//! Queries about calls and workers.

use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::end::Loss;
use crate::ids::{BlobId, CallId, FunctionId, WorkerId};
use crate::interface::Task;
use crate::pace::Flow;
use crate::policy::Policy;

impl<T: Clone, P: Policy> Core<T, P> {
    /// The caller's payload of a live call.
    #[must_use]
    pub fn payload(&self, id: CallId) -> Option<&T> {
        self.calls.get(id).map(|call| &call.task.payload)
    }

    /// The payload of a live call that has been sent to this executor or to a reserved worker on it.
    #[must_use]
    pub fn payload_at(&self, id: CallId, at: WorkerId) -> Option<&T> {
        let call = self.calls.get(id)?;
        let CallState::Sent(worker) = call.state else { return None };
        (worker == at || self.home(worker) == Some(at)).then_some(&call.task.payload)
    }

    /// The executor that has been sent a live call.
    #[must_use]
    pub fn executor(&self, id: CallId) -> Option<WorkerId> {
        match self.calls.get(id)?.state {
            CallState::Sent(worker) => Some(worker),
            _ => None,
        }
    }

    /// The host that a call has been sent to; none: it waits, runs on this machine, or other calls need its result.
    #[must_use]
    pub fn host_of(&self, id: CallId) -> Option<WorkerId> {
        let executor = self.executor(id)?;
        let host = self.home(executor).unwrap_or(executor);
        let is_host = self.workers[host.index()].host.is_some();
        (is_host && !self.dependents.has(id)).then_some(host)
    }

    /// The task of a live call.
    #[must_use]
    pub fn task(&self, id: CallId) -> Option<&Task<T>> {
        self.calls.get(id).map(|call| &call.task)
    }

    /// All live calls.
    pub fn tasks(&self) -> impl Iterator<Item = (CallId, &Task<T>)> {
        self.calls.iter().map(|(id, call)| (id, &call.task))
    }

    /// Whether a live call may run again, and the shared data that it refers to.
    #[must_use]
    pub fn terms(&self, id: CallId) -> Option<(bool, &[BlobId])> {
        let call = self.calls.get(id)?;
        Some((call.task.options.idempotent, &call.task.blobs))
    }

    /// Number of calls that wait for a worker.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.calls.all_waiting().0
    }

    /// Number of live calls.
    #[must_use]
    pub fn live(&self) -> usize {
        self.calls.live()
    }

    /// Number of calls of a function to keep under way so that no host runs out of them, from the hosts that have run it;
    /// 0 if none has. It is the number that all answer while the slowest one answers a call sent now (Little's law):
    /// results taken in order wait for that one. To these come the calls that the others answer while they do not wait
    /// for it: with fewer in the queue, the policy takes the map to be near its end and keeps the rest for faster hosts.
    #[must_use]
    pub fn window(&self, function: FunctionId) -> usize {
        let hosts = self.hosts.iter().filter_map(|id| self.workers[id.index()].host.as_ref());
        let flows: Vec<Flow> = hosts.filter_map(|host| host.flow(function)).collect();
        let longest = flows.iter().map(|flow| flow.time).fold(0.0, f64::max);
        let there = flows.iter().map(|flow| flow.rate * (2.0 * longest - flow.time)).sum::<f64>();
        let here = 2.0 * longest * self.ready as f64 / self.pace.cost(function) as f64;
        (there + here).ceil() as usize
    }

    /// Number of ready workers.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready + self.host_slots
    }

    /// Number of workers that the grid is to have now, as far as known: hosts report theirs when they connect.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// Number of workers that hosts are to have. Elastic groups count with all of their hosts.
    #[must_use]
    pub fn places_on_hosts(&self) -> usize {
        let wanted = |id: &WorkerId| {
            let worker = &self.workers[id.index()];
            worker.host.as_ref().filter(|_| !worker.given_up).map_or(0, |host| host.wanted)
        };
        self.hosts.iter().map(wanted).sum()
    }

    /// Whether every host has reported how many workers it is to have, or never will.
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

    /// The last failed start, if workers cannot be started at all.
    #[must_use]
    pub fn broken(&self) -> Option<&Arc<Loss>> {
        self.broken.as_ref()
    }
}
