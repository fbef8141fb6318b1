//! Random trees of nested calls with bindings, on this machine and hosts. Functions make calls that are bound to groups,
//! wait for them in any order and run what they wait for on their own stack, as workers do. Processes are lost. Every
//! tree ends, and each run is a pure function of its seed.

use std::collections::{HashMap, VecDeque};

use gridrpc_core::{
    Action, CallId, Cause, Claim, Core, End, FunctionId, GroupId, Loss, OccupiedTime, Settings,
    Task, Time, WorkerId,
};

/// A function: what remains of it.
#[derive(Debug)]
struct Frame {
    call: u32,
    /// Calls that it makes before it waits for the next: their depth.
    to_make: Vec<u32>,
    /// Calls that it has made and not waited for.
    made: Vec<u32>,
    waits_for: Option<u32>,
}

/// A process of this machine or of a host, and the calls on its stack.
#[derive(Debug, Default)]
struct Process {
    stack: Vec<Frame>,
    dismissed: bool,
}

/// A worker of this machine, a host, or a reserved worker.
#[derive(Debug, Default)]
struct Executor {
    processes: Vec<Process>,
    /// Calls that no process has begun.
    inbox: VecDeque<(u64, CallId, u32)>,
    is_host: bool,
    /// Number of calls that have come in, and the number of the call behind its last.
    received: u64,
    begun: u64,
}

#[derive(Debug)]
struct ExpectedCall {
    id: CallId,
    depth: u32,
    group: Option<GroupId>,
    /// The call that its process has begun with, for calls of functions.
    root: Option<u32>,
    ended: bool,
}

struct Simulation {
    rng: fastrand::Rng,
    now: Time,
    core: Core<u32>,
    settings: Settings,
    executors: Vec<Executor>,
    groups: Vec<Option<GroupId>>,
    calls: Vec<ExpectedCall>,
    counts: HashMap<&'static str, u64>,
    most_relief: usize,
    dies: bool,
    /// What the core wants done, in order.
    actions: VecDeque<Action<u32>>,
    acts: bool,
}

impl Simulation {
    fn new(seed: u64, max_relief: usize) -> Simulation {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Settings {
            workers: rng.u32(0..3),
            hosts: (0..rng.usize(1..4)).map(|_| rng.u32(1..3)).collect(),
            cores: 2,
            max_relief,
            ..Settings::default()
        };
        let mut core = Core::new(settings.clone());
        let first = settings.workers;
        let hosts: Vec<WorkerId> =
            (0..settings.hosts.len() as u32).map(|host| WorkerId(first + host)).collect();
        let mut groups = vec![None];
        groups.extend((first > 0).then_some(Some(GroupId::HERE)));
        groups.extend(hosts.iter().map(|host| Some(core.add_group("one", false, vec![*host]))));
        groups.push(Some(core.add_group("all", false, hosts)));
        let dies = rng.u32(0..4) == 0;
        let mut world = Simulation {
            rng,
            now: Time(1),
            core,
            settings,
            executors: Vec::new(),
            groups,
            calls: Vec::new(),
            counts: HashMap::new(),
            most_relief: 0,
            dies,
            actions: VecDeque::new(),
            acts: false,
        };
        world.drive(Core::open);
        world
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn drive<R>(
        &mut self,
        step: impl FnOnce(&mut Core<u32>, Time, &mut Vec<Action<u32>>) -> R,
    ) -> R {
        let mut out = Vec::new();
        self.now = self.now + 1000;
        let result = step(&mut self.core, self.now, &mut out);
        self.perform_all(out);
        result
    }

    fn perform_all(&mut self, out: Vec<Action<u32>>) {
        self.actions.extend(out);
        if !std::mem::replace(&mut self.acts, true) {
            while let Some(action) = self.actions.pop_front() {
                self.perform(action);
            }
            self.acts = false;
        }
    }

    fn perform(&mut self, action: Action<u32>) {
        match action {
            Action::Start(id) => self.start(id),
            Action::Send { worker, call, payload, .. } => {
                let executor = &mut self.executors[worker.0 as usize];
                assert!(!executor.processes.is_empty(), "sent to nobody");
                executor.inbox.push_back((executor.received, call, payload));
                executor.received += 1;
            }
            Action::Retract { host, calls } => {
                let inbox = &mut self.executors[host.0 as usize].inbox;
                let back =
                    inbox.iter().map(|(_, call, _)| *call).filter(|call| calls.contains(call));
                let back: Vec<CallId> = back.collect();
                inbox.retain(|(_, call, _)| !calls.contains(call));
                self.drive(|core, now, out| core.retracted(now, host, &back, out));
            }
            Action::TakeBack { worker, head, below } => {
                let executor = &mut self.executors[worker.0 as usize];
                if head.is_none_or(|head| executor.begun > head) {
                    executor.inbox.retain(|(serial, ..)| *serial >= below);
                    let begun = executor.begun as u32;
                    self.drive(|core, now, out| core.taken_back(now, worker, begun, below, out));
                }
            }
            Action::Run { payload, .. } => {
                let stacks = self.executors.iter_mut().flat_map(|executor| &mut executor.processes);
                let waits = |stack: &[Frame]| {
                    stack.last().is_some_and(|frame| frame.waits_for == Some(payload))
                };
                let mut stacks = stacks.map(|process| &mut process.stack);
                let stack = stacks.find(|stack| waits(stack)).expect("somebody waits for it");
                stack.last_mut().expect("checked").waits_for = None;
                let frame = new_frame(&mut self.rng, payload, self.calls[payload as usize].depth);
                stack.push(frame);
            }
            Action::End { call, payload, end } => {
                assert_eq!(self.calls[payload as usize].id, call);
                self.count(match end {
                    End::NestedCallLimit(_) => "limit",
                    End::WorkerLost(_) => "lost",
                    End::Cancelled => "cancelled",
                    other => panic!("{other:?}"),
                });
                self.ended(payload);
            }
            Action::Dismiss(worker) => {
                let executor = &mut self.executors[worker.0 as usize];
                executor.processes.iter_mut().for_each(|process| process.dismissed = true);
            }
            Action::Kill(worker) => self.lose(worker),
            Action::Cancel { .. }
            | Action::Teach { .. }
            | Action::Forget(_)
            | Action::Collect(_)
            | Action::Keep { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn start(&mut self, id: WorkerId) {
        let index = id.0 as usize;
        let size = self.executors.len().max(index + 1);
        self.executors.resize_with(size, Executor::default);
        let first = self.settings.workers as usize;
        let slots = index.checked_sub(first).and_then(|host| self.settings.hosts.get(host));
        let slots = slots.copied();
        let processes = (0..slots.unwrap_or(1)).map(|_| Process::default()).collect();
        let is_host = slots.is_some();
        self.executors[index] = Executor { processes, is_host, ..Executor::default() };
        match slots {
            Some(slots) => {
                self.drive(|core, _, out| core.host_joined(id, slots, out));
                self.drive(|core, now, out| core.host_has(now, id, slots, slots, out));
            }
            None => self.drive(|core, now, out| core.worker_ready(now, id, out)),
        }
        let extra = self.executors.len().saturating_sub(first + self.settings.hosts.len());
        self.most_relief = self.most_relief.max(extra);
    }

    /// A call has ended, however: whoever waits for it continues, and the calls that its function has made end.
    fn ended(&mut self, payload: u32) {
        self.calls[payload as usize].ended = true;
        let frames = self.executors.iter_mut().flat_map(|executor| &mut executor.processes);
        for frame in frames.filter_map(|process| process.stack.last_mut()) {
            if frame.waits_for == Some(payload) {
                frame.waits_for = None;
            }
        }
        let orphans = self.calls.iter().filter(|call| call.root == Some(payload) && !call.ended);
        let orphans: Vec<CallId> = orphans.map(|call| call.id).collect();
        for id in orphans {
            self.drive(|core, now, out| core.cancel(now, id, out));
        }
    }

    fn lose(&mut self, id: WorkerId) {
        let executor = std::mem::take(&mut self.executors[id.0 as usize]);
        let begun = (!executor.is_host).then_some(executor.begun as u32);
        let loss = Loss {
            worker: id.0,
            pid: 0,
            host: "node".into(),
            cause: Cause::Exit(1),
            stderr: String::new(),
        };
        let lost: Vec<WorkerId> = (0..self.executors.len() as u32)
            .map(WorkerId)
            .filter(|guest| executor.is_host && self.core.home(*guest) == Some(id))
            .collect();
        for guest in lost {
            self.executors[guest.0 as usize] = Executor::default();
        }
        self.drive(|core, now, out| core.worker_lost(now, id, begun, loss, out));
    }

    fn submit(&mut self, depth: u32, root: Option<u32>) -> u32 {
        let payload = self.calls.len() as u32;
        let group = self.groups[self.rng.usize(..self.groups.len())];
        let mut task = Task::new(FunctionId(self.rng.u32(0..2)), payload);
        task.options.group = group;
        task.options.idempotent = self.rng.bool();
        let mut out = Vec::new();
        self.now = self.now + 1000;
        let id = self.core.submit(self.now, task, &mut out).expect("it is taken");
        self.calls.push(ExpectedCall { id, depth, group, root, ended: false });
        self.perform_all(out);
        payload
    }

    /// Lets one process do one thing. Returns false if none can.
    fn step(&mut self) -> bool {
        let mut able = Vec::new();
        for (index, executor) in self.executors.iter().enumerate() {
            for (place, process) in executor.processes.iter().enumerate() {
                let can = match process.stack.last() {
                    Some(frame) => frame.waits_for.is_none(),
                    None => !executor.inbox.is_empty() || process.dismissed,
                };
                if can {
                    able.push((index, place));
                }
            }
        }
        let Some((index, place)) = self.rng.choice(able) else { return false };
        let id = WorkerId(index as u32);
        if self.dies && self.rng.u32(0..60) == 0 {
            self.count("deaths");
            self.lose(id);
            return true;
        }
        let executor = &mut self.executors[index];
        let process = &mut executor.processes[place];
        let Some(frame) = process.stack.last_mut() else {
            match executor.inbox.pop_front() {
                Some((serial, _, payload)) => {
                    executor.begun = serial + 1;
                    let depth = self.calls[payload as usize].depth;
                    let frame = new_frame(&mut self.rng, payload, depth);
                    executor.processes[place].stack.push(frame);
                }
                None => self.lose(id),
            }
            return true;
        };
        if let Some(depth) = frame.to_make.pop() {
            let root = process.stack[0].call;
            self.drive(|core, _, out| core.nests(id, out));
            let made = self.submit(depth, Some(root));
            // Its process may have been lost.
            let process = self.executors[index].processes.get_mut(place);
            if let Some(frame) = process.and_then(|process| process.stack.last_mut()) {
                frame.made.push(made);
            }
        } else if !frame.made.is_empty() {
            let made = frame.made.swap_remove(self.rng.usize(..frame.made.len()));
            frame.waits_for = Some(made);
            let call = self.calls[made as usize].id;
            match self.drive(|core, now, out| core.claim(now, call, id, out)) {
                Claim::Run(payload) => {
                    assert!(self.may_run(payload, index), "it is bound elsewhere");
                    let frame =
                        new_frame(&mut self.rng, payload, self.calls[payload as usize].depth);
                    let stack = &mut self.executors[index].processes[place].stack;
                    stack.last_mut().expect("it waits").waits_for = None;
                    stack.push(frame);
                    self.count("run by who waits");
                }
                Claim::Wait => self.count("waited for"),
                Claim::Ended => {
                    let stack = &mut self.executors[index].processes[place].stack;
                    stack.last_mut().expect("it waits").waits_for = None;
                }
            }
        } else {
            let frame = process.stack.pop().expect("checked");
            if process.stack.is_empty() {
                let took = OccupiedTime { ran: 1000, whole: 1000 };
                let call = self.calls[frame.call as usize].id;
                let answered = self.drive(|core, now, out| core.replied(now, id, call, took, out));
                let (_, live) = answered.expect("it runs this call");
                if live {
                    self.ended(frame.call);
                    self.count("answered");
                }
            } else {
                self.calls[frame.call as usize].ended = true;
            }
        }
        true
    }

    fn may_run(&self, payload: u32, index: usize) -> bool {
        let id = WorkerId(index as u32);
        let home = self.core.home(id).unwrap_or(id);
        let is_here = !self.executors[home.0 as usize].is_host;
        match self.calls[payload as usize].group {
            None => true,
            Some(GroupId::HERE) => is_here,
            Some(group) => self.core.is_member(home, group),
        }
    }
}

fn new_frame(rng: &mut fastrand::Rng, call: u32, depth: u32) -> Frame {
    let calls = if depth == 0 { 0 } else { rng.u32(0..4) };
    let to_make = (0..calls).map(|_| rng.u32(0..depth)).collect();
    Frame { call, to_make, made: Vec::new(), waits_for: None }
}

fn run(seeds: std::ops::Range<u64>, max_relief: usize) -> HashMap<&'static str, u64> {
    let mut totals = HashMap::new();
    for seed in seeds {
        let mut world = Simulation::new(seed, max_relief);
        for _ in 0..world.rng.u32(1..8) {
            let depth = world.rng.u32(0..6);
            world.submit(depth, None);
        }
        let mut steps = 0;
        while world.core.live() > 0 {
            steps += 1;
            assert!(steps < 100_000, "seed {seed}: it never ends");
            if !world.step() {
                let due = world.core.next_tick();
                world.now = due.unwrap_or_else(|| panic!("seed {seed}: all wait for each other"));
                world.drive(|core, now, out| core.tick(now, out));
            }
            world.core.check();
        }
        while world.step() {}
        assert!(world.most_relief <= max_relief + 64, "seed {seed}");
        if world.most_relief > 0 {
            world.count("relief");
        }
        for (what, count) in world.counts {
            *totals.entry(what).or_default() += count;
        }
    }
    totals
}

#[test]
fn trees_of_bound_calls_end() {
    let totals = run(0..600, 64);
    for what in ["answered", "run by who waits", "waited for", "relief", "lost", "deaths"] {
        assert!(totals.get(what).copied().unwrap_or(0) > 30, "hardly any {what}: {totals:?}");
    }
    assert!(!totals.contains_key("limit"), "{totals:?}");
}

#[test]
fn they_do_so_with_one_extra_worker_or_none() {
    for max_relief in [0, 1] {
        let totals = run(0..300, max_relief);
        assert!(totals["limit"] > 10, "{totals:?}");
    }
}
