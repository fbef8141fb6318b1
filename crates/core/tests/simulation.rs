//! Thousands of random schedules of submissions, answers, deaths, cancels and clock jumps,
//! each a pure function of its seed; every invariant is checked after every step.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use std::time::Duration;

use gridrpc_core::{
    Action, Adaptive, BlobId, CallId, Cause, Claim, Core, End, FunctionId, GroupId, Loss,
    OccupiedTime, Policy, Refusal, Reservation, ReservationState, Resources, Settings, Task, Time,
    WorkerId,
};

use crate::policies::{RandomPolicy, RoundRobin};

const MOST_WORKERS: u32 = 8;

/// What the world outside the core knows of one worker process.
#[derive(Default)]
struct Process {
    alive: bool,
    ready: bool,
    doomed: bool,
    dismissed: bool,
    inbox: VecDeque<(u64, CallId, u32)>,
    /// How many calls have come in, and how many of those in the inbox it has begun.
    received: u64,
    begun: usize,
    /// The serial number behind that of the call it has begun last.
    begun_ever: u64,
    taught: HashSet<FunctionId>,
    blobs: HashSet<BlobId>,
    /// Data that the core has requested it to drop.
    letting_go: Vec<BlobId>,
}

/// What the caller knows of one call.
struct ExpectedCall {
    id: CallId,
    idempotent: bool,
    blobs: Vec<BlobId>,
    on: Option<Reservation>,
    priority: i32,
    /// How many it asks for; 1 if it is for a reserved worker.
    cores: u32,
    /// Graphics processors.
    gpus: u64,
    /// It is bound to this machine, as all workers are, and waits in a line of its own.
    bound: bool,
    /// Calls whose results it needs.
    after: Vec<u32>,
    begun: u32,
    /// Workers that were lost when it was the next that they would have begun.
    false_starts: u32,
    ended: bool,
    /// It has ended without a result.
    failed: bool,
}

fn gpus(number: u64) -> Resources {
    Resources::new([("gpu".into(), number)])
}

impl ExpectedCall {
    /// Whether it asks for more than the place of one worker.
    fn is_multicore(&self) -> bool {
        self.cores > 1 || self.gpus > 0
    }

    /// How often it may run.
    fn tries(&self, settings: &Settings) -> u32 {
        if self.idempotent && self.on.is_none() { settings.retries + 1 } else { 1 }
    }
}

struct Simulation<P> {
    rng: fastrand::Rng,
    now: Time,
    core: Core<u32, P>,
    processes: Vec<Process>,
    calls: Vec<ExpectedCall>,
    /// Calls that wait for any worker, in sending order.
    queue: BTreeSet<(Reverse<i32>, u32)>,
    /// The same for those that are bound to this machine.
    bound: BTreeSet<(Reverse<i32>, u32)>,
    /// The same for those that ask for several cores.
    multicore: BTreeSet<(Reverse<i32>, u32)>,
    /// Some function has waited for a call: then nothing is collected for wide ones.
    has_waited: bool,
    /// Calls whose arguments are to be put together.
    gathering: Vec<(CallId, u32)>,
    blobs: Vec<BlobId>,
    reserved: Vec<Reservation>,
    reserved_ever: HashSet<WorkerId>,
    freed: HashSet<BlobId>,
    /// Data that somebody outside the grid may read.
    passed_on: HashSet<BlobId>,
    counts: HashMap<&'static str, u64>,
    settings: Settings,
    /// Functions take next to nothing, most of the time.
    light: bool,
    /// The number of workers changes.
    resizes: bool,
    /// Memory is shared with the workers: it is seen how far they have come, and what they answer is
    /// never lost.
    shared: bool,
}

impl<P: Policy> Simulation<P> {
    fn new(seed: u64, policy: impl FnOnce(&Settings) -> P) -> Simulation<P> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Settings {
            workers: rng.u32(1..8),
            hosts: Vec::new(),
            resources: gpus(rng.u64(0..4)),
            cores: rng.usize(1..4),
            max_queued: rng.usize(1..40),
            max_nested: (seed % 40) as usize,
            // Calls are claimed at random here; tests/nested.rs has real trees.
            max_relief: 0,
            max_queued_bytes: rng.u64(1..5000),
            grace: rng.u64(1..2_000_000),
            retries: rng.u32(0..3),
            max_failed_starts: rng.u32(1..5),
            calls_per_process: if rng.bool() { rng.u64(1..9) } else { u64::MAX },
        };
        let light = rng.bool();
        let shared = rng.u32(0..3) > 0;
        let resizes = rng.bool();
        let processes = (0..settings.workers).map(|_| Process::default()).collect();
        let mut world = Simulation {
            rng,
            now: Time(1),
            core: Core::with_policy(settings.clone(), policy(&settings)),
            processes,
            calls: Vec::new(),
            queue: BTreeSet::new(),
            bound: BTreeSet::new(),
            multicore: BTreeSet::new(),
            has_waited: false,
            gathering: Vec::new(),
            blobs: Vec::new(),
            reserved: Vec::new(),
            reserved_ever: HashSet::new(),
            freed: HashSet::new(),
            passed_on: HashSet::new(),
            counts: HashMap::new(),
            settings,
            light,
            resizes,
            shared,
        };
        let mut out = Vec::new();
        world.core.open(world.now, &mut out);
        world.perform(out);
        world
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn perform(&mut self, actions: Vec<Action<u32>>) {
        let mut taken = Vec::new();
        let mut collected = Vec::new();
        let mut measured = Vec::new();
        for action in actions {
            match action {
                Action::Retract { .. } | Action::Keep { .. } => unreachable!("there are no hosts"),
                Action::Start(id) => {
                    let places = self.processes.len().max(id.0 as usize + 1);
                    self.processes.resize_with(places, Process::default);
                    let process = &mut self.processes[id.0 as usize];
                    assert!(!process.alive, "started twice");
                    *process = Process { alive: true, ..Process::default() };
                }
                Action::Teach { worker, function } => {
                    let new = self.processes[worker.0 as usize].taught.insert(function);
                    assert!(new, "taught twice");
                }
                Action::Share { worker, blob } => {
                    assert!(!self.freed.contains(&blob), "shared after it was freed");
                    let new = self.processes[worker.0 as usize].blobs.insert(blob);
                    assert!(new, "shared twice");
                }
                Action::Unshare { worker, blob } => {
                    let had = self.processes[worker.0 as usize].blobs.remove(&blob);
                    assert!(had, "unshared what it never had");
                    self.processes[worker.0 as usize].letting_go.push(blob);
                }
                Action::Widen { slots, call, .. } => {
                    let wanted = self.calls.iter().find(|wanted| wanted.id == call);
                    assert_eq!(wanted.map(|wanted| wanted.cores), Some(slots));
                }
                Action::Send { worker, call, function, payload, .. } => {
                    assert!(self.core.is_wanted(worker), "sent to a worker that is to end");
                    let process = &self.processes[worker.0 as usize];
                    assert!(process.alive && process.ready && !process.doomed);
                    assert!(process.taught.contains(&function), "sent before it was taught");
                    let wanted = &self.calls[payload as usize];
                    self.gpus_suffice(wanted.gpus);
                    if wanted.is_multicore() {
                        assert!(self.multicore.remove(&(Reverse(wanted.priority), payload)));
                        let first = self.queue.first().into_iter().chain(self.bound.first());
                        let this = (Reverse(wanted.priority), payload);
                        assert!(first.min().is_none_or(|first| *first > this), "overtakes");
                        self.has_its_places(worker, wanted.cores);
                        let what = if wanted.gpus > 0 { "with resources" } else { "wide" };
                        *self.counts.entry(what).or_default() += 1;
                    } else if wanted.on.is_none() {
                        let this = (Reverse(wanted.priority), payload);
                        self.is_not_before_wide(this);
                        let (own, other) = if wanted.bound {
                            (&mut self.bound, &self.queue)
                        } else {
                            (&mut self.queue, &self.bound)
                        };
                        assert_eq!(own.pop_first(), Some(this), "overtaken");
                        // Room that the first of the others cannot use is no loss to it.
                        let free = wanted.bound && process.inbox.is_empty();
                        let first = other.first().is_none_or(|first| *first > this);
                        assert!(first || free, "overtaken by one in another line");
                    }
                    let returned = |call: &u32| {
                        let needed = &self.calls[*call as usize];
                        needed.ended && !needed.failed
                    };
                    assert!(wanted.after.iter().all(returned), "sent before its arguments");
                    assert!(!wanted.ended, "sent after its end");
                    assert!(wanted.blobs.iter().all(|blob| process.blobs.contains(blob)));
                    assert!(wanted.on.is_none_or(|on| on.worker == worker));
                    let last = process.inbox.back().map_or(0, |(_, _, payload)| payload + 1);
                    assert!(wanted.on.is_none() || last <= payload, "out of order");
                    let process = &mut self.processes[worker.0 as usize];
                    process.inbox.push_back((process.received, call, payload));
                    process.received += 1;
                }
                Action::End { call, payload, end } => {
                    let wanted = &mut self.calls[payload as usize];
                    assert_eq!(wanted.id, call);
                    assert!(!wanted.ended, "{call:?} ended twice");
                    wanted.ended = true;
                    wanted.failed = true;
                    self.queue.remove(&(Reverse(wanted.priority), payload));
                    self.bound.remove(&(Reverse(wanted.priority), payload));
                    self.multicore.remove(&(Reverse(wanted.priority), payload));
                    if let End::RunLimit(reached) = end {
                        let process = &self.processes[reached.worker as usize];
                        let place = process.inbox.iter().position(|(_, sent, _)| *sent == call);
                        let place = place.expect("ended for its run time and never sent");
                        // What waits behind others of the worker does not run.
                        let unseen = process.begun.max(1);
                        assert!(place < unseen, "{place} of {unseen} ended for its run time");
                    }
                    if let End::DependencyFailed(dependency) = end {
                        let after = self.calls[payload as usize].after.iter();
                        let mut needed = after.map(|call| &self.calls[*call as usize]);
                        assert!(needed.any(|needed| needed.id == dependency && needed.failed));
                    }
                    let wanted = &self.calls[payload as usize];
                    if matches!(end, End::WorkerLost(_)) {
                        // Calls for a reserved worker end with it, begun or not.
                        if wanted.on.is_none() {
                            let never_begins =
                                wanted.false_starts == self.settings.max_failed_starts;
                            let used_up = wanted.begun == wanted.tries(&self.settings);
                            assert!(never_begins || used_up, "it could have been run");
                            if never_begins {
                                self.counts
                                    .entry("never begun")
                                    .and_modify(|n| *n += 1)
                                    .or_insert(1);
                            }
                        }
                    }
                    self.count(match end {
                        End::Cancelled => "cancelled",
                        End::DeadlineExceeded(_) => "deadline",
                        End::RunLimit(_) => "run limit",
                        End::WorkerLost(_) => "lost",
                        End::DependencyFailed(_) => "dependency failed",
                        End::NotGathered(_) => "not gathered",
                        End::NoWorkers(_) => "no workers",
                        End::TooManyCores(_) | End::NoFittingHost(_) => "too wide",
                        End::NoServer(..) => unreachable!("no workers are left then"),
                        End::NestedCallLimit(_) => "nested call limit",
                        End::Closed => "closed",
                    });
                }
                Action::Free { blob, unread } => {
                    let passed_on = self.passed_on.contains(&blob);
                    assert_eq!(unread, !passed_on, "its memory could be written over");
                    self.count(if unread { "unread" } else { "passed on" });
                    assert!(self.freed.insert(blob), "freed twice");
                    let users = self.calls.iter().filter(|call| call.blobs.contains(&blob));
                    assert!(users.into_iter().all(|call| call.ended), "freed while in use");
                    for process in &self.processes {
                        let reads =
                            process.blobs.contains(&blob) || process.letting_go.contains(&blob);
                        assert!(!reads || !process.alive);
                    }
                }
                Action::Run { worker, call, payload } => {
                    assert!(self.processes[worker.0 as usize].alive, "nobody waits there");
                    assert_eq!(self.calls[payload as usize].id, call);
                    self.run_nested(payload);
                    self.count("run when it came back");
                }
                Action::Gather { call, payload } => {
                    let wanted = &self.calls[payload as usize];
                    // One that a worker was lost with is left to others, if there are any.
                    assert!(!wanted.ended && (wanted.begun == 0 || self.core.places() <= 1));
                    assert!(wanted.after.iter().all(|call| self.calls[*call as usize].ended));
                    self.gathering.push((call, payload));
                }
                Action::Forget(payload) => assert!(self.calls[payload as usize].ended),
                Action::TakeBack { worker, head, below } => taken.push((worker, head, below)),
                Action::Collect(worker) => collected.push(worker),
                Action::MeasureCpu { worker, call } => measured.push((worker, call)),
                Action::Cancel { worker, call } => {
                    let process = &self.processes[worker.0 as usize];
                    assert!(process.inbox.iter().any(|(_, sent, _)| *sent == call));
                }
                Action::Dismiss(id) => {
                    let process = &mut self.processes[id.0 as usize];
                    assert!(process.alive, "dismissed without a process");
                    process.dismissed = true;
                    self.count("dismissed");
                }
                Action::Kill(id) => {
                    let process = &mut self.processes[id.0 as usize];
                    assert!(process.alive && !process.doomed, "killed twice");
                    process.doomed = true;
                    self.count("killed");
                }
            }
        }
        for (worker, head, below) in taken {
            self.take_back(worker, head, below);
        }
        for (worker, call) in measured {
            let process = &self.processes[worker.0 as usize];
            let place = process.inbox.iter().position(|(_, sent, _)| *sent == call);
            // Calls retracted or answered since are not measured.
            if place.is_some_and(|place| place < process.begun.max(1)) {
                let mut out = Vec::new();
                // All time is processor time.
                self.core.cpu_used(self.now, worker, call, self.now.0, &mut out);
                self.count("measured");
                self.perform(out);
            }
        }
        for worker in collected {
            self.collect(worker.0 as usize);
        }
    }

    /// A worker that is ended for a call that nobody waits for is at that one, and can begin no other.
    fn check_overdue(&mut self, index: usize) {
        let process = &self.processes[index];
        for (_, _, payload) in process.inbox.range(process.begun.saturating_sub(1)..) {
            let call = &self.calls[*payload as usize];
            assert!(call.ended || call.on.is_some(), "ended with an innocent call");
        }
    }

    /// Takes the answers that a worker has given and holds back, if memory is shared with it.
    fn collect(&mut self, index: usize) {
        let process = &self.processes[index];
        if !self.shared || !process.alive {
            return;
        }
        let mut out = Vec::new();
        while self.processes[index].begun > 1 {
            self.answer_first(index, &mut out);
            self.count("collected");
        }
        self.perform(out);
    }

    /// The worker passes over what it has not begun, if it has begun the call `head`.
    fn take_back(&mut self, id: WorkerId, head: Option<u64>, below: u64) {
        if !self.shared {
            return;
        }
        self.begin_some(id.0 as usize);
        let process = &mut self.processes[id.0 as usize];
        let begun = process.begun_ever;
        if head.is_some_and(|head| begun <= head) {
            return;
        }
        let stays = |serial: u64| serial < begun || serial >= below;
        let back = process.inbox.iter().filter(|(serial, ..)| !stays(*serial));
        let back: Vec<u32> = back.map(|(_, _, payload)| *payload).collect();
        process.inbox.retain(|(serial, ..)| stays(*serial));
        self.come_back(&back);
        let mut out = Vec::new();
        self.core.taken_back(self.now, id, begun as u32, below, &mut out);
        self.count("taken back");
        self.perform(out);
    }

    /// Calls that were sent wait for a worker again, unless they have ended.
    fn come_back(&mut self, payloads: &[u32]) {
        for payload in payloads {
            let wanted = &self.calls[*payload as usize];
            if !wanted.ended && wanted.on.is_none() {
                let this = (Reverse(wanted.priority), *payload);
                let (is_wide, bound) = (wanted.is_multicore(), wanted.bound);
                self.queue_of(is_wide, bound).insert(this);
            }
        }
    }

    /// The function that a worker runs waits for some call.
    fn nest(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.doomed && p.begun > 0) else { return };
        // What a running function calls asks for the place of one worker.
        let narrow = self.calls.iter().filter(|call| !call.is_multicore());
        let alive = narrow.filter(|call| !call.ended || call.id.0 % 16 == 0);
        let alive: Vec<&ExpectedCall> = alive.collect();
        let Some(id) = self.rng.choice(alive).map(|call| call.id) else { return };
        let process = &self.processes[index];
        if process.inbox.range(..process.begun).any(|(_, call, _)| *call == id) {
            return;
        }
        match self.core.claim(self.now, id, WorkerId(index as u32), out) {
            Claim::Run(payload) => {
                self.run_nested(payload);
                self.count("run by who waits");
            }
            Claim::Wait => {
                self.has_waited = true;
                self.count("waited for");
            }
            Claim::Ended => assert!(self.calls.iter().any(|call| call.id == id && call.ended)),
        }
    }

    fn queue_of(&mut self, is_wide: bool, bound: bool) -> &mut BTreeSet<(Reverse<i32>, u32)> {
        match (is_wide, bound) {
            (true, _) => &mut self.multicore,
            (false, true) => &mut self.bound,
            (false, false) => &mut self.queue,
        }
    }

    /// Workers that work for all and are at hand.
    fn at_hand(&self) -> impl Iterator<Item = &Process> {
        let own = |index: u32| {
            let id = WorkerId(index);
            self.reserved_ever.contains(&id) || !self.core.is_wanted(id)
        };
        let all = self.processes.iter().enumerate().filter(move |(index, _)| !own(*index as u32));
        let all = all.map(|(_, process)| process);
        all.filter(|p| p.alive && p.ready && !p.doomed && !p.dismissed)
    }

    /// A wide call is about to be sent: as many workers have nothing to do, without those that keep their
    /// places free for others.
    fn has_its_places(&self, worker: WorkerId, cores: u32) {
        assert!(self.processes[worker.0 as usize].inbox.is_empty(), "it has something to do");
        let free = self.at_hand().filter(|process| process.inbox.is_empty()).count();
        let cores_of = |(_, _, payload): &(u64, CallId, u32)| self.calls[*payload as usize].cores;
        let held = self.processes.iter().flat_map(|process| &process.inbox).map(cores_of);
        let held: u32 = held.map(|cores| cores - 1).sum();
        assert!(free as u32 >= held + cores, "{free} are free, {held} are held");
    }

    /// A call is about to be sent: there are as many graphics processors as it asks for.
    fn gpus_suffice(&self, wanted: u64) {
        let sent = self.processes.iter().flat_map(|process| &process.inbox);
        let taken: u64 = sent.map(|(_, _, payload)| self.calls[*payload as usize].gpus).sum();
        let all = &self.settings.resources;
        let has = all.iter().map(|(_, amount)| amount).sum::<u64>();
        assert!(taken + wanted <= has, "{wanted} of {has}, and {taken} are taken");
    }

    /// A call is about to be sent: no wide one that was there before could have the place some time.
    fn is_not_before_wide(&self, this: (Reverse<i32>, u32)) {
        let workers = self.at_hand().count() as u32;
        let mut before = self.multicore.range(..this);
        let could = |multicore: &(Reverse<i32>, u32)| {
            // Calls of another line may wait by the policy's will.
            let mut others = self.queue.first().into_iter().chain(self.bound.first());
            let has_turn = others.all(|other| other > multicore);
            let wanted = &self.calls[multicore.1 as usize];
            // What waits for a resource holds up nobody.
            has_turn && wanted.cores <= workers && wanted.gpus == 0
        };
        assert!(self.has_waited || !before.any(could), "a wide call is overtaken");
    }

    /// A call becomes part of the one that waits for it.
    fn run_nested(&mut self, payload: u32) {
        let wanted = &mut self.calls[payload as usize];
        // One that a worker was lost with is left to others, if there are any.
        assert!(!wanted.ended && (wanted.begun == 0 || self.core.places() <= 1));
        wanted.ended = true;
        self.queue.remove(&(Reverse(wanted.priority), payload));
        self.bound.remove(&(Reverse(wanted.priority), payload));
    }

    /// Puts the arguments of a call together, or finds that one is missing.
    fn gather(&mut self, out: &mut Vec<Action<u32>>) {
        if self.gathering.is_empty() {
            return;
        }
        let (id, payload) = self.gathering.swap_remove(self.rng.usize(0..self.gathering.len()));
        let wanted = &self.calls[payload as usize];
        let mut after = wanted.after.iter().map(|call| &self.calls[*call as usize]);
        if let Some(needed) = after.find(|needed| needed.failed) {
            self.core.dependency_failed(self.now, id, needed.id, out);
            return;
        }
        if self.rng.u32(0..20) == 0 {
            self.core.not_gathered(self.now, id, "no memory".into(), out);
            return;
        }
        if !wanted.ended {
            if wanted.on.is_none() {
                let this = (Reverse(wanted.priority), payload);
                let (is_wide, bound) = (wanted.is_multicore(), wanted.bound);
                self.queue_of(is_wide, bound).insert(this);
            }
            self.count("gathered");
        }
        self.core.gathered(self.now, id, out);
    }

    /// A worker may have begun any number of the calls that it has, in order.
    fn begin_some(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let begun = self.rng.usize(process.begun..=process.inbox.len());
        for (_, _, payload) in process.inbox.range(process.begun..begun) {
            let wanted = &mut self.calls[*payload as usize];
            wanted.begun += 1;
            assert!(wanted.begun <= wanted.tries(&self.settings), "ran too often");
        }
        process.begun = begun;
        if let Some(last) = begun.checked_sub(1) {
            process.begun_ever = process.begun_ever.max(process.inbox[last].0 + 1);
        }
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        match self.rng.u32(0..100) {
            0..2 => {
                let count = self.rng.u32(1..3);
                let group = self.rng.bool().then_some(GroupId::HERE);
                let reserved = self.core.reserve(count, group, &mut out);
                self.reserved_ever.extend(reserved.iter().map(|one| one.worker));
                self.reserved.extend(reserved);
            }
            2 if self.resizes => self.resize(&mut out),
            2 => {}
            3 => {
                if let Some(on) = self.rng.choice(&self.reserved).copied() {
                    self.core.release(self.now, on, &mut out);
                    assert_eq!(self.core.standing(on), ReservationState::Released);
                }
            }
            4..23 => self.submit(&mut out),
            23..26 => self.nest(&mut out),
            26..30 => self.gather(&mut out),
            30..56 => self.answer(&mut out),
            56..60 => self.let_go(&mut out),
            60..72 => self.become_ready(&mut out),
            72..77 => self.die(&mut out),
            77..82 => {
                if let Some(id) = self.some_call() {
                    self.core.cancel(self.now, id, &mut out);
                }
            }
            82..86 => {
                let live = |p: &Process| p.alive && p.ready && !p.doomed;
                if let Some(index) = self.pick(live)
                    && self.shared
                {
                    self.begin_some(index);
                    let begun = self.processes[index].begun_ever as u32;
                    self.core.progressed(self.now, WorkerId(index as u32), begun);
                }
            }
            86..94 => {
                let jump = if self.rng.bool() { 50_000 } else { 20_000_000 };
                self.now = self.now + self.rng.u64(0..jump);
                self.note_all_progress();
                self.core.tick(self.now, &mut out);
                let next = self.core.next_tick();
                assert!(next.is_none_or(|at| at > self.now), "a due timer was left");
            }
            94..97 => {
                let blob = BlobId(self.blobs.len() as u64 + 100);
                self.blobs.push(blob);
                self.core.share(blob);
            }
            _ => {
                if let Some(blob) = self.rng.choice(&self.blobs).copied() {
                    self.core.unshare(blob, &mut out);
                }
            }
        }
        self.perform(out);
        self.core.check();
        self.check_dependents();
    }

    /// Changes the number of workers.
    fn resize(&mut self, out: &mut Vec<Action<u32>>) {
        let (before, count) = (self.core.workers_here(), self.rng.u32(0..=MOST_WORKERS));
        self.core.set_workers(self.now, count, out);
        if self.core.broken().is_some() {
            assert_eq!(self.core.workers_here(), before, "a grid without workers was changed");
            return;
        }
        assert_eq!(self.core.workers_here(), count as usize);
        self.count(match before.cmp(&(count as usize)) {
            Ordering::Less => "grown",
            Ordering::Equal => "left as it is",
            Ordering::Greater if count == 0 => "without workers",
            Ordering::Greater => "shrunk",
        });
    }

    /// Nobody keeps waiting for what will not come.
    fn check_dependents(&self) {
        let gathering: HashSet<u32> = self.gathering.iter().map(|(_, payload)| *payload).collect();
        for (index, wanted) in self.calls.iter().enumerate().filter(|(_, call)| !call.ended) {
            let failed = wanted.after.iter().any(|call| self.calls[*call as usize].failed);
            // One that had failed before is found when the arguments are put together.
            let late = wanted.after.iter().any(|call| !self.calls[*call as usize].ended);
            assert!(!failed || late || gathering.contains(&(index as u32)), "{:?}", wanted.id);
        }
    }

    /// Before time passes, it is seen how far all workers have come, if memory is shared with them.
    fn note_all_progress(&mut self) {
        for index in 0..self.processes.len() {
            let process = &self.processes[index];
            if self.shared && process.alive && process.ready {
                if !process.doomed {
                    self.begin_some(index);
                }
                let begun = self.processes[index].begun_ever as u32;
                self.core.progressed(self.now, WorkerId(index as u32), begun);
            }
        }
    }

    fn some_call(&mut self) -> Option<CallId> {
        self.rng.choice(&self.calls).map(|call| call.id)
    }

    fn submit(&mut self, out: &mut Vec<Action<u32>>) {
        for _ in 0..self.rng.u32(1..20) {
            let bytes = self.rng.u64(0..1000);
            if !self.core.has_room(bytes) {
                assert!(self.core.queued() > 0);
                self.count("full");
                return;
            }
            let index = self.calls.len() as u32;
            let mut blobs = Vec::new();
            if self.rng.u32(0..4) == 0 && !self.blobs.is_empty() {
                blobs.push(self.blobs[self.rng.usize(0..self.blobs.len())]);
            }
            let mut task = Task::new(FunctionId(self.rng.u32(0..4)), index);
            if self.rng.u32(0..4) == 0 {
                task.options.on = self.rng.choice(&self.reserved).copied();
            }
            let on = task.options.on;
            if self.rng.u32(0..4) == 0 {
                task.options.priority = self.rng.i32(-2..3);
            }
            let priority = task.options.priority;
            let bound = self.rng.u32(0..3) == 0;
            task.options.group = bound.then_some(GroupId::HERE);
            if self.rng.u32(0..5) == 0 {
                task.options.cores = self.rng.u32(2..self.settings.workers + 3);
            }
            let wanted = if self.rng.u32(0..8) == 0 { self.rng.u64(0..4) } else { 0 };
            task.options.resources = gpus(wanted);
            let (cores, wanted) = if on.is_some() { (1, 0) } else { (task.options.cores, wanted) };
            let mut after = Vec::new();
            if self.rng.u32(0..4) == 0 && index > 0 {
                let far = index.saturating_sub(30);
                after = (0..self.rng.u32(1..4)).map(|_| self.rng.u32(far..index)).collect();
            }
            let ids: Vec<_> = after.iter().map(|call| self.calls[*call as usize].id).collect();
            task.bytes = bytes;
            task.options.idempotent = self.rng.bool();
            task.blobs.clone_from(&blobs);
            let soon = Duration::from_nanos(self.rng.u64(0..30_000_000));
            task.options.deadline = (self.rng.u32(0..5) == 0).then_some(soon);
            let longest = Duration::from_nanos(self.rng.u64(0..10_000_000));
            task.options.run_limit = (self.rng.u32(0..5) == 0).then_some(longest);
            task.options.cpu_limit = (self.rng.u32(0..5) == 0).then_some(longest);
            let idempotent = task.options.idempotent;
            // The core names the call before it acts on it: know it first.
            let mut actions = Vec::new();
            let taken = if after.is_empty() {
                self.core.submit(self.now, task, &mut actions)
            } else {
                self.core.submit_after(self.now, task, &ids, &mut actions)
            };
            match taken {
                Ok(id) => {
                    if after.is_empty() && on.is_none() {
                        self.queue_of(cores > 1 || wanted > 0, bound)
                            .insert((Reverse(priority), index));
                    }
                    self.calls.push(ExpectedCall {
                        id,
                        idempotent,
                        blobs,
                        on,
                        priority,
                        cores,
                        gpus: wanted,
                        bound,
                        after,
                        begun: 0,
                        false_starts: 0,
                        ended: false,
                        failed: false,
                    });
                    self.count(match on {
                        Some(_) => "reserved",
                        None if bound => "bound",
                        None => "submitted",
                    });
                }
                Err(Refusal::UnknownBlob(blob)) => assert!(blobs.contains(&blob)),
                Err(Refusal::NoWorkers(_)) => assert!(self.core.broken().is_some()),
                Err(Refusal::TooManyCores(why)) => {
                    assert!(cores > why.most);
                    self.count("refused");
                }
                Err(Refusal::NoFittingHost(why)) => {
                    assert!(wanted > 0 && gpus(wanted) == why.resources);
                    self.count("unfit");
                }
                Err(Refusal::NoServer(..)) => unreachable!("no workers are left then"),
                Err(Refusal::Quota { .. }) => unreachable!("nobody has a quota"),
                Err(Refusal::Closed) => unreachable!("nobody closed it"),
                Err(Refusal::ReservedLost(_)) => {
                    let lost = on.map(|on| self.core.standing(on));
                    assert!(matches!(lost, Some(ReservationState::Lost(_))));
                    self.count("reserved lost");
                }
                Err(Refusal::Released) => {
                    assert_eq!(
                        on.map(|on| self.core.standing(on)),
                        Some(ReservationState::Released)
                    );
                }
            }
            self.perform(actions);
            self.core.check();
            let waiting = self.core.queued();
            assert!(waiting <= self.settings.max_queued + 256 * self.processes.len());
        }
        out.clear();
    }

    fn pick(&mut self, fits: impl Fn(&Process) -> bool) -> Option<usize> {
        let fitting: Vec<usize> =
            (0..self.processes.len()).filter(|index| fits(&self.processes[*index])).collect();
        self.rng.choice(fitting)
    }

    fn answer(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.doomed && !p.inbox.is_empty()) else {
            return;
        };
        self.answer_first(index, out);
    }

    fn answer_first(&mut self, index: usize, out: &mut Vec<Action<u32>>) {
        let process = &mut self.processes[index];
        let Some((serial, call, payload)) = process.inbox.pop_front() else { return };
        process.begun_ever = process.begun_ever.max(serial + 1);
        let was_begun = process.begun > 0;
        process.begun = process.begun.saturating_sub(1);
        let most = if self.light { 500 } else { 100_000 };
        let ran = if self.rng.u32(0..50) == 0 { 10_000_000 } else { self.rng.u64(50..most) };
        let took = OccupiedTime { ran, whole: ran + self.rng.u64(0..most) };
        self.now = self.now + self.rng.u64(0..50_000);
        let wanted = &mut self.calls[payload as usize];
        wanted.begun += u32::from(!was_begun);
        let id = WorkerId(index as u32);
        let wrong = CallId(u64::MAX);
        assert!(self.core.replied(self.now, id, wrong, took, out).is_err());
        let raises = self.rng.u32(0..8) == 0;
        let answered = if raises {
            self.core.raised(self.now, id, call, took, out)
        } else {
            self.core.replied(self.now, id, call, took, out)
        };
        match answered.expect("in order") {
            (back, true) => {
                assert_eq!(back, payload);
                assert!(!wanted.ended, "answered after its end");
                wanted.ended = true;
                wanted.failed = raises;
                self.count("answered");
            }
            (_, false) => assert!(wanted.ended, "a live call's answer was thrown away"),
        }
    }

    /// A worker no longer reads data that it had to drop.
    fn let_go(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.letting_go.is_empty()) else { return };
        let letting_go = &mut self.processes[index].letting_go;
        let blob = letting_go.swap_remove(self.rng.usize(0..letting_go.len()));
        let unread = self.rng.u32(0..4) > 0;
        if !unread {
            self.passed_on.insert(blob);
        }
        self.core.blob_dropped(WorkerId(index as u32), blob, unread, out);
    }

    fn become_ready(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.ready) else { return };
        self.processes[index].ready = true;
        self.core.worker_ready(self.now, WorkerId(index as u32), out);
    }

    fn die(&mut self, out: &mut Vec<Action<u32>>) {
        let gone = |p: &Process| p.doomed || p.dismissed && p.inbox.is_empty();
        let index = self.pick(gone).or_else(|| self.pick(|p| p.alive));
        let Some(index) = index else { return };
        if self.rng.bool() {
            self.begin_some(index);
        }
        if self.processes[index].doomed && self.shared {
            self.check_overdue(index);
        }
        self.collect(index);
        let known = self.shared;
        let process = &self.processes[index];
        if let Some((_, _, payload)) = process.inbox.front()
            && known
            && process.begun == 0
        {
            self.calls[*payload as usize].false_starts += 1;
        }
        if !known {
            // All that it held may have run, so none may be run again without leave.
            let process = &mut self.processes[index];
            for (_, _, payload) in process.inbox.range(process.begun..) {
                self.calls[*payload as usize].begun += 1;
            }
        }
        let process = std::mem::take(&mut self.processes[index]);
        let all: Vec<u32> = process.inbox.iter().map(|(_, _, payload)| *payload).collect();
        // Those that are not tried again are ended before others are sent.
        self.come_back(&all);
        self.passed_on.extend(process.blobs.iter().chain(&process.letting_go));
        let started = known.then_some(process.begun_ever as u32);
        let running = process.inbox.front().filter(|_| process.begun > 0).map(|call| call.2);
        let loss = Loss {
            worker: index as u32,
            pid: 1,
            host: "here".into(),
            cause: match self.rng.u32(0..4) {
                0 => Cause::Shortage("no more processes".into()),
                _ => Cause::Signal { signal: 9, out_of_memory: false },
            },
            stderr: String::new(),
        };
        let before = out.len();
        self.core.worker_lost(self.now, WorkerId(index as u32), started, loss, out);
        for action in &out[before..] {
            if let Action::End { payload, end: End::WorkerLost(_), .. } = action
                && known
            {
                let lost = &self.calls[*payload as usize];
                let never_begins = lost.false_starts == self.settings.max_failed_starts;
                let alone = running == Some(*payload) || lost.on.is_some() || never_begins;
                assert!(alone, "another call is lost than the one that ran");
            }
        }
        self.count("deaths");
    }

    /// Lets all calls end, without further faults, and checks that nothing remains.
    fn drain(&mut self) {
        let mut out = Vec::new();
        // As many as any call has found possible.
        self.core.set_workers(self.now, MOST_WORKERS, &mut out);
        self.perform(out);
        for _ in 0..100_000 {
            let busy = |p: &Process| p.doomed || p.dismissed || !p.inbox.is_empty();
            if self.core.live() == 0 && self.pick(busy).is_none() {
                break;
            }
            let mut out = Vec::new();
            self.become_ready(&mut out);
            self.perform(std::mem::take(&mut out));
            self.gather(&mut out);
            self.perform(std::mem::take(&mut out));
            if self.pick(|p| p.doomed || p.dismissed && p.inbox.is_empty()).is_some() {
                self.die(&mut out);
            } else {
                self.answer(&mut out);
            }
            self.perform(std::mem::take(&mut out));
            self.now = self.now + 10_000_000;
            self.note_all_progress();
            self.core.tick(self.now, &mut out);
            self.perform(out);
            self.core.check();
        }
        assert_eq!(self.core.live(), 0, "calls never end");
        assert!(self.calls.iter().all(|call| call.ended));
        let mut out = Vec::new();
        for blob in self.blobs.clone() {
            self.core.unshare(blob, &mut out);
        }
        self.perform(out);
        while self.pick(|p| p.alive && !p.letting_go.is_empty()).is_some() {
            let mut out = Vec::new();
            self.let_go(&mut out);
            self.perform(out);
            self.core.check();
        }
        assert_eq!(self.freed.len(), self.blobs.len(), "shared data leaks");
        assert!(self.core.timers() <= 2 * 1024, "timers leak: {}", self.core.timers());
    }
}

/// Runs random schedules; returns event counts.
fn run<P: Policy>(seeds: u64, policy: impl Fn(u64, &Settings) -> P) -> HashMap<&'static str, u64> {
    let mut totals: HashMap<&'static str, u64> = HashMap::new();
    for seed in 0..seeds {
        let mut world = Simulation::new(seed, |settings| policy(seed, settings));
        let steps = world.rng.u32(10..300);
        for _ in 0..steps {
            world.step();
        }
        if world.rng.u32(0..5) == 0 {
            let mut out = Vec::new();
            world.core.close(world.now, &mut out);
            world.perform(out);
            world.core.check();
            assert!(world.calls.iter().all(|call| call.ended));
        } else {
            world.drain();
        }
        for (what, count) in world.counts {
            *totals.entry(what).or_default() += count;
        }
    }
    totals
}

/// A simulation that never meets a fault shows nothing.
fn check_that_all_happened(totals: &HashMap<&'static str, u64>, least: u64) {
    for what in [
        "submitted",
        "bound",
        "answered",
        "cancelled",
        "deadline",
        "run limit",
        "measured",
        "lost",
        "never begun",
        "no workers",
        "closed",
        "killed",
        "full",
        "deaths",
        "taken back",
        "collected",
        "reserved",
        "reserved lost",
        "dismissed",
        "unread",
        "passed on",
        "gathered",
        "dependency failed",
        "not gathered",
        "run by who waits",
        "run when it came back",
        "waited for",
        "wide",
        "refused",
        "unfit",
        "with resources",
        "grown",
        "shrunk",
        "without workers",
    ] {
        assert!(totals.get(what).copied().unwrap_or(0) > least, "hardly any {what}: {totals:?}");
    }
}

#[test]
fn random_schedules_keep_every_invariant() {
    let totals = run(5000, |_, settings| Adaptive::new(settings.cores));
    check_that_all_happened(&totals, 100);
}

#[test]
fn they_do_so_with_executors_in_turn() {
    check_that_all_happened(&run(1000, |_, _| RoundRobin::default()), 10);
}

#[test]
fn they_do_so_whoever_is_chosen() {
    check_that_all_happened(&run(1000, |seed, _| RandomPolicy::new(seed)), 10);
}
