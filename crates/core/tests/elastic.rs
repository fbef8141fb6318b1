//! Hosts that come and go with the work, in a random world: calls come in bursts, agents take their time or do not
//! come, jobs reach their wall time. Each run is a pure function of its seed; every invariant is checked after
//! every step.

use std::collections::{BTreeMap, HashMap};

use std::time::Duration;

use gridrpc_core::{
    Action, CallId, CallOptions, Cause, Core, FunctionId, HostStage, Loss, OccupiedTime, Settings,
    Task, Time, WorkerId,
};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// What the functions take, by their numbers.
const TIMES: [u64; 3] = [MS, 300 * MS, 8 * S];

/// A future event.
#[derive(Clone, Copy, Debug)]
enum Due {
    Submit(u32),
    /// One of a function that takes any time, who says for how long.
    SubmitFor(u64),
    Comes(WorkerId, u64),
    Answers(WorkerId, CallId, u64, u64),
    Leaves(WorkerId, u64),
}

struct Simulation {
    rng: fastrand::Rng,
    now: Time,
    core: Core<u32>,
    hosts: usize,
    slots: u32,
    /// How long agents take to come, and jobs to end.
    start: u64,
    wall: Option<u64>,
    /// One in so many starts fails; 0: none.
    fails: u32,
    due: BTreeMap<(u64, u32), Due>,
    count: u32,
    /// Counts the agents of each host.
    lives: HashMap<WorkerId, u64>,
    running: HashMap<WorkerId, u32>,
    ended: Vec<bool>,
    /// What calls said that they take.
    says: HashMap<u32, u64>,
    /// Calls that were cut off by the end of a job.
    lost: usize,
    most: usize,
}

impl Simulation {
    fn new(seed: u64, hosts: usize, least: usize, idle: u64) -> Simulation {
        let mut rng = fastrand::Rng::with_seed(seed);
        let slots = rng.u32(1..5);
        let settings = Settings {
            workers: 0,
            hosts: vec![slots; hosts],
            retries: 1000,
            ..Settings::default()
        };
        let mut core = Core::new(settings);
        let ids: Vec<WorkerId> = (0..hosts as u32).map(WorkerId).collect();
        core.make_elastic(ids, least, idle);
        let mut world = Simulation {
            now: Time(1),
            core,
            hosts,
            slots,
            start: rng.u64(1..20 * S),
            wall: rng.bool().then_some(60 * S),
            fails: 0,
            due: BTreeMap::new(),
            count: 0,
            lives: HashMap::new(),
            running: HashMap::new(),
            ended: Vec::new(),
            says: HashMap::new(),
            lost: 0,
            most: 0,
            rng,
        };
        world.drive(|core, now, out| core.open(now, out));
        world
    }

    fn at(&mut self, time: u64, due: Due) {
        self.count += 1;
        self.due.insert((time, self.count), due);
    }

    fn drive<R>(
        &mut self,
        step: impl FnOnce(&mut Core<u32>, Time, &mut Vec<Action<u32>>) -> R,
    ) -> R {
        let mut out = Vec::new();
        let result = step(&mut self.core, self.now, &mut out);
        self.core.check();
        for action in out {
            self.perform(action);
        }
        result
    }

    fn perform(&mut self, action: Action<u32>) {
        match action {
            Action::Start(id) => {
                let life = self.lives.entry(id).or_default();
                *life += 1;
                let life = *life;
                let time = self.now.0 + self.start / 2 + self.rng.u64(0..self.start);
                self.at(time, Due::Comes(id, life));
            }
            Action::Send { worker, call, function, payload, .. } => {
                *self.running.entry(worker).or_default() += 1;
                let said = self.says.get(&payload).copied();
                let time = said.unwrap_or_else(|| TIMES[function.0 as usize]);
                let at = self.now.0 + time;
                self.at(at, Due::Answers(worker, call, self.lives[&worker], time));
            }
            Action::Dismiss(id) => {
                assert_eq!(self.running.get(&id).copied().unwrap_or(0), 0, "{id:?} is at work");
                let time = self.now.0 + self.rng.u64(1..S);
                self.at(time, Due::Leaves(id, self.lives[&id]));
            }
            Action::End { payload, end, .. } => panic!("call {payload} ended: {end:?}"),
            Action::Teach { .. } | Action::Retract { .. } | Action::Forget(_) => {}
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self) -> bool {
        let next = self.due.first_key_value().map(|((time, _), _)| *time);
        let tick = self.core.next_tick().map(|tick| tick.0);
        let Some(time) = next.into_iter().chain(tick).min() else { return false };
        self.now = Time(self.now.0.max(time));
        if tick == Some(time) {
            self.drive(|core, now, out| core.tick(now, out));
        } else if let Some((_, due)) = self.due.pop_first() {
            self.happens(due);
        }
        let stages = self.stages();
        let there = stages.iter().filter(|stage| **stage != HostStage::Unwanted).count();
        self.most = self.most.max(there);
        true
    }

    fn happens(&mut self, due: Due) {
        match due {
            Due::Submit(function) => {
                let payload = self.ended.len() as u32;
                self.ended.push(false);
                let task = Task {
                    options: CallOptions { idempotent: true, ..CallOptions::DEFAULT },
                    ..Task::new(FunctionId(function), payload)
                };
                self.drive(|core, now, out| core.submit(now, task, out)).expect("it takes calls");
            }
            Due::SubmitFor(time) => {
                let payload = self.ended.len() as u32;
                self.ended.push(false);
                let function = FunctionId(TIMES.len() as u32);
                let expected = Some(Duration::from_nanos(time));
                let task = Task {
                    options: CallOptions { idempotent: true, expected, ..CallOptions::DEFAULT },
                    ..Task::new(function, payload)
                };
                self.says.insert(payload, time);
                self.drive(|core, now, out| core.submit(now, task, out)).expect("it takes calls");
            }
            Due::Comes(id, life) if self.lives[&id] == life => {
                if self.core.host_status(id).unwrap().stage != HostStage::Starting {
                    return;
                }
                if self.fails > 0 && self.rng.u32(0..self.fails) == 0 {
                    return self.leaves(id, "could not be started");
                }
                let slots = self.slots;
                self.drive(|core, _, out| core.host_joined(id, slots, out));
                self.drive(|core, now, out| core.host_has(now, id, slots, slots, out));
                if let Some(wall) = self.wall {
                    let ends = self.now + wall;
                    self.drive(|core, now, _| core.host_ends(now, id, ends));
                    self.at(ends.0, Due::Leaves(id, life));
                }
            }
            Due::Answers(id, call, life, time) if self.lives[&id] == life => {
                if !self.running.contains_key(&id) {
                    return;
                }
                let took = OccupiedTime { ran: time, whole: time };
                *self.running.get_mut(&id).unwrap() -= 1;
                let answered = self.drive(|core, now, out| core.replied(now, id, call, took, out));
                let (payload, live) = answered.expect("it was sent this call");
                assert!(live && !std::mem::replace(&mut self.ended[payload as usize], true));
            }
            Due::Leaves(id, life) if self.lives[&id] == life => self.leaves(id, "it has ended"),
            _ => {}
        }
    }

    fn leaves(&mut self, id: WorkerId, why: &str) {
        // Its answers do not come.
        *self.lives.get_mut(&id).unwrap() += 1;
        self.lost += self.running.remove(&id).unwrap_or(0) as usize;
        let cause = Cause::Failed(why.to_owned());
        let loss = Loss { worker: id.0, pid: 0, host: String::new(), cause, stderr: String::new() };
        self.drive(|core, now, out| core.worker_lost(now, id, None, loss, out));
    }

    fn stages(&self) -> Vec<HostStage> {
        let ids = (0..self.hosts as u32).map(WorkerId);
        ids.map(|id| self.core.host_status(id).unwrap().stage).collect()
    }

    fn awake(&self) -> usize {
        self.stages().iter().filter(|stage| **stage != HostStage::Unwanted).count()
    }

    /// Has bursts of calls come over some minutes.
    fn plan(&mut self) -> usize {
        let mut calls = 0;
        for _ in 0..self.rng.u32(1..6) {
            let begin = self.rng.u64(1..300 * S);
            let function = self.rng.u32(0..3);
            for _ in 0..self.rng.u32(1..60) {
                let time = begin + self.rng.u64(0..10 * S);
                self.at(time, Due::Submit(function));
                calls += 1;
            }
        }
        calls
    }
}

#[test]
fn every_call_ends_once_and_what_is_not_needed_is_given_back() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed + 1_000_000);
        let (hosts, idle) = (rng.usize(1..7), rng.u64(0..40) * S);
        let least = rng.usize(0..=hosts);
        let mut world = Simulation::new(seed, hosts, least, idle);
        world.fails = if rng.bool() && hosts > 1 { 0 } else { 40 };
        let calls = world.plan();
        for _ in 0..200_000 {
            let quiet = world.due.is_empty() && world.core.live() == 0;
            // With a wall time, those that are wanted always come again and again.
            let late = world.now.0 > 3_000 * S && world.core.live() == 0;
            if (quiet && world.awake() == least) || late || !world.step() {
                break;
            }
        }
        assert_eq!(world.ended.len(), calls, "seed {seed}");
        assert!(world.ended.iter().all(|ended| *ended), "seed {seed}");
        assert!(world.most <= hosts);
        assert!(world.awake() <= least + hosts, "seed {seed}");
        if world.wall.is_none() {
            assert_eq!(world.awake(), least, "seed {seed}");
        }
    }
}

#[test]
fn nothing_is_requested_until_there_is_a_call_and_then_one_host() {
    let mut world = Simulation::new(7, 10, 0, 5 * S);
    world.wall = None;
    assert_eq!((world.awake(), world.core.places()), (0, 0));
    assert!(world.core.knows_places() && world.core.next_tick().is_none());
    world.at(S, Due::Submit(1));
    while world.step() {}
    assert_eq!(world.ended, [true]);
    assert_eq!((world.most, world.awake(), world.core.places()), (1, 0, 0));
    assert_eq!(world.core.timers(), 0);
}

#[test]
fn many_long_calls_get_many_hosts_and_short_ones_do_not() {
    let most = |function, count| {
        let mut world = Simulation::new(3, 8, 1, 30 * S);
        (world.wall, world.start) = (None, S);
        // The functions are known.
        world.at(60 * S, Due::Submit(function));
        (0..count).for_each(|_| world.at(100 * S, Due::Submit(function)));
        while world.step() {}
        assert!(world.ended.iter().all(|ended| *ended));
        world.most
    };
    assert_eq!(most(2, 200), 8);
    assert_eq!(most(0, 200), 1);
}

#[test]
fn no_call_is_cut_off_whose_time_is_known() {
    for seed in 0..50 {
        let mut world = Simulation::new(seed, 4, 2, 30 * S);
        world.wall = Some(60 * S);
        world.at(30 * S, Due::Submit(2));
        // The first one may be cut off: how long it takes is not known yet.
        while !world.ended.iter().any(|ended| *ended) {
            world.step();
        }
        let lost = world.lost;
        for n in 0..100 {
            let time = world.now.0 + n * 3 * S;
            world.at(time, Due::Submit(2));
        }
        while world.core.live() > 0 || world.ended.len() < 101 {
            world.step();
        }
        assert_eq!(world.lost, lost, "seed {seed}");
    }
}

#[test]
fn no_call_is_cut_off_that_says_how_long_it_takes() {
    for seed in 0..100 {
        let mut world = Simulation::new(seed, 4, 2, 30 * S);
        world.wall = Some(60 * S);
        for _ in 0..100 {
            let (at, time) = (world.rng.u64(1..400 * S), world.rng.u64(1..57 * S));
            world.at(at, Due::SubmitFor(time));
        }
        while world.core.live() > 0 || world.ended.len() < 100 {
            assert!(world.now.0 < 10_000 * S, "seed {seed}: calls wait forever");
            world.step();
        }
        assert_eq!(world.lost, 0, "seed {seed}");
    }
}

#[test]
fn a_call_that_asks_for_several_cores_gets_a_host() {
    let settings = Settings { workers: 0, hosts: vec![4, 4], ..Settings::default() };
    let mut core: Core<u32> = Core::new(settings);
    let mut out = Vec::new();
    let (first, second) = (WorkerId(0), WorkerId(1));
    core.make_elastic(vec![first, second], 0, 5 * S);
    core.open(Time(0), &mut out);
    assert_eq!(out, []);
    let multicore = Task {
        options: CallOptions { cores: 4, ..CallOptions::DEFAULT },
        ..Task::new(FunctionId(0), 7)
    };
    core.submit(Time(S), multicore, &mut out).expect("taken");
    core.tick(Time(S), &mut out);
    assert_eq!(out, [Action::Start(first)]);
    core.host_joined(first, 4, &mut out);
    // Three workers are too few.
    core.host_has(Time(2 * S), first, 3, 4, &mut out);
    core.check();
    assert_eq!(out, [Action::Start(first)]);
    core.host_has(Time(3 * S), first, 4, 4, &mut out);
    core.check();
    let sent =
        |action: &Action<u32>| matches!(action, Action::Send { worker, .. } if *worker == first);
    assert!(out.iter().any(sent), "{out:?}");
}

#[test]
fn workers_on_demand_are_those_that_are_not_ready() {
    let settings = Settings { workers: 0, hosts: vec![4, 4, 4], ..Settings::default() };
    let mut core: Core<u32> = Core::new(settings);
    let mut out = Vec::new();
    let (fixed, first, second) = (WorkerId(0), WorkerId(1), WorkerId(2));
    core.make_elastic(vec![first, second], 0, 5 * S);
    core.open(Time(0), &mut out);
    core.host_joined(fixed, 4, &mut out);
    core.host_has(Time(0), fixed, 1, 4, &mut out);
    assert_eq!((core.ready(), core.workers_on_demand()), (1, 8));
    core.want_workers(Time(S), 8, None, &mut out);
    assert_eq!(core.host_status(first).unwrap().stage, HostStage::Starting);
    assert_eq!((core.ready(), core.workers_on_demand()), (1, 8));
    core.host_joined(first, 4, &mut out);
    core.host_has(Time(2 * S), first, 3, 4, &mut out);
    assert_eq!((core.ready(), core.workers_on_demand()), (4, 5));
}
