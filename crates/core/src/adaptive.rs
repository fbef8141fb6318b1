//! Default policy, based on the run time of functions. It prefers a few awake workers over many that have to be
//! woken, and workers of this machine over hosts.

use std::collections::VecDeque;

use crate::ids::{FunctionId, Time, WorkerId};
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
    /// Until when calls wait for busy hosts that are faster than others with room.
    holds_until: Option<Time>,
    rates: Rates,
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
        Adaptive {
            cores,
            recent: VecDeque::new(),
            cursor: 0,
            holds_until: None,
            rates: Rates::default(),
        }
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
            Choice::None => self.choose_host(view, function),
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

    fn holds_until(&self) -> Option<Time> {
        self.holds_until
    }
}

/// Of hosts whose turnaround differs by less than this ratio, the load decides.
const FASTER: (u64, u64) = (5, 4);

impl Adaptive {
    /// The host for a call. Long calls go to the fastest host with a free worker, or wait for a faster one that is
    /// busy if the faster hosts would answer all waiting calls before this one answered the call: the threshold
    /// policy of Lin and Kumar (1984) for servers of different speed.
    fn choose_host<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId> {
        let is_long = view.pace.known_cost(function).is_some_and(|cost| cost >= AHEAD);
        let turnaround = |id: WorkerId| {
            let host = view.workers[id.index()].host.as_ref()?;
            host.pace.turnaround(function)
        };
        let hosts = || view.hosts.iter().copied().filter(|id| view.host_has_room(*id, function));
        if !is_long {
            if !view.rivals.is_empty() {
                self.holds_until = None;
            }
            return hosts().min_by_key(|id| load(view, *id));
        }
        let is_free = |id: &WorkerId| view.workers[id.index()].free_slots() > 0;
        // Hosts that are not known yet come first.
        let time = |id: WorkerId| turnaround(id).unwrap_or(0);
        let best = hosts().filter(is_free).map(time).min();
        let Some(best) = best else {
            let chosen = hosts().min_by_key(|id| load(view, *id))?;
            let then = turnaround(chosen)?.saturating_mul(2);
            return (!self.waits(view, function, then)).then_some(chosen);
        };
        let class = |id: WorkerId| time(id).saturating_mul(FASTER.1) / best.max(1) / FASTER.0;
        let chosen = hosts().filter(is_free).min_by_key(|id| (class(*id), load(view, *id)))?;
        let waits = turnaround(chosen).is_some_and(|time| self.waits(view, function, time));
        (!waits).then_some(chosen)
    }

    /// Whether the waiting calls wait for hosts that are faster than one that takes this time, ns.
    fn waits<T>(&mut self, view: &View<'_, T>, function: FunctionId, time: u64) -> bool {
        if view.rivals.is_empty() {
            return false;
        }
        let (workers, rate) = self.rates.faster(view, function, time);
        let all = (view.waiting as f64 + workers) / rate;
        // The rates may be older than the last answers. The next answer of a busy host has calls looked at again.
        let is_busy = |id: &WorkerId| !view.workers[id.index()].sent.is_empty();
        if rate == 0.0 || all > time as f64 || !view.rivals.iter().any(is_busy) {
            self.holds_until = None;
            return false;
        }
        // They may take longer than expected.
        let until = *self.holds_until.get_or_insert(view.now + (2.0 * all) as u64);
        view.now < until
    }
}

/// Workers of hosts and the calls that these answer, by turnaround. A scan of all hosts for each call would take longer
/// than the call, so it is done once for as many calls as there are hosts.
#[derive(Debug, Default)]
struct Rates {
    of: Option<(FunctionId, usize, usize)>,
    /// Number of uses until the next scan.
    left: usize,
    /// The longest turnaround, ns, workers, and calls per ns, of the first hosts.
    sums: Vec<(u64, f64, f64)>,
}

impl Rates {
    /// The workers of hosts that answer a call in clearly less than this time, ns, and their calls per ns.
    fn faster<T>(&mut self, view: &View<'_, T>, function: FunctionId, time: u64) -> (f64, f64) {
        let of = Some((function, view.rivals.len(), view.host_slots));
        if self.left == 0 || self.of != of {
            (self.of, self.left) = (of, view.rivals.len());
            self.scan(view, function);
        }
        self.left -= 1;
        let below = |(turnaround, ..): &(u64, f64, f64)| {
            turnaround.saturating_mul(FASTER.0) / FASTER.1 < time
        };
        let count = self.sums.partition_point(below);
        self.sums[..count].last().map_or((0.0, 0.0), |(_, workers, rate)| (*workers, *rate))
    }

    fn scan<T>(&mut self, view: &View<'_, T>, function: FunctionId) {
        let hosts = view.rivals.iter().filter_map(|id| view.workers[id.index()].host.as_ref());
        let serving = hosts.filter(|host| host.slots > 0 && !host.collects);
        let known = serving.filter_map(|host| Some((host.pace.turnaround(function)?, host.slots)));
        let mut known: Vec<(u64, usize)> = known.collect();
        known.sort_unstable();
        let (mut workers, mut rate) = (0.0, 0.0);
        self.sums.clear();
        self.sums.extend(known.into_iter().map(|(turnaround, slots)| {
            workers += slots as f64;
            rate += slots as f64 / turnaround.max(1) as f64;
            (turnaround, workers, rate)
        }));
    }
}

/// Calls for each worker of a host, in thousandths; the rest is dropped, as only the numbers of workers would decide it.
fn load<T>(view: &View<'_, T>, id: WorkerId) -> usize {
    let worker = &view.workers[id.index()];
    let slots = worker.host.as_ref().map_or(1, |host| host.slots.max(1));
    worker.taken() * 1000 / slots
}
