//! What the threads of a client share under one lock: the core, and the way out to each worker.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use gridrpc_core::{
    Action, BlobId, CallId, Cause, Core, End, FunctionId, Loss, Settings, Time, WorkerId,
};
use gridrpc_wire::{FunctionForm, Lease, Message, Place, Section, WireError};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::borrowed::Returns;
use crate::client::call::{Call, Outcome};
use crate::client::function::{Function, FunctionRef};
use crate::client::hosts::kept::KeptCalls;
use crate::client::hosts::{HostsOut, Terms};
use crate::client::nested::Waiting;
use crate::client::shared::SharedData;
use crate::link::{Outbound, Sender};
use crate::payload::{Payload, announce};
use crate::sys::{Mapping, monotonic_ns};
use crate::worker::progress;

/// The way out to the process that holds a worker's place.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) sender: Sender,
    /// What the reactor knows its socket by.
    token: u64,
    /// Stretches of its segments that this client reads no more.
    returns: Returns,
    pub(crate) pid: u32,
    /// Segments of ours that it has been told.
    segments: HashSet<u32>,
    /// Sections that it still reads although their calls have ended.
    retained: HashMap<Lease, Vec<Arc<Payload>>>,
    /// The socket takes no more for now: the reactor goes on when it does.
    pub(crate) blocked: bool,
    dirty: bool,
    /// Calls that this process was sent, and how many of them the socket has been given. Compared by
    /// their low bits only.
    calls: u32,
    flushed: u32,
    /// There is something else than small calls that take microseconds to be sent.
    urgent: bool,
}

/// Calls that are held back to be sent together, at most.
const TOGETHER: u32 = 32;
/// As long as a worker has so many calls that it has not begun, those behind them can wait.
const AT_HAND: i32 = 4;
/// Only calls up to this size are held back, bytes.
const SMALL: u64 = 4096;

impl Outlet {
    pub(crate) fn new(sender: Sender, token: u64, returns: Returns) -> Outlet {
        Outlet {
            sender,
            token,
            returns,
            pid: 0,
            segments: HashSet::new(),
            retained: HashMap::new(),
            blocked: false,
            dirty: false,
            calls: 0,
            flushed: 0,
            urgent: false,
        }
    }

    /// Whether what is to be sent can wait: it is calls, and few, and `begun` shows that the worker has
    /// others at hand. It answers when it has done those, so that nothing waits for long.
    fn can_wait(&self, submitting: bool, begun: impl FnOnce() -> Option<u32>) -> bool {
        let waiting = self.calls.wrapping_sub(self.flushed);
        let at_hand = |begun| self.flushed.wrapping_sub(begun).cast_signed();
        // To ask slows the worker down, which writes there. It is enough now and then, as long as
        // it has not answered.
        let asks = !submitting || waiting % 4 == 1;
        !self.urgent
            && waiting < TOGETHER
            && (!asks || begun().is_some_and(|begun| at_hand(begun) >= AT_HAND))
    }

    /// Sends as much as the socket takes, and has the reactor told when it takes more.
    pub(crate) fn flush(&mut self, epoll: &Epoll) {
        self.urgent = false;
        self.flushed = self.calls;
        // A connection that is gone shows itself on its receiving half.
        let blocked = matches!(self.sender.flush(), Ok(false));
        if blocked != self.blocked {
            self.blocked = blocked;
            let flags = if blocked {
                EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT
            } else {
                EpollFlags::EPOLLIN
            };
            let mut event = EpollEvent::new(flags, self.token);
            // Fails only for a descriptor that is no longer watched, because its worker is gone.
            let _ = epoll.modify(self.sender.socket(), &mut event);
        }
    }

    /// Gives back what this client reads no more, as far as that takes a message.
    fn push_releases(&mut self) -> Result<(), WireError> {
        // At most 65,535 go in one message.
        let returned = self.returns.take();
        let mut messages = returned.chunks(1 << 15);
        messages
            .try_for_each(|leases| self.sender.push(&Message::Release { leases: leases.to_vec() }))
    }

    /// Keeps what the worker still reads of an answered call.
    pub(crate) fn retain(&mut self, leases: &[Lease], payload: Arc<Payload>) {
        for lease in leases {
            self.retained.entry(*lease).or_default().push(Arc::clone(&payload));
        }
    }

    /// The worker reads these no more. Returns what may be dropped, though not under the lock.
    #[must_use]
    pub(crate) fn release(&mut self, leases: &[Lease]) -> Vec<Arc<Payload>> {
        let release = |lease: &Lease| match self.retained.entry(*lease) {
            Entry::Occupied(mut held) => {
                let one = held.get_mut().pop();
                if held.get().is_empty() {
                    held.remove();
                }
                one
            }
            Entry::Vacant(_) => None,
        };
        leases.iter().filter_map(release).collect()
    }

    /// Segments of ours that are gone. Whether there was something to tell.
    pub(crate) fn drop_segments(&mut self, gone: &[u32]) -> Result<bool, WireError> {
        let mut told = false;
        for segment in gone {
            if self.segments.remove(segment) {
                told = true;
                self.sender.push(&Message::DropSegment { segment: *segment })?;
            }
        }
        Ok(told)
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) epoll: Arc<Epoll>,
    pub(crate) core: Core<Arc<Call>>,
    pub(crate) outlets: Vec<Option<Outlet>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) shared: HashMap<BlobId, Arc<SharedData>>,
    blobs_made: u64,
    /// Places that need a process.
    pub(crate) to_start: Vec<WorkerId>,
    /// Places that are given up before their process has a connection.
    pub(crate) dismissed: HashSet<WorkerId>,
    /// Who was sent a call last.
    pub(crate) last_sent: WorkerId,
    /// Processes that have to be ended.
    pub(crate) to_kill: Vec<WorkerId>,
    /// Workers that were to be sent what the format does not hold: they are ended.
    pub(crate) unsendable: Vec<(WorkerId, WireError)>,
    /// Workers whose answers have to be fetched from their outboxes.
    pub(crate) to_collect: Vec<WorkerId>,
    /// Modules of Python that the spawner is to import before it forks.
    pub(crate) to_prepare: Vec<String>,
    /// The spawner has forked: what it imports from now on is of no use to those that are there.
    pub(crate) forked: bool,
    /// How far the workers have come.
    progress: Arc<Mapping>,
    /// Workers whose calls were taken back: how many they had begun, and below which count.
    taken_back: Vec<(WorkerId, u32, u64)>,
    /// Reserved workers that are given up before they were asked for.
    gone: Vec<WorkerId>,
    /// Scratch for the core's actions.
    actions: Vec<Action<Arc<Call>>>,
    /// Workers with unsent messages.
    dirty: Vec<WorkerId>,
    /// Calls that ended; told to their waiters when the lock is free.
    pub(crate) ended: Vec<(Arc<Call>, End)>,
    /// Calls whose arguments are to be put together when the lock is free.
    pub(crate) to_gather: Vec<(CallId, Arc<Call>)>,
    /// Calls that functions in workers wait for.
    pub(super) nested: HashMap<CallId, Waiting>,
    /// Those that such a worker is to run itself; it is told when the lock is free.
    pub(super) to_run: Vec<(CallId, Arc<Call>)>,
    /// Functions of such calls, by name and pickle.
    pub(super) nested_functions: HashMap<(String, Vec<u8>), Arc<FunctionRef>>,
    /// The ways out to hosts, and those of them that have something to send when the lock is free.
    pub(crate) hosts: HostsOut,
    pub(crate) to_flush: Vec<Arc<Outbound>>,
    /// The calls whose results they keep.
    pub(crate) kept: KeptCalls,
    /// Things to drop when the lock is free: dropping them may take other locks, or time.
    pub(crate) garbage: Vec<Arc<Payload>>,
    freed: Vec<Arc<SharedData>>,
    /// All that has happened since the last flush is a submission.
    pub(crate) submitting: bool,
    /// Threads that wait until more calls may be submitted.
    pub(crate) waiting_for_room: usize,
    pub(crate) closing: bool,
    /// Until when the reactor sleeps; `None` while it is awake.
    pub(crate) reactor_sleeps_until: Option<Time>,
}

/// What to do when the lock has been released.
#[derive(Debug, Default)]
pub(crate) struct Aftermath {
    ended: Vec<(Arc<Call>, End)>,
    _garbage: Vec<Arc<Payload>>,
    freed: Vec<Arc<SharedData>>,
}

impl Aftermath {
    /// Tells those who wait. Not under the lock. Whether memory of shared data has come free; and the calls
    /// that the functions of ended ones have made, and nobody wants any more.
    pub(crate) fn settle(self) -> (bool, Vec<Arc<Call>>) {
        let mut unwanted = Vec::new();
        for (call, end) in self.ended {
            unwanted.extend(call.take_children());
            call.finish(Outcome::Ended(end), None);
        }
        (!self.freed.is_empty(), unwanted)
    }
}

impl State {
    pub(crate) fn new(settings: Settings, progress: Arc<Mapping>) -> io::Result<State> {
        let workers = settings.workers as usize;
        let hosts = HostsOut::new(settings.workers, settings.hosts.len());
        Ok(State {
            hosts,
            kept: KeptCalls::default(),
            to_flush: Vec::new(),
            epoll: Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?),
            core: Core::new(settings),
            outlets: (0..workers).map(|_| None).collect(),
            functions: Vec::new(),
            shared: HashMap::new(),
            blobs_made: 0,
            to_start: Vec::new(),
            dismissed: HashSet::new(),
            last_sent: WorkerId(0),
            to_kill: Vec::new(),
            to_collect: Vec::new(),
            unsendable: Vec::new(),
            to_prepare: Vec::new(),
            forked: false,
            progress,
            taken_back: Vec::new(),
            gone: Vec::new(),
            actions: Vec::new(),
            dirty: Vec::new(),
            ended: Vec::new(),
            to_gather: Vec::new(),
            nested: HashMap::new(),
            to_run: Vec::new(),
            nested_functions: HashMap::new(),
            garbage: Vec::new(),
            freed: Vec::new(),
            submitting: false,
            waiting_for_room: 0,
            closing: false,
            reactor_sleeps_until: None,
        })
    }

    /// Tells the core how far a worker has come.
    pub(crate) fn note_progress(&mut self, now: Time, worker: WorkerId) {
        if let Some(begun) = progress::begun(&self.progress, worker.0) {
            self.core.progressed(now, worker, begun);
        }
    }

    /// Does that for all workers.
    pub(crate) fn note_all_progress(&mut self, now: Time) {
        for index in 0..self.outlets.len() {
            self.note_progress(now, WorkerId(index as u32));
        }
    }

    /// Lets `step` change the core, then does what the core asks for.
    pub(crate) fn drive<R>(
        &mut self,
        step: impl FnOnce(&mut Core<Arc<Call>>, &mut Vec<Action<Arc<Call>>>) -> R,
    ) -> R {
        let mut actions = std::mem::take(&mut self.actions);
        let result = step(&mut self.core, &mut actions);
        for action in actions.drain(..) {
            self.perform(action);
        }
        while let Some((worker, begun, below)) = self.taken_back.pop() {
            let now = Time(monotonic_ns());
            self.core.taken_back(now, worker, begun, below, &mut actions);
            for action in actions.drain(..) {
                self.perform(action);
            }
        }
        while let Some(worker) = self.gone.pop() {
            let loss = never_started(worker);
            self.core.worker_lost(Time(monotonic_ns()), worker, None, loss, &mut actions);
            for action in actions.drain(..) {
                self.perform(action);
            }
        }
        self.actions = actions;
        result
    }

    fn perform(&mut self, action: Action<Arc<Call>>) {
        match action {
            Action::Start(worker) if self.core.home(worker).is_some() => {
                let home = self.core.home(worker).unwrap_or(worker);
                self.push(home, &Message::Reserve { number: worker.0 });
            }
            Action::Start(worker) => {
                let places = self.outlets.len().max(worker.0 as usize + 1);
                self.outlets.resize_with(places, || None);
                self.to_start.push(worker);
            }
            Action::Cancel { worker, call } => {
                let worker = self.core.home(worker).unwrap_or(worker);
                self.push(worker, &Message::Cancel { call: call.0 });
            }
            Action::Dismiss(worker) if self.core.home(worker).is_some() => {
                let home = self.core.home(worker).unwrap_or(worker);
                if self.hosts.get(home).is_some() {
                    self.push(home, &Message::Dismiss { number: worker.0 });
                } else {
                    // Its host has not come: there is nothing to be given up there.
                    self.gone.push(worker);
                }
            }
            Action::Retract { host, calls } => {
                let calls = calls.into_iter().map(|call| call.0).collect();
                self.push(host, &Message::Retract { calls });
            }
            Action::Keep { host, call } => {
                // A result that has its place in the caller's memory is to come.
                if self.core.payload(call).is_some_and(|call| call.result_can_stay()) {
                    let asked = self.hosts.keep(host, call.0);
                    self.pushed_to_host(host, asked);
                }
            }
            Action::Dismiss(worker) => {
                if self.outlets[worker.0 as usize].is_some() {
                    self.push(worker, &Message::Goodbye);
                } else {
                    // It is told as soon as there is a connection.
                    self.dismissed.insert(worker);
                }
            }
            Action::Kill(worker) => self.to_kill.push(worker),
            Action::Collect(worker) => self.to_collect.push(worker),
            Action::TakeBack { worker, head, below } => {
                // Of a worker that has no place there, calls stay where they are.
                let head = head.map(|head| head as u32);
                let begun = progress::take_back(&self.progress, worker.0, head, below as u32);
                self.taken_back.extend(begun.map(|begun| (worker, begun, below)));
            }
            Action::Send { worker, call, function, batch, payload } => {
                self.send(worker, call, function, batch, &payload);
            }
            Action::Teach { worker, function } => self.teach(worker, function),
            Action::Share { worker, blob } => self.give(worker, blob),
            Action::Unshare { worker, blob } => {
                self.push(worker, &Message::DropBlob { blob: blob.0 });
            }
            Action::Free { blob, unread } => {
                self.hosts.forget_chain(blob.0);
                let data = self.shared.remove(&blob);
                data.iter().filter(|_| !unread).for_each(|data| data.spend());
                self.freed.extend(data);
            }
            Action::Run { call: id, payload: call, .. } => self.to_run.push((id, call)),
            Action::Gather { call: id, payload: call } => self.to_gather.push((id, call)),
            Action::Forget(call) => self.garbage.extend(call.take_payload()),
            Action::End { payload: call, end, .. } => {
                let in_flight =
                    matches!(end, End::Cancelled | End::DeadlineExceeded(_) | End::Closed)
                        && call.profile().sent != 0;
                if !in_flight {
                    self.garbage.extend(call.take_payload());
                }
                self.ended.push((call, end));
            }
        }
    }

    fn send(
        &mut self,
        worker: WorkerId,
        id: CallId,
        function: FunctionId,
        batch: bool,
        call: &Arc<Call>,
    ) {
        if !self.hosts.is_empty() {
            let home = self.core.home(worker);
            let host = home.unwrap_or(worker);
            if self.hosts.is_host(host) {
                let State { core, hosts, .. } = self;
                let Some((idempotent, blobs)) = core.terms(id) else { return };
                let terms = Terms { idempotent, blobs };
                let sent = hosts.send(host, home.map(|_| worker), id, function, batch, call, terms);
                return self.pushed_to_host(host, sent);
            }
        }
        let Some(outlet) = self.outlets[worker.0 as usize].as_mut() else { return };
        let Some(payload) = call.send(worker.0, outlet.pid) else { return };
        self.last_sent = worker;
        outlet.calls = outlet.calls.wrapping_add(1);
        let can_wait = batch && payload.bytes <= SMALL;
        let message =
            Message::Call { call: id.0, function: function.0, batch, sections: payload.sections() };
        let released = outlet.push_releases();
        let Outlet { sender, segments, .. } = outlet;
        let pushed = released
            .and_then(|()| payload.announce(sender, |segment| segments.insert(segment)))
            .and_then(|()| sender.push(&message))
            .and_then(|()| payload.push_streams(sender));
        self.pushed(worker, pushed, !can_wait);
    }

    /// Sends the results of a callback.
    pub(crate) fn answer_callback(&mut self, worker: WorkerId, call: u64, payload: &Payload) {
        if self.hosts.is_host(worker) {
            let pushed = self.hosts.answer_callback(worker, call, payload);
            return self.pushed_to_host(worker, pushed);
        }
        let Some(outlet) = self.outlets[worker.0 as usize].as_mut() else { return };
        let released = outlet.push_releases();
        let Outlet { sender, segments, .. } = outlet;
        let message = Message::CallbackReply { call, sections: payload.sections() };
        let pushed = released
            .and_then(|()| payload.announce(sender, |segment| segments.insert(segment)))
            .and_then(|()| sender.push(&message))
            .and_then(|()| payload.push_streams(sender));
        self.pushed(worker, pushed, true);
    }

    /// Tells why there are no results of a callback.
    pub(crate) fn fail_callback(&mut self, worker: WorkerId, call: u64, message: &str) {
        self.push(worker, &Message::CallbackFailure { call, message });
    }

    /// The process for a place has a connection now.
    pub(crate) fn connect(&mut self, worker: WorkerId, outlet: Outlet) {
        self.outlets[worker.0 as usize] = Some(outlet);
        if self.dismissed.remove(&worker) {
            self.push(worker, &Message::Goodbye);
        }
    }

    fn teach(&mut self, worker: WorkerId, number: FunctionId) {
        let host = self.core.home(worker).unwrap_or(worker);
        if self.hosts.is_host(host) {
            let State { hosts, functions, .. } = self;
            let Some(function) = functions.get(number.0 as usize) else { return };
            let pushed = hosts.teach(host, number, function);
            return self.pushed_to_host(host, pushed);
        }
        let Some(outlet) = self.outlets[worker.0 as usize].as_mut() else { return };
        let Some(function) = self.functions.get(number.0 as usize) else { return };
        let body = Section { len: function.body.len() as u64, place: Place::Stream };
        let streamed = function.form != FunctionForm::Named;
        let message = Message::Function {
            function: number.0,
            form: function.form,
            name: &function.name,
            sections: if streamed { vec![body] } else { Vec::new() },
        };
        let pushed = outlet.sender.push(&message).and_then(|()| {
            if streamed { outlet.sender.push_stream(&function.body) } else { Ok(()) }
        });
        self.pushed(worker, pushed, true);
    }

    fn give(&mut self, worker: WorkerId, blob: BlobId) {
        let host = self.core.home(worker).unwrap_or(worker);
        if self.hosts.is_host(host) {
            let State { hosts, shared, .. } = self;
            let Some(data) = shared.get(&blob) else { return };
            let pushed = hosts.spread(host, blob.0, data);
            return self.pushed_to_host(host, pushed);
        }
        let Some(outlet) = self.outlets[worker.0 as usize].as_mut() else { return };
        let Some(data) = self.shared.get(&blob) else { return };
        let message = Message::Blob { blob: blob.0, sections: data.sections() };
        let Outlet { sender, segments, .. } = outlet;
        let pushed = announce(data.segment(), sender, |segment| segments.insert(segment))
            .and_then(|()| sender.push(&message));
        self.pushed(worker, pushed, true);
    }

    /// Shared data has not reached a host by way of another: it goes there from here.
    pub(crate) fn share_again(&mut self, host: WorkerId, blob: BlobId) {
        let State { hosts, shared, .. } = self;
        let Some(data) = shared.get(&blob) else { return };
        let pushed = hosts.share(host, blob.0, data);
        self.pushed_to_host(host, pushed);
    }

    pub(crate) fn push(&mut self, worker: WorkerId, message: &Message<'_>) {
        if self.hosts.is_host(worker) {
            let pushed = self.hosts.push(worker, message);
            return self.pushed_to_host(worker, pushed);
        }
        if worker.0 as usize >= self.outlets.len() {
            return;
        }
        if let Some(outlet) = self.outlets[worker.0 as usize].as_mut() {
            let pushed = outlet.sender.push(message);
            self.pushed(worker, pushed, true);
        }
    }

    /// A message has been pushed, or cannot be sent as it is: then its worker is ended, which would else
    /// wait for it for ever, or not know what the next one means.
    fn pushed(&mut self, worker: WorkerId, pushed: Result<(), WireError>, urgent: bool) {
        match pushed {
            Ok(()) => self.mark(worker, urgent),
            Err(error) => self.unsendable.push((worker, error)),
        }
    }

    /// A host has ended a call, or given it back, and keeps no result.
    pub(crate) fn kept_nothing(&mut self, host: WorkerId, call: u64) {
        let told = self.hosts.kept_nothing(host, call);
        self.pushed_to_host(host, told);
    }

    /// The same of a host, which ends with all of its workers.
    fn pushed_to_host(&mut self, host: WorkerId, pushed: Result<(), WireError>) {
        if let Err(error) = pushed {
            self.unsendable.push((host, error));
        }
    }

    /// Something has been pushed; `urgent`: it cannot wait.
    fn mark(&mut self, worker: WorkerId, urgent: bool) {
        let Some(outlet) = self.outlets[worker.0 as usize].as_mut() else { return };
        outlet.urgent |= urgent;
        if !std::mem::replace(&mut outlet.dirty, true) {
            self.dirty.push(worker);
        }
    }

    pub(crate) fn push_to_all(&mut self, message: &Message<'_>) {
        for index in 0..self.outlets.len() {
            self.push(WorkerId(index as u32), message);
        }
    }

    /// Tells all workers that know them of segments that are gone; `now`, or with what is sent next.
    pub(crate) fn drop_segments(&mut self, gone: &[u32], now: bool) {
        for index in 0..self.outlets.len() {
            let Some(outlet) = self.outlets[index].as_mut() else { continue };
            let worker = WorkerId(index as u32);
            match outlet.drop_segments(gone) {
                Ok(told) if told && now => self.mark(worker, true),
                Ok(_) => {}
                Err(error) => self.pushed(worker, Err(error), true),
            }
        }
    }

    /// Sends what has been pushed, as far as the sockets take it; the reactor sends the rest. A few small
    /// calls may wait for others, to go with them: to send takes longer than to run them.
    pub(crate) fn flush(&mut self) {
        let submitting = std::mem::take(&mut self.submitting);
        if self.hosts.has_unsent() {
            self.to_flush.extend(self.hosts.take_unsent(submitting));
        }
        let State { dirty, outlets, progress, epoll, .. } = self;
        dirty.retain(|worker| {
            let Some(outlet) = outlets[worker.0 as usize].as_mut() else { return false };
            let begun = || progress::begun(progress, worker.0);
            if outlet.can_wait(submitting, begun) {
                return true;
            }
            outlet.dirty = false;
            if !outlet.blocked {
                outlet.flush(epoll);
            }
            false
        });
    }

    /// Sends calls that wait for others.
    pub(crate) fn flush_all(&mut self) {
        for worker in &self.dirty {
            if let Some(outlet) = &mut self.outlets[worker.0 as usize] {
                outlet.urgent = true;
            }
        }
        self.hosts.hurry();
        self.flush();
    }

    /// A number that no shared data of this grid has had.
    pub(crate) fn next_blob(&mut self) -> BlobId {
        self.blobs_made += 1;
        BlobId(self.blobs_made)
    }

    pub(crate) fn aftermath(&mut self) -> Aftermath {
        Aftermath {
            ended: std::mem::take(&mut self.ended),
            _garbage: std::mem::take(&mut self.garbage),
            freed: std::mem::take(&mut self.freed),
        }
    }

    /// Whether calls have ended that nobody has been told of.
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Whether the reactor has to be woken: it sleeps, and does not know what is to be done.
    pub(crate) fn needs_reactor(&self) -> bool {
        let Some(until) = self.reactor_sleeps_until else { return false };
        self.closing
            || !self.to_start.is_empty()
            || !self.to_kill.is_empty()
            || !self.unsendable.is_empty()
            || !self.to_prepare.is_empty()
            || self.next_tick().is_some_and(|next| next < until)
    }

    /// When something is due without anything happening.
    pub(crate) fn next_tick(&self) -> Option<Time> {
        self.core.next_tick()
    }
}

/// How a reserved worker is lost that was given up before its host had come.
fn never_started(worker: WorkerId) -> Loss {
    let cause = Cause::Failed("it was given up before it was started".to_owned());
    Loss { worker: worker.0, pid: 0, host: String::new(), cause, stderr: String::new() }
}
