//! The reactor's part of hosts: asking for agents, reading what they say, and noticing when one is gone.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_core::{BlobId, CallId, Cause, Core, End, Loss, Time, Took, WorkerId};
use gridrpc_wire::{Message, Serve, Stamps, VERSION, WireError};
use nix::sys::epoll::{EpollEvent, EpollFlags};

use crate::client::call::{Call, Outcome};
use crate::client::callbacks::Wanted;
use crate::client::grid::Common;
use crate::client::hosts::clock::{Clock, Offset};
use crate::client::hosts::conversation::{Conversation, EndThere, HostEvent, Joined, refused};
use crate::client::hosts::fetching::{FAR, FEW, Fetching, LARGE};
use crate::client::hosts::kept::{Again, Keeper, KeptResult};
use crate::client::hosts::launching::{Inbox, Launching, News, Plan, plans};
use crate::client::hosts::outgoing::HostOut;
use crate::client::hosts::remedies::{
    agent_ended, agent_gone, no_workers, not_asked_for, other_version,
};
use crate::client::hosts::{RemoteWorkers, Servers};
use crate::client::lifecycle::{MAX_PAYLOAD, placement};
use crate::client::reactor::{Reactor, Token};
use crate::launcher::Event;
use crate::link::{Outbound, Receiver};
use crate::nested::is_request;
use crate::servers::{Compression, LauncherKind, Server, ServerOutput};
use crate::sys::{self, monotonic_ns};
use crate::transport::door::Admitted;

/// As often each end looks whether the other is there, in the time after which that is taken for lost.
const LOOKS: u32 = 3;
/// Readings of a host's clock that are taken at once when it has joined.
const FIRST_READINGS: u64 = 8;
/// What is kept of what an agent and its launcher say, bytes.
const KEEP: usize = 4096;

/// All hosts of a grid, as the reactor knows them.
#[derive(Debug)]
pub(crate) struct Hosts {
    first: u32,
    plans: Vec<Plan>,
    places: Vec<Place>,
    launching: Launching,
    inbox: Arc<Inbox>,
    workers: RemoteWorkers,
    /// Large answers.
    fetching: Fetching,
    /// How many agents have been asked for.
    agents: u32,
}

#[derive(Debug)]
struct Place {
    /// Counts the connections that this host has had.
    generation: u32,
    /// The agent that was asked for, and has not ended.
    agent: Option<u32>,
    stage: Stage,
    /// How far its start has come, as the launcher says.
    state: String,
    /// The last of what the agent and its launcher have said.
    said: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    Absent,
    /// Until when it has to dial.
    Asked(Instant),
    There(Box<Peer>),
}

/// An agent that has dialled.
#[derive(Debug)]
struct Peer {
    conversation: Conversation,
    up: Arc<Outbound>,
    /// What the host calls itself.
    host: String,
    pid: u32,
    joined: bool,
    /// Whether it waits with large answers until they are fetched.
    holds: bool,
    heard: Instant,
    asked: Instant,
    /// Questions that have not been answered: number, and when they were put, ns.
    pings: VecDeque<(u64, u64)>,
    pinged: u64,
    /// The shortest way there and back so far, ns.
    round_trip: u64,
    clock: Clock,
}

impl Peer {
    /// Asks whether it is there, and what its clock says.
    fn ask(&mut self) {
        self.pinged += 1;
        let number = self.pinged;
        self.pings.push_back((number, monotonic_ns()));
        if self.up.push(&Message::Ping { number }).is_ok() {
            self.up.flush();
        }
    }
}

impl Hosts {
    pub(crate) fn new(servers: Servers, first: u32, common: &Arc<Common>) -> Hosts {
        let Servers { list, program, workers } = servers;
        let plans = plans(&list);
        let inbox = Arc::<Inbox>::default();
        let launching = Launching::new(list, program, Arc::clone(&inbox), Arc::clone(common));
        let place = |_: &Plan| Place {
            generation: 0,
            agent: None,
            stage: Stage::Absent,
            state: String::new(),
            said: Vec::new(),
        };
        let places = plans.iter().map(place).collect();
        let fetching = Fetching::default();
        Hosts { first, plans, places, launching, inbox, workers, fetching, agents: 0 }
    }

    fn index(&self, id: WorkerId) -> Option<usize> {
        let index = id.0.checked_sub(self.first)? as usize;
        (index < self.places.len()).then_some(index)
    }

    fn id(&self, index: usize) -> WorkerId {
        WorkerId(self.first + index as u32)
    }

    /// Whether this executor is one of the hosts.
    pub(crate) fn has(&self, id: WorkerId) -> bool {
        self.index(id).is_some()
    }

    /// Whether all agents are gone.
    pub(crate) fn are_gone(&self) -> bool {
        self.places.iter().all(|place| matches!(place.stage, Stage::Absent))
    }

    fn serve<'a>(&'a self, plan: &Plan, common: &'a Wishes) -> Serve<'a> {
        let server = self.launching.server(plan);
        let here = is_here(server);
        let workers = &self.workers;
        let mut serve = Serve {
            version: VERSION,
            workers: plan.workers,
            shared_threshold: common.shared_threshold,
            keep_free: common.keep_free,
            grace: common.grace,
            retries: common.retries,
            calls_per_process: common.calls_per_process,
            heartbeat: u64::try_from(server.heartbeat.as_nanos()).unwrap_or(u64::MAX),
            staging: server.staging.as_deref().unwrap_or_default(),
            compression: match server.compression {
                Compression::Off => 0,
                Compression::Auto => 1,
                Compression::On => 2,
            },
            ..Serve::default()
        };
        serve.directory = match &server.directory {
            Some(directory) => directory,
            None if here => &workers.directory,
            None => "",
        };
        if let Some(python) = &workers.python {
            serve.program = self.python(server).unwrap_or_default();
            let same = here && serve.program == python.here;
            let arguments = if same { &python.arguments_here } else { &python.arguments };
            serve.arguments = arguments.iter().map(String::as_str).collect();
            serve.modules = python.modules.iter().map(String::as_str).collect();
            if same {
                serve.path = python.path.iter().map(String::as_str).collect();
            }
        }
        serve.environment = common.environment[plan.server].iter().map(String::as_str).collect();
        serve
    }
}

impl Hosts {
    /// What Python workers of a server run; none: they are native.
    fn python<'a>(&'a self, server: &'a Server) -> Option<&'a str> {
        let python = self.workers.python.as_ref()?;
        let usual = if is_here(server) { python.here.as_str() } else { "python3" };
        Some(server.python.as_deref().unwrap_or(usual))
    }
}

/// Whether a server's agents run on this machine, as this user sees it.
fn is_here(server: &Server) -> bool {
    matches!(server.launcher, LauncherKind::Local { .. })
}

/// What is the same for all hosts of a grid.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) shared_threshold: u64,
    pub(crate) keep_free: u64,
    pub(crate) grace: u64,
    pub(crate) retries: u32,
    pub(crate) calls_per_process: u64,
    /// `NAME=VALUE`, for each server.
    pub(crate) environment: Vec<Vec<String>>,
}

impl Wishes {
    pub(crate) fn new(config: &crate::client::Config) -> Wishes {
        let settings = &config.settings;
        let environment = config.servers.iter().flat_map(|servers| {
            servers.list.iter().map(|server| {
                let all = servers.workers.environment.iter().chain(&server.environment);
                all.map(|(name, value)| format!("{name}={value}")).collect()
            })
        });
        Wishes {
            shared_threshold: config.shared_threshold as u64,
            keep_free: config.keep_free,
            grace: settings.grace,
            retries: settings.retries,
            calls_per_process: settings.calls_per_process,
            environment: environment.collect(),
        }
    }
}

impl Reactor {
    /// Asks for agents on these hosts.
    pub(in crate::client) fn start_hosts(&mut self, ids: &[WorkerId]) {
        let Some(hosts) = &mut self.hosts else { return };
        let mut wanted = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(index) = hosts.index(*id) else { continue };
            hosts.agents += 1;
            let plan = hosts.plans[index].clone();
            let until = Instant::now() + hosts.launching.start_timeout(&plan);
            let place = &mut hosts.places[index];
            place.agent = Some(hosts.agents);
            place.stage = Stage::Asked(until);
            place.state.clear();
            place.said.clear();
            self.common.lock().hosts.note(*id, &plan.name, "is asked for an agent");
            wanted.push((hosts.agents, plan));
        }
        for (agent, error) in hosts.launching.start(&wanted) {
            self.launcher_said(agent, Event::Failed(not_asked_for(&error)));
        }
    }

    /// Takes what launchers and the door have told.
    pub(in crate::client) fn hear_of_hosts(&mut self) {
        let Some(hosts) = &self.hosts else { return };
        for news in hosts.inbox.take() {
            match news {
                News::Launcher(agent, event) => self.launcher_said(agent, event),
                News::Admitted(admitted) => self.admit(admitted),
            }
        }
    }

    fn place_of(&self, agent: u32) -> Option<usize> {
        let places = &self.hosts.as_ref()?.places;
        places.iter().position(|place| place.agent == Some(agent))
    }

    fn launcher_said(&mut self, agent: u32, event: Event) {
        let Some(index) = self.place_of(agent) else { return };
        let Some(hosts) = &mut self.hosts else { return };
        let place = &mut hosts.places[index];
        match event {
            Event::State(state) => {
                place.state.clone_from(&state);
                let id = WorkerId(hosts.first + index as u32);
                self.common.lock().hosts.note(id, &hosts.plans[index].name, &state);
            }
            Event::Said(bytes) => {
                place.said.extend_from_slice(&bytes);
                let excess = place.said.len().saturating_sub(KEEP);
                place.said.drain(..excess);
                let label = format!("[{}] ", hosts.plans[index].name);
                self.printers.print_labelled(true, &label, &bytes);
            }
            Event::Failed(why) => {
                place.agent = None;
                self.lose_host(index, Cause::Failed(why));
            }
            Event::Ended(how) => {
                place.agent = None;
                match &place.stage {
                    Stage::Asked(_) => {
                        let why = agent_ended(&how, &String::from_utf8_lossy(&place.said));
                        self.lose_host(index, Cause::Failed(why));
                    }
                    // Its connection tells.
                    Stage::There(_) | Stage::Absent => {}
                }
            }
        }
    }

    fn admit(&mut self, admitted: Admitted) {
        let Admitted { agent, transport, .. } = admitted;
        let Some(index) = self.place_of(agent) else { return };
        let epoll = Arc::clone(&self.epoll);
        let common = Arc::clone(&self.common);
        let Some(hosts) = &mut self.hosts else { return };
        let place = &mut hosts.places[index];
        if !matches!(place.stage, Stage::Asked(_)) || self.closing.is_some() {
            return;
        }
        place.generation = place.generation.wrapping_add(1);
        let token = Token::Host { index: index as u32, generation: place.generation }.encode();
        let event = EpollEvent::new(EpollFlags::EPOLLIN, token);
        if epoll.add(transport.socket(), event).is_err() {
            return;
        }
        let socket = Arc::downgrade(&transport);
        let watch = move |blocked: bool| {
            let mut flags = EpollFlags::EPOLLIN;
            flags.set(EpollFlags::EPOLLOUT, blocked);
            let mut event = EpollEvent::new(flags, token);
            if let Some(socket) = socket.upgrade() {
                // Fails only for a host that is gone.
                let _ = epoll.modify(socket.socket(), &mut event);
            }
        };
        let up = Arc::new(Outbound::new(Arc::clone(&transport), Box::new(watch)));
        up.compress(hosts.launching.server(&hosts.plans[index]).compression);
        let mut receiver = Receiver::new(transport, MAX_PAYLOAD);
        receiver.place_streams(placement(&common));
        let now = Instant::now();
        place.stage = Stage::There(Box::new(Peer {
            conversation: Conversation::new(receiver),
            up,
            host: hosts.plans[index].name.clone(),
            pid: 0,
            joined: false,
            holds: false,
            heard: now,
            asked: now,
            pings: VecDeque::new(),
            pinged: 0,
            round_trip: u64::MAX,
            clock: Clock::default(),
        }));
        // It may have said something already, which the socket does not tell of again.
        self.hear_host(index as u32);
    }

    pub(in crate::client) fn is_current_host(&self, index: u32, generation: u32) -> bool {
        let place = self.hosts.as_ref().and_then(|hosts| hosts.places.get(index as usize));
        place.is_some_and(|place| {
            Token::is_generation(place.generation, generation)
                && matches!(place.stage, Stage::There(_))
        })
    }

    /// Goes on sending to a host.
    pub(in crate::client) fn send_to_host(&mut self, index: u32) {
        if let Some(peer) = self.peer(index as usize) {
            peer.up.flush();
        }
    }

    fn peer(&mut self, index: usize) -> Option<&mut Peer> {
        match &mut self.hosts.as_mut()?.places.get_mut(index)?.stage {
            Stage::There(peer) => Some(peer),
            _ => None,
        }
    }

    /// Reads what a host has said.
    pub(in crate::client) fn hear_host(&mut self, index: u32) {
        let index = index as usize;
        loop {
            let Some(peer) = self.peer(index) else { return };
            let filled = peer.conversation.receiver.fill();
            match filled {
                Ok(0) => {
                    let why = agent_gone("it closed the connection");
                    return self.lose_host(index, Cause::Failed(why));
                }
                Ok(_) => {
                    peer.heard = Instant::now();
                    let events = peer.conversation.events();
                    let more = peer.conversation.receiver.has_more();
                    let has_begun = peer.joined || !events.is_empty();
                    self.note_coming(index);
                    self.apply_host(index, events);
                    // Behind that: what it has said may fit nothing that it was asked.
                    let broken = self.peer(index).and_then(|peer| peer.conversation.broken.clone());
                    if let Some(why) = broken {
                        let why = match has_begun {
                            true => format!("what its agent says makes no sense: {why}"),
                            false => format!("{}: {why}", other_version(None)),
                        };
                        return self.lose_host(index, Cause::Failed(why));
                    }
                    if !more {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let why = agent_gone(&error.to_string());
                    return self.lose_host(index, Cause::Failed(why));
                }
            }
        }
    }

    /// Notes how far large answers of a host have come.
    fn note_coming(&mut self, index: usize) {
        let Some(hosts) = &mut self.hosts else { return };
        if let Stage::There(peer) = &hosts.places[index].stage
            && peer.holds
        {
            let coming = peer.conversation.receiver.coming();
            hosts.fetching.heard(Instant::now(), index, coming);
        }
    }

    /// Asks for as many large answers as there is room for; says when there is more.
    pub(in crate::client) fn fetch_from_hosts(&mut self) -> Option<Instant> {
        let hosts = self.hosts.as_mut().filter(|hosts| !hosts.fetching.is_idle())?;
        let now = Instant::now();
        let next: Vec<usize> = std::iter::from_fn(|| hosts.fetching.next(now)).collect();
        if !next.is_empty() {
            let mut state = self.common.lock();
            for index in next {
                state.push(hosts.id(index), &Message::Fetch);
            }
            self.common.finish(state);
        }
        hosts.fetching.due(now)
    }

    fn join(&mut self, index: usize, joined: Joined) {
        let Joined { pid, processors, host, boot, addresses } = joined;
        let wishes = self.wishes.clone();
        let Some(hosts) = &mut self.hosts else { return };
        let plan = hosts.plans[index].clone();
        let wanted = if plan.workers == 0 { processors } else { plan.workers };
        let id = hosts.id(index);
        let serve = hosts.serve(&plan, &wishes);
        let many = hosts.places.len() > FEW;
        let Stage::There(peer) = &hosts.places[index].stage else { return };
        let up = Arc::clone(&peer.up);
        let socket = peer.conversation.receiver.socket();
        let holds = many && sys::round_trip(socket).is_ok_and(|time| time < FAR);
        let hold = Message::Hold { bytes: LARGE as u64 };
        let told = up.push(&Message::Serve(serve));
        if let Err(error) = told.and_then(|()| if holds { up.push(&hold) } else { Ok(()) }) {
            let why = format!("what it is to do cannot be told: {error}");
            return self.lose_host(index, Cause::Failed(why));
        }
        if let Some(peer) = self.peer(index) {
            peer.joined = true;
            peer.clock = Clock::new(!boot.is_empty() && boot == sys::boot_id());
            peer.holds = holds;
            peer.pid = pid;
            peer.host = host;
        }
        let mut state = self.common.lock();
        let base = state.hosts.number(&plan.name, wanted);
        state.hosts.set(id, Some(HostOut::new(up, base, addresses)));
        state.hosts.note(id, &plan.name, "has an agent, which starts workers");
        state.drive(|core, out| core.host_joined(id, wanted, out));
        // What was pushed before goes with it.
        let _ = state.hosts.push(id, &Message::Ping { number: 0 });
        self.common.finish(state);
        if let Some(peer) = self.peer(index) {
            peer.pings.push_back((0, monotonic_ns()));
        }
        self.common.changed.notify_all();
    }

    /// Applies what a host has said.
    fn apply_host(&mut self, index: usize, events: Vec<HostEvent>) {
        let Some(hosts) = &self.hosts else { return };
        let id = hosts.id(index);
        let offset = match &hosts.places[index].stage {
            Stage::There(peer) => peer.clock.offset(monotonic_ns()),
            _ => Offset::default(),
        };
        let plan = &hosts.plans[index];
        // On this machine it only tells agents apart.
        let here = is_here(hosts.launching.server(plan));
        let name = if here { String::new() } else { plan.name.clone() };
        let mut answered: Vec<(Arc<Call>, Outcome, Stamps)> = Vec::new();
        // Declared before the lock, and so dropped behind it.
        let mut unwanted = Vec::new();
        let mut wanted = Vec::new();
        let mut kept = Vec::new();
        let mut fetched = Vec::new();
        let mut broken = None;
        let mut changed = false;
        let mut events = events.into_iter();
        // Most of what comes are answers: one lock for all that come together.
        let common = Arc::clone(&self.common);
        let mut state = common.lock();
        let mut later = Vec::new();
        for event in events.by_ref() {
            let now = Time(monotonic_ns());
            match event {
                HostEvent::Workers { ready, wanted } => {
                    if let Some(out) = state.hosts.get(id) {
                        out.slots = ready;
                    }
                    state.drive(|core, out| core.host_has(now, id, ready, wanted, out));
                    changed = true;
                }
                HostEvent::Answer { call, mut stamps, outcome } => {
                    let Some(out) = state.hosts.get(id) else { continue };
                    let executor = out.answered_by(call, id);
                    let took = seen_from_here(&mut stamps, &offset, out.base);
                    state.kept_nothing(id, call);
                    let raised = matches!(outcome, Outcome::Raised { .. });
                    let replied = state.drive(|core, out| {
                        let answered = if raised { Core::raised } else { Core::replied };
                        answered(core, now, executor, CallId(call), took, out)
                    });
                    match replied {
                        Ok((call, live)) => {
                            state.garbage.extend(call.take_payload());
                            if live {
                                answered.push((call, outcome, stamps));
                            } else {
                                unwanted.push(outcome);
                            }
                        }
                        Err(error) => broken = Some(error.to_string()),
                    }
                }
                HostEvent::Kept { call, mut stamps, parts } => {
                    let Some(out) = state.hosts.get(id) else { continue };
                    let executor = out.answered_by(call, id);
                    let took = seen_from_here(&mut stamps, &offset, out.base);
                    state.hosts.keeps(id, call);
                    let again = Again::of(&state.core, CallId(call));
                    let keeper = Keeper::new(id, call, &common);
                    let replied = state
                        .drive(|core, out| core.replied(now, executor, CallId(call), took, out));
                    match replied {
                        Ok((known, live)) => {
                            if again.is_none() || !live {
                                state.garbage.extend(known.take_payload());
                            }
                            if live {
                                state.kept.add(call, &known, id, again);
                                kept.push((known, KeptResult { keeper, parts }, stamps));
                            }
                        }
                        Err(error) => broken = Some(error.to_string()),
                    }
                }
                HostEvent::Fetched { call, sections } => {
                    if let Some(known) = state.kept.call(call) {
                        let waiting = state.kept.came(call);
                        state.to_gather.extend(waiting);
                        state.garbage.extend(known.take_payload());
                        fetched.push((known, sections));
                    }
                }
                HostEvent::Ended { call, mut end } => {
                    let Some(out) = state.hosts.get(id) else { continue };
                    if let EndThere::Lost(loss) | EndThere::NoWorkers(loss) = &mut end {
                        loss.worker = loss.worker.saturating_add(out.base);
                        loss.host = called(&name, &loss.host);
                    }
                    let executor = out.answered_by(call, id);
                    state.kept_nothing(id, call);
                    let lost = match &end {
                        EndThere::Lost(loss) if executor != id => Some(loss.clone()),
                        _ => None,
                    };
                    let end = match end {
                        EndThere::Lost(loss) => Ok(End::WorkerLost(Arc::new(loss))),
                        EndThere::NoWorkers(loss) => Ok(End::NoWorkers(Arc::new(loss))),
                        EndThere::Cancelled => Ok(End::Cancelled),
                        EndThere::Refused(why) => Err(why),
                    };
                    let ended = match end {
                        Ok(end) => state.drive(|core, out| {
                            core.host_ended(now, executor, CallId(call), end, out)
                        }),
                        Err(why) => {
                            let took = Took { ran: 0, whole: 0 };
                            let raised = state.drive(|core, out| {
                                core.raised(now, executor, CallId(call), took, out)
                            });
                            if let Ok((call, true)) = &raised {
                                let stamps = Stamps::default();
                                answered.push((Arc::clone(call), refused(why), stamps));
                            }
                            raised
                        }
                    };
                    match ended {
                        Ok((call, _)) => state.garbage.extend(call.take_payload()),
                        Err(error) => broken = Some(error.to_string()),
                    }
                    if let Some(loss) = lost {
                        // A reserved worker is lost for good.
                        state.drive(|core, out| core.worker_lost(now, executor, None, loss, out));
                        changed = true;
                    }
                }
                HostEvent::Callback { call, index, arguments } => {
                    match state.core.payload(CallId(call)).cloned() {
                        Some(known) => {
                            wanted.push(Wanted {
                                worker: id,
                                id: call,
                                call: known,
                                index,
                                arguments,
                            });
                        }
                        None => state.fail_callback(id, call, "the call has ended"),
                    }
                }
                HostEvent::Reserved { number, lost } => {
                    let guest = WorkerId(number);
                    if state.core.home(guest) == Some(id) {
                        state.drive(|core, out| match lost {
                            None => core.worker_ready(now, guest, out),
                            Some(mut loss) => {
                                loss.host = called(&name, &loss.host);
                                core.worker_lost(now, guest, None, loss, out);
                            }
                        });
                        changed = true;
                    }
                }
                HostEvent::Retracted(calls) => {
                    calls.iter().for_each(|call| state.kept_nothing(id, *call));
                    let calls: Vec<CallId> = calls.into_iter().map(CallId).collect();
                    if let Some(out) = state.hosts.get(id) {
                        out.answered += calls.len() as u64;
                    }
                    state.drive(|core, out| core.retracted(now, id, &calls, out));
                }
                HostEvent::Missing(blob) => state.share_again(id, BlobId(blob)),
                HostEvent::NotPassed { blob, to } => state.share_again(WorkerId(to), BlobId(blob)),
                HostEvent::BlobDropped { blob, unread } => {
                    state.drive(|core, out| core.blob_dropped(id, BlobId(blob), unread, out));
                }
                HostEvent::Ping(number) => {
                    let clock = monotonic_ns();
                    let _ = state.hosts.push(id, &Message::Pong { number, clock });
                }
                other => later.push(other),
            }
        }
        let waiting = state.waiting_for_room > 0 && state.core.has_room(0);
        let ready = std::mem::take(&mut state.to_gather);
        common.finish(state);
        let (nested, wanted): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|wanted: &Wanted| is_request(wanted.index));
        wanted.into_iter().for_each(|wanted| self.runner.take(wanted));
        for (call, outcome, stamps) in answered {
            call.finish_there(outcome, stamps, offset.error);
        }
        for (call, result, stamps) in kept {
            call.keep_there(result, stamps, offset.error);
        }
        for (call, sections) in fetched {
            call.fetched(sections);
        }
        common.gather(ready);
        nested.iter().for_each(|wanted| common.serve_nested(wanted));
        if changed || waiting {
            common.changed.notify_all();
        }
        drop(unwanted);
        later.into_iter().for_each(|event| self.hear_rest(index, event));
        if let (Some(why), Some(peer)) = (broken, self.peer(index)) {
            peer.conversation.broken.get_or_insert(why);
        }
    }

    /// What concerns no call.
    fn hear_rest(&mut self, index: usize, event: HostEvent) {
        match event {
            HostEvent::Join(joined) if self.peer(index).is_some_and(|peer| !peer.joined) => {
                self.join(index, joined);
            }
            HostEvent::Stranger(version) => {
                let why = other_version(Some(&version));
                self.lose_host(index, Cause::Failed(why));
            }
            HostEvent::NoWorkers(loss) => {
                let stderr = loss.stderr.clone();
                let Some(hosts) = &mut self.hosts else { return };
                let (id, plan) = (hosts.id(index), hosts.plans[index].clone());
                let python = hosts.python(hosts.launching.server(&plan)).unwrap_or_default();
                let why = no_workers(python, &loss);
                if !stderr.is_empty() {
                    hosts.places[index].said = stderr.into_bytes();
                }
                let cause = match loss.cause {
                    Cause::Shortage(_) => Cause::Shortage(why),
                    _ => {
                        self.common.lock().core.host_has_failed(id);
                        Cause::Failed(why)
                    }
                };
                self.lose_host(index, cause);
            }
            HostEvent::Output { worker, stderr, bytes } => {
                self.print_of_host(index, worker, stderr, &bytes)
            }
            HostEvent::Pong { number, clock } => {
                let now = monotonic_ns();
                let Some(peer) = self.peer(index) else { return };
                while let Some((asked, at)) = peer.pings.pop_front() {
                    if asked == number {
                        peer.round_trip = peer.round_trip.min(now.saturating_sub(at));
                        peer.clock.heard(at, now, clock);
                        break;
                    }
                }
                if peer.pinged < FIRST_READINGS {
                    peer.ask();
                }
                let round_trip = peer.round_trip;
                let Some(hosts) = &self.hosts else { return };
                let id = hosts.id(index);
                self.common.lock().core.host_is_away(id, round_trip);
            }
            _ => {}
        }
    }

    fn print_of_host(&self, index: usize, worker: u32, stderr: bool, bytes: &[u8]) {
        let Some(hosts) = &self.hosts else { return };
        let plan = &hosts.plans[index];
        match hosts.launching.server(plan).output {
            ServerOutput::Labelled => {
                let label = format!("[{} worker {worker}] ", plan.name);
                self.printers.print_labelled(stderr, &label, bytes);
            }
            ServerOutput::Plain => self.printers.print(stderr, bytes),
            ServerOutput::Kept => {}
        }
    }

    /// Looks whether hosts are there that ought to be; says when to look again.
    pub(in crate::client) fn see_to_hosts(&mut self) -> Option<Instant> {
        let hosts = self.hosts.as_mut()?;
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        let mut lost = Vec::new();
        let mut wait_until = |due: Instant| next = Some(next.map_or(due, |next| next.min(due)));
        for (index, place) in hosts.places.iter_mut().enumerate() {
            let server = hosts.launching.server(&hosts.plans[index]);
            match &mut place.stage {
                Stage::Absent => {}
                Stage::Asked(until) if *until <= now => {
                    lost.push((index, Cause::Failed(not_come(server.start_timeout, &place.state))));
                }
                Stage::Asked(until) => wait_until(*until),
                Stage::There(peer) => {
                    let heartbeat = server.heartbeat;
                    if heartbeat.is_zero() {
                        continue;
                    }
                    if peer.heard + heartbeat <= now {
                        let seconds = heartbeat.as_secs_f64();
                        let why = format!(
                            "it was silent for {seconds} s: its agent is stopped, or the network is \
                             cut (see `heartbeat` in the configuration of the server)"
                        );
                        lost.push((index, Cause::Failed(why)));
                        continue;
                    }
                    let due = peer.asked + heartbeat / LOOKS;
                    if due <= now && peer.joined {
                        peer.asked = now;
                        peer.ask();
                    }
                    wait_until((peer.asked + heartbeat / LOOKS).min(peer.heard + heartbeat));
                }
            }
        }
        for (index, cause) in lost {
            self.lose_host(index, cause);
        }
        next
    }

    /// A host is gone, or cannot be had.
    fn lose_host(&mut self, index: usize, cause: Cause) {
        let Some(hosts) = &mut self.hosts else { return };
        let id = hosts.id(index);
        let plan = hosts.plans[index].clone();
        hosts.fetching.forget(index);
        let place = &mut hosts.places[index];
        let stage = std::mem::replace(&mut place.stage, Stage::Absent);
        let (host, pid) = match &stage {
            Stage::Absent => return,
            Stage::Asked(_) => (plan.name.clone(), 0),
            Stage::There(peer) => {
                let _ = self.epoll.delete(peer.conversation.receiver.socket());
                (peer.host.clone(), peer.pid)
            }
        };
        // One that says goodbye ends by itself.
        if let Some(agent) = place.agent.take()
            && self.closing.is_none()
        {
            hosts.launching.stop(agent, &plan);
        }
        let stderr = String::from_utf8_lossy(&place.said).trim_end().to_owned();
        let host = called(&plan.name, &host);
        let loss = Loss { worker: Loss::HOST, pid, host, cause, stderr };
        let mut state = self.common.lock();
        let now = Time(monotonic_ns());
        state.hosts.set(id, None);
        state.hosts.break_chains(id);
        let loss_of_results = Arc::new(loss.clone());
        state.drive(|core, out| core.worker_lost(now, id, None, loss, out));
        let lost = state.lose_results(id);
        let ready = std::mem::take(&mut state.to_gather);
        let closing = state.closing;
        self.common.finish(state);
        for call in lost {
            let end = if closing { End::Closed } else { End::WorkerLost(loss_of_results.clone()) };
            call.finish(Outcome::Ended(end), None);
        }
        self.common.gather(ready);
        drop(stage);
        self.common.changed.notify_all();
    }

    /// Gives up a host that was to be sent what the format does not hold.
    pub(in crate::client) fn give_up_host(&mut self, id: WorkerId, error: &WireError) {
        if let Some(index) = self.hosts.as_ref().and_then(|hosts| hosts.index(id)) {
            self.lose_host(index, Cause::Failed(format!("a message cannot be sent: {error}")));
        }
    }

    /// Tells all agents that nothing more is wanted.
    pub(in crate::client) fn dismiss_hosts(&mut self) {
        let Some(hosts) = &mut self.hosts else { return };
        for index in 0..hosts.places.len() {
            let plan = &hosts.plans[index];
            let place = &mut hosts.places[index];
            match &place.stage {
                Stage::Absent => {}
                Stage::Asked(_) => {
                    place.stage = Stage::Absent;
                    if let Some(agent) = place.agent {
                        hosts.launching.stop(agent, plan);
                    }
                }
                Stage::There(peer) => {
                    if peer.up.push(&Message::Goodbye).is_ok() {
                        peer.up.flush();
                    }
                }
            }
        }
    }

    /// All that is left of agents ends.
    pub(in crate::client) fn end_hosts(&mut self) {
        if let Some(hosts) = &mut self.hosts {
            hosts.launching.close();
        }
    }
}

/// Has the stamps of an answer tell times of this host's clock and the grid's number of the worker.
fn seen_from_here(stamps: &mut Stamps, offset: &Offset, first_worker: u32) -> Took {
    stamps.worker = stamps.worker.saturating_add(first_worker);
    for time in [&mut stamps.received, &mut stamps.calc_in, &mut stamps.calc_out] {
        *time = offset.here(*time);
    }
    Took {
        ran: stamps.calc_out.saturating_sub(stamps.calc_in),
        whole: stamps.calc_out.saturating_sub(stamps.received),
    }
}

/// A host as its owner names it, and as it names itself if that differs.
fn called(name: &str, host: &str) -> String {
    match (name, host) {
        ("", host) => host.to_owned(),
        (name, host) if host == name || host.is_empty() => name.to_owned(),
        _ => format!("{name} ({host})"),
    }
}

fn not_come(timeout: Duration, state: &str) -> String {
    let seconds = timeout.as_secs_f64();
    let state = if state.is_empty() { String::new() } else { format!("; last heard: {state}") };
    format!(
        "its agent did not dial this client within {seconds} s{state}: a firewall may keep it from doing \
         so (see `addresses`, `ports` and `start_timeout` in the configuration of the server, and \
         `gridrpc doctor`)"
    )
}
