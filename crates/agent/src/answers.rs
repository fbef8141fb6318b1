//! Answers: results of the client's calls, on their way back to the client.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gridrpc_client::{
    Call, Grid, GridError, Outcome, Parent, Profile, SubmitError, Watcher, loss_on_the_wire,
};
use gridrpc_core::{End, Loss, Refusal};
use gridrpc_link::Outbound;
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::{Incoming, MAX_INLINE, divide};
use gridrpc_shm::segment::Pool;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{HostEnd, HostLoss, Message, Order, Place, RemoteError, Section, Stamps};
use nix::sys::eventfd::EventFd;

use crate::client_memory::{ArgumentPlace, MemoryInUse};
use crate::held_results::HeldResults;
use crate::service::{AcceptedCall, CallEnd, Denied, Notify, Permit};

/// A client's call that the grid runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) call: Arc<Call>,
    /// The grid that runs it.
    pub(super) grid: Arc<Grid>,
    /// Where its sections lie in shared memory; results may be left there.
    pub(super) places: Vec<Option<ArgumentPlace>>,
    /// Its use of the client's memory, if workers use that.
    pub(super) in_use: Option<Arc<MemoryInUse>>,
    /// Whether its result may stay on this host.
    pub(super) keep: bool,
    /// Permission to run it, where calls need one.
    pub(super) permit: Option<Box<dyn Permit>>,
    /// Whether it runs on another grid than that of the client.
    pub(super) is_elsewhere: bool,
}

impl Running {
    /// Records how it ended: the name of the error.
    pub(super) fn record_error(&self, error: &str) {
        record(self.permit.as_deref(), Err(error), &self.call.profile());
    }
}

impl Running {
    /// The call without its client. `pool`: memory for results that lie in the client's.
    pub(super) fn left(self, pool: Arc<Pool>) -> AcceptedCall {
        let Running { call, grid, places, in_use, permit, .. } = self;
        let in_place = Box::new(move |parts: Vec<Incoming>| {
            // Workers may use the client's memory until then.
            let _ = &in_use;
            let find = |part| match part {
                Incoming::Argument(index, len) => place(&places, index)?.kept_result(len, &pool),
                other => Ok(other),
            };
            parts.into_iter().map(find).collect()
        });
        AcceptedCall { call, grid, permit, in_place }
    }
}

/// A call that has ended and has not been answered.
#[derive(Debug)]
pub(super) struct Finished {
    outcome: Option<Outcome>,
    profile: Profile,
    places: Vec<Option<ArgumentPlace>>,
    keep: bool,
    permit: Option<Box<dyn Permit>>,
    is_elsewhere: bool,
}

impl From<Running> for Finished {
    fn from(running: Running) -> Finished {
        let Running { call, places, keep, permit, is_elsewhere, .. } = running;
        let (outcome, profile) = (call.take_outcome(), call.profile());
        Finished { outcome, profile, places, keep, permit, is_elsewhere }
    }
}

impl Finished {
    fn record(&self, outcome: Result<u64, &str>) {
        record(self.permit.as_deref(), outcome, &self.profile);
    }
}

/// Records the outcome of a call: the result's bytes, or the name of the error.
fn record(permit: Option<&dyn Permit>, outcome: Result<u64, &str>, profile: &Profile) {
    if let Some(permit) = permit {
        permit.ended(CallEnd { outcome, profile });
    }
}

/// Results of at least this many streamable bytes stay on this host if other calls need them.
const WORTH_KEEPING: u64 = 64 << 10;

/// The send side of the connection to the client.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) up: Outbound,
    calls: Mutex<HashMap<u64, Running>>,
    pub(super) held_results: HeldResults,
    unsent: AtomicBool,
    /// Answers with at least this many streamed bytes wait until the client fetches them.
    hold: AtomicU64,
    /// Wakes the agent's main thread.
    pub(super) wake: EventFd,
    changed: AtomicBool,
    /// Calls that wait for a permit may get it now.
    freed: AtomicBool,
    /// Whether the client gets no output of workers: they may run calls of other users.
    silent: AtomicBool,
    /// Whether the client stays when no worker can start, and each of its calls ends with the reason.
    stays: AtomicBool,
    this: Weak<Answers>,
}

impl Answers {
    pub(super) fn new(up: Outbound, wake: EventFd) -> Arc<Answers> {
        let (unsent, changed) = (AtomicBool::new(false), AtomicBool::new(true));
        let hold = AtomicU64::new(u64::MAX);
        Arc::new_cyclic(|this| Answers {
            this: Weak::clone(this),
            up,
            calls: Mutex::default(),
            held_results: HeldResults::default(),
            unsent,
            hold,
            wake,
            changed,
            freed: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            stays: AtomicBool::new(false),
        })
    }

    /// Whether calls that wait for a permit may have got it since the last check.
    pub(super) fn take_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed) && self.freed.swap(false, Ordering::AcqRel)
    }

    /// Reports that a call was cancelled before the grid had it.
    pub(super) fn cancelled(&self, call: u64) {
        self.report_end(call, &End::Cancelled);
    }

    /// Sends no output of workers from now on.
    pub(super) fn silence(&self) {
        self.silent.store(true, Ordering::Release);
    }

    /// Keeps the client when no worker can start.
    pub(super) fn stay(&self) {
        self.stays.store(true, Ordering::Release);
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call whose answer goes to the client.
    pub(super) fn expect(self: &Arc<Answers>, id: u64, running: Running) {
        let call = Arc::clone(&running.call);
        self.calls().insert(id, running);
        call.watch(self, id);
    }

    /// The grid's call for a call of the client, and its grid.
    pub(super) fn call(&self, id: u64) -> Option<(Arc<Call>, Arc<Grid>)> {
        self.calls().get(&id).map(|running| (Arc::clone(&running.call), Arc::clone(&running.grid)))
    }

    /// The calls that have not been answered, by the client's numbers.
    pub(super) fn unanswered(&self) -> Vec<u64> {
        self.calls().keys().copied().collect()
    }

    /// Lets the result of a call stay on this host.
    pub(super) fn keep(&self, id: u64) {
        match self.calls().get_mut(&id) {
            Some(running) => running.keep = true,
            // Its arguments are still in transit.
            None => self.held_results.expect(id),
        }
    }

    /// Sends a result that has stayed on this host.
    pub(super) fn fetch(&self, call: u64) {
        // A missing result is sent without sections; the client rejects that as invalid.
        let parts = self.held_results.get(call).unwrap_or_default();
        let (sections, streams) = divide(&parts);
        // No section is too long.
        let pushed = self.push(Order::NATIVE, Message::KeptResult { call, sections }, streams);
        debug_assert!(pushed.is_ok(), "{pushed:?}");
    }

    /// One of the calls, its grid, and whether it is the only one.
    pub(super) fn any(&self) -> Option<(Arc<Call>, Arc<Grid>, bool)> {
        let calls = self.calls();
        let running = calls.values().next()?;
        Some((Arc::clone(&running.call), Arc::clone(&running.grid), calls.len() == 1))
    }

    /// Forgets a call that is handed back to the client.
    pub(super) fn forget(&self, id: u64) {
        self.calls().remove(&id);
    }

    /// Takes a call that has not ended. Nothing more is reported of it.
    pub(super) fn take(&self, id: u64) -> Option<Running> {
        self.calls().remove(&id)
    }

    /// Reports that the daemon keeps a call.
    pub(super) fn detached(&self, call: u64, id: &str) {
        self.tell(&Message::Detached { call, id });
    }

    /// Reports that the daemon does not keep a call.
    pub(super) fn not_detached(&self, call: u64, denied: &Denied) {
        let (error, message) = (&denied.error, &denied.message);
        self.tell(&Message::NotDetached { call, error, message });
    }

    /// Forgets all calls: nobody waits for their answers. Returns them, the last ones first.
    pub(super) fn forget_all(&self) -> Vec<Running> {
        let calls = std::mem::take(&mut *self.calls());
        let mut calls: Vec<(u64, Running)> = calls.into_iter().collect();
        calls.sort_unstable_by_key(|(id, _)| Reverse(*id));
        calls.into_iter().map(|(_, running)| running).collect()
    }

    /// Reports that a client may not do something, as an error of its call.
    pub(super) fn deny(&self, call: u64, denied: &Denied) {
        self.tell(&Message::Failure {
            call,
            stamps: now(),
            retained: Vec::new(),
            error: &denied.error,
            message: &denied.message,
            trace: "",
            sections: Vec::new(),
        });
    }

    /// Sends the queued messages.
    pub(super) fn send(&self) {
        if self.unsent.swap(false, Ordering::AcqRel) {
            self.up.flush();
        }
    }

    /// Queues a message without sections.
    pub(super) fn tell(&self, message: &Message<'_>) {
        // Encoding truncates texts, and nothing else could be too long.
        let pushed = self.up.push(message);
        debug_assert!(pushed.is_ok(), "{pushed:?}");
        self.unsent.store(true, Ordering::Release);
    }

    /// Reports that no worker can start that might run a call. The client stays: others of its calls may run.
    pub(super) fn lost(&self, call: u64, loss: Arc<Loss>) {
        self.report_end(call, &End::WorkerLost(loss));
    }

    /// Reports that the grid has refused a call.
    pub(super) fn refuse_with(&self, call: u64, error: &SubmitError) {
        match error {
            SubmitError::Failed(GridError::Refused(Refusal::Closed)) => {
                self.report_end(call, &End::Closed);
            }
            SubmitError::Failed(GridError::Refused(Refusal::NoWorkers(loss)))
                if self.stays.load(Ordering::Acquire) =>
            {
                self.lost(call, Arc::clone(loss));
            }
            SubmitError::Failed(GridError::Refused(Refusal::NoWorkers(loss))) => {
                self.report_end(call, &End::NoWorkers(Arc::clone(loss)));
            }
            SubmitError::Failed(GridError::Refused(Refusal::ReservedLost(loss))) => {
                self.report_end(call, &End::WorkerLost(Arc::clone(loss)));
            }
            other => self.refuse(call, &other.to_string()),
        }
    }

    /// Reports that a call could not be accepted.
    pub(super) fn refuse(&self, call: u64, why: &str) {
        let loss = HostLoss { cause: HostLoss::FAILED, why, ..HostLoss::default() };
        self.tell(&Message::Ended { call, end: HostEnd::Refused, loss });
    }

    /// Whether workers have started or ended since the last check.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Answers a call. If that fails, its answer says why.
    pub(super) fn answer_or_fail(&self, id: u64, finished: Finished) {
        let stamps = finished.profile.stamps;
        if let Err(error) = self.answer(id, finished) {
            let failure = Message::Failure {
                call: id,
                stamps,
                retained: Vec::new(),
                error: RemoteError::OutOfMemory.name(),
                message: &format!("the result cannot be sent: {error}"),
                trace: "",
                sections: Vec::new(),
            };
            self.tell(&failure);
        }
    }

    fn answer(&self, id: u64, mut finished: Finished) -> io::Result<()> {
        let profile = &finished.profile;
        let stamps = Stamps { worker: profile.worker, pid: profile.pid, ..profile.stamps };
        let retained = Vec::new();
        match finished.outcome.take() {
            None => {}
            Some(Outcome::Returned(parts, order)) => {
                finished.record(Ok(parts.iter().map(|part| part.len() as u64).sum()));
                let parts = in_place(parts, &finished.places)?;
                let (mut sections, mut streams) = divide(&parts);
                let streamed: u64 = streams.iter().map(|stream| stream.len() as u64).sum();
                let is_at_client = parts.iter().any(|part| matches!(part, Incoming::Argument(..)));
                if finished.keep && streamed >= WORTH_KEEPING && !is_at_client {
                    streams.clear();
                    for (index, section) in sections.iter_mut().enumerate() {
                        if section.place == Place::Stream {
                            section.place = Place::Kept { call: id, section: index as u16 };
                        }
                    }
                    self.held_results.add(id, parts.clone());
                }
                let reply = Message::Reply { call: id, stamps, retained, sections };
                self.push(order, reply, streams)?;
            }
            Some(Outcome::Raised { error, message, trace, sections, order }) => {
                finished.record(Err(&error));
                let parts = in_place(sections, &finished.places)?;
                let (sections, streams) = divide(&parts);
                let (error, message, trace) = (&error, &message, &trace);
                let failure = Message::Failure {
                    call: id,
                    stamps,
                    retained,
                    error,
                    message,
                    trace,
                    sections,
                };
                self.push(order, failure, streams)?;
            }
            Some(Outcome::Ended(End::NoWorkers(loss)))
                if finished.is_elsewhere || self.stays.load(Ordering::Acquire) =>
            {
                finished.record(Err("NoWorkers"));
                self.lost(id, loss);
            }
            Some(Outcome::Ended(end)) => {
                finished.record(Err(end.name()));
                self.report_end(id, &end);
            }
        }
        Ok(())
    }

    /// Holds back answers with at least this many streamed bytes until they are fetched.
    pub(super) fn hold(&self, bytes: u64) {
        self.hold.store(bytes, Ordering::Release);
    }

    /// Handles the client's request for the next held answer.
    pub(super) fn fetched(&self) {
        self.up.begin_held();
        self.unsent.store(true, Ordering::Release);
    }

    pub(super) fn push(
        &self,
        order: Order,
        message: Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> io::Result<()> {
        let streamed: u64 = streams.iter().map(|stream| stream.len() as u64).sum();
        let waits = !streams.is_empty() && streamed >= self.hold.load(Ordering::Acquire);
        let push = if waits { Outbound::push_held } else { Outbound::push_in };
        push(&self.up, order, &message, streams).map_err(io::Error::other)?;
        self.unsent.store(true, Ordering::Release);
        Ok(())
    }

    fn report_end(&self, call: u64, end: &End) {
        let (end, loss) = match end {
            End::WorkerLost(loss) => (HostEnd::Lost, loss_on_the_wire(loss)),
            End::NoWorkers(loss) | End::NoServer(_, loss) => {
                (HostEnd::NoWorkers, loss_on_the_wire(loss))
            }
            End::Cancelled => (HostEnd::Cancelled, HostLoss::default()),
            // This host is leaving. The call may have started; the client handles the loss of the host.
            End::Closed => return,
            End::TooManyCores(why) => return self.refuse(call, &why.to_string()),
            End::NoFittingHost(why) => return self.refuse(call, &why.to_string()),
            End::NotGathered(why) => return self.refuse(call, why),
            End::NestedCallLimit(limit) => {
                let error = RemoteError::LimitReached.name().to_owned();
                return self.deny(call, &Denied { error, message: limit.to_string() });
            }
            End::RunLimit(limit) => {
                let error = RemoteError::DeadlineExceeded.name().to_owned();
                return self.deny(call, &Denied { error, message: limit.to_string() });
            }
            // Calls have neither deadlines nor dependencies here; the client handles both.
            End::DeadlineExceeded(_) | End::DependencyFailed(_) => {
                return self.refuse(call, &format!("{end:?}"));
            }
        };
        self.tell(&Message::Ended { call, end, loss });
    }
}

impl Watcher for Answers {
    fn ended(&self, id: u64) {
        let running = self.calls().remove(&id);
        let Some(mut running) = running else { return };
        let in_use = running.in_use.take();
        let finished = Finished::from(running);
        let Some(in_use) = in_use else { return self.answer_or_fail(id, finished) };
        let this = Weak::clone(&self.this);
        in_use.answer_at_end(Box::new(move || {
            if let Some(answers) = this.upgrade() {
                answers.answer_or_fail(id, finished);
                answers.send();
            }
        }));
    }

    fn settle(&self) {
        self.send();
    }
}

impl Notify for Answers {
    fn notify(&self) {
        self.freed.store(true, Ordering::Release);
        // Fails only when the counter is full, and then the thread is awake anyway.
        let _ = self.wake.write(1);
    }
}

impl Parent for Answers {
    fn changed(&self) {
        self.changed.store(true, Ordering::Release);
        // Fails only when the counter is full, and then the agent is awake anyway.
        let _ = self.wake.write(1);
    }

    fn has_no_workers(&self, loss: &Loss) {
        if self.stays.load(Ordering::Acquire) {
            return self.changed();
        }
        self.tell(&Message::NoWorkers(loss_on_the_wire(loss)));
        self.send();
    }

    fn said(&self, worker: u32, stderr: bool, bytes: &[u8]) {
        if self.silent.load(Ordering::Acquire) {
            return;
        }
        for piece in bytes.chunks(MAX_INLINE) {
            self.tell(&Message::Output { worker, stderr, sections: vec![Section::inline(piece)] });
        }
        self.up.flush();
    }
}

/// A client on a grid that runs some of its calls. Other events of that grid do not concern it.
#[derive(Debug)]
pub(super) struct PoolParent(pub(super) Arc<Answers>);

impl Parent for PoolParent {
    // A reserved worker may have been lost.
    fn changed(&self) {
        self.0.changed();
    }

    fn has_no_workers(&self, _loss: &Loss) {}

    fn said(&self, _worker: u32, _stderr: bool, _bytes: &[u8]) {}
}

/// The stamps of something that has taken no time.
pub(super) fn now() -> Stamps {
    let now = monotonic_ns();
    Stamps { received: now, calc_in: now, calc_out: now, ..Stamps::default() }
}

/// Attaches results that were left in the memory of arguments.
fn in_place(parts: Vec<Incoming>, places: &[Option<ArgumentPlace>]) -> io::Result<Vec<Incoming>> {
    let find = |part: Incoming| match part {
        Incoming::Argument(index, len) => place(places, index)?.result(index, len),
        other => Ok(other),
    };
    parts.into_iter().map(find).collect()
}

/// Where a section of a call lies.
fn place(places: &[Option<ArgumentPlace>], index: u16) -> io::Result<&ArgumentPlace> {
    let place = places.get(usize::from(index)).and_then(Option::as_ref);
    place.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
