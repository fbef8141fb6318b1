//! A grid with hosts in a random world: messages take their time and arrive in order, hosts vanish with
//! all that is on the way and come back, workers come and go, calls are cancelled, time out and are wanted
//! back, and need results that have stayed on hosts; some are bound to groups, which are hosts or this
//! machine. Each run is a pure function of its seed; every invariant is checked after every step.

use std::collections::{HashMap, HashSet, VecDeque};

use std::time::Duration;

use gridrpc_core::{
    Action, Adaptive, CallId, CallOptions, Cause, Claim, Core, End, FunctionId, GroupId, Loss,
    MEMORY, OccupiedTime, Policy, Refusal, Reservation, ReservationState, Resources, Settings,
    Task, Time, WorkerId,
};

use crate::policies::{RandomPolicy, RoundRobin};

/// What the client says to a host.
#[derive(Debug)]
enum Down {
    Call(CallId, u32, FunctionId),
    Cancel(CallId),
    Retract(Vec<CallId>),
    Reserve(WorkerId),
    ReservedCall(WorkerId, CallId, u32),
    Dismiss(WorkerId),
    Keep(CallId),
    /// Nothing comes from this host.
    Drop(usize),
}

/// What a host says to the client.
#[derive(Debug)]
enum Up {
    Workers(u32),
    Reply(CallId, OccupiedTime),
    /// The result stays there.
    Kept(CallId, OccupiedTime),
    Ended(CallId, End),
    Retracted(Vec<CallId>),
    Reserved(WorkerId),
    ReservedReply(WorkerId, CallId),
    ReservedLost(WorkerId),
    /// A result has not come from this host.
    Missing(usize),
}

/// A host: its agent's state, and messages in transit.
#[derive(Default)]
struct Host {
    up: bool,
    joined: bool,
    /// Calls that wait for one of its workers.
    queue: VecDeque<(CallId, u32, FunctionId)>,
    /// What its workers run.
    running: Vec<(CallId, u32, FunctionId)>,
    workers: usize,
    /// Processors of each of them; 0 means 1.
    cores: u32,
    memory: u64,
    down: VecDeque<Down>,
    way_up: VecDeque<Up>,
    /// Calls whose results are to stay there.
    to_keep: HashSet<CallId>,
    /// Calls that wait for results of other hosts, and whether one will not come.
    lacking: Vec<((CallId, u32, FunctionId), bool)>,
    /// Reserved workers, and their calls.
    guests: HashMap<WorkerId, VecDeque<(CallId, u32)>>,
}

/// What the caller knows of one call.
struct ExpectedCall {
    id: CallId,
    idempotent: bool,
    on: Option<Reservation>,
    group: Option<GroupId>,
    ran: u32,
    ended: bool,
    function: FunctionId,
    /// How many it asks for; 1 if it is for a reserved worker.
    cores: u32,
    /// Graphics processors and memory that it asks for; none if it is for a reserved worker.
    requested: [u64; 2],
    /// Its number in the list of calls, for each call whose result it needs.
    needs: Vec<u32>,
    result: ResultAt,
    /// Its arguments lie on this host, in part, or come to it.
    near: Option<usize>,
    /// Their source hosts.
    from: HashSet<usize>,
    /// It was requested again, as its result was lost with a host.
    repeated: bool,
}

/// Where the result of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultAt {
    Nowhere,
    Here,
    Kept(usize),
}

struct Simulation<P> {
    rng: fastrand::Rng,
    now: Time,
    core: Core<u32, P>,
    settings: Settings,
    hosts: Vec<Host>,
    /// Graphics processors of each host, and of this machine, which has 2 of memory.
    gpus: Vec<u64>,
    gpus_here: u64,
    /// Processes of this machine: calls that each has.
    processes: HashMap<WorkerId, VecDeque<(CallId, u32)>>,
    starting: Vec<WorkerId>,
    calls: Vec<ExpectedCall>,
    reserved: Vec<Reservation>,
    to_gather: Vec<(CallId, u32)>,
    /// Host groups, whether this machine belongs to each, and the hosts of each; this machine's is not among them.
    groups: HashMap<GroupId, (bool, HashSet<WorkerId>)>,
    counts: HashMap<&'static str, u64>,
    /// Most calls are bound to groups and need results, and none asks for more than a place of a host.
    needy: bool,
}

fn loss(worker: u32) -> Loss {
    Loss { worker, pid: 0, host: "node".into(), cause: Cause::Exit(1), stderr: String::new() }
}

fn resources([gpus, memory]: [u64; 2]) -> Resources {
    Resources::new([("gpu".into(), gpus), (MEMORY.into(), memory)])
}

impl<P: Policy> Simulation<P> {
    fn new(seed: u64, policy: impl FnOnce(&Settings) -> P) -> Simulation<P> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let gpus_here = rng.u64(0..3);
        let settings = Settings {
            resources: resources([gpus_here, 2]),
            workers: if rng.bool() { 0 } else { rng.u32(0..3) },
            hosts: (0..rng.usize(1..5)).map(|_| rng.u32(0..4)).collect(),
            cores: 2,
            retries: rng.u32(0..3),
            // Calls are claimed at random here; tests/nested.rs has real trees.
            max_relief: 0,
            ..Settings::default()
        };
        let hosts = settings.hosts.iter().map(|_| Host::default()).collect();
        let gpus = settings.hosts.iter().map(|_| rng.u64(0..4)).collect();
        let mut world = Simulation {
            rng,
            now: Time(1),
            core: Core::with_policy(settings.clone(), policy(&settings)),
            settings,
            hosts,
            gpus,
            gpus_here,
            processes: HashMap::new(),
            starting: Vec::new(),
            calls: Vec::new(),
            reserved: Vec::new(),
            to_gather: Vec::new(),
            groups: HashMap::new(),
            counts: HashMap::new(),
            needy: false,
        };
        for index in 0..world.hosts.len() {
            // How much memory there is, they will tell.
            let (id, gpus) = (world.id(index), world.gpus[index]);
            world.core.host_offers(id, "some", &resources([gpus, 0]));
        }
        world.drive(|core, now, out| core.open(now, out));
        world.add_group();
        world
    }

    /// Some of the hosts are a group from now on; they may be part of others as well.
    fn add_group(&mut self) {
        let mut hosts: Vec<WorkerId> = (0..self.hosts.len()).map(|host| self.id(host)).collect();
        self.rng.shuffle(&mut hosts);
        hosts.truncate(self.rng.usize(1..=hosts.len()));
        let here = self.settings.workers > 0 && self.rng.bool();
        let id = self.core.add_group("some", here, hosts.clone());
        self.groups.insert(id, (here, hosts.into_iter().collect()));
    }

    fn some_group(&mut self) -> Option<GroupId> {
        let mut groups: Vec<GroupId> = self.groups.keys().copied().collect();
        groups.sort();
        groups.extend((self.settings.workers > 0).then_some(GroupId::HERE));
        self.rng.choice(groups)
    }

    /// A call is nowhere but on the group that it is bound to.
    fn check_group(&self, payload: u32, worker: WorkerId) {
        match self.calls[payload as usize].group {
            None => {}
            Some(GroupId::HERE) => assert!(self.host(worker).is_none(), "it is bound here"),
            Some(group) => {
                let at = self.core.home(worker).unwrap_or(worker);
                let (here, hosts) = &self.groups[&group];
                let is_of_it = hosts.contains(&at) || *here && self.host(at).is_none();
                assert!(is_of_it, "{worker:?} is not of {group:?}");
            }
        }
    }

    fn drive<R>(
        &mut self,
        step: impl FnOnce(&mut Core<u32, P>, Time, &mut Vec<Action<u32>>) -> R,
    ) -> R {
        let mut out = Vec::new();
        let result = step(&mut self.core, self.now, &mut out);
        out.into_iter().for_each(|action| self.perform(action));
        result
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn host(&self, id: WorkerId) -> Option<usize> {
        let index = (id.0 as usize).checked_sub(self.settings.workers as usize)?;
        (index < self.hosts.len()).then_some(index)
    }

    fn id(&self, host: usize) -> WorkerId {
        WorkerId(self.settings.workers + host as u32)
    }

    /// The host that a reserved worker lives on.
    fn home(&self, id: WorkerId) -> Option<usize> {
        self.core.home(id).and_then(|home| self.host(home))
    }

    fn tell(&mut self, host: usize, message: Down) {
        assert!(self.hosts[host].joined, "told before it had joined: {message:?}");
        self.hosts[host].down.push_back(message);
    }

    fn perform(&mut self, action: Action<u32>) {
        match action {
            Action::Start(id) => match (self.host(id), self.home(id)) {
                (Some(host), _) => {
                    assert!(!self.hosts[host].up, "started twice");
                    self.hosts[host] = Host { up: true, ..Host::default() };
                }
                (None, Some(host)) => self.tell(host, Down::Reserve(id)),
                (None, None) => self.starting.push(id),
            },
            Action::Send { worker, call, payload, function, .. } => {
                assert!(!self.calls[payload as usize].ended, "sent after its end");
                self.has_its_arguments(worker, payload);
                self.check_group(payload, worker);
                match (self.host(worker), self.home(worker)) {
                    (Some(host), _) => self.tell(host, Down::Call(call, payload, function)),
                    (None, Some(host)) => {
                        self.tell(host, Down::ReservedCall(worker, call, payload));
                    }
                    (None, None) => {
                        let process = self.processes.get_mut(&worker).expect("a process");
                        process.push_back((call, payload));
                    }
                }
            }
            Action::Cancel { worker, call } => {
                if let Some(host) = self.host(worker) {
                    self.tell(host, Down::Cancel(call));
                }
            }
            Action::Retract { host, calls } => {
                let host = self.host(host).expect("a host");
                self.count("wanted back");
                self.tell(host, Down::Retract(calls));
            }
            Action::Dismiss(id) => {
                if let Some(host) = self.home(id)
                    && self.hosts[host].joined
                {
                    self.tell(host, Down::Dismiss(id));
                } else if self.home(id).is_some() {
                    // There is nothing yet that could be given up: it is reported when it is requested.
                    self.drive(|core, now, out| core.worker_lost(now, id, None, loss(id.0), out));
                } else if self.processes.remove(&id).is_some() {
                    self.drive(|core, now, out| {
                        core.worker_lost(now, id, Some(0), loss(id.0), out);
                    });
                }
            }
            Action::Kill(id) => {
                assert!(self.host(id).is_none() && self.home(id).is_none());
                let calls = self.processes.remove(&id).expect("a process");
                for (_, payload) in calls {
                    self.calls[payload as usize].ran += 1;
                }
                self.drive(|core, now, out| core.worker_lost(now, id, None, loss(id.0), out));
            }
            Action::End { payload, end, .. } => self.ended(payload, &end),
            Action::Keep { host, call } => {
                let host = self.host(host).expect("a host");
                self.tell(host, Down::Keep(call));
            }
            Action::Gather { call, payload } => self.to_gather.push((call, payload)),
            Action::Run { payload, worker, .. } => {
                assert_eq!(self.calls[payload as usize].near, None, "its arguments are elsewhere");
                self.check_group(payload, worker);
                self.calls[payload as usize].ended = true;
                self.count("run by who waits");
            }
            Action::Teach { .. }
            | Action::Widen { .. }
            | Action::Forget(_)
            | Action::Collect(_)
            | Action::MeasureCpu { .. }
            | Action::TakeBack { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn ended(&mut self, payload: u32, end: &End) {
        let wanted = &mut self.calls[payload as usize];
        assert!(!wanted.ended, "ended twice");
        wanted.ended = true;
        self.count(match end {
            End::WorkerLost(_) => "lost",
            End::Cancelled => "cancelled",
            End::DeadlineExceeded(_) => "deadline",
            End::RunLimit(_) => "run limit",
            End::NoWorkers(_) => "no workers",
            End::NoServer(..) => "no server",
            End::NestedCallLimit(_) => "nested call limit",
            End::Closed => "closed",
            End::DependencyFailed(_) => "dependency failed",
            End::TooManyCores(_) => "too wide",
            End::NoFittingHost(_) => "unfit",
            other => panic!("{other:?}"),
        });
    }

    fn returned(&mut self, worker: WorkerId, call: CallId, took: OccupiedTime) {
        let (payload, live) =
            self.drive(|core, now, out| core.replied(now, worker, call, took, out)).expect("asked");
        let wanted = &mut self.calls[payload as usize];
        assert_eq!(live, !wanted.ended);
        wanted.ended = true;
        if live {
            wanted.result = ResultAt::Here;
        }
        let bound = wanted.group.is_some();
        self.count(if bound { "bound returned" } else { "returned" });
    }

    /// A host has answered a call and keeps its result.
    fn held(&mut self, index: usize, call: CallId, took: OccupiedTime) {
        let host = self.id(index);
        let payload = self.core.payload(call).copied();
        self.returned(host, call, took);
        if let Some(payload) = payload {
            self.calls[payload as usize].result = ResultAt::Kept(index);
            self.count("kept");
        }
    }

    /// Results that a call needs are here, or where it is sent.
    fn has_its_arguments(&self, worker: WorkerId, payload: u32) {
        let call = &self.calls[payload as usize];
        if let Some(host) = call.near {
            assert_eq!(self.host(worker), Some(host), "its arguments are not there");
        }
        for need in &call.needs {
            let has = match (self.calls[*need as usize].result, call.near) {
                (ResultAt::Here, _) => true,
                (ResultAt::Kept(from), Some(to)) => self.core.reach(self.id(from), self.id(to)),
                _ => false,
            };
            assert!(has, "{:?} for {:?}", self.calls[*need as usize].result, call.near);
        }
    }

    /// Puts the arguments of calls together.
    fn gather(&mut self) {
        while let Some((id, payload)) = self.to_gather.pop() {
            let needs = self.calls[payload as usize].needs.clone();
            self.calls[payload as usize].near = None;
            self.calls[payload as usize].from.clear();
            if self.calls[payload as usize].ended {
                continue;
            }
            let again = |need: &&u32| !self.calls[**need as usize].ended;
            let again: Vec<CallId> =
                needs.iter().filter(again).map(|need| self.calls[*need as usize].id).collect();
            if !again.is_empty() {
                self.drive(|core, _, out| core.blocked_again(id, &again, out));
                continue;
            }
            let mut places = needs.iter().map(|need| (*need, self.calls[*need as usize].result));
            if let Some((need, _)) = places.clone().find(|(_, place)| *place == ResultAt::Nowhere) {
                let failed = self.calls[need as usize].id;
                self.drive(|core, now, out| core.dependency_failed(now, id, failed, out));
                continue;
            }
            let held = places.find_map(|(_, place)| match place {
                ResultAt::Kept(host) => Some(host),
                _ => None,
            });
            let bytes = self.rng.u64(0..1_000_000);
            let place = held.and_then(|at| self.core.place_of_arguments(id, self.id(at), bytes));
            let reaches = |from: usize| place.is_some_and(|to| self.core.reach(self.id(from), to));
            let stays = |need: &u32| matches!(self.calls[*need as usize].result, ResultAt::Kept(from) if reaches(from));
            let to_fetch: Vec<u32> = needs.iter().copied().filter(|need| !stays(need)).collect();
            self.fetch(to_fetch);
            let Some(at) = place else {
                self.drive(|core, now, out| core.gathered(now, id, out));
                continue;
            };
            let host = self.host(at).expect("a host");
            let others = needs.iter().filter_map(|need| match self.calls[*need as usize].result {
                ResultAt::Kept(from) if from != host => Some(from),
                _ => None,
            });
            self.calls[payload as usize].from = others.collect();
            self.calls[payload as usize].near = Some(host);
            let waits = self.drive(|core, now, out| core.gathered_near(now, id, at, bytes, out));
            assert!(waits, "nothing has happened since it was given this place");
            let moved = held != Some(host);
            self.count(if moved {
                "sent where its arguments come"
            } else {
                "sent to its arguments"
            });
        }
    }

    fn fetch(&mut self, calls: Vec<u32>) {
        for call in calls {
            self.calls[call as usize].result = ResultAt::Here;
        }
    }

    /// Results that were on a host are gone: those of idempotent calls are made again.
    fn lose_results(&mut self, index: usize) {
        for payload in 0..self.calls.len() {
            let call = &mut self.calls[payload];
            if call.result != ResultAt::Kept(index) {
                continue;
            }
            call.result = ResultAt::Nowhere;
            if !call.idempotent || !call.needs.is_empty() {
                continue;
            }
            let mut task = Task::new(call.function, payload as u32);
            task.options.idempotent = true;
            task.options.group = call.group;
            task.options.cores = call.cores;
            task.options.resources = resources(call.requested);
            (call.ended, call.repeated) = (false, true);
            let taken = self.drive(|core, now, out| core.submit(now, task, out));
            match taken {
                Ok(id) => self.calls[payload].id = id,
                Err(_) => self.calls[payload].ended = true,
            }
            self.count("made again");
        }
    }

    fn submit(&mut self) {
        let mut task = Task::new(FunctionId(self.rng.u32(0..3)), self.calls.len() as u32);
        task.options.idempotent = self.rng.bool();
        task.options.deadline = (!self.needy && self.rng.u32(0..5) == 0)
            .then(|| Duration::from_nanos(self.rng.u64(1..2_000_000)));
        let ready = |of: &&Reservation| {
            matches!(self.core.standing(**of), ReservationState::Ready | ReservationState::Starting)
        };
        let needy = self.needy;
        let reserved = self.reserved.iter().filter(|of| !needy && ready(of));
        let on: Vec<Reservation> = reserved.copied().collect();
        task.options.on =
            (!on.is_empty() && self.rng.bool()).then(|| on[self.rng.usize(..on.len())]);
        let is_bound = if needy { self.rng.u32(0..3) > 0 } else { self.rng.u32(0..3) == 0 };
        task.options.group = if is_bound { self.some_group() } else { None };
        task.options.priority = if self.rng.u32(0..4) == 0 { self.rng.i32(-2..3) } else { 0 };
        task.options.cores = if !needy && self.rng.u32(0..5) == 0 { self.rng.u32(2..7) } else { 1 };
        let mut requested = [0, 0];
        if !needy && self.rng.u32(0..4) == 0 {
            requested = [self.rng.u64(0..5), self.rng.u64(0..5)];
            task.options.resources = resources(requested);
        }
        if self.rng.u32(0..10) == 0 {
            task.options.expected = Some(Duration::from_nanos(self.rng.u64(0..u64::MAX)));
        }
        let (cores, requested) =
            if task.options.on.is_some() { (1, [0, 0]) } else { (task.options.cores, requested) };
        let group = task.options.group.filter(|_| task.options.on.is_none());
        let (idempotent, on) =
            (task.options.idempotent && task.options.on.is_none(), task.options.on);
        // Its number is known before it may end in the course of being taken.
        let id = CallId(u64::MAX);
        let mut needs: Vec<u32> = Vec::new();
        if needy {
            // Calls that may still have a result, so that one failure does not end all others.
            let is_of_use =
                |call: &ExpectedCall| !call.ended || matches!(call.result, ResultAt::Kept(_));
            let from = self.calls.len().saturating_sub(8);
            let some = (from..self.calls.len()).filter(|call| is_of_use(&self.calls[*call]));
            let some: Vec<u32> = some.map(|call| call as u32).collect();
            needs.extend((0..2).filter_map(|_| self.rng.choice(&some)).copied());
        } else if self.rng.u32(0..3) == 0 && !self.calls.is_empty() {
            let from = self.calls.len().saturating_sub(8);
            needs.extend(
                (0..self.rng.u32(1..3)).map(|_| self.rng.usize(from..self.calls.len()) as u32),
            );
        }
        let after: Vec<CallId> = needs.iter().map(|need| self.calls[*need as usize].id).collect();
        self.calls.push(ExpectedCall {
            id,
            idempotent,
            on,
            group,
            ran: 0,
            ended: false,
            function: task.function,
            cores,
            requested,
            needs,
            result: ResultAt::Nowhere,
            near: None,
            from: HashSet::new(),
            repeated: false,
        });
        let taken = self.drive(|core, now, out| match after.is_empty() {
            true => core.submit(now, task, out),
            false => core.submit_after(now, task, &after, out),
        });
        match taken {
            Ok(id) => self.calls.last_mut().expect("it was pushed").id = id,
            Err(Refusal::NoWorkers(_)) => {
                self.calls.pop();
            }
            Err(Refusal::NoServer(..)) => {
                assert!(group.is_some());
                self.calls.pop();
                self.count("no server");
            }
            Err(Refusal::TooManyCores(_)) => {
                assert!(cores > 1);
                self.calls.pop();
                self.count("too wide");
            }
            Err(Refusal::NoFittingHost(_)) => {
                assert!(requested != [0, 0]);
                self.calls.pop();
                self.count("unfit");
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// One thing happens on the way to a host, in it or on the way back.
    fn host_step(&mut self, index: usize) {
        let id = self.id(index);
        if !self.hosts[index].up {
            return;
        }
        if !self.hosts[index].joined {
            match self.rng.u32(0..8) {
                0 => self.vanish(index),
                1..4 => {
                    self.hosts[index].joined = true;
                    let wanted = self.rng.u32(1..4);
                    self.tells_memory(index);
                    self.drive(|core, _, out| core.host_joined(id, wanted, out));
                    let away = self.rng.u64(0..100_000);
                    self.core.host_is_away(id, away);
                    let cores = self.rng.u32(1..3);
                    self.hosts[index].cores = cores;
                    self.core.host_has_cores(id, cores);
                    if self.rng.u32(0..4) > 0 {
                        self.core.host_exchanges(id);
                    }
                }
                _ => {}
            }
            return;
        }
        match self.rng.u32(0..40) {
            0 => self.vanish(index),
            1..3 => {
                let host = &mut self.hosts[index];
                host.workers = self.rng.usize(0..4);
                host.way_up.push_back(Up::Workers(host.workers as u32));
            }
            3..15 => self.arrives_there(index),
            15..27 => self.arrives_here(index),
            _ => self.works(index),
        }
    }

    fn tells_memory(&mut self, index: usize) {
        let memory = self.rng.u64(1..5);
        self.hosts[index].memory = memory;
        let (id, gpus) = (self.id(index), self.gpus[index]);
        self.core.host_offers(id, "some", &resources([gpus, memory]));
    }

    /// Running calls fit the available resources.
    fn fits(&mut self, running: &[u32], has: [u64; 2]) {
        let requested = running.iter().map(|payload| self.calls[*payload as usize].requested);
        let taken =
            requested.fold([0, 0], |sum, requested| [sum[0] + requested[0], sum[1] + requested[1]]);
        assert!(taken[0] <= has[0] && taken[1] <= has[1], "{taken:?} of {has:?}");
        if taken != [0, 0] {
            self.count("with resources");
        }
    }

    fn vanish(&mut self, index: usize) {
        let host = std::mem::take(&mut self.hosts[index]);
        // What was on its way may have run or not; what its workers were at has.
        let guests = host.guests.into_values().flatten().map(|(_, payload)| payload);
        let running = host.running.iter().map(|(_, payload, _)| *payload);
        let lacking = host.lacking.iter().map(|(call, _)| call);
        let queued = host.queue.iter().chain(lacking).map(|(_, payload, _)| *payload);
        let down = host.down.iter().filter_map(|message| match message {
            Down::Call(_, payload, _) => Some(*payload),
            _ => None,
        });
        for payload in running.chain(guests).chain(queued).chain(down) {
            self.calls[payload as usize].ran += 1;
        }
        self.count("vanished");
        let id = self.id(index);
        self.drive(|core, now, out| core.worker_lost(now, id, None, loss(id.0), out));
        self.lose_results(index);
        for other in 0..self.hosts.len() {
            let lacks = |payload: u32| self.calls[payload as usize].from.contains(&index);
            let lost = self.hosts[other].lacking.iter().map(|((_, payload, _), _)| lacks(*payload));
            if let Some(first) = lost.clone().position(|lost| lost) {
                self.fails_to_come(other, first, index);
            }
        }
    }

    /// A host gets no more of what a call waits for there, nor do others that need something of the same host.
    fn fails_to_come(&mut self, index: usize, at: usize, from: usize) {
        let host = &mut self.hosts[index];
        host.lacking[at].1 = true;
        for ((_, payload, _), fails) in &mut host.lacking {
            *fails |= self.calls[*payload as usize].from.contains(&from);
        }
        host.way_up.push_back(Up::Missing(from));
    }

    /// Results of other hosts come, or fail to come.
    fn exchanges(&mut self, index: usize) {
        let waiting = self.hosts[index].lacking.iter().position(|(_, fails)| !fails);
        let Some(at) = waiting else { return };
        let ((call, payload, function), _) = self.hosts[index].lacking[at];
        let from: Vec<usize> = self.calls[payload as usize].from.iter().copied().collect();
        match from.iter().min() {
            Some(from) if self.rng.bool() => self.fails_to_come(index, at, *from),
            _ => {
                let host = &mut self.hosts[index];
                host.lacking.remove(at);
                host.queue.push_back((call, payload, function));
            }
        }
    }

    fn arrives_there(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        match host.down.pop_front() {
            None => {}
            Some(Down::Call(call, payload, function)) => {
                if self.calls[payload as usize].from.is_empty() {
                    host.queue.push_back((call, payload, function));
                } else {
                    host.lacking.push(((call, payload, function), false));
                }
            }
            Some(Down::Cancel(call)) => {
                let count =
                    |host: &Host| host.queue.len() + host.running.len() + host.lacking.len();
                let had = count(host);
                host.queue.retain(|(other, _, _)| *other != call);
                host.running.retain(|(other, _, _)| *other != call);
                host.lacking.retain(|((other, _, _), _)| *other != call);
                if count(host) < had {
                    host.way_up.push_back(Up::Ended(call, End::Cancelled));
                }
            }
            Some(Down::Retract(calls)) => {
                let is_wanted = |call: &(CallId, u32, FunctionId)| calls.contains(&call.0);
                let (back, queue): (VecDeque<_>, _) = host.queue.drain(..).partition(is_wanted);
                host.queue = queue;
                let lacking = host.lacking.extract_if(.., |(call, _)| is_wanted(call));
                let back = back.into_iter().chain(lacking.map(|(call, _)| call));
                let back = back.map(|(call, _, _)| call).collect();
                host.way_up.push_back(Up::Retracted(back));
            }
            Some(Down::Drop(from)) => {
                let calls = &self.calls;
                let lacks = |payload: u32| calls[payload as usize].from.contains(&from);
                let back = host.lacking.extract_if(.., |((_, payload, _), _)| lacks(*payload));
                let back = back.map(|((call, _, _), _)| call).collect();
                host.way_up.push_back(Up::Retracted(back));
            }
            Some(Down::Reserve(guest)) => {
                host.guests.insert(guest, VecDeque::new());
                host.way_up.push_back(Up::Reserved(guest));
            }
            Some(Down::ReservedCall(guest, call, payload)) => {
                if let Some(calls) = host.guests.get_mut(&guest) {
                    calls.push_back((call, payload));
                }
            }
            Some(Down::Keep(call)) => {
                host.to_keep.insert(call);
            }
            Some(Down::Dismiss(guest)) => {
                let had = host.guests.remove(&guest);
                host.way_up.extend(had.map(|_| Up::ReservedLost(guest)));
            }
        }
    }

    fn arrives_here(&mut self, index: usize) {
        let id = self.id(index);
        match self.hosts[index].way_up.pop_front() {
            None => {}
            Some(Up::Workers(ready)) => {
                let wanted = ready.max(1);
                self.drive(|core, now, out| core.host_has(now, id, ready, wanted, out));
            }
            Some(Up::Reply(call, took)) => self.returned(id, call, took),
            Some(Up::Kept(call, took)) => self.held(index, call, took),
            Some(Up::Ended(call, end)) => {
                let ended = self.drive(|core, now, out| core.host_ended(now, id, call, end, out));
                ended.expect("it had the call");
            }
            Some(Up::Retracted(calls)) => {
                if !calls.is_empty() {
                    self.count("given back");
                }
                self.drive(|core, now, out| core.retracted(now, id, &calls, out));
            }
            Some(Up::Missing(other)) => {
                self.count("results not exchanged");
                let from = self.id(other);
                self.drive(|core, now, out| core.not_exchanged(now, from, id, out));
                self.tell(index, Down::Drop(other));
            }
            Some(Up::Reserved(guest)) => {
                self.drive(|core, now, out| core.worker_ready(now, guest, out));
            }
            Some(Up::ReservedReply(guest, call)) => {
                self.returned(guest, call, OccupiedTime { ran: 1000, whole: 1000 });
            }
            Some(Up::ReservedLost(guest)) => {
                self.drive(|core, now, out| core.worker_lost(now, guest, None, loss(9), out));
            }
        }
    }

    fn works(&mut self, index: usize) {
        self.exchanges(index);
        let host = &mut self.hosts[index];
        let calls = &self.calls;
        let slots = |host: &Host, payload: u32| {
            let cores = calls[payload as usize].cores;
            (cores.div_ceil(host.cores.max(1)) as usize).min(host.workers)
        };
        while let Some((_, payload, _)) = host.queue.front() {
            let wanted = slots(host, *payload);
            let taken: usize = host.running.iter().map(|call| slots(host, call.1)).sum();
            if host.workers == 0 || taken + wanted > host.workers {
                break;
            }
            let next = host.queue.pop_front();
            host.running.extend(next);
            self.counts.entry("wide").and_modify(|n| *n += u64::from(wanted > 1)).or_insert(0);
        }
        let running: Vec<u32> = host.running.iter().map(|call| call.1).collect();
        let has = [self.gpus[index], host.memory];
        self.fits(&running, has);
        let host = &mut self.hosts[index];
        if !host.running.is_empty() {
            let at = self.rng.usize(..host.running.len());
            let (call, payload, function) = host.running.swap_remove(at);
            self.calls[payload as usize].ran += 1;
            let ran = [1_000, 100_000, 10_000_000][function.0 as usize];
            if self.rng.u32(0..20) == 0 {
                host.way_up.push_back(Up::Ended(call, End::WorkerLost(loss(5).into())));
            } else if host.to_keep.remove(&call) {
                host.way_up.push_back(Up::Kept(call, OccupiedTime { ran, whole: ran }));
            } else {
                host.way_up.push_back(Up::Reply(call, OccupiedTime { ran, whole: ran }));
            }
        }
        let guests: Vec<WorkerId> = host.guests.keys().copied().collect();
        for guest in guests {
            let next = host.guests.get_mut(&guest).and_then(VecDeque::pop_front);
            if let Some((call, payload)) = next {
                self.calls[payload as usize].ran += 1;
                host.way_up.push_back(Up::ReservedReply(guest, call));
            }
        }
    }

    fn local_step(&mut self) {
        if let Some(id) = self.starting.pop() {
            self.processes.insert(id, VecDeque::new());
            self.drive(|core, now, out| core.worker_ready(now, id, out));
        }
        let mut ids: Vec<WorkerId> = self.processes.keys().copied().collect();
        ids.sort();
        let running = self.processes.values().flatten().map(|(_, payload)| *payload);
        self.fits(&running.collect::<Vec<_>>(), [self.gpus_here, 2]);
        for id in ids {
            let next = self.processes.get_mut(&id).and_then(VecDeque::pop_front);
            if let Some((call, payload)) = next {
                self.calls[payload as usize].ran += 1;
                self.returned(id, call, OccupiedTime { ran: 1000, whole: 1000 });
            }
        }
    }

    fn step(&mut self) {
        self.now = self.now + self.rng.u64(1..50_000);
        match self.rng.u32(0..100) {
            0..30 => self.submit(),
            30..33 if !self.calls.is_empty() => {
                let id = self.calls[self.rng.usize(..self.calls.len())].id;
                self.drive(|core, now, out| core.cancel(now, id, out));
            }
            33 if self.reserved.len() < 6 => {
                let group = if self.rng.bool() { self.some_group() } else { None };
                let more = self.drive(|core, _, out| core.reserve(1, group, out));
                for reservation in &more {
                    let lost =
                        matches!(self.core.standing(*reservation), ReservationState::Lost(_));
                    let home = self.core.home(reservation.worker);
                    match group {
                        Some(GroupId::HERE) => assert!(home.is_none()),
                        Some(group) if !lost => {
                            let (here, hosts) = &self.groups[&group];
                            assert!(home.map_or(*here, |home| hosts.contains(&home)));
                        }
                        _ => {}
                    }
                }
                self.reserved.extend(more);
            }
            45 if self.groups.len() < 4 => self.add_group(),
            34 if !self.reserved.is_empty() => {
                let of = self.reserved.swap_remove(self.rng.usize(..self.reserved.len()));
                self.drive(|core, now, out| core.release(now, of, out));
            }
            35 => self.claim(),
            36..45 => self.local_step(),
            _ => {
                let index = self.rng.usize(..self.hosts.len());
                self.host_step(index);
            }
        }
        self.drive(|core, now, out| core.tick(now, out));
        self.gather();
        self.core.check();
    }

    /// A function on a host waits for some call.
    fn claim(&mut self) {
        let index = self.rng.usize(..self.hosts.len());
        if !self.hosts[index].joined || self.calls.is_empty() {
            return;
        }
        let by = self.id(index);
        let id = self.calls[self.rng.usize(..self.calls.len())].id;
        // What a running function calls asks for the place of one worker.
        let is_own =
            |call: &ExpectedCall| call.on.is_some() || call.cores > 1 || call.requested != [0, 0];
        if self.calls.iter().any(|call| call.id == id && is_own(call)) {
            return;
        }
        self.drive(|core, _, out| core.nests(by, out));
        let claim = self.drive(|core, now, out| core.claim(now, id, by, out));
        if let Claim::Run(payload) = claim {
            self.check_group(payload, by);
            self.calls[payload as usize].ended = true;
            self.count("run by who waits");
        }
    }

    /// Nothing goes wrong any more: all calls end.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            self.now = self.now + 1_000_000;
            for index in 0..self.hosts.len() {
                let id = self.id(index);
                if self.hosts[index].up && !self.hosts[index].joined {
                    self.hosts[index].joined = true;
                    self.tells_memory(index);
                    self.drive(|core, _, out| core.host_joined(id, 2, out));
                }
                if self.hosts[index].joined && self.hosts[index].workers == 0 {
                    self.hosts[index].workers = 2;
                    self.hosts[index].way_up.push_back(Up::Workers(2));
                }
                self.arrives_there(index);
                self.arrives_here(index);
                self.works(index);
            }
            self.local_step();
            self.drive(|core, now, out| core.tick(now, out));
            self.gather();
            self.core.check();
            if self.core.live() == 0 && self.core.resources_in_use().is_empty() {
                break;
            }
        }
        let alive = self.calls.iter().filter(|call| !call.ended).count();
        assert_eq!(alive, 0, "calls do not end");
        assert!(self.core.resources_in_use().is_empty(), "{}", self.core.resources_in_use());
        for call in self.calls.iter().filter(|call| !call.repeated) {
            let most = if call.idempotent { self.settings.retries + 1 } else { 1 };
            assert!(call.ran <= most, "ran {} times, at most {most}", call.ran);
        }
    }
}

/// Runs the hosts until they are idle.
fn run<P: Policy>(seeds: u64, policy: impl Fn(u64, &Settings) -> P) {
    let counts = run_all(seeds, false, policy);
    for what in [
        "returned",
        "bound returned",
        "lost",
        "cancelled",
        "deadline",
        "vanished",
        "wanted back",
        "given back",
        "run by who waits",
        "kept",
        "sent to its arguments",
        "made again",
        "dependency failed",
        "too wide",
        "wide",
        "unfit",
        "with resources",
    ] {
        assert!(counts.get(what).is_some_and(|count| *count > 10), "{what}: {counts:?}");
    }
}

/// Event counts.
fn run_all<P: Policy>(
    seeds: u64,
    needy: bool,
    policy: impl Fn(u64, &Settings) -> P,
) -> HashMap<&'static str, u64> {
    let mut counts: HashMap<&'static str, u64> = HashMap::new();
    for seed in 0..seeds {
        let mut world = Simulation::new(seed, |settings| policy(seed, settings));
        world.needy = needy;
        for _ in 0..300 {
            world.step();
        }
        world.settle();
        for (what, count) in world.counts {
            *counts.entry(what).or_default() += count;
        }
    }
    counts
}

#[test]
fn every_call_ends_once_whatever_hosts_do() {
    let runs = std::env::var("GRIDRPC_SIMULATIONS").ok().and_then(|text| text.parse().ok());
    run(runs.unwrap_or(1500), |_, settings| Adaptive::new(settings.cores));
}

#[test]
fn every_call_ends_once_when_results_go_from_host_to_host() {
    let counts = run_all(500, true, |_, settings| Adaptive::new(settings.cores));
    for what in ["sent to its arguments", "sent where its arguments come", "results not exchanged"]
    {
        assert!(counts.get(what).is_some_and(|count| *count > 1), "{what}: {counts:?}");
    }
}

#[test]
fn every_call_ends_once_with_executors_in_turn() {
    run(500, |_, _| RoundRobin::default());
}

#[test]
fn every_call_ends_once_whoever_is_chosen() {
    run(500, |seed, _| RandomPolicy::new(seed));
}

#[test]
fn calls_are_spread_by_what_hosts_have_to_do() {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![2, 4], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    for (host, workers) in [(0, 2), (1, 4)] {
        core.host_joined(WorkerId(host), workers, &mut out);
        core.host_has(Time(1), WorkerId(host), workers, workers, &mut out);
    }
    assert_eq!(core.ready(), 6);
    out.clear();
    for payload in 0..9 {
        core.submit(Time(2), Task::new(FunctionId(0), payload), &mut out).expect("taken");
    }
    let sent = |host| {
        let to = |action: &&Action<u32>| matches!(action, Action::Send { worker, .. } if *worker == WorkerId(host));
        out.iter().filter(to).count()
    };
    // Nothing is sent ahead of a function that is not known.
    assert_eq!((sent(0), sent(1), core.queued()), (2, 4, 3));
}

#[test]
fn hosts_that_never_come_are_given_up_and_told() {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![0, 2], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    core.submit(Time(1), Task::new(FunctionId(0), 7), &mut out).expect("taken");
    let guest = core.reserve(1, None, &mut out)[0];
    let mut now = Time(1);
    while core.broken().is_none() {
        assert!(now < Time(60_000_000_000), "it is tried forever");
        let requested: Vec<WorkerId> = out
            .drain(..)
            .filter_map(|action| match action {
                Action::Start(id) => Some(id),
                _ => None,
            })
            .collect();
        for id in requested {
            core.worker_lost(now, id, None, loss(id.0), &mut out);
            core.check();
        }
        if let Some(next) = core.next_tick() {
            now = now.max(next);
            core.tick(now, &mut out);
        }
    }
    let ended = |action: &Action<u32>| matches!(action, Action::End { end: End::NoWorkers(_), .. });
    assert!(out.iter().any(ended), "{out:?}");
    assert!(
        matches!(core.standing(guest), ReservationState::Lost(_)),
        "{:?}",
        core.standing(guest)
    );
    assert!(core.knows_places());
}

#[test]
fn hosts_that_join_and_start_no_worker_are_given_up_and_all_are_reported() {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![1, 1, 1], ..Settings::default() });
    let (mut out, mut started) = (Vec::new(), [0; 3]);
    core.open(Time(0), &mut out);
    core.submit(Time(1), Task::new(FunctionId(0), 7), &mut out).expect("taken");
    let mut now = Time(1);
    while core.broken().is_none() {
        assert!(now < Time(60_000_000_000), "it is tried forever");
        for action in std::mem::take(&mut out) {
            let Action::Start(id) = action else { continue };
            started[id.0 as usize] += 1;
            core.host_joined(id, 1, &mut out);
            if id == WorkerId(2) {
                // It has tried for itself.
                core.host_has_failed(id);
            }
            let cause = Cause::Failed("no Python".to_owned());
            core.worker_lost(now, id, None, Loss { cause, ..loss(id.0) }, &mut out);
            core.check();
        }
        if let Some(next) = core.next_tick() {
            now = now.max(next);
            core.tick(now, &mut out);
        }
    }
    let most = Settings::default().max_failed_starts;
    assert_eq!(started, [most, most, 1]);
    let error_text = core.broken().expect("it is").to_string();
    assert_eq!(error_text.lines().count(), 3, "{error_text}");
    assert_eq!(core.absent_hosts().count(), 3);
}

#[test]
fn hosts_that_fail_soon_after_each_other_are_requested_again_together() {
    const MS: u64 = 1_000_000;
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![1; 4], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    out.clear();
    // Each is tried again a second after it has failed, or with one that failed half a second before it.
    for (host, at) in [(0, 0), (2, 20), (1, 500), (3, 501)] {
        core.worker_lost(Time(at * MS), WorkerId(host), None, loss(host), &mut out);
    }
    let mut requested = |at: u64| {
        let mut out = Vec::new();
        core.tick(Time(at * MS), &mut out);
        let started = out.iter().filter_map(|action| match action {
            Action::Start(id) => Some(id.0),
            _ => None,
        });
        started.collect::<Vec<u32>>()
    };
    assert_eq!(requested(999), []);
    let mut first = requested(1000);
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2]);
    assert_eq!(requested(1500), []);
    assert_eq!(requested(1501), [3]);
}

#[test]
fn a_host_that_has_served_is_tried_for_long() {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![1], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    core.host_joined(WorkerId(0), 1, &mut out);
    core.host_has(Time(1), WorkerId(0), 1, 1, &mut out);
    assert_eq!(core.absent_hosts().count(), 0);
    let mut now = Time(1);
    core.worker_lost(now, WorkerId(0), None, loss(0), &mut out);
    while core.broken().is_none() {
        for action in std::mem::take(&mut out) {
            if let Action::Start(id) = action {
                core.worker_lost(now, id, None, loss(id.0), &mut out);
            }
        }
        if let Some(next) = core.next_tick() {
            now = now.max(next);
            core.tick(now, &mut out);
        }
    }
    let minutes = now.0 / 60_000_000_000;
    assert!((10..60).contains(&minutes), "it was tried for {minutes} minutes");
}

/// Hosts of a worker each, which is ready.
fn two_hosts() -> (Core<u32>, [GroupId; 2], Vec<Action<u32>>) {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![1, 1], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    let groups = [0, 1].map(|host| core.add_group("one", false, vec![WorkerId(host)]));
    for host in 0..2 {
        core.host_joined(WorkerId(host), 1, &mut out);
        core.host_has(Time(1), WorkerId(host), 1, 1, &mut out);
    }
    out.clear();
    (core, groups, out)
}

fn bound(payload: u32, group: GroupId) -> Task<u32> {
    Task {
        options: CallOptions { group: Some(group), ..CallOptions::DEFAULT },
        ..Task::new(FunctionId(0), payload)
    }
}

/// The calls that were sent, and to whom.
fn sends(out: &[Action<u32>]) -> Vec<(u32, u32)> {
    let send = |action: &Action<u32>| match action {
        Action::Send { worker, payload, .. } => Some((*payload, worker.0)),
        _ => None,
    };
    out.iter().filter_map(send).collect()
}

#[test]
fn calls_that_are_bound_hold_up_nobody_and_keep_their_place() {
    let (mut core, [first, second], mut out) = two_hosts();
    let took = OccupiedTime { ran: 10_000_000, whole: 10_000_000 };
    let mut submit = |core: &mut Core<u32>, task| {
        core.submit(Time(2), task, &mut out).expect("taken");
        core.check();
    };
    for payload in 0..3 {
        submit(&mut core, bound(payload, first));
    }
    // It is behind them, and there is room for it elsewhere.
    submit(&mut core, Task::new(FunctionId(0), 3));
    for payload in 4..6 {
        submit(&mut core, Task::new(FunctionId(0), payload));
    }
    submit(&mut core, bound(6, second));
    submit(&mut core, with(bound(7, second), |options| options.priority = 1));
    assert_eq!(sends(&out), [(0, 0), (3, 1)]);
    assert_eq!(core.queued(), 6);
    let mut order = Vec::new();
    while let Some((call, worker)) = out.iter().find_map(|action| match action {
        Action::Send { worker, call, .. } => Some((*call, *worker)),
        _ => None,
    }) {
        let all = sends(&out);
        out.retain(|action| !matches!(action, Action::Send { call: other, .. } if *other == call));
        order.push(all[0]);
        core.replied(Time(3), worker, call, took, &mut out).expect("it has it");
        core.check();
    }
    let on = |host| order.iter().filter(move |(_, at)| *at == host).map(|(call, _)| *call);
    // Calls that any host may run go behind the bound ones that were there before, and not before others.
    assert_eq!(on(0).filter(|call| *call < 3).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(on(1).collect::<Vec<_>>()[..3], [3, 7, 4]);
    assert_eq!(order.len(), 8);
}

#[test]
fn calls_of_a_group_that_is_given_up_end_and_others_do_not() {
    let (mut core, [first, second], mut out) = two_hosts();
    core.worker_lost(Time(2), WorkerId(0), None, loss(0), &mut out);
    out.retain(|action| matches!(action, Action::Start(_)));
    core.submit(Time(2), bound(0, first), &mut out).expect("it may come back");
    core.submit(Time(2), bound(1, second), &mut out).expect("taken");
    let blocker = core.submit(Time(2), bound(2, second), &mut out).expect("taken");
    core.submit_after(Time(2), bound(3, first), &[blocker], &mut out).expect("taken");
    let guest = core.reserve(1, Some(first), &mut out)[0];
    assert_eq!(core.home(guest.worker), Some(WorkerId(0)));
    let mut now = Time(2);
    let mut ended = Vec::new();
    while ended.is_empty() {
        for action in std::mem::take(&mut out) {
            match action {
                Action::Start(id) => core.worker_lost(now, id, None, loss(id.0), &mut out),
                Action::End { payload, end: End::NoServer(name, loss), .. } => {
                    assert_eq!((&*name, loss.worker), ("one", 0));
                    ended.push(payload);
                }
                Action::End { .. } => panic!("{action:?}"),
                _ => {}
            }
            core.check();
        }
        if let Some(next) = core.next_tick() {
            now = now.max(next);
            core.tick(now, &mut out);
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, [0, 3]);
    assert!(core.broken().is_none());
    assert_eq!(core.live(), 2);
    assert!(matches!(core.standing(guest), ReservationState::Lost(_)));
    let refused = core.submit(now, bound(4, first), &mut out);
    assert!(matches!(refused, Err(Refusal::NoServer(..))), "{refused:?}");
    let guest = core.reserve(1, Some(first), &mut out)[0];
    assert!(matches!(core.standing(guest), ReservationState::Lost(_)));
    // One that is reported later is known to be lost as well.
    let again = core.add_group("again", false, vec![WorkerId(0)]);
    assert!(matches!(core.submit(now, bound(5, again), &mut out), Err(Refusal::NoServer(..))));
    core.check();
}

#[test]
fn calls_that_come_back_run_in_their_own_group_alone() {
    let (mut core, [first, _], mut out) = two_hosts();
    let task = with(bound(0, first), |options| options.idempotent = true);
    core.submit(Time(2), task, &mut out).expect("taken");
    core.worker_lost(Time(3), WorkerId(0), None, loss(0), &mut out);
    assert_eq!(sends(&out), [(0, 0)]);
    assert_eq!(core.queued(), 1);
    core.host_joined(WorkerId(0), 1, &mut out);
    core.host_has(Time(4), WorkerId(0), 1, 1, &mut out);
    assert_eq!(sends(&out), [(0, 0), (0, 0)]);
    core.check();
}

#[test]
fn a_worker_that_waits_for_a_call_runs_it_only_where_it_is_bound() {
    let (mut core, [first, _], mut out) = two_hosts();
    core.submit(Time(2), bound(0, first), &mut out).expect("taken");
    let waiting = core.submit(Time(2), bound(1, first), &mut out).expect("taken");
    assert_eq!(core.claim(Time(2), waiting, WorkerId(1), &mut out), Claim::Wait);
    core.check();
    let waiting = core.submit(Time(2), bound(2, first), &mut out).expect("taken");
    assert_eq!(core.claim(Time(2), waiting, WorkerId(0), &mut out), Claim::Run(2));
    core.check();
}

#[test]
fn a_call_that_its_host_continues_with_leaves_without_an_end() {
    let (mut core, [first, _], mut out) = two_hosts();
    let mut submit =
        |core: &mut Core<u32>, task| core.submit(Time(2), task, &mut out).expect("taken");
    let (left, next) = (submit(&mut core, bound(1, first)), submit(&mut core, bound(2, first)));
    assert_eq!((core.host_of(left), core.host_of(next)), (Some(WorkerId(0)), None), "{out:?}");
    out.clear();
    assert_eq!(core.detached(Time(3), WorkerId(0), left, &mut out), Ok((1, true)));
    assert_eq!(sends(&out), [(2, 0)], "the host takes the next one");
    assert!(!out.iter().any(|action| matches!(action, Action::End { .. })), "{out:?}");
    core.check();
    // Its answer does not come any more.
    assert!(core.detached(Time(4), WorkerId(0), left, &mut out).is_err());
    assert!(core.cancel(Time(4), next, &mut out));
    assert_eq!(core.detached(Time(5), WorkerId(0), next, &mut out), Ok((2, false)));
    assert_eq!(core.live(), 0);
    core.check();
}

#[test]
fn a_call_that_waits_at_a_host_goes_to_the_worker_that_waits_for_it() {
    // The host has other clients, whose calls its workers run, so it does not begin the second call.
    let (mut core, mut out) = a_small_and_a_large_host();
    let mut submit = |payload| {
        let task = Task::new(FunctionId(0), payload);
        core.submit(Time(2), task, &mut out).expect("taken")
    };
    let (outer, inner) = (submit(0), submit(1));
    let sent: HashMap<u32, u32> = sends(&out).into_iter().collect();
    let (by, to) = (WorkerId(sent[&0]), WorkerId(sent[&1]));
    out.clear();
    assert_eq!(core.claim(Time(3), inner, by, &mut out), Claim::Wait);
    let requested = out.iter().any(|action| {
        matches!(action, Action::Retract { host, calls } if *host == to && *calls == [inner])
    });
    assert!(requested, "{out:?}");
    out.clear();
    core.retracted(Time(4), to, &[inner], &mut out);
    let runs = out.iter().any(|action| {
        matches!(action, Action::Run { worker, call, payload: 1 } if *worker == by && *call == inner)
    });
    assert!(runs, "{out:?}");
    assert_eq!(core.live(), 1);
    core.replied(Time(5), by, outer, OccupiedTime { ran: 1, whole: 1 }, &mut out)
        .expect("it ran there");
    core.check();
}

/// Hosts of two and of four workers, which have nothing to do, and what they were sent.
fn a_small_and_a_large_host() -> (Core<u32>, Vec<Action<u32>>) {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![2, 4], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    for (host, workers) in [(0, 2), (1, 4)] {
        core.host_joined(WorkerId(host), workers, &mut out);
        core.host_has(Time(1), WorkerId(host), workers, workers, &mut out);
    }
    out.clear();
    (core, out)
}

fn multicore(payload: u32, cores: u32) -> Task<u32> {
    Task {
        options: CallOptions { cores, ..CallOptions::DEFAULT },
        ..Task::new(FunctionId(0), payload)
    }
}

/// The oldest of the calls that were sent and not answered is answered.
fn answer_first(core: &mut Core<u32>, out: &mut Vec<Action<u32>>) -> Option<(u32, u32)> {
    let at = out.iter().position(|action| matches!(action, Action::Send { .. }))?;
    let Action::Send { worker, call, payload, .. } = out.remove(at) else { return None };
    let took = OccupiedTime { ran: 10_000_000, whole: 10_000_000 };
    core.replied(Time(3), worker, call, took, out).expect("it has it");
    core.check();
    Some((payload, worker.0))
}

#[test]
fn a_stream_of_small_calls_does_not_keep_a_wide_one_waiting() {
    let (mut core, mut out) = a_small_and_a_large_host();
    for payload in 0..6 {
        core.submit(Time(2), multicore(payload, 1), &mut out).expect("taken");
    }
    core.submit(Time(2), multicore(100, 4), &mut out).expect("taken");
    for payload in 6..40 {
        core.submit(Time(2), multicore(payload, 1), &mut out).expect("taken");
        core.check();
    }
    let mut order = Vec::new();
    while let Some((payload, host)) = answer_first(&mut core, &mut out) {
        let at = if payload == 100 { "wide" } else { ["small", "large"][host as usize] };
        order.push(at);
    }
    assert_eq!(order.len(), 41);
    let at = order.iter().position(|what| *what == "wide").expect("it ran");
    // The large host has done the four that were there, and nothing else, before the wide one.
    assert_eq!(order[..at].iter().filter(|what| **what == "large").count(), 4, "{order:?}");
    assert!(order[..at].iter().filter(|what| **what == "small").count() >= 2, "{order:?}");
}

#[test]
fn a_wide_call_keeps_its_places_while_it_runs() {
    let (mut core, mut out) = a_small_and_a_large_host();
    core.submit(Time(2), multicore(0, 3), &mut out).expect("taken");
    for payload in 1..9 {
        core.submit(Time(2), multicore(payload, 1), &mut out).expect("taken");
    }
    assert_eq!(sends(&out).iter().filter(|(_, host)| *host == 1).count(), 2, "{out:?}");
    assert_eq!(sends(&out).iter().filter(|(_, host)| *host == 0).count(), 2, "{out:?}");
    core.check();
}

#[test]
fn calls_before_a_wide_one_are_sent_before_it() {
    let (mut core, mut out) = a_small_and_a_large_host();
    core.submit(Time(2), multicore(0, 4), &mut out).expect("taken");
    core.submit(Time(2), multicore(1, 2), &mut out).expect("taken");
    core.submit(Time(2), multicore(2, 4), &mut out).expect("taken");
    let first = with(multicore(3, 4), |options| options.priority = 1);
    core.submit(Time(2), first, &mut out).expect("taken");
    core.submit(Time(2), multicore(4, 1), &mut out).expect("taken");
    assert_eq!(sends(&out), [(0, 1), (1, 0)]);
    assert_eq!(answer_first(&mut core, &mut out), Some((0, 1)));
    assert_eq!(sends(&out), [(1, 0), (3, 1)]);
    assert_eq!(answer_first(&mut core, &mut out), Some((1, 0)));
    // The small host cannot have the wide ones, and need not wait for them.
    assert_eq!(sends(&out), [(3, 1), (4, 0)]);
    assert_eq!(answer_first(&mut core, &mut out), Some((3, 1)));
    assert_eq!(sends(&out), [(4, 0), (2, 1)]);
}

#[test]
fn processors_of_workers_count_for_wide_calls() {
    let (mut core, mut out) = a_small_and_a_large_host();
    core.host_has_cores(WorkerId(0), 4);
    core.submit(Time(2), multicore(0, 8), &mut out).expect("taken");
    core.submit(Time(2), multicore(1, 5), &mut out).expect("taken");
    assert_eq!(sends(&out), [(0, 0)]);
    let refused = core.submit(Time(2), multicore(2, 9), &mut out);
    let Err(Refusal::TooManyCores(why)) = refused else { panic!("{refused:?}") };
    assert_eq!((why.cores, why.most), (9, 8));
    let error_text =
        "the call asks for 9 cores of one host, and the largest host has workers for 8";
    assert_eq!(why.to_string(), error_text);
    core.check();
}

#[test]
fn a_wide_call_ends_when_the_host_that_was_large_enough_is_given_up() {
    let (mut core, mut out) = a_small_and_a_large_host();
    core.submit(Time(2), multicore(0, 4), &mut out).expect("taken");
    core.submit(Time(2), multicore(1, 3), &mut out).expect("taken");
    core.submit(Time(2), multicore(2, 2), &mut out).expect("taken");
    core.host_has(Time(3), WorkerId(1), 4, 2, &mut out);
    core.check();
    core.host_has(Time(3), WorkerId(1), 2, 2, &mut out);
    core.check();
    let ended: Vec<u32> = out
        .iter()
        .filter_map(|action| match action {
            Action::End { payload, end: End::TooManyCores(why), .. } if why.most == 2 => {
                Some(*payload)
            }
            _ => None,
        })
        .collect();
    assert_eq!(ended, [1]);
    assert_eq!(sends(&out), [(0, 1), (2, 0)]);
}

#[test]
fn calls_of_functions_find_more_room_and_not_without_end() {
    let settings = Settings {
        workers: 1,
        max_queued: 2,
        max_nested: 3,
        max_queued_bytes: 10,
        ..Settings::default()
    };
    let mut core: Core<u32> = Core::new(settings);
    let room = |core: &Core<u32>, bytes| (core.has_room(bytes), core.has_room_nested(bytes));
    assert_eq!(room(&core, 1000), (true, true));
    for waiting in 1..=5 {
        core.submit(Time(0), Task::new(FunctionId(0), waiting), &mut Vec::new()).expect("taken");
        assert_eq!(room(&core, 0), (waiting < 2, waiting < 5));
        assert_eq!(room(&core, 161), (false, false));
    }
}

/// The task with other options.
fn with<T>(mut task: Task<T>, change: impl FnOnce(&mut CallOptions)) -> Task<T> {
    change(&mut task.options);
    task
}
