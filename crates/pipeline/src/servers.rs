//! Calls of many clients on many servers, each on the server that its client chooses.
//!
//! Clients decide as `gridrpc_placement` does, by what they know: announcements of a certain age, their own calls since,
//! and their own measurements.

use std::collections::VecDeque;

use gridrpc_core::{FunctionId, HostPace, OccupiedTime};
use gridrpc_placement::{
    ANSWER_STALE, ANSWER_VALID, AnnouncedLoad, CallTimes, Candidate, ClientCall, Measured,
    Measurements, Policy, Work, candidates, choose,
};

use crate::network::{
    Assignment, CallPlan, CallStamps, ClientLink, InvalidNetwork, NO_SERVER, Network,
    SimulatedServer, check,
};
use crate::stages::{Simulation, Stage, Stages};

#[derive(Clone, Copy, Debug, PartialEq)]
enum CallEvent {
    /// The next call of the plan begins.
    Begins,
    /// The server knows of the call; the arguments follow.
    Reaches,
    Received,
    Computed,
    Sent,
    Ends,
    /// A server announces its load.
    Announces,
}

/// What a server does.
#[derive(Debug, Default)]
struct ServerState {
    running: u32,
    /// Calls that have begun and not ended: transfers, too.
    alive: u32,
    waiting: VecDeque<u32>,
    /// Announced loads, the oldest first, and the number of the oldest.
    announced: VecDeque<f32>,
    first: u64,
}

impl ServerState {
    fn load(&self, server: &SimulatedServer) -> f64 {
        f64::from(self.alive) / f64::from(server.slots)
    }
}

/// A server that a client has called.
#[derive(Debug, Default)]
struct KnownServer {
    server: u32,
    measured: Measurements<u32>,
    /// How many calls are sent ahead.
    pace: HostPace,
    /// Calls that have been sent and have not ended. The others are held back.
    sent: u32,
    held: VecDeque<u32>,
    /// Calls whose arguments and whose results are on the connection: the first is being transferred.
    transfers: [VecDeque<u32>; 2],
}

/// A client.
#[derive(Debug)]
struct ClientState {
    /// For each function the time of the answer of the directory that the client uses; NaN: it has none.
    answers: Vec<f64>,
    /// By server.
    known: Vec<KnownServer>,
    /// Number of its calls.
    begun: u64,
    alive: u32,
}

/// A simulation of all calls of a plan.
pub struct ServersRun<'n> {
    network: &'n Network,
    plan: &'n CallPlan,
    assignment: &'n Assignment,
    stages: Stages<CallEvent>,
    servers: Vec<ServerState>,
    clients: Vec<ClientState>,
    /// The next call of the plan.
    next: usize,
    /// Calls that have begun and not ended.
    alive: usize,
    ended: usize,
    stamps: CallStamps,
    /// When the client sent a call, and when the server had its arguments.
    sent: Vec<f64>,
    received: Vec<f64>,
    /// Whether fewer calls of the client were there than the server runs when it was sent.
    was_free: Vec<bool>,
    /// How clients count their calls.
    own: Vec<ClientCall>,
    described: Vec<(AnnouncedLoad, Measured)>,
    candidates: Vec<Candidate>,
}

impl<'n> ServersRun<'n> {
    /// A simulation that has not begun.
    ///
    /// # Errors
    /// When numbers of servers, clients, functions or links do not fit each other, or there are too many links.
    pub fn new(
        network: &'n Network,
        plan: &'n CallPlan,
        assignment: &'n Assignment,
    ) -> Result<ServersRun<'n>, InvalidNetwork> {
        check(network, plan, assignment)?;
        let (servers, calls) = (network.servers.len(), plan.at.len());
        let mut stages = Stages::new();
        for _ in 0..2 * network.links.len() {
            stages.evenly(1.0);
        }
        let mut run = ServersRun {
            network,
            plan,
            assignment,
            stages,
            servers: (0..servers).map(|_| ServerState::default()).collect(),
            clients: network
                .clients
                .iter()
                .map(|_| ClientState {
                    answers: vec![f64::NAN; network.functions.len()],
                    known: Vec::new(),
                    begun: 0,
                    alive: 0,
                })
                .collect(),
            next: 0,
            alive: 0,
            ended: 0,
            stamps: CallStamps {
                server: vec![NO_SERVER; calls],
                started: vec![f64::NAN; calls],
                computed: vec![f64::NAN; calls],
                ended: vec![f64::NAN; calls],
            },
            sent: vec![f64::NAN; calls],
            received: vec![f64::NAN; calls],
            was_free: vec![false; calls],
            own: vec![ClientCall::default(); calls],
            described: Vec::with_capacity(servers),
            candidates: Vec::with_capacity(servers),
        };
        if network.interval > 0.0 {
            for (number, server) in network.servers.iter().enumerate() {
                // Before the run all have announced themselves once.
                run.servers[number].announced.push_back(0.0);
                run.stages.at(server.phase, CallEvent::Announces, number as u32);
            }
        }
        run.plan_next();
        Ok(run)
    }

    /// Simulates so many events; whether there are more.
    pub fn go_on(&mut self, events: usize) -> bool {
        self.step(events)
    }

    /// Number of calls that have ended or were left out.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// What happened to the calls.
    #[must_use]
    pub fn stamps(self) -> CallStamps {
        self.stamps
    }

    fn plan_next(&mut self) {
        if let Some(&at) = self.plan.at.get(self.next) {
            self.stages.at(at, CallEvent::Begins, self.next as u32);
            self.next += 1;
        }
    }

    fn link(&self, call: usize) -> (ClientLink, Stage) {
        let group = self.network.clients[self.plan.client[call] as usize] as usize;
        let number = group * self.servers.len() + self.stamps.server[call] as usize;
        (self.network.links[number], (2 * number) as Stage)
    }

    fn work(&self, call: usize) -> Work {
        self.network.functions[self.plan.function[call] as usize]
    }

    // ---- The client

    fn begin(&mut self, call: usize) {
        let number = self.plan.client[call] as usize;
        if self.plan.skips_busy && self.clients[number].alive > 0 {
            self.ended += 1;
            return;
        }
        let now = self.stages.now();
        let (server, core_time) = match self.assignment {
            Assignment::Given(servers) => (servers[call], 0.0),
            Assignment::Policy(policy, seed) => self.choose(call, *policy, *seed),
        };
        self.stamps.server[call] = server;
        let client = &mut self.clients[number];
        client.begun += 1;
        client.alive += 1;
        self.alive += 1;
        let described = &self.network.servers[server as usize];
        let known = client.server(server);
        self.own[call] = known.measured.begin(now, core_time, described.cores);
        known.held.push_back(call as u32);
        self.send_held(number, server);
    }

    /// Sends calls of a client as far as the core of gridrpc does: as many as the server runs, and what it runs while
    /// messages are on their way.
    fn send_held(&mut self, client: usize, server: u32) {
        let (now, network) = (self.stages.now(), self.network);
        let slots = network.servers[server as usize].slots;
        let group = network.clients[client] as usize;
        let latency = network.links[group * self.servers.len() + server as usize].latency;
        let known = self.clients[client].server(server);
        while let Some(&call) = known.held.front() {
            let function = FunctionId(self.plan.function[call as usize]);
            let ahead = known.pace.ahead(function, slots as usize, nanoseconds(2.0 * latency));
            if known.sent as usize >= slots as usize + ahead {
                break;
            }
            known.held.pop_front();
            self.was_free[call as usize] = known.sent < slots;
            known.sent += 1;
            self.sent[call as usize] = now;
            self.stages.at(now + latency, CallEvent::Reaches, call);
        }
    }

    /// The server, and how long the call is expected to keep one of its cores.
    fn choose(&mut self, call: usize, policy: Policy, seed: u64) -> (u32, f64) {
        let function = self.plan.function[call] as usize;
        let client = &mut self.clients[self.plan.client[call] as usize];
        let draw = match policy {
            Policy::LeastTime | Policy::Random | Policy::TwoChoices => {
                mixed(seed ^ mixed(call as u64))
            }
            _ => client.begun,
        };
        let now = self.stages.now();
        let answered =
            if self.network.interval > 0.0 { client.answered(function, now) } else { now };
        self.described.clear();
        for (server, state) in self.network.servers.iter().zip(&self.servers) {
            let load = match self.network.interval {
                interval if interval > 0.0 => state.announced_at(answered, server.phase, interval),
                _ => state.load(server),
            };
            let announced = AnnouncedLoad {
                speed: server.announced_speed,
                load,
                age: now - announcement(answered, server.phase, self.network.interval),
                cores: server.cores,
                is_full: false,
            };
            self.described.push((announced, Measured::default()));
        }
        for known in &client.known {
            let server = &self.network.servers[known.server as usize];
            let announced = announcement(answered, server.phase, self.network.interval);
            self.described[known.server as usize].1 =
                known.measured.measured(&self.plan.function[call], announced, now);
        }
        candidates(&self.described, true, &mut self.candidates);
        let work = &self.network.functions[function];
        // Servers are never full here, and there is one at least.
        let server = choose(policy, work, &self.candidates, draw).unwrap_or(0);
        (server as u32, self.candidates[server].core_time(work))
    }

    fn end(&mut self, call: usize) {
        let now = self.stages.now();
        self.stamps.ended[call] = now;
        self.ended += 1;
        self.alive -= 1;
        let work = self.work(call);
        let server = self.stamps.server[call];
        let client = &mut self.clients[self.plan.client[call] as usize];
        client.alive -= 1;
        let known = client.server(server);
        known.measured.end(now, self.own[call]);
        known.sent -= 1;
        let times = CallTimes {
            sent: self.sent[call],
            received: self.received[call],
            started: self.stamps.started[call],
            computed: self.stamps.computed[call],
            returned: now,
            error: 0.0,
            bytes_in: work.bytes_in,
            bytes_out: work.bytes_out,
            operations: work.operations,
            has_cost: true,
        };
        let function = self.plan.function[call];
        known.measured.learn(&function, &times);
        let turnaround = self.was_free[call].then(|| nanoseconds(now - times.sent));
        let ran = nanoseconds(times.computed - times.started);
        known.pace.learn(FunctionId(function), OccupiedTime { ran, whole: ran }, turnaround);
        self.send_held(self.plan.client[call] as usize, server);
    }

    // ---- The server

    fn reach(&mut self, call: usize) {
        self.servers[self.stamps.server[call] as usize].alive += 1;
        self.add_transfer(call, CallEvent::Received);
    }

    /// A connection transfers one call after the other, in each direction. Connections share the bandwidth of a link.
    fn add_transfer(&mut self, call: usize, then: CallEvent) {
        let transfers = self.transfers(call, then);
        transfers.push_back(call as u32);
        if transfers.len() == 1 {
            self.transfer(call, then);
        }
    }

    fn transfers(&mut self, call: usize, then: CallEvent) -> &mut VecDeque<u32> {
        let client = &mut self.clients[self.plan.client[call] as usize];
        let known = client.server(self.stamps.server[call]);
        &mut known.transfers[usize::from(then == CallEvent::Sent)]
    }

    fn transfer(&mut self, call: usize, then: CallEvent) {
        let ((link, stage), work) = (self.link(call), self.work(call));
        let (bytes, stage) = match then {
            CallEvent::Sent => (work.bytes_out, stage + 1),
            _ => (work.bytes_in, stage),
        };
        let seconds = bytes / link.bandwidth;
        if seconds > 0.0 {
            // Links are no stages without time, at which `add` hands back what follows.
            let _ = self.stages.add(stage, seconds, then, call as u32);
        } else {
            self.happen(then, call as u32);
        }
    }

    fn end_transfer(&mut self, call: usize, then: CallEvent) {
        let transfers = self.transfers(call, then);
        transfers.pop_front();
        if let Some(&next) = transfers.front() {
            self.transfer(next as usize, then);
        }
    }

    fn receive(&mut self, call: usize) {
        self.end_transfer(call, CallEvent::Received);
        self.received[call] = self.stages.now();
        let number = self.stamps.server[call] as usize;
        if self.servers[number].running < self.network.servers[number].slots {
            self.start(call);
        } else {
            self.servers[number].waiting.push_back(call as u32);
        }
    }

    fn start(&mut self, call: usize) {
        let number = self.stamps.server[call] as usize;
        self.servers[number].running += 1;
        let now = self.stages.now();
        self.stamps.started[call] = now;
        let seconds = self.work(call).operations / self.network.servers[number].speed;
        self.stages.at(now + seconds, CallEvent::Computed, call as u32);
    }

    fn computed(&mut self, call: usize) {
        self.stamps.computed[call] = self.stages.now();
        let number = self.stamps.server[call] as usize;
        self.servers[number].running -= 1;
        if let Some(next) = self.servers[number].waiting.pop_front() {
            self.start(next as usize);
        }
        self.add_transfer(call, CallEvent::Sent);
    }

    fn sent(&mut self, call: usize) {
        self.end_transfer(call, CallEvent::Sent);
        self.servers[self.stamps.server[call] as usize].alive -= 1;
        let at = self.stages.now() + self.link(call).0.latency;
        self.stages.at(at, CallEvent::Ends, call as u32);
    }

    fn announce(&mut self, number: usize) {
        let (server, interval) = (&self.network.servers[number], self.network.interval);
        let state = &mut self.servers[number];
        let load = state.load(server);
        state.announced.push_back(load as f32);
        // Nobody uses an older answer.
        if state.announced.len() as f64 > (ANSWER_STALE / interval).ceil() + 2.0 {
            state.announced.pop_front();
            state.first += 1;
        }
        if self.alive > 0 || self.next < self.plan.at.len() {
            // Multiplied, not added up: clients compute the same times.
            let count = state.first + state.announced.len() as u64 - 1;
            let at = server.phase + count as f64 * interval;
            self.stages.at(at.max(self.stages.now()), CallEvent::Announces, number as u32);
        }
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Time of the last announcement until `answered`. The first was one interval before the phase of the server.
fn announcement(answered: f64, phase: f64, interval: f64) -> f64 {
    if interval > 0.0 { answered - (answered - phase).rem_euclid(interval) } else { answered }
}

impl ServerState {
    /// The load of the last announcement until `answered`.
    fn announced_at(&self, answered: f64, phase: f64, interval: f64) -> f64 {
        let number = ((answered - phase) / interval).floor() as i64 + 1;
        let index = (number - self.first as i64).clamp(0, self.announced.len() as i64 - 1);
        f64::from(self.announced[index as usize])
    }
}

impl ClientState {
    /// When the answer was fetched that a call uses; later calls may have a newer one.
    fn answered(&mut self, function: usize, now: f64) -> f64 {
        let before = self.answers[function];
        let age = now - before;
        if age <= ANSWER_VALID {
            return before;
        }
        self.answers[function] = now;
        // NaN: there is no answer yet.
        if age <= ANSWER_STALE { before } else { now }
    }

    fn server(&mut self, server: u32) -> &mut KnownServer {
        let at = self.known.binary_search_by_key(&server, |known| known.server);
        let at = at.unwrap_or_else(|at| {
            self.known.insert(at, KnownServer { server, ..KnownServer::default() });
            at
        });
        &mut self.known[at]
    }
}

impl Simulation<CallEvent> for ServersRun<'_> {
    fn stages(&mut self) -> &mut Stages<CallEvent> {
        &mut self.stages
    }

    fn happen(&mut self, what: CallEvent, which: u32) {
        let number = which as usize;
        match what {
            CallEvent::Begins => {
                self.plan_next();
                self.begin(number);
            }
            CallEvent::Reaches => self.reach(number),
            CallEvent::Received => self.receive(number),
            CallEvent::Computed => self.computed(number),
            CallEvent::Sent => self.sent(number),
            CallEvent::Ends => self.end(number),
            CallEvent::Announces => self.announce(number),
        }
    }
}

/// A pseudo-random number (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
