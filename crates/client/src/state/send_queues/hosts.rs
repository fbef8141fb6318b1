//! The ways out to hosts, under the lock of the state. Messages are put into queues; they are encrypted and
//! sent when the lock is free.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gridrpc_core::{BlobId, CallId, FunctionId, WorkerId};
use gridrpc_link::Outbound;
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::Payload;
use gridrpc_wire::{FunctionForm, HostCall, Message, Place, Section, WireError};

use crate::call::Call;
use crate::function::Function;
use crate::shared::SharedData;
use crate::state::send_queues::reserved_workers::ReservedWorkers;

/// What a call's function may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Whether it may be run again.
    pub(crate) idempotent: bool,
    /// The shared data that it refers to.
    pub(crate) blobs: &'a [BlobId],
}

/// The way out to the agent of a host.
#[derive(Debug)]
pub(crate) struct HostOut {
    pub(crate) up: Arc<Outbound>,
    /// The grid's number for its first worker.
    pub(crate) base: u32,
    /// Workers that have answered there.
    pub(crate) slots: u32,
    /// Where other hosts can dial it.
    addresses: Vec<String>,
    /// Modules that it has been sent, by hash.
    modules: HashSet<String>,
    /// Calls for reserved workers there, whose numbers these are.
    for_guests: HashMap<u64, u32>,
    /// Calls whose results it was asked to keep, and that it has not answered.
    to_keep: HashSet<u64>,
    /// Calls that it was sent, those of them that have been given to the connection, and those that have
    /// been answered.
    sent: u64,
    flushed: u64,
    pub(crate) answered: u64,
    urgent: bool,
    dirty: bool,
}

/// Shared data of so many bytes and more goes from host to host.
const WORTH_PASSING: u64 = 1 << 20;
/// Calls that are held back to be sent together, at most, and how large they may be, bytes.
const TOGETHER: u64 = 32;
const SMALL: u64 = 4096;
/// As long as each of its workers has so many calls at hand, those behind them can wait.
const AT_HAND: u64 = 4;

impl HostOut {
    /// `modules`: hashes of those that it has been sent.
    pub(crate) fn new(
        up: Arc<Outbound>,
        base: u32,
        addresses: Vec<String>,
        modules: HashSet<String>,
    ) -> HostOut {
        HostOut {
            up,
            base,
            addresses,
            slots: 0,
            modules,
            for_guests: HashMap::new(),
            to_keep: HashSet::new(),
            sent: 0,
            flushed: 0,
            answered: 0,
            urgent: false,
            dirty: false,
        }
    }

    fn can_wait(&self, submitting: bool) -> bool {
        let at_hand = self.flushed.saturating_sub(self.answered);
        submitting
            && !self.urgent
            && self.sent - self.flushed < TOGETHER
            && at_hand >= AT_HAND * u64::from(self.slots.max(1))
    }
}

/// The ways out to all hosts.
#[derive(Debug, Default)]
pub(crate) struct HostsOut {
    first: u32,
    list: Vec<Option<HostOut>>,
    /// Those with something to send.
    dirty: Vec<WorkerId>,
    /// The grid's numbers for workers of hosts, in their order, and how those call themselves.
    numbers: Vec<(Range<u32>, Arc<str>)>,
    next: u32,
    /// By number of shared data: the hosts that it goes to, each from the one before.
    chains: HashMap<u64, Vec<WorkerId>>,
    /// The name of each host, and how far its start has come.
    states: Vec<(Arc<str>, String)>,
    guests: ReservedWorkers,
}

impl HostsOut {
    /// For so many hosts, the first of which has this number.
    pub(crate) fn new(first: u32, count: usize) -> HostsOut {
        let list = (0..count).map(|_| None).collect();
        let states = vec![("".into(), String::new()); count];
        HostsOut { first, list, next: first, states, ..HostsOut::default() }
    }

    /// Notes how far the start of a host has come.
    pub(crate) fn note(&mut self, id: WorkerId, name: &str, state: &str) {
        if let Some(index) = self.index(id) {
            self.states[index] = (name.into(), state.to_owned());
        }
    }

    /// The name of a host, and how far its start has come, for people.
    pub(crate) fn how_far(&self, id: WorkerId) -> (String, String) {
        match self.index(id).map(|index| &self.states[index]) {
            Some((name, state)) => (name.to_string(), format!("host {name} {state}")),
            None => Default::default(),
        }
    }

    /// Numbers for so many workers of a host: those that it had before, if it has been here.
    pub(crate) fn number(&mut self, host: &str, workers: u32) -> u32 {
        let same = |(range, name): &&(Range<u32>, Arc<str>)| {
            **name == *host && range.end - range.start >= workers
        };
        if let Some((range, _)) = self.numbers.iter().find(same) {
            return range.start;
        }
        let base = self.next;
        self.next += workers;
        self.numbers.push((base..self.next, host.into()));
        base
    }

    /// The host of a worker with this number; none: this machine.
    pub(crate) fn host_of(&self, worker: u32) -> Option<Arc<str>> {
        let found = self.numbers.iter().find(|(range, _)| range.contains(&worker));
        found.map(|(_, host)| Arc::clone(host))
    }

    fn index(&self, id: WorkerId) -> Option<usize> {
        let index = id.0.checked_sub(self.first)? as usize;
        (index < self.list.len()).then_some(index)
    }

    /// All hosts.
    pub(crate) fn ids(&self) -> impl Iterator<Item = WorkerId> {
        (self.first..).take(self.list.len()).map(WorkerId)
    }

    /// Whether this executor is a host.
    pub(crate) fn is_host(&self, id: WorkerId) -> bool {
        self.index(id).is_some()
    }

    /// What is known of the start of a host.
    pub(crate) fn state(&self, id: WorkerId) -> &str {
        self.index(id).map_or("", |index| &self.states[index].1)
    }

    /// The way to a host that is there.
    pub(crate) fn get(&mut self, id: WorkerId) -> Option<&mut HostOut> {
        let index = self.index(id)?;
        self.list[index].as_mut()
    }

    /// A host is there, or gone.
    pub(crate) fn set(&mut self, id: WorkerId, host: Option<HostOut>) {
        if let Some(index) = self.index(id) {
            self.list[index] = host;
        }
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn mark(&mut self, id: WorkerId, urgent: bool) {
        let Some(host) = self.get(id) else { return };
        host.urgent |= urgent;
        if !std::mem::replace(&mut host.dirty, true) {
            self.dirty.push(id);
        }
    }

    /// The connections with something to send that cannot wait: to be flushed when the lock is free.
    pub(crate) fn take_unsent(&mut self, submitting: bool) -> Vec<Arc<Outbound>> {
        let mut ready = Vec::new();
        for id in std::mem::take(&mut self.dirty) {
            let Some(host) = self.get(id) else { continue };
            if host.can_wait(submitting) {
                self.dirty.push(id);
                continue;
            }
            (host.dirty, host.urgent) = (false, false);
            host.flushed = host.sent;
            ready.push(Arc::clone(&host.up));
        }
        ready
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Nothing can wait any longer.
    pub(crate) fn hurry(&mut self) {
        for id in self.dirty.clone() {
            self.mark(id, true);
        }
    }

    /// Sends a call to any worker of a host, or to a reserved one.
    #[allow(clippy::too_many_arguments)] // the fields of one message
    pub(crate) fn send(
        &mut self,
        host: WorkerId,
        on: Option<WorkerId>,
        id: CallId,
        function: FunctionId,
        batch: bool,
        call: &Call,
        terms: Terms<'_>,
    ) -> Result<(), WireError> {
        let on = match on {
            Some(place) => match self.guests.number(place) {
                Some(number) => Some(number),
                // It is the next to be lost, with its calls.
                None => return Ok(()),
            },
            None => None,
        };
        let Some(out) = self.get(host) else { return Ok(()) };
        // Which of its workers gets it only the host knows.
        let Some(payload) = call.send(u32::MAX, 0) else { return Ok(()) };
        let Terms { idempotent, blobs } = terms;
        let blobs = blobs.iter().map(|blob| blob.0).collect();
        let message = Message::HostCall(HostCall {
            call: id.0,
            function: function.0,
            on: on.unwrap_or(u32::MAX),
            idempotent,
            blobs,
            sections: payload.streamed_sections(),
        });
        let streams = payload.sources().map_err(no_memory)?;
        let can_wait = batch && payload.bytes <= SMALL;
        out.up.push_with(&message, streams)?;
        out.sent += 1;
        if let Some(on) = on {
            out.for_guests.insert(id.0, on);
        }
        self.mark(host, !can_wait);
        Ok(())
    }

    /// Tells a host a function, and before it the file of its module.
    pub(crate) fn teach(
        &mut self,
        host: WorkerId,
        number: FunctionId,
        function: &Function,
    ) -> Result<(), WireError> {
        let Some(out) = self.get(host) else { return Ok(()) };
        let mut body = Arc::clone(&function.body);
        if let Some(staged) = &function.staged {
            if out.modules.insert(staged.hash.clone()) {
                staged.push(&out.up)?;
            }
            body = Arc::new(Source::owned(staged.hash.clone().into_bytes()));
        }
        let streamed = function.form != FunctionForm::Named;
        let section = Section { len: body.len() as u64, place: Place::Stream };
        let message = Message::Function {
            function: number.0,
            form: function.form,
            name: &function.name,
            sections: if streamed { vec![section] } else { Vec::new() },
        };
        let streams = if streamed { [body].into() } else { VecDeque::new() };
        out.up.push_in_line(&message, streams)?;
        self.mark(host, true);
        Ok(())
    }

    /// Gives a host shared data: another host that has it, or gets it, sends it on if it is large.
    pub(crate) fn spread(
        &mut self,
        host: WorkerId,
        blob: u64,
        data: &Arc<SharedData>,
    ) -> Result<(), WireError> {
        let chain = self.chains.get(&blob).and_then(|chain| chain.last()).copied();
        let from = chain.filter(|from| *from != host && data.bytes() >= WORTH_PASSING);
        let addresses = self.get(host).map(|out| out.addresses.clone()).unwrap_or_default();
        let from = from.filter(|from| !addresses.is_empty() && self.get(*from).is_some());
        let Some((from, secret)) = from.zip(gridrpc_sys::random().ok()) else {
            return self.share(host, blob, data);
        };
        self.push(host, &Message::Expect { blob, secret })?;
        let addresses = addresses.iter().map(String::as_str).collect();
        self.push(from, &Message::Pass { blob, to: host.0, secret, addresses })?;
        self.chains.entry(blob).or_default().push(host);
        Ok(())
    }

    /// A host has lost what it had, or is gone: nothing is sent on from there.
    pub(crate) fn break_chains(&mut self, host: WorkerId) {
        self.chains.retain(|_, chain| {
            chain.retain(|one| *one != host);
            !chain.is_empty()
        });
    }

    /// Nobody needs this data any more.
    pub(crate) fn forget_chain(&mut self, blob: u64) {
        self.chains.remove(&blob);
    }

    /// Gives a host shared data from here.
    pub(crate) fn share(
        &mut self,
        host: WorkerId,
        blob: u64,
        data: &Arc<SharedData>,
    ) -> Result<(), WireError> {
        let Some(out) = self.get(host) else { return Ok(()) };
        let message = Message::Blob { blob, sections: data.streamed_sections() };
        out.up.push_with(&message, data.sources())?;
        self.mark(host, true);
        let chain = self.chains.entry(blob).or_default();
        if !chain.contains(&host) {
            chain.push(host);
        }
        Ok(())
    }

    /// Sends the results of a callback.
    pub(crate) fn answer_callback(
        &mut self,
        host: WorkerId,
        call: u64,
        payload: &Payload,
    ) -> Result<(), WireError> {
        let Some(out) = self.get(host) else { return Ok(()) };
        let message = Message::CallbackReply { call, sections: payload.streamed_sections() };
        out.up.push_with(&message, payload.sources().map_err(no_memory)?)?;
        self.mark(host, true);
        Ok(())
    }

    /// Asks a host for a worker that has this place.
    pub(crate) fn reserve(&mut self, host: WorkerId, place: WorkerId) -> Result<(), WireError> {
        let number = self.guests.reserve(place);
        self.push(host, &Message::Reserve { number })
    }

    /// Gives the reserved worker of this place up.
    pub(crate) fn dismiss(&mut self, host: WorkerId, place: WorkerId) -> Result<(), WireError> {
        match self.guests.number(place) {
            Some(number) => self.push(host, &Message::Dismiss { number }),
            None => Ok(()),
        }
    }

    /// The place of the reserved worker with this number; none: it is gone.
    pub(crate) fn guest(&self, number: u32) -> Option<WorkerId> {
        self.guests.place(number)
    }

    /// The reserved worker of this place is gone.
    pub(crate) fn guest_left(&mut self, place: WorkerId) {
        self.guests.leave(place);
    }

    /// A call has been answered. Returns which executor had to do it, the host or a reserved worker there; none if
    /// that one is gone, and its calls with it.
    pub(crate) fn answered_by(&mut self, call: u64, host: WorkerId) -> Option<WorkerId> {
        let out = self.get(host)?;
        out.answered += 1;
        if out.for_guests.is_empty() {
            return Some(host);
        }
        match out.for_guests.remove(&call) {
            Some(number) => self.guests.place(number),
            None => Some(host),
        }
    }

    /// Asks a host to keep the result of a call.
    pub(crate) fn keep(&mut self, host: WorkerId, call: u64) -> Result<(), WireError> {
        if let Some(out) = self.get(host) {
            out.to_keep.insert(call);
        }
        self.push(host, &Message::KeepResult { call })
    }

    /// A host has answered a call, and keeps its result.
    pub(crate) fn keeps(&mut self, host: WorkerId, call: u64) {
        if let Some(out) = self.get(host) {
            out.to_keep.remove(&call);
        }
    }

    /// A host has ended a call, or given it back, and keeps no result.
    pub(crate) fn kept_nothing(&mut self, host: WorkerId, call: u64) -> Result<(), WireError> {
        let asked =
            self.get(host).is_some_and(|out| !out.to_keep.is_empty() && out.to_keep.remove(&call));
        if asked { self.push(host, &Message::DropResult { call }) } else { Ok(()) }
    }

    /// Sends a message without streams.
    pub(crate) fn push(&mut self, host: WorkerId, message: &Message<'_>) -> Result<(), WireError> {
        let Some(out) = self.get(host) else { return Ok(()) };
        out.up.push(message)?;
        self.mark(host, true);
        Ok(())
    }
}

/// What is to be sent cannot be read.
fn no_memory(_: std::io::Error) -> WireError {
    WireError::Truncated("shared memory that cannot be mapped")
}
