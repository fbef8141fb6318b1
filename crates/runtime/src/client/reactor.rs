//! The thread that reads all answers, keeps the timers, and starts and buries workers.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use gridrpc_core::{BlobId, CallId, Core, Time, Took, WorkerId};
use gridrpc_wire::{Lease, Message, RemoteError, Stamps, VERSION, WireError};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};

use crate::borrowed::Mapped;
use crate::client::call::{Call, Outcome};
use crate::client::common::Common;
use crate::client::common::callbacks::{Runner, Wanted};
use crate::client::config::Config;
use crate::client::deadlines::{Deadlines, Due, Process, Routine};
use crate::client::hosts::{Hosts, Wishes};
use crate::client::launch::{Forked, Spawner};
use crate::client::output;
use crate::client::seat::Read;
use crate::client::sync::now;
use crate::link::{LinkError, Outbound, Received, Receiver};
use crate::nested::is_request;
use crate::patience::Patience;
use crate::payload::{Incoming, kept_within_bounds, take_sections};
use crate::segment;
use crate::sys::{self, monotonic_ns};
use crate::worker::outbox::{Take, take, take_rest};
use crate::worker::outboxes::{BoxMemory, Outboxes};
use crate::worker::progress::{self, ProgressMemory, Side};

/// What a descriptor belongs to, as the event queue carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Wake,
    Spawner,
    SpawnerStderr,
    Worker { index: u32, generation: u32 },
    WorkerStdout { index: u32, generation: u32 },
    WorkerStderr { index: u32, generation: u32 },
    Host { index: u32, generation: u32 },
}

/// Generations are compared by their low bits: events are at most a queue's length old.
const GENERATION_BITS: u32 = 24;

impl Token {
    pub(super) fn encode(self) -> u64 {
        let pack = |kind: u64, index: u32, generation: u32| {
            let generation = u64::from(generation) & ((1 << GENERATION_BITS) - 1);
            kind << 56 | generation << 32 | u64::from(index)
        };
        match self {
            Token::Wake => pack(0, 0, 0),
            Token::Spawner => pack(1, 0, 0),
            Token::SpawnerStderr => pack(2, 0, 0),
            Token::Worker { index, generation } => pack(3, index, generation),
            Token::WorkerStderr { index, generation } => pack(4, index, generation),
            Token::WorkerStdout { index, generation } => pack(5, index, generation),
            Token::Host { index, generation } => pack(6, index, generation),
        }
    }

    /// Whether a generation as a token carries it is this one.
    pub(super) fn is_generation(whole: u32, carried: u32) -> bool {
        whole & ((1 << GENERATION_BITS) - 1) == carried
    }

    pub(super) fn decode(raw: u64) -> Option<Token> {
        let index = raw as u32;
        let generation = (raw >> 32) as u32 & ((1 << GENERATION_BITS) - 1);
        Some(match raw >> 56 {
            0 => Token::Wake,
            1 => Token::Spawner,
            2 => Token::SpawnerStderr,
            3 => Token::Worker { index, generation },
            4 => Token::WorkerStderr { index, generation },
            5 => Token::WorkerStdout { index, generation },
            6 => Token::Host { index, generation },
            _ => return None,
        })
    }
}

/// The way in from one worker process.
#[derive(Debug)]
pub(super) struct Inlet {
    pub(super) generation: u32,
    /// The connection's other half.
    pub(super) up: Arc<Outbound>,
    pub(super) receiver: Receiver,
    /// Where it lays what it has not sent.
    pub(super) outbox: BoxMemory,
    /// Its segments, for results.
    pub(super) mapped: Mapped,
    /// Its standard output, if that does not go to our own.
    pub(super) stdout: Option<output::Outlet>,
    pub(super) stderr: output::Outlet,
    pub(super) host: String,
    /// Whether the spawner has said that its process is there.
    pub(super) started: bool,
    /// Why it has to end, if it broke the protocol.
    pub(super) broken: Option<String>,
    pub(super) at_end: bool,
}

/// What a worker has sent.
enum Event {
    Welcome { pid: u32 },
    Answer { call: u64, stamps: Stamps, retained: Vec<Lease>, outcome: Outcome },
    Release(Vec<Lease>),
    BlobDropped { blob: u64, unread: bool },
    Callback { call: u64, index: u16, arguments: Vec<Incoming> },
}

/// The state of the reader.
#[derive(Debug)]
pub(crate) struct Reactor {
    pub(super) common: Arc<Common>,
    pub(super) epoll: Arc<Epoll>,
    pub(super) config: Config,
    /// The hosts, if there are any.
    pub(super) hosts: Option<Hosts>,
    pub(super) wishes: Wishes,
    /// The first spawner, if the client has forked it.
    pub(super) forked: Option<Forked>,
    pub(super) spawner: Option<Spawner>,
    pub(super) spawner_tail: Option<output::Outlet>,
    pub(super) printers: output::Printers,
    pub(super) runner: Arc<Runner>,
    pub(super) inlets: Vec<Option<Inlet>>,
    pub(super) generations: Vec<u32>,
    /// Where workers tell how far they have come.
    pub(super) progress: ProgressMemory,
    pub(super) outboxes: Outboxes,
    pub(super) memory_kills: u64,
    pub(super) host: String,
    /// Places that are still to get a process.
    pub(super) to_start: VecDeque<WorkerId>,
    /// What is due, and when.
    pub(super) deadlines: Deadlines,
    /// When it is looked again for memory that nobody uses.
    give_up_at: Time,
    patience: Patience,
    /// Who was sent the only call there is. With more, the processors have better things to do than
    /// to look out for answers.
    lone: Option<WorkerId>,
    /// Until when everything has to be gone, once the grid is closed.
    pub(super) closing: Option<Time>,
    pub(super) finished: bool,
}

/// As often a worker's outbox is looked at that the worker is just sending.
const LOOKS: usize = 4;
/// Events taken from the queue at one time.
const EVENTS: usize = 64;
/// How long a worker that has closed its connection has to end by itself, ns.
const LEAVE_GRACE: u64 = 1_000_000_000;
/// How long a line waits for its end, ns.
const LINE: u64 = 200_000_000;
/// How long workers have to end by themselves when the grid is closed, ns, and as often it is looked
/// whether all are gone.
const CLOSE_GRACE: u64 = 3_000_000_000;
const LOOK_WHILE_CLOSING: u64 = 20_000_000;
/// As often it is looked for memory that nobody uses, ns.
const LOOK_EVERY: u64 = segment::LOOK_EVERY.as_nanos() as u64;

impl Read for Reactor {
    /// Does what is due, waits for something to happen, at most until `until`, and deals with it. With
    /// `until`, which a caller gives that waits, it looks for a moment before it sleeps.
    /// `false`: the grid has been closed and its workers are gone.
    fn turn(&mut self, until: Option<Time>) -> bool {
        self.hear_of_hosts();
        self.do_what_is_wanted();
        self.do_what_is_due();
        if self.finished {
            return false;
        }
        let next = self.deadlines.next().into_iter().chain(until).min();
        let timeout = match next {
            None => EpollTimeout::NONE,
            Some(next) => milliseconds(next.since(now())),
        };
        let mut events = [EpollEvent::empty(); EVENTS];
        let Reactor { epoll, patience, lone, progress, .. } = self;
        let apart = |worker: &WorkerId| {
            progress::meet(&progress.mapping, worker.0, Side::Client) != Some(true)
        };
        let mut wait = |timeout| match epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => unreachable!("waiting on an event queue that is ours: {errno}"),
        };
        let mut count = 0;
        // Who looks without sleeping at all does so here as well: the worker has to know where.
        let may_look = until.is_some() && lone.as_ref().is_some_and(apart);
        if may_look && timeout != EpollTimeout::ZERO {
            patience.look(|| {
                count = wait(EpollTimeout::ZERO);
                count > 0
            });
        }
        if count == 0 {
            count = wait(timeout);
        }
        for event in &events[..count] {
            self.dispatch(*event);
        }
        true
    }
}

impl Reactor {
    pub(crate) fn new(
        common: Arc<Common>,
        runner: Arc<Runner>,
        config: Config,
        progress: ProgressMemory,
        forked: Option<Forked>,
    ) -> io::Result<Reactor> {
        let workers = config.settings.workers as usize;
        let epoll = Arc::clone(&common.lock().epoll);
        let wake = EpollEvent::new(EpollFlags::EPOLLIN, Token::Wake.encode());
        epoll.add(common.alarm.as_fd(), wake)?;
        let wishes = Wishes::new(&config);
        let first = config.settings.workers;
        let servers = config.servers.clone();
        let hosts = servers.map(|servers| Hosts::new(servers, first, &common));
        Ok(Reactor {
            hosts,
            wishes,
            common,
            epoll,
            config,
            forked,
            spawner: None,
            spawner_tail: None,
            printers: output::Printers::new(),
            runner,
            inlets: (0..workers).map(|_| None).collect(),
            generations: vec![0; workers],
            progress,
            outboxes: Outboxes::default(),
            memory_kills: sys::out_of_memory_kills(),
            host: sys::host_name(),
            to_start: VecDeque::new(),
            deadlines: Deadlines::new(),
            give_up_at: Time(0),
            patience: Patience::new(),
            lone: None,
            closing: None,
            finished: false,
        })
    }

    /// Has the core do what is due, and does what it and callers have asked for.
    fn do_what_is_wanted(&mut self) {
        let common = Arc::clone(&self.common);
        let requests = common.kept_requests.take();
        let now = now();
        let mut state = common.lock();
        if !requests.is_empty() {
            state.pass_to_hosts(requests);
        }
        if state.core.next_tick().is_some_and(|next| next <= now) {
            state.tick(now);
        }
        let is_host = |id: &WorkerId| self.hosts.as_ref().is_some_and(|hosts| hosts.has(*id));
        let (hosts, here): (Vec<_>, Vec<_>) = state.to_start.drain(..).partition(is_host);
        self.to_start.extend(here);
        let to_collect = std::mem::take(&mut state.to_collect);
        let unsendable = std::mem::take(&mut state.unsendable);
        let to_kill = std::mem::take(&mut state.to_kill);
        let to_prepare = std::mem::take(&mut state.to_prepare);
        if state.closing && !state.closing_heard {
            state.closing_heard = true;
            self.closing = Some(now + CLOSE_GRACE);
            self.say_goodbye();
            self.dismiss_hosts();
        }
        let idle = self.to_start.is_empty() && to_kill.is_empty();
        self.lone = (state.core.live() == 1).then_some(state.last_sent);
        let until = if idle { state.next_tick() } else { Some(now) };
        state.reactor_sleeps_until = Some(until.unwrap_or(Time(u64::MAX)));
        self.deadlines.set(Routine::Core, until);
        common.finish(state);
        for worker in to_collect {
            self.collect(worker.0);
        }
        for (worker, error) in unsendable {
            self.give_up(worker, &error);
        }
        if !to_kill.is_empty() {
            self.kill(&to_kill);
        }
        if self.closing.is_none() {
            if !hosts.is_empty() {
                self.start_hosts(&hosts);
            }
            self.start_next();
        } else {
            self.to_start.clear();
        }
        self.prepare(&to_prepare);
    }

    /// Does everything else that is due, and says when it is due again.
    fn do_what_is_due(&mut self) {
        let now = now();
        if now >= self.give_up_at {
            self.give_up_at = now + LOOK_EVERY;
            self.common.give_up_old();
        }
        let may_go = self.common.has_memory().then_some(self.give_up_at);
        self.deadlines.set(Routine::Memory, may_go);
        while let Some(due) = self.deadlines.take(now) {
            match due {
                Due::Gone(process) if self.is_there(process) => {
                    self.kill(&[WorkerId(process.index)]);
                }
                Due::Line(process) if self.is_there(process) => self.end_lines(process.index),
                Due::Answer(asked) if self.is_there(asked.process) => self.see_to_unanswered(asked),
                // The process is gone that it was about.
                _ => {}
            }
        }
        if self.hosts.is_some() {
            let fetching = self.fetch_from_hosts().map(on_our_clock);
            self.deadlines.set(Routine::Fetching, fetching);
            let hosts = self.see_to_hosts().map(on_our_clock);
            self.deadlines.set(Routine::Hosts, hosts);
        }
        if let Some(deadline) = self.closing {
            self.see_to_closing(now, deadline);
        }
    }

    /// The grid is closed: ends when everything is gone, or has had its time to go.
    fn see_to_closing(&mut self, now: Time, deadline: Time) {
        let gone = self.spawner.is_none() && self.hosts.as_ref().is_none_or(Hosts::are_gone);
        if !gone && now < deadline {
            return self.deadlines.set(Routine::Closing, Some(now + LOOK_WHILE_CLOSING));
        }
        self.bury_spawner();
        self.end_hosts();
        self.printers.settle();
        self.finished = true;
    }

    /// Whether this is still the process in its place.
    fn is_there(&self, process: Process) -> bool {
        let inlet = self.inlets.get(process.index as usize).and_then(Option::as_ref);
        inlet.is_some_and(|inlet| inlet.generation == process.generation)
    }

    fn dispatch(&mut self, event: EpollEvent) {
        let Some(token) = Token::decode(event.data()) else { return };
        match token {
            Token::Wake => {
                // Only its waking matters.
                self.common.alarm.clear();
            }
            Token::Spawner => self.hear_spawner(),
            Token::Host { index, generation } => {
                if self.is_current_host(index, generation) {
                    if event.events().contains(EpollFlags::EPOLLOUT) {
                        self.send_to_host(index);
                    }
                    self.hear_host(index);
                }
            }
            Token::SpawnerStderr => {
                // At its end only the watching ends: what it has said belongs to the losses that follow.
                if let Some(tail) = &mut self.spawner_tail
                    && !tail.read()
                {
                    let _ = self.epoll.delete(tail.descriptor());
                }
            }
            Token::Worker { index, generation } => {
                if self.is_current(index, generation) {
                    if event.events().contains(EpollFlags::EPOLLOUT) {
                        self.go_on_sending(index);
                    }
                    self.hear_worker(index);
                }
            }
            Token::WorkerStdout { index, generation }
            | Token::WorkerStderr { index, generation } => {
                if self.is_current(index, generation)
                    && let Some(inlet) = &mut self.inlets[index as usize]
                {
                    let stderr = matches!(token, Token::WorkerStderr { .. });
                    let output =
                        if stderr { Some(&mut inlet.stderr) } else { inlet.stdout.as_mut() };
                    let Some(output) = output else { return };
                    if !output.read() {
                        // Ended or closed by the worker: a descriptor at its end is always ready.
                        let _ = self.epoll.delete(output.descriptor());
                    } else if output.has_begun() {
                        let process = Process { index, generation: inlet.generation };
                        self.deadlines.add(now() + LINE, Due::Line(process));
                    }
                }
            }
        }
    }

    fn is_current(&self, index: u32, generation: u32) -> bool {
        let mask = (1 << GENERATION_BITS) - 1;
        let inlet = self.inlets.get(index as usize).and_then(Option::as_ref);
        inlet.is_some_and(|inlet| inlet.generation & mask == generation)
    }

    fn go_on_sending(&self, index: u32) {
        if let Some(inlet) = &self.inlets[index as usize] {
            inlet.up.flush();
        }
    }

    fn hear_worker(&mut self, index: u32) {
        self.read_worker(index);
        let Some(inlet) = self.inlets[index as usize].as_ref() else { return };
        let generation = inlet.generation;
        if inlet.at_end || inlet.broken.is_some() {
            let _ = self.epoll.delete(inlet.receiver.socket());
        }
        if inlet.broken.is_some() {
            // It may be gone already; then the spawner reports that, and how it ended.
            self.kill(&[WorkerId(index)]);
        } else if inlet.at_end {
            // It is ending by itself, most likely, and then its exit status tells more.
            self.deadlines.add(now() + LEAVE_GRACE, Due::Gone(Process { index, generation }));
        }
    }

    /// Passes on lines of a worker that have been begun and not ended for a while, such as a question.
    fn end_lines(&mut self, index: u32) {
        if let Some(inlet) = self.inlets[index as usize].as_mut() {
            inlet.stdout.iter_mut().chain([&mut inlet.stderr]).for_each(output::Outlet::end);
        }
    }

    /// Reads once from a worker and acts on it. `false`: there is nothing more to read.
    pub(super) fn read_worker(&mut self, index: u32) -> bool {
        let Some(inlet) = self.inlets[index as usize].as_mut() else { return false };
        if inlet.at_end || inlet.broken.is_some() {
            return false;
        }
        let events = match inlet.receiver.fill() {
            Ok(0) => {
                inlet.at_end = true;
                return false;
            }
            Ok(_) => inlet.take_events(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // Its process is gone or going: what matters is what the spawner says of it.
            Err(_) => {
                inlet.at_end = true;
                return false;
            }
        };
        self.apply(WorkerId(index), events);
        true
    }

    /// Ends a worker that was to be sent what the format does not hold.
    fn give_up(&mut self, worker: WorkerId, error: &WireError) {
        if self.hosts.as_ref().is_some_and(|hosts| hosts.has(worker)) {
            return self.give_up_host(worker, error);
        }
        let Some(inlet) = self.inlets[worker.0 as usize].as_mut() else { return };
        inlet.broken.get_or_insert(format!("a message for it cannot be sent: {error}"));
        let _ = self.epoll.delete(inlet.receiver.socket());
        self.kill(&[worker]);
    }

    /// Takes answers that a worker has given, and holds back although its next call takes long.
    fn collect(&mut self, index: u32) {
        for _ in 0..LOOKS {
            while self.read_worker(index) {}
            let Some(inlet) = self.inlets[index as usize].as_mut() else { return };
            if inlet.broken.is_some() {
                return;
            }
            let mut bytes = Vec::new();
            match take(&inlet.outbox, inlet.receiver.position(), &mut bytes) {
                Take::Nothing => return,
                Take::Taken => return self.feed(index, &bytes),
                Take::Again => {}
            }
        }
    }

    /// Takes what a worker that is gone had said and not sent.
    pub(super) fn take_rest(&mut self, index: u32) {
        let Some(inlet) = self.inlets[index as usize].as_mut() else { return };
        if inlet.broken.is_some() {
            return;
        }
        let mut bytes = Vec::new();
        take_rest(&inlet.outbox, inlet.receiver.position(), &mut bytes);
        self.feed(index, &bytes);
    }

    fn feed(&mut self, index: u32, bytes: &[u8]) {
        if let Some(inlet) = self.inlets[index as usize].as_mut() {
            inlet.receiver.feed(bytes);
            let events = inlet.take_events();
            self.apply(WorkerId(index), events);
        }
    }

    /// Applies what a worker has sent.
    fn apply(&mut self, worker: WorkerId, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut unexpected = None;
        let mut answered: Vec<(Arc<Call>, Outcome, Stamps)> = Vec::with_capacity(events.len());
        // Declared before the lock, and so dropped behind it.
        let mut unwanted = Vec::new();
        let mut wanted = Vec::new();
        let mut state = self.common.lock();
        let now = Time(monotonic_ns());
        state.note_progress(now, worker);
        let mut changed = false;
        for event in events {
            match event {
                Event::Welcome { pid } => {
                    if let Some(out) = state.workers.get(worker) {
                        out.pid = pid;
                    }
                    state.drive(|core, out| core.worker_ready(now, worker, out));
                    changed = true;
                }
                Event::Release(leases) => {
                    if let Some(out) = state.workers.get(worker) {
                        let released = out.release(&leases);
                        state.garbage.extend(released);
                    }
                }
                Event::BlobDropped { blob, unread } => {
                    state.drive(|core, out| core.blob_dropped(worker, BlobId(blob), unread, out));
                }
                Event::Callback { call: id, index, arguments } => {
                    if is_request(index) && self.common.upstream.is_some() {
                        // The client of this agent serves it; nothing is to wait behind it here.
                        state.drive(|core, out| core.nests(worker, out));
                    }
                    match state.core.payload(CallId(id)).cloned() {
                        Some(call) => wanted.push(Wanted { worker, id, call, index, arguments }),
                        None => {
                            let message = "the call has ended";
                            state.push(worker, &Message::CallbackFailure { call: id, message });
                        }
                    }
                }
                Event::Answer { call, stamps, retained, mut outcome } => {
                    let sent = state.core.payload(CallId(call));
                    if let Some(Err(error)) = sent.map(|sent| sent.find_left(&mut outcome)) {
                        unexpected = Some(format!("a result that is not there: {error}"));
                        continue;
                    }
                    let took = Took {
                        ran: stamps.calc_out.saturating_sub(stamps.calc_in),
                        whole: stamps.calc_out.saturating_sub(stamps.received),
                    };
                    let raised = matches!(outcome, Outcome::Raised { .. });
                    let replied = state.drive(|core, out| {
                        let answered = if raised { Core::raised } else { Core::replied };
                        answered(core, now, worker, CallId(call), took, out)
                    });
                    match replied {
                        Ok((call, live)) => {
                            if let Some(payload) = call.take_payload() {
                                let out = state.workers.get(worker);
                                if let Some(out) = out.filter(|_| !retained.is_empty()) {
                                    out.retain(&retained, payload);
                                } else {
                                    state.garbage.push(payload);
                                }
                            }
                            if live {
                                answered.push((call, outcome, stamps));
                            } else {
                                unwanted.push(outcome);
                            }
                        }
                        Err(error) => unexpected = Some(error.to_string()),
                    }
                }
            }
        }
        let waiting = state.waiting_for_room > 0 && state.core.has_room(0);
        let ready = std::mem::take(&mut state.to_gather);
        self.common.finish(state);
        let upstream = self.common.upstream.is_some();
        let (nested, wanted): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|wanted: &Wanted| is_request(wanted.index) && !upstream);
        wanted.into_iter().for_each(|wanted| self.runner.take(wanted));
        for (call, outcome, stamps) in answered {
            call.finish(outcome, Some(stamps));
        }
        if let Some(upstream) = &self.common.upstream {
            upstream.settle();
            if changed {
                upstream.changed();
            }
        }
        self.common.gather(ready);
        nested.iter().for_each(|wanted| self.common.serve_nested(wanted));
        if changed || waiting {
            self.common.changed.notify_all();
        }
        if let (Some(why), Some(inlet)) = (unexpected, &mut self.inlets[worker.0 as usize]) {
            inlet.broken.get_or_insert(why);
        }
    }
}

/// When that is on the clock that everything here goes by.
fn on_our_clock(at: Instant) -> Time {
    let left = at.saturating_duration_since(Instant::now()).as_nanos();
    now() + u64::try_from(left).unwrap_or(u64::MAX)
}

/// A time-out up to the next whole millisecond, so as not to wake too early again and again.
fn milliseconds(ns: u64) -> EpollTimeout {
    let ms = ns.div_ceil(1_000_000).min(60_000);
    EpollTimeout::try_from(ms as i32).unwrap_or(EpollTimeout::ZERO)
}

impl Inlet {
    /// Passes on what its process has written.
    pub(super) fn read_output(&mut self) {
        for output in self.stdout.iter_mut().chain([&mut self.stderr]) {
            output.read();
            output.end();
        }
    }

    /// The messages that have come in whole. A broken one marks the inlet.
    fn take_events(&mut self) -> Vec<Event> {
        let Inlet { receiver, mapped, broken, host, .. } = self;
        let mut events = Vec::new();
        let drained = receiver.drain(|received| -> Result<(), LinkError> {
            events.extend(understand(received, mapped, host)?);
            Ok(())
        });
        if let Err(error) = drained {
            broken.get_or_insert(error.to_string());
        }
        events
    }
}

/// A result that this process cannot take.
fn no_room_for_result(error: &LinkError) -> Outcome {
    Outcome::Raised {
        error: RemoteError::OutOfMemory.name().to_owned(),
        message: format!("the result cannot be taken: {error}"),
        trace: String::new(),
        sections: Vec::new(),
    }
}

/// What a worker's message means. Announced segments are mapped on the way.
fn understand(
    received: Received<'_>,
    mapped: &mut Mapped,
    host: &mut String,
) -> Result<Option<Event>, LinkError> {
    let Received { message, streams, mut descriptors, .. } = received;
    let no_blobs = |_, _| None;
    Ok(Some(match message {
        Message::Welcome(welcome) => {
            if welcome.version != VERSION {
                return Err(LinkError::Unexpected(format!("version {}", welcome.version)));
            }
            welcome.host.clone_into(host);
            Event::Welcome { pid: welcome.pid }
        }
        Message::Reply { call, stamps, retained, sections } => {
            let outcome = match take_sections(&sections, streams, mapped, no_blobs) {
                Err(error @ LinkError::NoRoom { .. }) => no_room_for_result(&error),
                sections => Outcome::Returned(kept_within_bounds(sections?)),
            };
            Event::Answer { call, stamps, retained, outcome }
        }
        Message::Failure { call, stamps, retained, error, message, trace, sections } => {
            let sections = match take_sections(&sections, streams, mapped, no_blobs) {
                // The error is told without what cannot be had of it.
                Err(LinkError::NoRoom { .. }) => Vec::new(),
                sections => kept_within_bounds(sections?),
            };
            let outcome = Outcome::Raised {
                error: error.to_owned(),
                message: message.to_owned(),
                trace: trace.to_owned(),
                sections,
            };
            Event::Answer { call, stamps, retained, outcome }
        }
        Message::Callback { call, index, sections } => {
            let arguments = take_sections(&sections, streams, mapped, no_blobs)?;
            Event::Callback { call, index, arguments }
        }
        Message::Segment { segment, len } => {
            mapped.add_if_there_is_room(segment, len, descriptors.pop())?;
            return Ok(None);
        }
        Message::DropSegment { segment } => {
            mapped.remove(segment);
            return Ok(None);
        }
        Message::Release { leases } => Event::Release(leases),
        Message::BlobDropped { blob, unread } => Event::BlobDropped { blob, unread },
        other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
    }))
}
