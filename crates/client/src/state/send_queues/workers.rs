//! Send queues of the workers of this machine, under the state lock. Messages are queued, and sent after the lock is
//! released. Only operations that concern all workers iterate over all of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gridrpc_core::{BlobId, CallId, FunctionId, WorkerId};
use gridrpc_link::payload::{Payload, announce};
use gridrpc_link::{Outbound, Push};
use gridrpc_shm::borrowed::LeaseReturns;
use gridrpc_shm::progress;
use gridrpc_sys::Mapping;
use gridrpc_wire::{FunctionForm, Lease, Message, Place, Section, WireError};

use crate::call::Call;
use crate::function::Function;
use crate::shared::SharedData;

/// Send queue of the process in a worker's place.
#[derive(Debug)]
pub(crate) struct WorkerOut {
    up: Arc<Outbound>,
    /// Stretches of its segments that this client no longer reads.
    returns: LeaseReturns,
    pub(crate) pid: u32,
    /// Our segments that it knows.
    segments: HashSet<u32>,
    /// Sections that it still reads although their calls have ended.
    retained: HashMap<Lease, Vec<Arc<Payload>>>,
    dirty: bool,
    /// Number of calls sent to this process, and of those passed to the connection. Only their low bits are compared.
    calls: u32,
    flushed: u32,
    /// There are messages other than small calls that take microseconds to send.
    urgent: bool,
}

/// Maximum number of calls in a batch.
const TOGETHER: u32 = 32;
/// While a worker has this many calls that it has not begun, further calls can wait.
const AT_HAND: i32 = 4;
/// Maximum size of a call in a batch, bytes.
const SMALL: u64 = 4096;

impl WorkerOut {
    pub(crate) fn new(up: Arc<Outbound>, returns: LeaseReturns) -> WorkerOut {
        WorkerOut {
            up,
            returns,
            pid: 0,
            segments: HashSet::new(),
            retained: HashMap::new(),
            dirty: false,
            calls: 0,
            flushed: 0,
            urgent: false,
        }
    }

    /// Whether the unsent messages can wait: they are a few calls, and `begun` shows that the worker has others
    /// queued. It answers when those are done, so nothing waits for long.
    fn can_wait(&self, submitting: bool, begun: impl FnOnce() -> Option<u32>) -> bool {
        let waiting = self.calls.wrapping_sub(self.flushed);
        let at_hand = |begun| self.flushed.wrapping_sub(begun).cast_signed();
        // A query slows down the worker, which writes there. An occasional one is enough while it has not answered.
        let asks = !submitting || waiting % 4 == 1;
        !self.urgent
            && waiting < TOGETHER
            && (!asks || begun().is_some_and(|begun| at_hand(begun) >= AT_HAND))
    }

    /// Keeps the payload of an answered call that the worker still reads.
    pub(crate) fn retain(&mut self, leases: &[Lease], payload: Arc<Payload>) {
        for lease in leases {
            self.retained.entry(*lease).or_default().push(Arc::clone(&payload));
        }
    }

    /// Records that the worker no longer reads these. Returns payloads to drop after the lock is released.
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
}

/// Connections with unsent messages: usually one.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    first: Option<Arc<Outbound>>,
    more: Vec<Arc<Outbound>>,
}

impl Unsent {
    pub(crate) fn add(&mut self, up: Arc<Outbound>) {
        if self.first.is_none() {
            self.first = Some(up);
        } else {
            self.more.push(up);
        }
    }

    /// Sends as much as the sockets take; the reactor sends the rest. Call it without the state lock.
    pub(crate) fn flush(self) {
        let Some(first) = self.first else { return };
        first.flush_if_open();
        self.more.iter().for_each(|up| up.flush_if_open());
    }
}

/// Send queues of all workers of this machine.
#[derive(Debug)]
pub(crate) struct WorkersOut {
    list: Vec<Option<WorkerOut>>,
    /// Workers with unsent messages.
    dirty: Vec<WorkerId>,
    /// By number of our segments: the workers that know it.
    announced: HashMap<u32, Vec<WorkerId>>,
    /// Progress of the workers.
    progress: Arc<Mapping>,
}

impl WorkersOut {
    pub(crate) fn new(workers: usize, progress: Arc<Mapping>) -> WorkersOut {
        let list = (0..workers).map(|_| None).collect();
        WorkersOut { list, dirty: Vec::new(), announced: HashMap::new(), progress }
    }

    /// The queue of a worker that has a process.
    pub(crate) fn get(&mut self, worker: WorkerId) -> Option<&mut WorkerOut> {
        self.list.get_mut(worker.0 as usize)?.as_mut()
    }

    /// Whether this worker has a process.
    pub(crate) fn is_there(&self, worker: WorkerId) -> bool {
        self.list.get(worker.0 as usize).is_some_and(Option::is_some)
    }

    /// Registers the connection of a place's process.
    pub(crate) fn connect(&mut self, worker: WorkerId, out: WorkerOut) {
        let places = self.list.len().max(worker.0 as usize + 1);
        self.list.resize_with(places, || None);
        self.list[worker.0 as usize] = Some(out);
    }

    /// Removes a worker. Drop the returned queue, with the payloads that the worker still read, after the lock is
    /// released.
    #[must_use]
    pub(crate) fn disconnect(&mut self, worker: WorkerId) -> Option<WorkerOut> {
        let out = self.list.get_mut(worker.0 as usize)?.take()?;
        for segment in &out.segments {
            if let Entry::Occupied(mut announced) = self.announced.entry(*segment) {
                announced.get_mut().retain(|other| *other != worker);
                if announced.get().is_empty() {
                    announced.remove();
                }
            }
        }
        Some(out)
    }

    /// Number of calls that a worker has begun, if known.
    pub(crate) fn begun(&self, worker: WorkerId) -> Option<u32> {
        progress::begun(&self.progress, worker.0)
    }

    /// Takes calls of a worker back, as [`progress::take_back`] does.
    pub(crate) fn take_back(&self, worker: WorkerId, head: Option<u64>, below: u64) -> Option<u32> {
        progress::take_back(&self.progress, worker.0, head.map(|head| head as u32), below as u32)
    }

    /// Sends a call to a worker. Returns whether it was sent.
    pub(crate) fn send(
        &mut self,
        worker: WorkerId,
        id: CallId,
        function: FunctionId,
        batch: bool,
        call: &Call,
    ) -> Result<bool, WireError> {
        let WorkersOut { list, announced, .. } = self;
        let Some(Some(out)) = list.get_mut(worker.0 as usize) else { return Ok(false) };
        let Some(payload) = call.send(worker.0, out.pid) else { return Ok(false) };
        out.calls = out.calls.wrapping_add(1);
        let can_wait = batch && payload.bytes <= SMALL;
        let message =
            Message::Call { call: id.0, function: function.0, batch, sections: payload.sections() };
        push_payload(out, announced, worker, &payload, &message)?;
        self.mark(worker, !can_wait);
        Ok(true)
    }

    /// Sends the results of a callback.
    pub(crate) fn answer_callback(
        &mut self,
        worker: WorkerId,
        call: u64,
        payload: &Payload,
    ) -> Result<(), WireError> {
        let WorkersOut { list, announced, .. } = self;
        let Some(Some(out)) = list.get_mut(worker.0 as usize) else { return Ok(()) };
        let message = Message::CallbackReply { call, sections: payload.sections() };
        push_payload(out, announced, worker, payload, &message)?;
        self.mark(worker, true);
        Ok(())
    }

    /// Sends a function to a worker.
    pub(crate) fn teach(
        &mut self,
        worker: WorkerId,
        number: FunctionId,
        function: &Function,
    ) -> Result<(), WireError> {
        let Some(out) = self.get(worker) else { return Ok(()) };
        let body = Section { len: function.body.len() as u64, place: Place::Stream };
        let streamed = function.form != FunctionForm::Named;
        let message = Message::Function {
            function: number.0,
            form: function.form,
            name: function.name_there(),
            sections: if streamed { vec![body] } else { Vec::new() },
        };
        let mut to = out.up.pushing();
        to.push(&message)?;
        if streamed {
            to.push_stream(&function.body)?;
        }
        drop(to);
        self.mark(worker, true);
        Ok(())
    }

    /// Sends shared data to a worker.
    pub(crate) fn share(
        &mut self,
        worker: WorkerId,
        blob: BlobId,
        data: &SharedData,
    ) -> Result<(), WireError> {
        let WorkersOut { list, announced, .. } = self;
        let Some(Some(out)) = list.get_mut(worker.0 as usize) else { return Ok(()) };
        let message = Message::Blob { blob: blob.0, sections: data.sections() };
        let WorkerOut { up, segments, .. } = out;
        let mut to = up.pushing();
        announce(data.segment(), &mut to, |segment| is_new(segments, announced, worker, segment))?;
        to.push(&message)?;
        drop(to);
        self.mark(worker, true);
        Ok(())
    }

    /// Sends a message without sections.
    pub(crate) fn push(
        &mut self,
        worker: WorkerId,
        message: &Message<'_>,
    ) -> Result<(), WireError> {
        let Some(out) = self.get(worker) else { return Ok(()) };
        out.up.push(message)?;
        self.mark(worker, true);
        Ok(())
    }

    /// The workers that have a process.
    pub(crate) fn all(&self) -> Vec<WorkerId> {
        let there = self.list.iter().enumerate().filter(|(_, out)| out.is_some());
        there.map(|(index, _)| WorkerId(index as u32)).collect()
    }

    /// Announces a dropped segment to the workers that know it, `now` or with the next message. Returns the workers
    /// that could not be notified.
    #[must_use]
    pub(crate) fn drop_segment(&mut self, segment: u32, now: bool) -> Vec<(WorkerId, WireError)> {
        let mut failed = Vec::new();
        for worker in self.announced.remove(&segment).unwrap_or_default() {
            let Some(out) = self.get(worker) else { continue };
            out.segments.remove(&segment);
            match out.up.push(&Message::DropSegment { segment }) {
                Ok(()) if now => self.mark(worker, true),
                Ok(()) => {}
                Err(error) => failed.push((worker, error)),
            }
        }
        failed
    }

    /// Returns leases to all workers without waiting for the next message to each. Returns the workers that could not
    /// be sent theirs.
    #[must_use]
    pub(crate) fn release_all(&mut self) -> Vec<(WorkerId, WireError)> {
        let mut failed = Vec::new();
        for worker in self.all() {
            let Some(out) = self.get(worker) else { continue };
            let returned = out.returns.take();
            if returned.is_empty() {
                continue;
            }
            let pushed = push_releases(&returned, &mut out.up.pushing());
            match pushed {
                Ok(()) => self.mark(worker, true),
                Err(error) => failed.push((worker, error)),
            }
        }
        failed
    }

    /// Marks a worker as having an unsent message; `urgent`: it cannot wait.
    fn mark(&mut self, worker: WorkerId, urgent: bool) {
        let Some(Some(out)) = self.list.get_mut(worker.0 as usize) else { return };
        out.urgent |= urgent;
        if !std::mem::replace(&mut out.dirty, true) {
            self.dirty.push(worker);
        }
    }

    /// Whether there are unsent messages.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes the connections with messages that cannot wait. A few small calls may wait to be sent as a batch,
    /// because sending takes longer than running them.
    pub(crate) fn take_unsent(&mut self, submitting: bool, unsent: &mut Unsent) {
        let WorkersOut { list, dirty, progress, .. } = self;
        dirty.retain(|worker| {
            let Some(Some(out)) = list.get_mut(worker.0 as usize) else { return false };
            if out.can_wait(submitting, || progress::begun(progress, worker.0)) {
                return true;
            }
            (out.dirty, out.urgent) = (false, false);
            out.flushed = out.calls;
            unsent.add(Arc::clone(&out.up));
            false
        });
    }

    /// Ends all batches: nothing can wait any longer.
    pub(crate) fn hurry(&mut self) {
        let WorkersOut { list, dirty, .. } = self;
        for worker in dirty {
            if let Some(Some(out)) = list.get_mut(worker.0 as usize) {
                out.urgent = true;
            }
        }
    }
}

/// Whether a segment has not been announced to a worker yet. Marks it as announced.
fn is_new(
    segments: &mut HashSet<u32>,
    announced: &mut HashMap<u32, Vec<WorkerId>>,
    worker: WorkerId,
    segment: u32,
) -> bool {
    let new = segments.insert(segment);
    if new {
        announced.entry(segment).or_default().push(worker);
    }
    new
}

/// Pushes a message with the sections of `payload`, and the messages that precede and follow it.
fn push_payload(
    out: &mut WorkerOut,
    announced: &mut HashMap<u32, Vec<WorkerId>>,
    worker: WorkerId,
    payload: &Payload,
    message: &Message<'_>,
) -> Result<(), WireError> {
    let WorkerOut { up, returns, segments, .. } = out;
    let returned = returns.take();
    let mut to = up.pushing();
    push_releases(&returned, &mut to)?;
    payload.announce(&mut to, |segment| is_new(segments, announced, worker, segment))?;
    to.push_in(payload.order, message)?;
    payload.push_streams(&mut to)
}

/// Returns leases that this client no longer reads, if there are any.
fn push_releases(returned: &[Lease], to: &mut impl Push) -> Result<(), WireError> {
    // A message holds at most 65,535 leases.
    let mut messages = returned.chunks(1 << 15);
    messages.try_for_each(|leases| to.push(&Message::Release { leases: leases.to_vec() }))
}
