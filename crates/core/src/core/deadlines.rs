//! Events due at a time: deadlines, stuck calls, restarts.

use crate::calls::CallState;
use crate::core::{CPU_CHECK, Core, STUCK};
use crate::end::{End, TimeLimit};
use crate::ids::{CallId, Time, WorkerId, ns};
use crate::interface::Action;
use crate::policy::Policy;
use crate::timers::{DueTimer, Timer};
use crate::workers::Phase;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Handles everything that is due.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        while let Some(due) = self.next_due(now) {
            self.deal_with(now, due, out);
        }
    }

    /// Takes out the next due event, for [`Core::deal_with`].
    pub fn next_due(&mut self, now: Time) -> Option<DueTimer> {
        self.timers.pop_due(now).map(DueTimer)
    }

    /// Performs one step of [`Core::tick`]. If it concerns a worker ([`DueTimer::worker`]), report that worker's progress
    /// first ([`Core::progressed`]).
    pub fn deal_with(&mut self, now: Time, due: DueTimer, out: &mut Vec<Action<T>>) {
        match due.0 {
            Timer::Deadline(call) => {
                let worker = self.calls.get(call).and_then(|call| match call.state {
                    CallState::Sent(worker) => Some(worker.0),
                    CallState::Blocked { .. }
                    | CallState::Queued
                    | CallState::QueuedWide
                    | CallState::Waiting(_) => None,
                });
                self.end_early(now, call, End::DeadlineExceeded(worker), out);
            }
            Timer::Overdue { worker, generation, serial } => {
                self.overdue(now, worker, generation, serial, out);
            }
            Timer::RunLimit { worker, generation, serial } => {
                self.check_run_limit(now, worker, generation, serial, out);
            }
            Timer::CpuTime { worker, generation, serial } => {
                self.check_cpu_time(now, worker, generation, serial, out);
            }
            Timer::Stuck { worker, generation, head } => {
                self.look_after(now, worker, generation, head, out);
            }
            Timer::Retired { worker, generation } => {
                if self.workers[worker.index()].generation == generation {
                    out.push(Action::Kill(worker));
                }
            }
            Timer::Restart(id) => {
                let wanted = !self.closed && self.broken.is_none();
                let worker = &self.workers[id.index()];
                if wanted && worker.phase == Phase::Absent && !worker.is_asleep() {
                    self.start(id, out);
                }
            }
            Timer::Look => self.look(now, out),
            Timer::Held => self.pump(now, out),
        }
    }

    /// Time of the next [`Core::tick`], if nothing else happens.
    #[must_use]
    pub fn next_tick(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Handles the end of an abandoned call's grace period: ends the worker if it still runs that call.
    pub(crate) fn overdue(
        &mut self,
        now: Time,
        id: WorkerId,
        generation: u64,
        serial: u64,
        out: &mut Vec<Action<T>>,
    ) {
        let worker = &mut self.workers[id.index()];
        if worker.generation != generation || worker.phase != Phase::Ready {
            return;
        }
        let Some(head) = worker.head() else { return };
        if head == serial && worker.is_common() && worker.reports {
            worker.overdue = Some(serial);
            out.push(Action::TakeBack { worker: id, head: None, below: worker.sent_ever });
        } else if head == serial {
            self.ready -= usize::from(worker.is_ready_here());
            worker.phase = Phase::Ending;
            out.push(Action::Kill(id));
            // Calls that waited for its progress wait for nobody now.
            self.pump(now, out);
        } else if head < serial {
            let timer = Timer::Overdue { worker: id, generation, serial };
            self.set_timer(now + self.settings.grace, timer);
        }
    }

    /// Ends a call that has run as long as it may. A call that began late is checked again.
    fn check_run_limit(
        &mut self,
        now: Time,
        id: WorkerId,
        generation: u64,
        serial: u64,
        out: &mut Vec<Action<T>>,
    ) {
        let worker = &self.workers[id.index()];
        if worker.generation != generation {
            return;
        }
        let Some(head) = worker.head().filter(|head| *head <= serial) else { return };
        let Some(sent) = worker.sent.iter().find(|sent| sent.serial == serial) else { return };
        let (call, abandoned) = (sent.call, sent.abandoned);
        let options = self.calls.get(call).map(|call| &call.task.options);
        let limit = options.and_then(|options| options.run_limit).filter(|_| !abandoned);
        let Some(limit) = limit else { return };
        // It runs now, or begins later than now.
        let begun = if head == serial { worker.head_since } else { now };
        let until = begun + ns(limit);
        if until <= now {
            let reached = TimeLimit { worker: id.0, limit, cpu: false };
            self.end_early(now, call, End::RunLimit(reached), out);
        } else {
            self.set_timer(until, Timer::RunLimit { worker: id, generation, serial });
        }
    }

    /// Has the processor time of a call measured if it runs, and checks again later.
    fn check_cpu_time(
        &mut self,
        now: Time,
        id: WorkerId,
        generation: u64,
        serial: u64,
        out: &mut Vec<Action<T>>,
    ) {
        let worker = &self.workers[id.index()];
        if worker.generation != generation {
            return;
        }
        let Some(head) = worker.head().filter(|head| *head <= serial) else { return };
        let sent = worker.sent.iter().find(|sent| sent.serial == serial && !sent.abandoned);
        let Some(call) = sent.map(|sent| sent.call) else { return };
        if head == serial {
            out.push(Action::MeasureCpu { worker: id, call });
        }
        self.set_timer(now + CPU_CHECK, Timer::CpuTime { worker: id, generation, serial });
    }

    /// The process of a worker has used this much processor time, ns. Ends its call if that was too much since the
    /// call was measured first.
    pub fn cpu_used(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
        used: u64,
        out: &mut Vec<Action<T>>,
    ) {
        let sent = self.workers[id.index()].sent.iter_mut().find(|sent| sent.call == call);
        let Some(sent) = sent.filter(|sent| !sent.abandoned) else { return };
        let before = *sent.cpu_before.get_or_insert(used);
        let options = self.calls.get(call).map(|call| &call.task.options);
        let Some(limit) = options.and_then(|options| options.cpu_limit) else { return };
        if used.saturating_sub(before) >= ns(limit) {
            let reached = TimeLimit { worker: id.0, limit, cpu: true };
            self.end_early(now, call, End::RunLimit(reached), out);
        }
    }

    /// Checks calls that have waited behind another one: if that one still runs, other workers may be free.
    pub(crate) fn look_after(
        &mut self,
        now: Time,
        id: WorkerId,
        generation: u64,
        head: u64,
        out: &mut Vec<Action<T>>,
    ) {
        let worker = &mut self.workers[id.index()];
        if worker.generation != generation {
            return;
        }
        worker.watched = false;
        let (Some(now_at), true) = (worker.head(), worker.sent.len() > 1) else { return };
        if now_at == head && worker.phase == Phase::Ready {
            if worker.finished > 0 {
                out.push(Action::Collect(id));
            }
            if worker.is_common() && worker.sent.len() > worker.finished + 1 {
                let below = worker.sent_ever;
                out.push(Action::TakeBack { worker: id, head: Some(head), below });
            }
        }
        worker.watched = true;
        self.set_timer(now + STUCK, Timer::Stuck { worker: id, generation, head: now_at });
    }

    pub(crate) fn set_timer(&mut self, at: Time, timer: Timer) {
        let Core { timers, calls, workers, .. } = self;
        timers.set(at, timer, |timer| match timer {
            Timer::Deadline(call) => calls.get(*call).is_some(),
            Timer::Overdue { worker, generation, .. }
            | Timer::RunLimit { worker, generation, .. }
            | Timer::CpuTime { worker, generation, .. }
            | Timer::Stuck { worker, generation, .. }
            | Timer::Retired { worker, generation } => {
                workers[worker.index()].generation == *generation
            }
            Timer::Restart(_) | Timer::Look | Timer::Held => true,
        });
    }
}
