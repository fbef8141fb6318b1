//! The scheduling policy: which worker or host gets the call at the front of the queue. It looks at the
//! state and changes nothing but its own notes; the state machine does the rest.

use std::collections::VecDeque;

use crate::Time;
use crate::ids::{FunctionId, WorkerId};
use crate::pace::{AHEAD, LIGHT_WAITING, Load, Pace};
use crate::workers::{Idle, Phase, Worker};

/// Workers looked at for room before a call waits in the queue.
const SCAN: usize = 8;

/// What a choice is made from.
#[derive(Debug)]
pub(crate) struct View<'a, T> {
    pub(crate) now: Time,
    pub(crate) workers: &'a mut [Worker<T>],
    /// Workers of this machine that have nothing to do.
    pub(crate) idle: &'a mut Idle,
    /// Workers of this machine that have answered.
    pub(crate) ready: usize,
    pub(crate) hosts: &'a [WorkerId],
    pub(crate) pace: &'a Pace,
    /// Calls that wait.
    pub(crate) queued: usize,
}

/// What the policy remembers.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Processors of this machine: more than so many workers are not woken for microsecond calls.
    cores: usize,
    /// Workers that were sent calls last, newest first: at most as many as there are processors.
    recent: VecDeque<WorkerId>,
    cursor: usize,
}

/// What becomes of the call at the front.
enum Choice {
    Worker(WorkerId),
    /// It waits for a worker that is at work and keeps up.
    Wait,
    /// No worker of this machine can take it.
    None,
}

impl Policy {
    pub(crate) fn new(cores: usize) -> Policy {
        Policy { cores, recent: VecDeque::new(), cursor: 0 }
    }

    /// Who gets the next call of this function; none: it waits.
    pub(crate) fn choose<T>(
        &mut self,
        view: &mut View<'_, T>,
        function: FunctionId,
    ) -> Option<WorkerId> {
        let load = view.pace.load(function);
        match self.choose_here(view, load) {
            Choice::Worker(id) => Some(id),
            Choice::Wait => None,
            Choice::None => choose_host(view, function),
        }
    }

    fn choose_here<T>(&mut self, view: &mut View<'_, T>, load: Load) -> Choice {
        let now = view.now;
        let short = load.cost < AHEAD;
        let has_room = |workers: &[Worker<T>], id: WorkerId| {
            let worker = &workers[id.index()];
            worker.is_common() && !worker.sent.is_empty() && worker.has_room(load.cost, now)
        };
        let busy = view.ready.saturating_sub(view.idle.len());
        let enough = busy >= self.cores;
        let workers = &*view.workers;
        let wanted = |id: &&WorkerId| {
            let worker = &workers[id.index()];
            (enough || worker.is_awake(load, now)) && has_room(workers, **id)
        };
        if short && let Some(id) = self.recent.iter().find(wanted) {
            return Choice::Worker(*id);
        }
        // A worker that keeps up and has its hands full is sent more when it answers.
        let keeps_up = |id: &WorkerId| workers[id.index()].is_awake(load, now);
        if load.light && view.queued <= LIGHT_WAITING && self.recent.iter().any(keeps_up) {
            return Choice::Wait;
        }
        if let Some(id) = view.idle.pop(view.workers) {
            return Choice::Worker(id);
        }
        if !short || view.ready == 0 {
            return Choice::None;
        }
        let count = view.workers.len();
        let found = (0..count.min(SCAN)).find_map(|_| {
            self.cursor = (self.cursor + 1) % count;
            let id = WorkerId(self.cursor as u32);
            has_room(view.workers, id).then_some(id)
        });
        found.map_or(Choice::None, Choice::Worker)
    }

    /// A worker of this machine was sent a call.
    pub(crate) fn sent(&mut self, to: WorkerId) {
        if self.recent.front() != Some(&to) {
            self.recent.retain(|other| *other != to);
            self.recent.push_front(to);
            self.recent.truncate(self.cores);
        }
    }

    /// Who was sent the last call.
    pub(crate) fn last(&self) -> Option<WorkerId> {
        self.recent.front().copied()
    }
}

/// The host with the least to do for each of its workers, of those that have room.
fn choose_host<T>(view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
    let room = |id: &&WorkerId| {
        let worker = &view.workers[id.index()];
        let Some(host) = worker.host.as_ref().filter(|_| worker.phase == Phase::Ready) else {
            return false;
        };
        let ahead =
            if host.nests { 0 } else { view.pace.ahead(function, host.slots, host.round_trip) };
        worker.sent.len() < host.slots + ahead
    };
    let load = |id: &&WorkerId| {
        let worker = &view.workers[id.index()];
        let slots = worker.host.as_ref().map_or(1, |host| host.slots.max(1));
        // In thousandths, and without the fraction that only their numbers would decide.
        worker.sent.len() * 1000 / slots
    };
    view.hosts.iter().filter(room).min_by_key(load).copied()
}
