//! Relief workers. A worker that waits for a call that is bound elsewhere cannot run it. If all workers there wait as
//! well, no place is left for the call, and so it gets a relief worker: a reserved worker that ends with it. Only calls
//! that a function waits for get one. When all running functions wait and the limit of relief workers is reached, such
//! a call ends in [`End::NestedCallLimit`] and its caller continues. So some function always runs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::end::{End, Loss, NestedCallLimit};
use crate::ids::{CallId, GroupId, Time, WorkerId};
use crate::interface::Action;
use crate::options::CallOptions;
use crate::policy::Policy;
use crate::workers::{Phase, Relief};

/// Number of functions that wait, by executor.
type Waiting = HashMap<WorkerId, usize>;

impl<T: Clone, P: Policy> Core<T, P> {
    /// A function on this executor waits for a call that a client of this grid serves, or no longer does.
    pub fn waits_for_client(
        &mut self,
        now: Time,
        by: WorkerId,
        waits: bool,
        out: &mut Vec<Action<T>>,
    ) {
        let away = &mut self.workers[by.index()].away;
        *away = if waits { *away + 1 } else { away.saturating_sub(1) };
        if waits {
            self.relieve(now, out);
        }
    }

    /// Gives relief workers to the calls that have no other place.
    pub(crate) fn relieve(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        if self.wanted.is_empty() || self.closed || self.broken.is_some() {
            return;
        }
        let queued = self.wanted.keys().filter_map(|id| {
            let call = self.calls.get(*id)?;
            (call.state == CallState::Queued).then_some((call.serial, *id))
        });
        let mut queued: Vec<(u64, CallId)> = queued.collect();
        queued.sort_unstable();
        for (_, id) in queued {
            let Some(call) = self.calls.get(id) else { continue };
            let waiting = self.waiting_functions();
            if !self.all_wait(call.task.options.group, &waiting) {
                continue;
            }
            let extra = self.settings.max_relief;
            if self.relief.len() < extra {
                self.give_relief(now, id, out);
            } else if self.none_runs(&waiting) {
                self.end(now, id, End::NestedCallLimit(NestedCallLimit { extra }), out);
            }
        }
    }

    fn waiting_functions(&self) -> Waiting {
        let mut waiting = Waiting::new();
        for worker in self.wanted.values() {
            *waiting.entry(*worker).or_default() += 1;
        }
        for (index, worker) in self.workers.iter().enumerate().filter(|(_, worker)| worker.away > 0)
        {
            *waiting.entry(WorkerId(index as u32)).or_default() += worker.away;
        }
        waiting
    }

    /// Whether a function on this executor runs and does not wait.
    fn runs(&self, id: WorkerId, waiting: &Waiting) -> bool {
        let worker = &self.workers[id.index()];
        let waits = waiting.get(&id).copied().unwrap_or(0);
        match worker.host {
            Some(_) => worker.sent.len() > waits,
            None => !worker.sent.is_empty() && waits == 0,
        }
    }

    /// Whether all ready workers of a group, or of the grid, wait. False if none is ready.
    fn all_wait(&self, group: Option<GroupId>, waiting: &Waiting) -> bool {
        let ready = |site: &Option<WorkerId>| self.present(*site).0 > 0;
        let all_wait = |site: &Option<WorkerId>| {
            let runs = match site {
                Some(host) => self.runs(*host, waiting),
                None => (0..self.workers.len() as u32)
                    .map(WorkerId)
                    .any(|id| self.workers[id.index()].is_ready_here() && self.runs(id, waiting)),
            };
            !runs && self.present(*site).1 == 0
        };
        let sites: Vec<_> = self.sites(group).into_iter().filter(ready).collect();
        !sites.is_empty() && sites.iter().all(all_wait)
    }

    /// Whether all running functions wait, and no executor is about to start.
    fn none_runs(&self, waiting: &Waiting) -> bool {
        (0..self.workers.len() as u32).map(WorkerId).all(|id| {
            let worker = &self.workers[id.index()];
            match worker.phase {
                Phase::Starting | Phase::Ending => false,
                Phase::Ready => !self.runs(id, waiting),
                Phase::Absent => worker.given_up || worker.is_asleep() || worker.reserved.is_some(),
            }
        })
    }

    fn give_relief(&mut self, now: Time, id: CallId, out: &mut Vec<Action<T>>) {
        let Some(group) = self.calls.get(id).map(|call| call.task.options.group) else { return };
        let reservation = self.reserve_one(group, out);
        self.calls.leave_place(id);
        if let Some(call) = self.calls.get_mut(id) {
            let options = std::mem::replace(&mut call.task.options, CallOptions::DEFAULT);
            call.task.options = CallOptions { on: Some(reservation), ..options.for_reserved() };
        }
        self.relief.insert(id, Relief { reservation, group });
        self.calls.wait_for(id, reservation.worker);
        self.line_up(id, reservation.worker);
        self.pump_reserved(now, reservation.worker, out);
    }

    /// Dismisses the relief worker of a call that has ended.
    pub(crate) fn dismiss_relief(&mut self, now: Time, id: CallId, out: &mut Vec<Action<T>>) {
        if let Some(relief) = self.relief.remove(&id) {
            self.release(now, relief.reservation, out);
        }
    }

    /// The relief worker of a call is lost. Returns whether this was one; then the call waits as before, or has ended.
    pub(crate) fn relief_lost(
        &mut self,
        now: Time,
        id: CallId,
        loss: &Arc<Loss>,
        begun: bool,
        out: &mut Vec<Action<T>>,
    ) -> bool {
        let Some(Relief { reservation, group }) = self.relief.remove(&id) else { return false };
        self.vacate(reservation.worker);
        self.calls.leave_place(id);
        let Some(call) = self.calls.get_mut(id) else { return true };
        call.task.options.on = None;
        call.task.options.group = group;
        call.state = CallState::Sent(reservation.worker);
        let again = if begun {
            call.losses += 1;
            call.task.options.idempotent && call.losses <= self.settings.retries
        } else {
            call.false_starts += 1;
            call.false_starts < self.settings.max_failed_starts
        };
        if again {
            self.put_back(id, out);
            self.pump(now, out);
        } else {
            self.end(now, id, End::WorkerLost(Arc::clone(loss)), out);
        }
        true
    }
}
