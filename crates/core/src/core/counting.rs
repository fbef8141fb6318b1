//! Counters of calls and their outcomes.

use std::collections::HashMap;

use crate::core::Core;
use crate::counters::{Activity, CallCounters};
use crate::ids::{FunctionId, WorkerId};
use crate::policy::Policy;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Outcomes of the calls of all functions, by number.
    #[must_use]
    pub fn call_counters(&self) -> &[CallCounters] {
        &self.call_counters.0
    }

    /// Adds the bytes of a call's result.
    pub fn result_came(&mut self, function: FunctionId, bytes: u64) {
        self.call_counters.of(function).result_bytes += bytes;
    }

    /// Bytes of the arguments of calls that wait for a worker.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.calls.all_waiting().1
    }

    /// Activity of each host's workers, and under `None` of this machine's workers, if it has any.
    #[must_use]
    pub fn activities(&self) -> HashMap<Option<WorkerId>, Activity> {
        let mut activities: HashMap<_, Activity> = HashMap::new();
        for (index, worker) in self.workers.iter().enumerate() {
            let host = worker.host.as_ref().map(|_| WorkerId(index as u32));
            activities.entry(host.or(worker.home)).or_default().add(worker);
        }
        activities
    }
}
