//! Calls that end without a result.

use crate::calls::CallState;
use crate::core::Core;
use crate::end::End;
use crate::ids::{BlobId, CallId, Time};
use crate::interface::Action;
use crate::policy::Policy;
use crate::queue::Queue;
use crate::timers::Timer;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Cancels the call. Returns whether it was still alive.
    pub fn cancel(&mut self, now: Time, id: CallId, out: &mut Vec<Action<T>>) -> bool {
        self.end_early(now, id, End::Cancelled, out)
    }

    /// Ends a call before its function has answered.
    pub(crate) fn end_early(
        &mut self,
        now: Time,
        id: CallId,
        end: End,
        out: &mut Vec<Action<T>>,
    ) -> bool {
        let holds_up = self.may_hold_up_others(id);
        let Some(call) = self.calls.get(id) else { return false };
        if let CallState::Sent(to) = call.state {
            let worker = &mut self.workers[to.index()];
            let found = worker.sent.iter_mut().find(|sent| sent.call == id);
            if let Some(sent) = found {
                sent.abandoned = true;
                let serial = sent.serial;
                let generation = worker.generation;
                let here = worker.is_here();
                out.push(Action::Cancel { worker: to, call: id });
                if here {
                    // An agent handles that itself.
                    let timer = Timer::Overdue { worker: to, generation, serial };
                    self.set_timer(now + self.settings.grace, timer);
                }
            }
        }
        self.end(now, id, end, out);
        if holds_up {
            self.pump(now, out);
        } else {
            self.relieve(now, out);
        }
        true
    }

    pub(crate) fn end(&mut self, now: Time, id: CallId, end: End, out: &mut Vec<Action<T>>) {
        if self.end_alone(now, id, end, out) && !self.dependents.is_empty() {
            self.fail_dependents(now, id, out);
        }
    }

    /// Ends a call, but not yet the calls that wait for it. Returns whether it was alive.
    pub(crate) fn end_alone(
        &mut self,
        now: Time,
        id: CallId,
        end: End,
        out: &mut Vec<Action<T>>,
    ) -> bool {
        let Some(call) = self.calls.remove(id) else { return false };
        self.call_counters.of(call.task.function).ended_by(&end);
        self.forget_wanted(id);
        self.dismiss_relief(now, id, out);
        out.push(Action::End { call: id, payload: call.task.payload, end });
        self.release_blobs(&call.task.blobs, out);
        if let (CallState::Blocked { .. }, Some(on)) = (call.state, call.task.options.on) {
            // Calls behind it have waited for it.
            self.pump_reserved(now, on.worker, out);
        }
        true
    }

    pub(crate) fn end_all(&mut self, now: Time, end: &End, out: &mut Vec<Action<T>>) {
        for worker in &mut self.workers {
            worker.sent.iter_mut().for_each(|sent| sent.abandoned = true);
        }
        self.stop_collecting();
        self.relief.clear();
        // Calls that wait for other calls end for the same reason.
        self.dependents.clear();
        let reserved = self.workers.iter_mut().filter_map(|worker| worker.reserved.as_mut());
        reserved.for_each(|reserved| reserved.queue.clear());
        let hosts = self.workers.iter_mut().filter_map(|worker| worker.host.as_mut());
        hosts.for_each(|host| host.nearby = Queue::default());
        let live: Vec<CallId> = self.calls.iter().map(|(id, _)| id).collect();
        for id in live {
            self.end(now, id, end.clone(), out);
        }
    }

    pub(crate) fn release_blobs(&mut self, blobs: &[BlobId], out: &mut Vec<Action<T>>) {
        for blob in blobs {
            if let Some(state) = self.blobs.table.get_mut(blob) {
                state.calls -= 1;
                self.blobs.leave_if_unused(*blob, out);
            }
        }
    }
}
