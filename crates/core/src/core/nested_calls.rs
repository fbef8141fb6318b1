//! Calls made by running functions. A worker that waits for such a call takes it from the queue and runs it. Waiting
//! workers therefore never stop a grid, however deep calls are nested. A worker runs only the call that it waits for:
//! everything on its stack then needs what lies above it, and no two workers can wait for each other. A call that is
//! bound elsewhere gets an extra worker if all workers there wait (core/relief.rs).

use crate::calls::{Call, CallState};
use crate::core::Core;
use crate::ids::{CallId, Time, WorkerId};
use crate::interface::{Action, Claim, Task};
use crate::policy::Policy;

impl<T: Clone, P: Policy> Core<T, P> {
    /// The function that this worker runs makes calls itself and may wait for them. Takes back the calls queued
    /// behind it and sends nothing else.
    pub fn nests(&mut self, by: WorkerId, out: &mut Vec<Action<T>>) {
        if self.workers[by.index()].host.is_some() {
            return self.host_nests(by, out);
        }
        let worker = &mut self.workers[by.index()];
        if std::mem::replace(&mut worker.nests, true) || !worker.is_common() {
            return;
        }
        if let Some(head) = worker.head().filter(|_| worker.sent.len() > 1) {
            out.push(Action::TakeBack { worker: by, head: Some(head), below: worker.sent_ever });
        }
    }

    /// A worker waits for a call made by the function that it runs.
    pub fn claim(
        &mut self,
        now: Time,
        id: CallId,
        by: WorkerId,
        out: &mut Vec<Action<T>>,
    ) -> Claim<T> {
        self.nests(by, out);
        let holds_up = self.may_hold_up_others(id);
        let Some(call) = self.calls.get(id) else { return Claim::Ended };
        let waits_nearby = call.near.is_some() && matches!(call.state, CallState::Waiting(_));
        let sent_to = match call.state {
            CallState::Sent(executor) => Some(executor),
            _ => None,
        };
        if call.state == CallState::Queued
            && !self.is_left_to_others(call)
            && self.may_run(by, id)
            && !self.wanted.contains_key(&id)
            && !self.dependents.has(id)
            && let Some(call) = self.calls.remove(id)
        {
            self.call_counters.of(call.task.function).inside += 1;
            self.release_blobs(&call.task.blobs, out);
            if holds_up {
                self.pump(now, out);
            }
            return Claim::Run(call.task.payload);
        }
        self.wanted.entry(id).or_insert(by);
        if let Some(host) = sent_to.filter(|id| self.workers[id.index()].host.is_some()) {
            // Workers of a host may be busy with calls of other clients, which wait in the same way.
            self.retract(host, usize::MAX, |sent| sent.call == id, out);
        }
        if waits_nearby {
            // The place that it waits for may be held by the worker that waits for it.
            self.gather_again(id, out);
        }
        if self.collects {
            // It may need one of the withheld places.
            self.pump(now, out);
        }
        self.relieve(now, out);
        Claim::Wait
    }

    /// Withdraws a waiting call if nothing else depends on it. The core forgets it.
    pub fn withdraw(&mut self, now: Time, id: CallId, out: &mut Vec<Action<T>>) -> Option<T> {
        let call = self.calls.get(id)?;
        let waits = matches!(call.state, CallState::Queued | CallState::QueuedWide);
        if !waits || self.dependents.has(id) {
            return None;
        }
        let holds_up = self.may_hold_up_others(id);
        self.forget_wanted(id);
        let call = self.calls.remove(id)?;
        self.count_out(&call.task);
        self.release_blobs(&call.task.blobs, out);
        if holds_up {
            self.pump(now, out);
        }
        Some(call.task.payload)
    }

    /// Counts a call as if it had not been submitted.
    pub(crate) fn count_out(&mut self, task: &Task<T>) {
        let counters = self.call_counters.of(task.function);
        counters.submitted -= 1;
        counters.argument_bytes -= task.bytes;
    }

    /// Requeues a call that was sent and not begun.
    pub(crate) fn put_back(&mut self, id: CallId, out: &mut Vec<Action<T>>) {
        if self.calls.get(id).is_some_and(|call| call.near.is_some()) {
            self.gather_again(id, out);
        } else if !self.is_run_by_who_waits(id, out) {
            self.calls.enqueue(id);
        }
    }

    /// A call is about to be queued: if a worker waits for it, that worker gets it.
    pub(crate) fn is_run_by_who_waits(&mut self, id: CallId, out: &mut Vec<Action<T>>) -> bool {
        if self.wanted.is_empty() || self.dependents.has(id) {
            return false;
        }
        let is_for_others = |call: &Call<T>| {
            self.is_left_to_others(call) || !call.task.options.resources.is_empty()
        };
        if self.calls.get(id).is_some_and(is_for_others) {
            return false;
        }
        let Some(worker) = self.wanted.get(&id).copied() else { return false };
        if !self.may_run(worker, id) {
            return false;
        }
        self.wanted.remove(&id);
        if let Some(call) = self.calls.remove(id) {
            self.call_counters.of(call.task.function).inside += 1;
            out.push(Action::Run { worker, call: id, payload: call.task.payload });
            self.release_blobs(&call.task.blobs, out);
        }
        true
    }

    /// A call that a worker was lost with may also end the worker that waits for it, which therefore does not run it.
    /// If there is no other worker, that is better than waiting forever.
    pub(crate) fn is_left_to_others(&self, call: &Call<T>) -> bool {
        call.losses + call.false_starts > 0 && self.places > 1
    }

    /// Forgets that a worker waits for a call that has ended.
    pub(crate) fn forget_wanted(&mut self, id: CallId) {
        if !self.wanted.is_empty() {
            self.wanted.remove(&id);
        }
    }
}
