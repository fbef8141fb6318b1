//! State that a client's threads share under one lock: the core, and the send queues.

pub(crate) mod past_calls;
pub(crate) mod remote_results;
pub(crate) mod send_queues;
pub(crate) mod single_callers;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, mpsc};

use gridrpc_core::{
    Action, BlobId, CallId, Cause, Core, End, FunctionId, GroupId, Loss, Settings, Time, WorkerId,
};
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_shm::Recovered;
use gridrpc_sys::{Mapping, monotonic_ns};
use gridrpc_wire::{Message, Order, WireError};
use nix::sys::epoll::{Epoll, EpollCreateFlags};

use crate::call::{Call, LostItems, NotifiedWatchers, Outcome, Watcher};
use crate::daemon_connection::RequestError;
use crate::function::{Function, FunctionRef};
use crate::shared::SharedData;
use crate::state::past_calls::PastCalls;
use crate::state::remote_results::{RemoteResults, ResultCopy};
use crate::state::send_queues::{HostsOut, Terms, Unsent, WorkerOut, WorkersOut};
use crate::state::single_callers::SingleCallers;
use crate::trust::Trust;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) epoll: Arc<Epoll>,
    pub(crate) core: Core<Arc<Call>>,
    /// Send queues of the workers of this machine.
    pub(crate) workers: WorkersOut,
    pub(crate) functions: Vec<Function>,
    /// Counters of functions whose numbers have been reused.
    pub(crate) past: PastCalls,
    pub(crate) shared: HashMap<BlobId, Arc<SharedData>>,
    last_blob: Option<u64>,
    /// Places that need a process.
    pub(crate) to_start: Vec<WorkerId>,
    /// Hosts to end because they are no longer wanted.
    pub(crate) to_retire: Vec<WorkerId>,
    /// Places given up before their process has a connection.
    pub(crate) dismissed: HashSet<WorkerId>,
    /// The executor of the last call sent.
    pub(crate) last_sent: WorkerId,
    /// Processes to end.
    pub(crate) to_kill: Vec<WorkerId>,
    /// Workers to end because a message exceeds the limits of the format.
    pub(crate) unsendable: Vec<(WorkerId, WireError)>,
    /// Workers whose answers have to be collected from their outboxes.
    pub(crate) to_collect: Vec<WorkerId>,
    /// Python modules that the spawner is to import before it forks.
    pub(crate) to_prepare: Vec<String>,
    /// The spawner has forked: later imports do not help existing workers.
    pub(crate) forked: bool,
    /// Workers whose calls were taken back: the number of begun calls, and the bound that was given.
    taken_back: Vec<(WorkerId, u32, u64)>,
    /// Processor times of workers that the core has asked for, with their calls.
    cpu_used: Vec<(WorkerId, CallId, u64)>,
    /// Reserved workers given up before they were requested.
    gone: Vec<WorkerId>,
    /// Scratch for the core's actions.
    actions: Vec<Action<Arc<Call>>>,
    /// Calls that ended. Their waiters are notified after the lock is released.
    pub(crate) ended: Vec<(Arc<Call>, Outcome)>,
    /// While a loss is handled: the worker's call with many items, and what remains of it.
    pub(crate) recovered: Option<(CallId, Recovered, Order)>,
    /// Calls whose arguments are assembled after the lock is released.
    pub(crate) to_gather: Vec<(CallId, Arc<Call>)>,
    /// Calls that functions in workers wait for.
    pub(crate) nested: HashMap<CallId, Waiting>,
    /// Such calls that the worker is to run itself. It is notified after the lock is released.
    pub(crate) to_run: Vec<(CallId, Arc<Call>)>,
    /// Functions of such calls, by name and pickle.
    pub(crate) nested_functions: HashMap<(String, Vec<u8>), Arc<FunctionRef>>,
    /// Send queues of the hosts.
    pub(crate) hosts: HostsOut,
    /// Trusted hosts, if some are not trusted.
    pub(crate) trust: Option<Trust>,
    /// Calls whose results hosts keep.
    pub(crate) remote_results: RemoteResults,
    /// Threads that wait until a server keeps a call as a detached one.
    pub(crate) detaching: HashMap<CallId, mpsc::Sender<Result<String, RequestError>>>,
    /// Objects to drop after the lock is released: dropping them may take other locks, or time.
    pub(crate) garbage: Vec<Arc<Payload>>,
    freed: Vec<Arc<SharedData>>,
    /// Only submissions have happened since the last flush.
    pub(crate) submitting: bool,
    /// The callers that have single calls and want to read the answers.
    pub(crate) callers: SingleCallers,
    /// Threads that wait for room for more calls.
    pub(crate) waiting_for_room: usize,
    pub(crate) closing: bool,
    /// Whether the reactor has noticed that.
    pub(crate) closing_heard: bool,
    /// Time until which the reactor sleeps; `None` while it is awake.
    pub(crate) reactor_sleeps_until: Option<Time>,
}

/// A function in a worker that waits for a call that it has made.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) worker: WorkerId,
    /// The call that the worker runs.
    pub(crate) root: Arc<Call>,
    /// The call that it waits for.
    pub(crate) child: Arc<Call>,
    /// Kept here because calls do not keep their watchers alive.
    _told: Arc<dyn Watcher>,
}

impl Waiting {
    /// `told` notices the end of `child`.
    pub(crate) fn new(
        worker: WorkerId,
        root: Arc<Call>,
        child: Arc<Call>,
        told: Arc<dyn Watcher>,
    ) -> Waiting {
        Waiting { worker, root, child, _told: told }
    }
}

/// Work to do after the lock has been released.
#[derive(Debug, Default)]
pub(crate) struct DeferredWork {
    ended: Vec<(Arc<Call>, Outcome)>,
    _garbage: Vec<Arc<Payload>>,
    freed: Vec<Arc<SharedData>>,
}

impl DeferredWork {
    /// Notifies waiters. Call it without the lock. Returns whether memory of shared data has become free, and the
    /// calls made by functions of ended calls that nobody needs any more.
    pub(crate) fn settle(self) -> (bool, Vec<Arc<Call>>) {
        let mut unwanted = Vec::new();
        let mut notified = NotifiedWatchers::default();
        for (call, outcome) in self.ended {
            unwanted.extend(call.take_children());
            notified.merge(call.finish(outcome, None));
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
            trust: None,
            remote_results: RemoteResults::default(),
            detaching: HashMap::new(),
            epoll: Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?),
            core: Core::new(settings),
            workers: WorkersOut::new(workers, progress),
            functions: Vec::new(),
            past: PastCalls::default(),
            shared: HashMap::new(),
            last_blob: None,
            to_start: Vec::new(),
            to_retire: Vec::new(),
            dismissed: HashSet::new(),
            last_sent: WorkerId(0),
            to_kill: Vec::new(),
            to_collect: Vec::new(),
            unsendable: Vec::new(),
            to_prepare: Vec::new(),
            forked: false,
            taken_back: Vec::new(),
            cpu_used: Vec::new(),
            gone: Vec::new(),
            actions: Vec::new(),
            ended: Vec::new(),
            recovered: None,
            to_gather: Vec::new(),
            nested: HashMap::new(),
            to_run: Vec::new(),
            nested_functions: HashMap::new(),
            garbage: Vec::new(),
            freed: Vec::new(),
            submitting: false,
            callers: SingleCallers::default(),
            waiting_for_room: 0,
            closing: false,
            closing_heard: false,
            reactor_sleeps_until: None,
        })
    }

    /// Reports a worker's progress to the core.
    pub(crate) fn note_progress(&mut self, now: Time, worker: WorkerId) {
        if let Some(begun) = self.workers.begun(worker) {
            self.core.progressed(now, worker, begun);
        }
    }

    /// Reports to the core which hosts keep results, so that they are not given back.
    fn note_kept(&mut self) {
        let all: Vec<WorkerId> = self.hosts.ids().collect();
        for host in all {
            self.core.host_keeps(host, self.remote_results.has_some_of(host));
        }
    }

    /// Runs everything that is due.
    pub(crate) fn tick(&mut self, now: Time) {
        while let Some(due) = self.core.next_due(now) {
            if let Some(worker) = due.worker() {
                self.note_progress(now, worker);
            }
            if due.is_look() {
                self.note_kept();
            }
            self.drive(|core, out| core.deal_with(now, due, out));
        }
    }

    /// Lets `step` change the core, then performs the core's actions.
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
        while let Some((worker, call, used)) = self.cpu_used.pop() {
            self.core.cpu_used(Time(monotonic_ns()), worker, call, used, &mut actions);
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
                let pushed = self.hosts.reserve(home, worker);
                self.pushed(home, pushed);
            }
            Action::Start(worker) => self.to_start.push(worker),
            Action::Cancel { worker, call } => {
                let worker = self.core.home(worker).unwrap_or(worker);
                self.push(worker, &Message::Cancel { call: call.0 });
            }
            Action::Dismiss(worker) if self.core.home(worker).is_some() => {
                let home = self.core.home(worker).unwrap_or(worker);
                if self.hosts.get(home).is_some() {
                    let pushed = self.hosts.dismiss(home, worker);
                    self.pushed(home, pushed);
                } else {
                    // Its host has not connected: there is nothing to give up there.
                    self.gone.push(worker);
                }
            }
            Action::Retract { host, calls } => {
                let calls = calls.into_iter().map(|call| call.0).collect();
                self.push(host, &Message::Retract { calls });
            }
            Action::Keep { host, call } => {
                // A result with a destination in the caller's memory is sent here.
                let can_stay = self.core.payload(call).is_some_and(|call| call.result_can_stay());
                let may_keep = |trust: &Trust| trust.may_keep_results(host);
                if can_stay && self.trust.as_ref().is_none_or(may_keep) {
                    let requested = self.hosts.keep(host, call.0);
                    self.pushed(host, requested);
                }
            }
            Action::Dismiss(host) if self.hosts.is_host(host) => self.to_retire.push(host),
            Action::Dismiss(worker) => {
                if self.workers.is_there(worker) {
                    self.push(worker, &Message::Goodbye);
                } else {
                    // It is notified as soon as there is a connection.
                    self.dismissed.insert(worker);
                }
            }
            Action::Kill(worker) => self.to_kill.push(worker),
            Action::Collect(worker) => self.to_collect.push(worker),
            Action::MeasureCpu { worker, call } => {
                let pid = self.workers.get(worker).map(|out| out.pid);
                let used = pid.and_then(gridrpc_sys::processor_ns_of);
                self.cpu_used.extend(used.map(|used| (worker, call, used)));
            }
            Action::TakeBack { worker, head, below } => {
                // Without a place there, the worker's calls stay where they are.
                let begun = self.workers.take_back(worker, head, below);
                self.taken_back.extend(begun.map(|begun| (worker, begun, below)));
            }
            Action::Widen { worker, call, slots, threads } => {
                self.push(worker, &Message::Wide { call: call.0, slots, threads });
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
            Action::End { call: id, payload: call, end } => {
                let in_flight = matches!(
                    end,
                    End::Cancelled | End::DeadlineExceeded(_) | End::RunLimit(_) | End::Closed
                ) && call.profile().sent != 0;
                if !in_flight {
                    self.garbage.extend(call.take_payload());
                }
                let outcome = self.outcome(id, &call, end);
                self.ended.push((call, outcome));
            }
        }
    }

    /// Makes a group of hosts that calls can be bound to.
    pub(crate) fn add_group(&mut self, name: &str, hosts: Vec<WorkerId>) -> GroupId {
        let State { core, trust, .. } = self;
        let id = core.add_group(name, false, hosts.clone());
        if let Some(trust) = trust {
            trust.note(core, id, name, &hosts);
        }
        id
    }

    /// The outcome of a call that ended this way. For a call with many items, what remains of it.
    fn outcome(&mut self, id: CallId, call: &Call, end: End) -> Outcome {
        let End::WorkerLost(loss) = &end else { return Outcome::Ended(end) };
        let Some((_, recovered, order)) = self.recovered.take_if(|(of, ..)| *of == id) else {
            return Outcome::Ended(end);
        };
        let Recovered { ended, running, sections } = recovered;
        let results = sections.into_iter().map(Incoming::Bytes).collect();
        let lost = LostItems { loss: Loss::clone(loss), ended, running, results, order };
        lost.into_outcome(call.function().name())
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
                let moved = self.move_results(host, call);
                let State { core, hosts, .. } = self;
                let Some((idempotent, blobs)) = core.terms(id) else { return };
                let terms = Terms { idempotent, blobs, moved: &moved };
                let sent = hosts.send(host, home.map(|_| worker), id, function, batch, call, terms);
                return self.pushed(host, sent);
            }
        }
        match self.workers.send(worker, id, function, batch, call) {
            Ok(true) => self.last_sent = worker,
            Ok(false) => {}
            Err(error) => self.unsendable.push((worker, error)),
        }
    }

    /// Whether a host has the results that a call needs and that stay on hosts, or gets them from there.
    pub(crate) fn has_or_reaches(&self, host: WorkerId, call: &Call) -> bool {
        let reaches = |from: WorkerId| self.core.reach(from, host);
        call.remote_results()
            .into_iter()
            .all(|result| self.remote_results.host_of(result).is_some_and(reaches))
    }

    /// Has hosts send this one the results that a call needs and that it lacks. Returns their calls, and their numbers
    /// as shared data.
    fn move_results(&mut self, to: WorkerId, call: &Call) -> Vec<(u64, u64)> {
        if self.remote_results.is_empty() {
            return Vec::new();
        }
        let mut moved = Vec::new();
        for result in call.remote_results() {
            let Some(from) = self.remote_results.host_of(result).filter(|from| *from != to) else {
                continue;
            };
            if let Some(blob) = self.remote_results.copy_on(result, to) {
                moved.push((result, blob));
            } else if let (Ok(BlobId(blob)), Ok(secret)) = (self.next_blob(), gridrpc_sys::random())
            {
                let told = self.hosts.move_result(result, blob, from, to, secret);
                self.pushed(to, told);
                self.remote_results.add_copy(blob, ResultCopy { result, from, to });
                moved.push((result, blob));
            }
        }
        moved
    }

    /// Sends the results of a callback.
    pub(crate) fn answer_callback(&mut self, worker: WorkerId, call: u64, payload: &Payload) {
        if self.hosts.is_host(worker) {
            let pushed = self.hosts.answer_callback(worker, call, payload);
            return self.pushed(worker, pushed);
        }
        let pushed = self.workers.answer_callback(worker, call, payload);
        self.pushed(worker, pushed);
    }

    /// Reports the error of a callback.
    pub(crate) fn fail_callback(&mut self, worker: WorkerId, call: u64, message: &str) {
        self.push(worker, &Message::CallbackFailure { call, message });
    }

    /// Registers the connection of a place's process.
    pub(crate) fn connect(&mut self, worker: WorkerId, out: WorkerOut) {
        self.workers.connect(worker, out);
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
            return self.pushed(host, pushed);
        }
        let State { workers, functions, .. } = self;
        let Some(function) = functions.get(number.0 as usize) else { return };
        let pushed = workers.teach(worker, number, function);
        self.pushed(worker, pushed);
    }

    fn give(&mut self, worker: WorkerId, blob: BlobId) {
        let host = self.core.home(worker).unwrap_or(worker);
        if self.hosts.is_host(host) {
            let State { hosts, shared, .. } = self;
            let Some(data) = shared.get(&blob) else { return };
            let pushed = hosts.spread(host, blob.0, data);
            return self.pushed(host, pushed);
        }
        let State { workers, shared, .. } = self;
        let Some(data) = shared.get(&blob) else { return };
        let pushed = workers.share(worker, blob, data);
        self.pushed(worker, pushed);
    }

    /// Sends shared data from here to a host that did not receive it from another host.
    pub(crate) fn share_again(&mut self, host: WorkerId, blob: BlobId) {
        let State { hosts, shared, .. } = self;
        let Some(data) = shared.get(&blob) else { return };
        let pushed = hosts.share(host, blob.0, data);
        self.pushed(host, pushed);
    }

    pub(crate) fn push(&mut self, worker: WorkerId, message: &Message<'_>) {
        let pushed = if self.hosts.is_host(worker) {
            self.hosts.push(worker, message)
        } else {
            self.workers.push(worker, message)
        };
        self.pushed(worker, pushed);
    }

    /// Records that a host has ended a call, or given it back, and keeps no result.
    pub(crate) fn no_remote_result(&mut self, host: WorkerId, call: u64) {
        let told = self.hosts.no_remote_result(host, call);
        self.pushed(host, told);
    }

    /// Handles the result of a push. If the message cannot be sent, its worker, or the host with all of its workers,
    /// is ended. Otherwise it would wait for the message forever, or misinterpret the next one.
    fn pushed(&mut self, executor: WorkerId, pushed: Result<(), WireError>) {
        if let Err(error) = pushed {
            self.unsendable.push((executor, error));
        }
    }

    pub(crate) fn push_to_all(&mut self, message: &Message<'_>) {
        for worker in self.workers.all() {
            self.push(worker, message);
        }
    }

    /// Announces dropped segments to all workers and hosts that know them, `now` or with the next message.
    pub(crate) fn drop_segments(&mut self, gone: &[u32], now: bool) {
        for segment in gone {
            self.unsendable.extend(self.workers.drop_segment(*segment, now));
            self.unsendable.extend(self.hosts.drop_segment(*segment, now));
        }
    }

    /// Returns leases of unused results to all workers of this machine.
    pub(crate) fn release_all(&mut self) {
        let failed = self.workers.release_all();
        self.unsendable.extend(failed);
    }

    /// Takes the connections with messages that cannot wait, to flush them after the lock is released.
    #[must_use]
    pub(crate) fn take_unsent(&mut self) -> Unsent {
        let submitting = std::mem::take(&mut self.submitting);
        let mut unsent = Unsent::default();
        if self.workers.has_unsent() {
            self.workers.take_unsent(submitting, &mut unsent);
        }
        if self.hosts.has_unsent() {
            self.hosts.take_unsent(submitting).into_iter().for_each(|up| unsent.add(up));
        }
        unsent
    }

    /// Takes all connections with messages, including calls that are held back.
    #[must_use]
    pub(crate) fn take_all_unsent(&mut self) -> Unsent {
        self.workers.hurry();
        self.hosts.hurry();
        self.take_unsent()
    }

    /// A number that no shared data of this grid has had. Numbers begin at a random one, as clients of one daemon must
    /// not use the same: they are in pickles, so the daemon cannot change them.
    pub(crate) fn next_blob(&mut self) -> io::Result<BlobId> {
        let last = match self.last_blob {
            Some(last) => last,
            None => u64::from_le_bytes(gridrpc_sys::random::<8>()?) >> 1,
        };
        self.last_blob = Some(last + 1);
        Ok(BlobId(last + 1))
    }

    pub(crate) fn aftermath(&mut self) -> DeferredWork {
        DeferredWork {
            ended: std::mem::take(&mut self.ended),
            _garbage: std::mem::take(&mut self.garbage),
            freed: std::mem::take(&mut self.freed),
        }
    }

    /// Whether calls have ended and their waiters have not been notified.
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Whether the reactor has to be woken: it sleeps and does not know of new work.
    pub(crate) fn needs_reactor(&self) -> bool {
        let Some(until) = self.reactor_sleeps_until else { return false };
        (self.closing && !self.closing_heard)
            || !self.to_start.is_empty()
            || !self.to_retire.is_empty()
            || !self.to_kill.is_empty()
            || !self.unsendable.is_empty()
            || !self.to_prepare.is_empty()
            || self.next_tick().is_some_and(|next| next < until)
    }

    /// Time of the next deadline.
    pub(crate) fn next_tick(&self) -> Option<Time> {
        self.core.next_tick()
    }
}

/// The loss of a reserved worker that was given up before its host connected.
fn never_started(worker: WorkerId) -> Loss {
    let cause = Cause::Failed("it was given up before it was started".to_owned());
    Loss { worker: worker.0, pid: 0, host: String::new(), cause, stderr: String::new() }
}
