//! Calls that wait for the results of other calls. Their arguments are assembled when those calls have ended. A call
//! can only wait for earlier calls, so there are no cycles.

use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::end::End;
use crate::ids::{CallId, Time};
use crate::interface::Action;
use crate::policy::Policy;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Makes a call wait for the live calls in `after`. Once none is left, its arguments are assembled.
    pub(crate) fn block(&mut self, id: CallId, after: &[CallId], out: &mut Vec<Action<T>>) {
        let live = after.iter().filter(|dependency| self.calls.get(**dependency).is_some());
        let mut waits_for = 0;
        for dependency in live {
            self.dependents.add(*dependency, id, |call| self.calls.get(call).is_some());
            waits_for += 1;
            if !self.hosts.is_empty() {
                self.keep_result(*dependency, out);
            }
        }
        self.calls.block(id, waits_for);
        if waits_for == 0 {
            self.gather(id, out);
        }
    }

    pub(crate) fn gather(&mut self, id: CallId, out: &mut Vec<Action<T>>) {
        if let Some(call) = self.calls.get(id) {
            out.push(Action::Gather { call: id, payload: call.task.payload.clone() });
        }
    }

    /// Records that the arguments of a call have been assembled, in response to [`Action::Gather`].
    pub fn gathered(&mut self, now: Time, id: CallId, out: &mut Vec<Action<T>>) {
        let Some(call) = self.calls.get(id) else { return };
        debug_assert_eq!(call.state, CallState::Blocked { waits_for: 0 });
        let (on, group) = (call.task.options.on, call.task.options.group);
        let suspected = call.losses + call.false_starts > 0;
        match on {
            Some(on) => {
                self.calls.unblock(id);
                self.calls.wait_for(id, on.worker);
                self.pump_reserved(now, on.worker, out);
            }
            None if !suspected && self.is_run_by_who_waits(id, out) => {}
            None => {
                self.calls.unblock(id);
                self.calls.enqueue(id);
                self.pump_new(now, id, group, out);
            }
        }
    }

    /// Records that the arguments of a call cannot be assembled because this call, which it needs, did not return.
    pub fn dependency_failed(
        &mut self,
        now: Time,
        id: CallId,
        dependency: CallId,
        out: &mut Vec<Action<T>>,
    ) {
        self.end_early(now, id, End::DependencyFailed(dependency), out);
    }

    /// Records that the arguments of a call cannot be assembled, and why.
    pub fn not_gathered(&mut self, now: Time, id: CallId, why: Arc<str>, out: &mut Vec<Action<T>>) {
        self.end_early(now, id, End::NotGathered(why), out);
    }

    /// Unblocks the calls that wait for a call that has returned.
    pub(crate) fn release_dependents(&mut self, dependency: CallId, out: &mut Vec<Action<T>>) {
        for id in self.dependents.table.remove(&dependency).unwrap_or_default() {
            if self.calls.has_one_less_to_wait_for(id) {
                self.gather(id, out);
            }
        }
    }

    /// Ends the direct and indirect dependents of a call that has ended without a result.
    pub(crate) fn fail_dependents(&mut self, now: Time, failed: CallId, out: &mut Vec<Action<T>>) {
        let mut failed = vec![failed];
        while let Some(dependency) = failed.pop() {
            for id in self.dependents.table.remove(&dependency).unwrap_or_default() {
                if self.end_alone(now, id, End::DependencyFailed(dependency), out) {
                    failed.push(id);
                }
            }
        }
    }
}
