//! Send queues of hosts, under the state lock. Messages are queued, then encrypted and sent after the lock is
//! released.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gridrpc_core::{BlobId, CallId, FunctionId, WorkerId};
use gridrpc_link::Outbound;
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::{Outgoing, Payload};
use gridrpc_wire::{FunctionForm, HostCall, Message, Place, SECRET, Section, WireError};

use crate::call::Call;
use crate::function::Function;
use crate::shared::SharedData;
use crate::state::send_queues::host_memory::HostMemory;
use crate::state::send_queues::reserved_workers::ReservedWorkers;

/// Terms of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Whether it may run again.
    pub(crate) idempotent: bool,
    /// The shared data that it refers to.
    pub(crate) blobs: &'a [BlobId],
    /// Calls whose results it needs and gets from other hosts, and the numbers of the results as shared data.
    pub(crate) moved: &'a [(u64, u64)],
}

/// Send queue of a host's agent.
#[derive(Debug)]
pub(crate) struct HostOut {
    pub(crate) up: Arc<Outbound>,
    /// The grid's number of its first worker.
    pub(crate) base: u32,
    /// Ready workers on it.
    pub(crate) slots: u32,
    /// Its addresses for other hosts.
    addresses: Vec<String>,
    /// Hashes of the modules sent to it.
    modules: HashSet<String>,
    /// Calls for reserved workers on it, and the numbers of those workers.
    for_guests: HashMap<u64, u32>,
    /// Unanswered calls whose results it was requested to keep.
    to_keep: HashSet<u64>,
    /// Memory of this client that it uses; none: all data is streamed.
    memory: Option<HostMemory>,
    /// Number of calls sent to it, of those passed to the connection, and of those answered.
    sent: u64,
    flushed: u64,
    pub(crate) answered: u64,
    urgent: bool,
    dirty: bool,
}

/// Shared data of this size or more goes from host to host, bytes.
const WORTH_PASSING: u64 = 1 << 20;
/// Maximum number of calls in a batch, and their maximum size, bytes.
const TOGETHER: u64 = 32;
const SMALL: u64 = 4096;
/// While each of its workers has this many calls queued, further calls can wait.
const AT_HAND: u64 = 4;

impl HostOut {
    /// `modules`: hashes of the modules sent to it. `memory`: none: it uses no memory of this client.
    pub(crate) fn new(
        up: Arc<Outbound>,
        base: u32,
        addresses: Vec<String>,
        modules: HashSet<String>,
        memory: Option<HostMemory>,
    ) -> HostOut {
        HostOut {
            up,
            base,
            addresses,
            slots: 0,
            modules,
            for_guests: HashMap::new(),
            to_keep: HashSet::new(),
            memory,
            sent: 0,
            flushed: 0,
            answered: 0,
            urgent: false,
            dirty: false,
        }
    }

    /// Records that the host uses no memory of a call.
    fn use_no_memory(&mut self, call: u64) {
        if let Some(memory) = &mut self.memory {
            memory.answered(call);
        }
    }

    /// Records that the host gives calls back.
    pub(crate) fn retracted(&mut self, calls: &[u64]) {
        self.answered += calls.len() as u64;
        calls.iter().for_each(|call| self.use_no_memory(*call));
    }

    fn can_wait(&self, submitting: bool) -> bool {
        let at_hand = self.flushed.saturating_sub(self.answered);
        submitting
            && !self.urgent
            && self.sent - self.flushed < TOGETHER
            && at_hand >= AT_HAND * u64::from(self.slots.max(1))
    }
}

/// Send queues of all hosts.
#[derive(Debug, Default)]
pub(crate) struct HostsOut {
    first: u32,
    list: Vec<Option<HostOut>>,
    /// Hosts with unsent messages.
    dirty: Vec<WorkerId>,
    /// The grid's numbers of the workers of hosts, in order, and the names that those hosts report.
    numbers: Vec<(Range<u32>, Arc<str>)>,
    next: u32,
    /// By number of shared data: the hosts that receive it, each from the previous one.
    chains: HashMap<u64, Vec<WorkerId>>,
    /// The name of each host, and the progress of its start.
    states: Vec<(Arc<str>, String)>,
    guests: ReservedWorkers,
}

impl HostsOut {
    /// Queues of `count` hosts, numbered from `first`.
    pub(crate) fn new(first: u32, count: usize) -> HostsOut {
        let list = (0..count).map(|_| None).collect();
        let states = vec![("".into(), String::new()); count];
        HostsOut { first, list, next: first, states, ..HostsOut::default() }
    }

    /// Records the progress of a host's start.
    pub(crate) fn note(&mut self, id: WorkerId, name: &str, state: &str) {
        if let Some(index) = self.index(id) {
            self.states[index] = (name.into(), state.to_owned());
        }
    }

    /// The name of a host and the progress of its start, for people.
    pub(crate) fn how_far(&self, id: WorkerId) -> (String, String) {
        match self.index(id).map(|index| &self.states[index]) {
            Some((name, state)) => (name.to_string(), format!("host {name} {state}")),
            None => Default::default(),
        }
    }

    /// Numbers for this many workers of a host. A host that returns gets the same numbers as before.
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

    /// The host of a worker with this number; `None`: this machine.
    pub(crate) fn host_of(&self, worker: u32) -> Option<Arc<str>> {
        let found = self.numbers.iter().find(|(range, _)| range.contains(&worker));
        found.map(|(_, host)| Arc::clone(host))
    }

    fn index(&self, id: WorkerId) -> Option<usize> {
        let index = id.0.checked_sub(self.first)? as usize;
        (index < self.list.len()).then_some(index)
    }

    /// All hosts.
    pub(crate) fn ids(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (self.first..).take(self.list.len()).map(WorkerId)
    }

    /// Whether this executor is a host.
    pub(crate) fn is_host(&self, id: WorkerId) -> bool {
        self.index(id).is_some()
    }

    /// Progress of a host's start.
    pub(crate) fn state(&self, id: WorkerId) -> &str {
        self.index(id).map_or("", |index| &self.states[index].1)
    }

    /// The queue of a connected host.
    pub(crate) fn get(&mut self, id: WorkerId) -> Option<&mut HostOut> {
        let index = self.index(id)?;
        self.list[index].as_mut()
    }

    /// Sets or removes the queue of a host.
    pub(crate) fn set(&mut self, id: WorkerId, host: Option<HostOut>) {
        if let Some(index) = self.index(id) {
            self.list[index] = host;
        }
    }

    /// Whether there are no hosts.
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

    /// The connections with messages that cannot wait, to flush after the lock is released.
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

    /// Whether there are unsent messages.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Ends all batches: nothing can wait any longer.
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
                // It is lost next, together with its calls.
                None => return Ok(()),
            },
            None => None,
        };
        let Some(out) = self.get(host) else { return Ok(()) };
        // The host decides which worker gets it.
        let Some(payload) = call.send(u32::MAX, 0) else { return Ok(()) };
        let Terms { idempotent, blobs, moved } = terms;
        let copies = moved.iter().map(|(_, blob)| *blob);
        let blobs = blobs.iter().map(|blob| blob.0).chain(copies).collect();
        let is_lent = match &mut out.memory {
            Some(memory) => memory.lend(id.0, &payload, &out.up)?,
            None => false,
        };
        let (mut sections, streams) = if is_lent {
            (payload.sections(), payload.streams())
        } else {
            (payload.streamed_sections(), payload.sources().map_err(no_memory)?)
        };
        name_copies(&mut sections, &payload, moved);
        let message = Message::HostCall(HostCall {
            call: id.0,
            function: function.0,
            on: on.unwrap_or(u32::MAX),
            idempotent,
            blobs,
            sections,
        });
        let can_wait = batch && payload.bytes <= SMALL;
        if let Some(context) = call.trace_context() {
            out.up.push(&Message::Trace { call: id.0, context })?;
        }
        out.up.push_in(payload.order, &message, streams)?;
        out.sent += 1;
        if let Some(on) = on {
            out.for_guests.insert(id.0, on);
        }
        self.mark(host, !can_wait);
        Ok(())
    }

    /// Sends a function to a host, after the file of its module.
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
            name: function.name_there(),
            sections: if streamed { vec![section] } else { Vec::new() },
        };
        let streams = if streamed { [body].into() } else { VecDeque::new() };
        out.up.push_in_line(&message, streams)?;
        self.mark(host, true);
        Ok(())
    }

    /// Sends shared data to a host. Large data is forwarded by another host that has it or is about to get it.
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

    /// Has a host send a result that it keeps to another one, as shared data with this number.
    pub(crate) fn move_result(
        &mut self,
        result: u64,
        blob: u64,
        from: WorkerId,
        to: WorkerId,
        secret: [u8; SECRET],
    ) -> Result<(), WireError> {
        let addresses = self.get(to).map(|out| out.addresses.clone()).unwrap_or_default();
        let addresses = addresses.iter().map(String::as_str).collect();
        self.push(to, &Message::Expect { blob, secret })?;
        let to = to.0;
        self.push(from, &Message::PassResult { call: result, blob, to, secret, addresses })
    }

    /// Stops forwarding from a host that has lost its data or is gone.
    pub(crate) fn break_chains(&mut self, host: WorkerId) {
        self.chains.retain(|_, chain| {
            chain.retain(|one| *one != host);
            !chain.is_empty()
        });
    }

    /// Forgets shared data that nobody needs any more.
    pub(crate) fn forget_chain(&mut self, blob: u64) {
        self.chains.remove(&blob);
    }

    /// Sends shared data to a host from here.
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

    /// Reserves a worker on a host for this place.
    pub(crate) fn reserve(&mut self, host: WorkerId, place: WorkerId) -> Result<(), WireError> {
        let number = self.guests.reserve(place);
        self.push(host, &Message::Reserve { number })
    }

    /// Dismisses the reserved worker of this place.
    pub(crate) fn dismiss(&mut self, host: WorkerId, place: WorkerId) -> Result<(), WireError> {
        match self.guests.number(place) {
            Some(number) => self.push(host, &Message::Dismiss { number }),
            None => Ok(()),
        }
    }

    /// The place of the reserved worker with this number; `None`: it is gone.
    pub(crate) fn guest(&self, number: u32) -> Option<WorkerId> {
        self.guests.place(number)
    }

    /// Forgets the reserved worker of this place.
    pub(crate) fn guest_left(&mut self, place: WorkerId) {
        self.guests.leave(place);
    }

    /// Records the answer of a call. Returns its executor, the host or a reserved worker on it; `None` if that worker
    /// is gone, and its calls with it.
    pub(crate) fn answered_by(&mut self, call: u64, host: WorkerId) -> Option<WorkerId> {
        self.get(host)?.use_no_memory(call);
        self.left_by(call, host)
    }

    /// The same for a call that its server keeps. The server may use memory of this client for it as long as there is a
    /// connection.
    pub(crate) fn left_by(&mut self, call: u64, host: WorkerId) -> Option<WorkerId> {
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

    /// Requests a host to keep the result of a call.
    pub(crate) fn keep(&mut self, host: WorkerId, call: u64) -> Result<(), WireError> {
        if let Some(out) = self.get(host) {
            out.to_keep.insert(call);
        }
        self.push(host, &Message::KeepResult { call })
    }

    /// Records that a host has answered a call and keeps its result.
    pub(crate) fn keeps(&mut self, host: WorkerId, call: u64) {
        if let Some(out) = self.get(host) {
            out.to_keep.remove(&call);
        }
    }

    /// Records that a host has ended a call, or given it back, and keeps no result.
    pub(crate) fn no_remote_result(&mut self, host: WorkerId, call: u64) -> Result<(), WireError> {
        let requested =
            self.get(host).is_some_and(|out| !out.to_keep.is_empty() && out.to_keep.remove(&call));
        if requested { self.push(host, &Message::DropResult { call }) } else { Ok(()) }
    }

    /// Announces a dropped segment to the hosts that know it, `now` or with the next message. Returns the hosts that
    /// could not be notified.
    #[must_use]
    pub(crate) fn drop_segment(&mut self, segment: u32, now: bool) -> Vec<(WorkerId, WireError)> {
        let mut failed = Vec::new();
        for id in self.ids() {
            let Some(HostOut { up, memory: Some(memory), .. }) = self.get(id) else { continue };
            match memory.drop_segment(segment, up) {
                Ok(is_known) if is_known && now => self.mark(id, true),
                Ok(_) => {}
                Err(error) => failed.push((id, error)),
            }
        }
        failed
    }

    /// Sends a message without streams.
    pub(crate) fn push(&mut self, host: WorkerId, message: &Message<'_>) -> Result<(), WireError> {
        let Some(out) = self.get(host) else { return Ok(()) };
        out.up.push(message)?;
        self.mark(host, true);
        Ok(())
    }
}

/// Makes sections of results that come from other hosts name the copies. `moved`: the calls of these results, and the
/// numbers of the copies, whose parts are the sections that the other hosts have kept.
fn name_copies(sections: &mut [Section<'_>], payload: &Payload, moved: &[(u64, u64)]) {
    if moved.is_empty() {
        return;
    }
    for (section, part) in sections.iter_mut().zip(&payload.parts) {
        let Outgoing::Kept { call, part, .. } = *part else { continue };
        if let Some((_, blob)) = moved.iter().find(|(result, _)| *result == call) {
            section.place = Place::Blob { blob: *blob, part };
        }
    }
}

/// The error of a payload that cannot be read.
fn no_memory(_: std::io::Error) -> WireError {
    WireError::Truncated("shared memory that cannot be mapped")
}
