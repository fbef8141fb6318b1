//! Owners share workers by their weights, have no more than their quotas, and end without harm to others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use fastrand::Rng;
use gridrpc_core::{
    Action, CallId, CallOptions, Core, End, FunctionId, GroupId, OccupiedTime, Owner, Quota,
    Refusal, Settings, Task, Time, WorkerId,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// An owner, and the outcomes of its calls.
struct Client {
    owner: Owner,
    quota: Quota,
    function: FunctionId,
    /// How long its calls run, ns.
    takes: (u64, u64),
    /// How many calls it keeps under way.
    wants: usize,
    alive: HashSet<CallId>,
    /// Time that workers have spent on its calls, ns.
    held: u64,
    ended: u64,
}

/// A grid whose workers run one call after the other.
struct Simulation {
    core: Core<usize>,
    now: Time,
    rng: Rng,
    clients: Vec<Client>,
    /// Calls sent to each worker, and the end of the first.
    sent: Vec<Vec<(CallId, usize)>>,
    done: BinaryHeap<Reverse<(u64, u32)>>,
    /// Who has made each call that was ever taken and has not ended.
    by_call: HashMap<CallId, usize>,
    steps: u64,
}

impl Simulation {
    fn new(seed: u64, workers: u32, quotas: &[Quota]) -> Simulation {
        let mut rng = Rng::with_seed(seed);
        let mut core =
            Core::new(Settings { workers, cores: workers as usize, ..Settings::default() });
        let mut out = Vec::new();
        core.open(Time(0), &mut out);
        (0..workers).for_each(|id| core.worker_ready(Time(0), WorkerId(id), &mut out));
        let clients = quotas.iter().enumerate().map(|(index, quota)| {
            let least = rng.u64(100 * US..5 * MS);
            Client {
                owner: core.add_owner(*quota),
                quota: *quota,
                function: FunctionId(index as u32),
                takes: (least, least * rng.u64(1..4) + 1),
                wants: 4 * workers as usize + rng.usize(..20),
                alive: HashSet::new(),
                held: 0,
                ended: 0,
            }
        });
        let clients = clients.collect();
        let sent = vec![Vec::new(); workers as usize];
        let (done, by_call) = (BinaryHeap::new(), HashMap::new());
        Simulation { core, now: Time(0), rng, clients, sent, done, by_call, steps: 0 }
    }

    /// Submits calls of a client until it has as many as it wants, or may have.
    fn submit(&mut self, index: usize) {
        while self.clients[index].alive.len() < self.clients[index].wants {
            let client = &self.clients[index];
            let mut options = CallOptions { idempotent: true, ..CallOptions::DEFAULT };
            if self.rng.u32(0..8) == 0 {
                options.group = Some(GroupId::HERE);
            }
            if self.rng.u32(0..8) == 0 {
                options.priority = self.rng.i32(-1..2);
            }
            let owner = client.owner;
            let task = Task { owner, options, ..Task::new(client.function, index) };
            let mut out = Vec::new();
            self.steps += 1;
            match self.core.submit(self.now, task, &mut out) {
                Ok(id) => {
                    self.clients[index].alive.insert(id);
                    assert_eq!(self.by_call.insert(id, index), None);
                    self.act(out);
                }
                Err(Refusal::Quota { alive }) => {
                    let client = &self.clients[index];
                    assert_eq!((alive, client.alive.len()), (client.quota.alive, alive));
                    return;
                }
                Err(refusal) => panic!("{refusal}"),
            }
        }
    }

    fn act(&mut self, actions: Vec<Action<usize>>) {
        for action in actions {
            match action {
                Action::Send { worker, call, payload, .. } => {
                    let client = &self.clients[payload];
                    assert!(client.alive.contains(&call), "it was sent after its end");
                    let running = self.core.calls_of(client.owner).1;
                    assert!(running <= client.quota.running, "more run than may");
                    let queue = &mut self.sent[worker.0 as usize];
                    queue.push((call, payload));
                    if queue.len() == 1 {
                        self.begin(worker.0);
                    }
                }
                Action::End { call, payload, end } => {
                    assert!(matches!(end, End::Cancelled), "{end:?}");
                    self.end(call, payload);
                }
                _ => {}
            }
        }
    }

    fn begin(&mut self, worker: u32) {
        let Some((_, index)) = self.sent[worker as usize].first() else { return };
        let (least, most) = self.clients[*index].takes;
        let takes = self.rng.u64(least..=most);
        self.clients[*index].held += takes;
        self.done.push(Reverse((self.now.0 + takes, worker)));
    }

    fn end(&mut self, call: CallId, index: usize) {
        assert!(self.clients[index].alive.remove(&call), "it ends twice");
        assert_eq!(self.by_call.remove(&call), Some(index));
        self.clients[index].ended += 1;
    }

    /// The next worker is done with a call.
    fn step(&mut self) {
        let Some(Reverse((at, worker))) = self.done.pop() else { panic!("nothing runs") };
        let began = self.now;
        self.now = Time(at.max(began.0));
        let (call, index) = self.sent[worker as usize].remove(0);
        let (least, most) = self.clients[index].takes;
        // About as long as it was; the core hears it from workers.
        let ran = (least + most) / 2;
        let mut out = Vec::new();
        let took = OccupiedTime { ran, whole: ran };
        let (_, alive) =
            self.core.replied(self.now, WorkerId(worker), call, took, &mut out).unwrap();
        assert_eq!(alive, self.clients[index].alive.contains(&call));
        if alive {
            self.end(call, index);
        }
        self.begin(worker);
        self.act(out);
        self.steps += 1;
        while self.core.next_tick().is_some_and(|due| due <= self.now) {
            let mut out = Vec::new();
            self.core.tick(self.now, &mut out);
            self.act(out);
        }
    }

    fn run(&mut self, steps: u64) {
        let until = self.steps + steps;
        for index in 0..self.clients.len() {
            self.submit(index);
        }
        while self.steps < until {
            self.step();
            for index in 0..self.clients.len() {
                self.submit(index);
            }
            if self.rng.u32(0..2000) == 0 {
                self.core.check();
            }
        }
        self.core.check();
    }
}

/// What each client got of the workers for its weight, relative to the mean of all.
fn shares(world: &Simulation) -> Vec<f64> {
    let each = |client: &Client| client.held as f64 / f64::from(client.quota.weight);
    let mean = world.clients.iter().map(each).sum::<f64>() / world.clients.len() as f64;
    world.clients.iter().map(|client| each(client) / mean).collect()
}

#[test]
fn owners_with_enough_to_do_share_the_workers_by_weight() {
    for (seed, owners) in [(1, 2), (2, 3), (3, 5), (4, 10)] {
        let mut rng = Rng::with_seed(seed);
        let quotas: Vec<Quota> =
            (0..owners).map(|_| Quota { weight: rng.u32(1..5), ..Quota::NONE }).collect();
        let mut world = Simulation::new(seed, rng.u32(2..9), &quotas);
        world.run(250_000);
        for share in shares(&world) {
            assert!((0.95..1.05).contains(&share), "{owners} owners: {:?}", shares(&world));
        }
    }
}

#[test]
fn no_owner_has_more_than_its_quota_and_workers_have_enough_to_do() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let workers = rng.u32(1..9);
        let quotas: Vec<Quota> = (0..rng.usize(2..=10))
            .map(|_| Quota {
                weight: rng.u32(1..5),
                running: rng.usize(1..6),
                alive: rng.usize(1..60),
            })
            .collect();
        let mut world = Simulation::new(seed, workers, &quotas);
        world.run(10_000);
        let most: usize = quotas.iter().map(|quota| quota.running.min(quota.alive)).sum();
        let busy = world.sent.iter().filter(|sent| !sent.is_empty()).count();
        assert!(busy >= most.min(workers as usize), "{busy} of {workers} workers have work");
    }
}

#[test]
fn the_end_of_an_owner_leaves_the_others_their_calls() {
    for seed in 0..20 {
        let mut world = Simulation::new(seed, 3, &[Quota::NONE; 4]);
        world.run(2_000);
        let gone = world.rng.usize(..4);
        let others: Vec<usize> = (0..4).filter(|index| *index != gone).collect();
        let alive: Vec<usize> =
            others.iter().map(|index| world.clients[*index].alive.len()).collect();
        let owner = world.clients[gone].owner;
        let mut out = Vec::new();
        world.core.remove_owner(world.now, owner, &mut out);
        world.act(out);
        assert_eq!(world.core.calls_of(owner).0, 0);
        assert!(world.clients[gone].alive.is_empty());
        let still: Vec<usize> =
            others.iter().map(|index| world.clients[*index].alive.len()).collect();
        assert_eq!(still, alive, "calls of others have ended");
        world.clients[gone].wants = 0;
        let task = Task { owner, ..Task::new(FunctionId(0), gone) };
        let refused = world.core.submit(world.now, task, &mut Vec::new());
        assert!(matches!(refused, Err(Refusal::Closed)));
        let before: Vec<u64> = others.iter().map(|index| world.clients[*index].ended).collect();
        world.run(20_000);
        for (index, before) in others.iter().zip(before) {
            assert!(world.clients[*index].ended > before + 20, "it gets no more workers");
        }
        // Its number may be another owner's by now.
        let next = world.core.add_owner(Quota::NONE);
        assert_eq!(next, owner);
    }
}

#[test]
fn who_comes_back_does_not_make_up_for_the_time_away() {
    let mut world = Simulation::new(7, 4, &[Quota::NONE; 2]);
    let wants = std::mem::replace(&mut world.clients[1].wants, 0);
    world.run(20_000);
    world.clients[1].wants = wants;
    world.clients.iter_mut().for_each(|client| client.held = 0);
    world.run(20_000);
    assert!(shares(&world).iter().all(|share| (0.9..1.1).contains(share)), "{:?}", shares(&world));
}

#[test]
fn calls_of_one_owner_go_by_priority_whatever_others_have() {
    let mut core = Core::new(Settings { workers: 1, ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    core.worker_ready(Time(0), WorkerId(0), &mut out);
    let owners = [core.add_owner(Quota::NONE), core.add_owner(Quota::NONE)];
    let mut order = Vec::new();
    let note = |out: Vec<Action<(usize, i32)>>, order: &mut Vec<(usize, i32)>| {
        let sent = out.into_iter().filter_map(|action| match action {
            Action::Send { call, payload, .. } => {
                order.push(payload);
                Some(call)
            }
            _ => None,
        });
        sent.last()
    };
    let mut running = None;
    for (index, priority) in [(0, 0), (0, 1), (0, 5), (1, -7), (1, 2)] {
        let options = CallOptions { priority, ..CallOptions::DEFAULT };
        let owner = owners[index];
        let task = Task { owner, options, ..Task::new(FunctionId(0), (index, priority)) };
        let mut out = Vec::new();
        core.submit(Time(1), task, &mut out).unwrap();
        running = note(out, &mut order).or(running);
    }
    let mut now = Time(1);
    while let Some(call) = running {
        now = Time(now.0 + 100 * MS);
        let (mut out, took) = (Vec::new(), OccupiedTime { ran: 100 * MS, whole: 100 * MS });
        core.replied(now, WorkerId(0), call, took, &mut out).unwrap();
        running = note(out, &mut order);
        core.check();
    }
    assert_eq!(order, [(0, 0), (1, 2), (0, 5), (1, -7), (0, 1)]);
}
