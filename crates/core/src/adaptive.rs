//! Default policy, based on the run time of functions. It prefers a few awake workers over many that have to be
//! woken, and workers of this machine over hosts.

use std::collections::VecDeque;

use crate::ids::{FunctionId, WorkerId};
use crate::pace::{AHEAD, LIGHT_WAITING, Load};
use crate::policy::{Policy, View};
use crate::workers::Worker;

/// Number of workers checked for room before a call waits in the queue.
const SCAN: usize = 8;

/// Policy based on the run time of functions.
#[derive(Debug)]
pub struct Adaptive {
    /// Processors of this machine: at most this many workers are woken for microsecond calls.
    cores: usize,
    /// Workers that were sent calls last, newest first. At most as many as there are processors.
    recent: VecDeque<WorkerId>,
    cursor: usize,
}

/// Decision for the call at the front.
enum Choice {
    Worker(WorkerId),
    /// It waits for a busy worker that keeps up.
    Wait,
    /// No worker of this machine can take it.
    None,
}

impl Adaptive {
    /// Creates the policy for a machine with this many processors.
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
        // A worker that keeps up and is fully loaded is sent more when it answers.
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

/// The host with room and the least load per worker.
fn choose_host<T>(view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
    let room = |id: &&WorkerId| view.host_has_room(**id, function);
    let load = |id: &&WorkerId| {
        let worker = &view.workers[id.index()];
        let slots = worker.host.as_ref().map_or(1, |host| host.slots.max(1));
        // In thousandths; the rest is dropped, as only the numbers of workers would decide it.
        worker.taken() * 1000 / slots
    };
    view.hosts.iter().filter(room).min_by_key(load).copied()
}
