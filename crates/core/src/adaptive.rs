//! The policy of all grids: it goes by how long functions run. Few workers that are awake are better than many
//! that have to be woken, and workers of this machine than hosts.

use std::collections::VecDeque;

use crate::ids::{FunctionId, WorkerId};
use crate::pace::{AHEAD, LIGHT_WAITING, Load};
use crate::policy::{Policy, View};
use crate::workers::Worker;

/// Workers looked at for room before a call waits in the queue.
const SCAN: usize = 8;

/// Goes by how long functions run.
#[derive(Debug)]
pub struct Adaptive {
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

impl Adaptive {
    /// For a machine with so many processors.
    #[must_use]
    pub fn new(cores: usize) -> Adaptive {
        Adaptive { cores, recent: VecDeque::new(), cursor: 0 }
    }

    fn choose_here<T>(&mut self, view: &View<'_, T>, load: Load) -> Choice {
        let now = view.now;
        let short = view.ahead && load.cost < AHEAD;
        let has_room = |workers: &[Worker<T>], id: WorkerId| {
            let worker = &workers[id.index()];
            worker.is_common() && !worker.sent.is_empty() && worker.has_room(load.cost, now)
        };
        let enough = view.busy() >= self.cores;
        let workers = view.workers;
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
        if let Some(id) = view.idle() {
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
}

impl Policy for Adaptive {
    fn choose<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
        let load = view.pace.load(function);
        let here = if view.here { self.choose_here(view, load) } else { Choice::None };
        match here {
            Choice::Worker(id) => Some(id),
            Choice::Wait => None,
            Choice::None => choose_host(view, function),
        }
    }

    fn sent(&mut self, to: WorkerId) {
        if self.recent.front() != Some(&to) {
            self.recent.retain(|other| *other != to);
            self.recent.push_front(to);
            self.recent.truncate(self.cores);
        }
    }

    fn watched(&self) -> Option<WorkerId> {
        self.recent.front().copied()
    }

    fn may_wait(&self) -> usize {
        LIGHT_WAITING
    }
}

/// The host with the least to do for each of its workers, of those that have room.
fn choose_host<T>(view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
    let room = |id: &&WorkerId| view.host_has_room(**id, function);
    let load = |id: &&WorkerId| {
        let worker = &view.workers[id.index()];
        let slots = worker.host.as_ref().map_or(1, |host| host.slots.max(1));
        // In thousandths, and without the fraction that only their numbers would decide.
        worker.taken() * 1000 / slots
    };
    view.hosts.iter().filter(room).min_by_key(load).copied()
}
