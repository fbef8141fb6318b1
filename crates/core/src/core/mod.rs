//! State machine: events, state changes and resulting actions.

mod check;
mod counting;
mod deadlines;
mod dependent_calls;
mod endings;
mod groups;
mod host_demand;
mod hosts;
mod locality;
mod losses;
mod multicore;
mod nested_calls;
mod ownership;
mod queries;
mod relief;
mod reservations;
mod sizing;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::adaptive::Adaptive;
use crate::blobs::Blobs;
use crate::calls::Calls;
use crate::counters::{CallCounters, CountersByFunction};
use crate::dependents::Dependents;
use crate::elastic::Elastic;
use crate::end::{End, Loss};
use crate::group::HostGroup;
use crate::ids::{BlobId, CallId, FunctionId, GroupId, Time, WorkerId, ns};
use crate::interface::{Action, OccupiedTime, Refusal, Settings, Task};
use crate::pace::{AHEAD, Pace};
use crate::policy::{Policy, View};
use crate::resource_request::{NeverRuns, ResourceRequest};
use crate::resources::Available;
use crate::timers::{Timer, Timers};
use crate::workers::{Idle, Phase, Relief, SentCall, UnexpectedReply, Worker, has_begun};

/// State of a grid. Each call carries a payload `T` of the caller. See the crate documentation.
#[derive(Debug)]
pub struct Core<T, P = Adaptive> {
    pub(crate) settings: Settings,
    pub(crate) calls: Calls<T>,
    pub(crate) dependents: Dependents,
    /// Calls that running functions have made, and the workers that wait for them.
    pub(crate) wanted: HashMap<CallId, WorkerId>,
    /// Such calls that have an extra worker.
    pub(crate) relief: HashMap<CallId, Relief>,
    pub(crate) workers: Vec<Worker<T>>,
    pub(crate) idle: Idle,
    pub(crate) ready: usize,
    /// Resources of this machine that calls may take besides workers' places.
    pub(crate) available: Available,
    /// Places are collected for multi-core calls, on this machine, or on any host.
    pub(crate) collects_here: bool,
    pub(crate) collects: bool,
    /// Collected places have been released, and waiting calls have not been checked since.
    pub(crate) opened: bool,
    /// Number of functions that each number has stood for, from 1. Missing numbers have stood for one.
    versions: Vec<u32>,
    pub(crate) blobs: Blobs,
    pub(crate) timers: Timers,
    pub(crate) pace: Pace,
    pub(crate) call_counters: CountersByFunction,
    pub(crate) policy: P,
    /// Elastic hosts.
    pub(crate) elastic: Elastic,
    /// Executors that are hosts.
    pub(crate) hosts: Vec<WorkerId>,
    /// Whether hosts may have been sent more calls than they have workers.
    pub(crate) uneven: bool,
    /// Last timer that ends the wait for busy hosts.
    pub(crate) held_until: Option<Time>,
    /// Time of the next request for failed hosts, or of the last.
    pub(crate) hosts_again: Time,
    /// Pairs of hosts: the first could not send data to the second.
    pub(crate) apart: HashSet<(WorkerId, WorkerId)>,
    /// Groups that calls can be bound to, by number.
    pub(crate) groups: Vec<HostGroup>,
    /// Groups that include the workers of this machine.
    pub(crate) here: Vec<GroupId>,
    /// Ready workers on hosts.
    pub(crate) host_slots: usize,
    pub(crate) closed: bool,
    /// Number of common places.
    pub(crate) places: usize,
    /// Number of common places given up, and the loss of the last one.
    pub(crate) given_up: Option<(usize, Arc<Loss>)>,
    pub(crate) broken: Option<Arc<Loss>>,
    /// Number of reservations so far.
    pub(crate) tickets: u64,
    /// All places that are or were reserved.
    pub(crate) reserved_places: Vec<WorkerId>,
    /// Reserved places without a process.
    pub(crate) free_places: Vec<WorkerId>,
}

/// How long a process that has been dismissed has to end by itself, ns.
const RETIREMENT: u64 = 10_000_000_000;
/// Limit of the waiting bytes of nested calls, as a multiple of that of other calls.
const NESTED_BYTES: u64 = 16;
/// Interval of checks of the processor time of a call, ns.
pub(crate) const CPU_CHECK: u64 = 100_000_000;
/// How long calls wait behind one that runs much longer than expected, ns.
pub(crate) const STUCK: u64 = 4 * AHEAD;

impl<T: Clone> Core<T> {
    /// Creates a grid that has not requested its workers yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let policy = Adaptive::new(settings.cores);
        Core::with_policy(settings, policy)
    }
}

impl<T: Clone, P: Policy> Core<T, P> {
    /// Creates a grid with another policy.
    #[must_use]
    pub fn with_policy(settings: Settings, policy: P) -> Self {
        let new = |_| Worker::new(settings.calls_per_process);
        let mut workers: Vec<_> = (0..settings.workers).map(new).collect();
        let hosts = settings.hosts.iter();
        workers.extend(hosts.map(|wanted| Worker::for_host(*wanted)));
        let hosts = (settings.workers..workers.len() as u32).map(WorkerId).collect();
        let wanted = |worker: &Worker<T>| worker.host.as_ref().map_or(1, |host| host.wanted);
        let places = workers.iter().map(wanted).sum();
        let mut available = Available::default();
        available.offer(&settings.resources);
        Core {
            settings,
            calls: Calls::new(),
            dependents: Dependents::default(),
            wanted: HashMap::new(),
            relief: HashMap::new(),
            workers,
            idle: Idle::default(),
            ready: 0,
            available,
            collects_here: false,
            collects: false,
            opened: false,
            versions: Vec::new(),
            blobs: Blobs::default(),
            timers: Timers::default(),
            pace: Pace::default(),
            call_counters: CountersByFunction::default(),
            policy,
            elastic: Elastic::default(),
            hosts,
            uneven: false,
            held_until: None,
            groups: vec![HostGroup::here()],
            here: vec![GroupId::HERE],
            hosts_again: Time(0),
            apart: HashSet::new(),
            host_slots: 0,
            closed: false,
            places,
            given_up: None,
            broken: None,
            tickets: 0,
            reserved_places: Vec::new(),
            free_places: Vec::new(),
        }
    }

    /// Requests all workers that are always wanted.
    pub fn open(&mut self, _now: Time, out: &mut Vec<Action<T>>) {
        for index in 0..self.workers.len() {
            if !self.workers[index].is_asleep() {
                self.start(WorkerId(index as u32), out);
            }
        }
    }

    /// Whether a call with this many bytes may be submitted now. Otherwise its caller has to wait.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        let (waiting, waiting_bytes) = self.calls.all_waiting();
        waiting == 0
            || waiting < self.settings.max_queued
                && waiting_bytes.saturating_add(bytes) <= self.settings.max_queued_bytes
    }

    /// Whether a nested call with this many bytes may be submitted. It does not wait for room, because it could wait
    /// for itself, and so has a higher limit.
    #[must_use]
    pub fn has_room_nested(&self, bytes: u64) -> bool {
        let (waiting, waiting_bytes) = self.calls.all_waiting();
        let Settings { max_queued, max_queued_bytes, max_nested, .. } = self.settings;
        let most_bytes = max_queued_bytes.saturating_mul(NESTED_BYTES);
        waiting == 0
            || waiting < max_queued.saturating_add(max_nested)
                && waiting_bytes.saturating_add(bytes) <= most_bytes
    }

    /// Submits a call.
    ///
    /// # Errors
    /// When the grid accepts no calls or the call refers to missing data.
    pub fn submit(
        &mut self,
        now: Time,
        task: Task<T>,
        out: &mut Vec<Action<T>>,
    ) -> Result<CallId, Refusal> {
        self.take(now, task, None, out)
    }

    /// Submits a call that needs the results of earlier calls. It waits until they have ended, and ends with the
    /// first of them that ends without a result. Calls that have ended already are checked when its arguments are
    /// assembled.
    ///
    /// # Errors
    /// As [`Core::submit`].
    pub fn submit_after(
        &mut self,
        now: Time,
        task: Task<T>,
        after: &[CallId],
        out: &mut Vec<Action<T>>,
    ) -> Result<CallId, Refusal> {
        self.take(now, task, Some(after), out)
    }

    pub(crate) fn take(
        &mut self,
        now: Time,
        mut task: Task<T>,
        after: Option<&[CallId]>,
        out: &mut Vec<Action<T>>,
    ) -> Result<CallId, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if let Some(loss) = &self.broken {
            return Err(Refusal::NoWorkers(Arc::clone(loss)));
        }
        if let Some(blob) = task.blobs.iter().find(|blob| !self.blobs.usable(**blob)) {
            return Err(Refusal::UnknownBlob(*blob));
        }
        self.calls.owners.check(task.owner)?;
        if let Some(on) = task.options.on {
            self.check_reserved(on)?;
            task.options = task.options.for_reserved();
        }
        let group = task.options.group;
        if let Some((name, loss)) = group.and_then(|group| self.no_group(group)) {
            return Err(Refusal::NoServer(name, loss));
        }
        if task.options.is_multicore() {
            self.check_request(&ResourceRequest::of(&task)).map_err(NeverRuns::refusal)?;
        }
        self.blobs.add_call(&task.blobs);
        let (deadline, on) = (task.options.deadline, task.options.on);
        let counters = self.call_counters.of(task.function);
        counters.submitted += 1;
        counters.argument_bytes += task.bytes;
        let id = self.calls.insert(task);
        if let Some(after) = deadline {
            self.set_timer(now + ns(after), Timer::Deadline(id));
        }
        if let Some(on) = on {
            self.line_up(id, on.worker);
        }
        match (after, on) {
            (Some(after), _) => self.block(id, after, out),
            (None, Some(on)) => {
                self.calls.wait_for(id, on.worker);
                self.pump_reserved(now, on.worker, out);
            }
            (None, None) => {
                self.calls.enqueue(id);
                self.pump_new(now, id, group, out);
            }
        }
        self.look_soon(now);
        Ok(id)
    }

    /// A worker's process is ready.
    pub fn worker_ready(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        if worker.phase != Phase::Starting {
            return;
        }
        worker.phase = Phase::Ready;
        worker.failed_starts = 0;
        worker.has_worked = true;
        if worker.is_common() {
            self.ready += 1;
            self.idle.push_new(id, worker);
            self.pump(now, out);
        } else {
            self.pump_reserved(now, id, out);
        }
    }

    /// A worker has answered a call, which took `took`. Returns the caller's payload, and whether the call was still
    /// alive; if not, discard the answer.
    ///
    /// # Errors
    /// When this is not the call that the worker has to answer next.
    pub fn replied(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
        took: OccupiedTime,
        out: &mut Vec<Action<T>>,
    ) -> Result<(T, bool), UnexpectedReply> {
        self.answered(now, id, call, took, true, out)
    }

    /// A worker has answered a call whose function raised an error. Otherwise like [`Core::replied`].
    ///
    /// # Errors
    /// As [`Core::replied`].
    pub fn raised(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
        took: OccupiedTime,
        out: &mut Vec<Action<T>>,
    ) -> Result<(T, bool), UnexpectedReply> {
        self.answered(now, id, call, took, false, out)
    }

    pub(crate) fn answered(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
        took: OccupiedTime,
        returned: bool,
        out: &mut Vec<Action<T>>,
    ) -> Result<(T, bool), UnexpectedReply> {
        let Some(sent) = self.take_out(now, id, call) else {
            return Err(UnexpectedReply { worker: id.0, call });
        };
        self.pace.learn(sent.function, took);
        if let Some(host) = &mut self.workers[id.index()].host {
            let turnaround = sent.was_free.then(|| now.since(sent.at));
            host.pace.learn(sent.function, took, turnaround);
        }
        let occupied = took.whole.saturating_mul(sent.slots.into());
        self.calls.owners.settle(sent.owner, sent.charged, occupied);
        self.workers[id.index()].answered += 1;
        let counters = self.call_counters.of(sent.function);
        counters.ran += took.ran;
        if !sent.abandoned {
            *(if returned { &mut counters.returned } else { &mut counters.raised }) += 1;
        }
        if !sent.abandoned
            && let Some(ended) = self.calls.remove(call)
        {
            self.release_blobs(&ended.task.blobs, out);
            self.forget_wanted(call);
            self.dismiss_relief(now, call, out);
            if self.dependents.is_empty() {
                // The usual case.
            } else if returned {
                self.release_dependents(call, out);
            } else {
                self.fail_dependents(now, call, out);
            }
        }
        self.refill(now, id, out);
        self.relieve(now, out);
        Ok((sent.payload, !sent.abandoned))
    }

    /// The worker whose progress decides where the next call of this function goes, if it is not known well enough.
    /// Answers arrive late when a worker is busy.
    #[must_use]
    pub fn asks_for_progress(&self, now: Time, function: FunctionId) -> Option<WorkerId> {
        let load = self.pace.load(function);
        let id = self.policy.watched()?;
        let worker = &self.workers[id.index()];
        let busy = worker.sent.len() > worker.finished;
        (load.cost < AHEAD && busy && !worker.is_awake(load, now)).then_some(id)
    }

    /// A worker has begun this many calls (the low bits of the count), answered or not.
    pub fn progressed(&mut self, now: Time, id: WorkerId, begun: u32) {
        let worker = &mut self.workers[id.index()];
        worker.reports = true;
        worker.progressed(now, begun);
    }

    /// Calls have been taken back from a worker. It has begun `begun` calls (the low bits of the count), and will
    /// skip the others below `below`.
    pub fn taken_back(
        &mut self,
        now: Time,
        id: WorkerId,
        begun: u32,
        below: u64,
        out: &mut Vec<Action<T>>,
    ) {
        let worker = &mut self.workers[id.index()];
        debug_assert!(worker.is_common(), "nobody else could run its calls");
        worker.progressed(now, begun);
        let overdue = worker.overdue.take();
        if overdue.is_some_and(|serial| !has_begun(begun, serial + 1))
            && worker.phase == Phase::Ready
        {
            // It can begin no other call any more, so only the overdue call ends with it.
            self.ready -= usize::from(worker.is_ready_here());
            worker.phase = Phase::Ending;
            out.push(Action::Kill(id));
        }
        let mut occupied = VecDeque::with_capacity(worker.sent.len());
        let mut back = Vec::new();
        for sent in worker.sent.drain(..) {
            if sent.serial >= below || has_begun(begun, sent.serial) {
                occupied.push_back(sent);
            } else {
                back.push(sent);
            }
        }
        worker.sent = occupied;
        worker.cost -= back.iter().map(|sent| sent.cost).sum::<u64>();
        worker.held -= back.iter().map(|sent| sent.slots as usize - 1).sum::<usize>();
        back.iter().for_each(|sent| self.gives_back(id, sent));
        for sent in back.into_iter().rev() {
            if sent.abandoned {
                out.push(Action::Forget(sent.payload));
            } else {
                self.put_back(sent.call, out);
            }
        }
        self.rest(now, id, out);
        self.pump(now, out);
    }

    /// Registers data that calls may refer to from now on. Named data may be registered again while its holder
    /// releases it: the holder finds it by its number.
    pub fn share(&mut self, blob: BlobId) {
        let state = self.blobs.table.entry(blob).or_default();
        (state.dropped, state.leaving) = (false, false);
    }

    /// Ends sharing of this data: no further call will refer to it. It is freed when the last call that does has
    /// ended.
    pub fn unshare(&mut self, blob: BlobId, out: &mut Vec<Action<T>>) {
        if let Some(state) = self.blobs.table.get_mut(&blob) {
            state.dropped = true;
            self.blobs.leave_if_unused(blob, out);
        }
    }

    /// A worker has released data that is no longer shared. `unread`: no reader that got it from there remains.
    pub fn blob_dropped(
        &mut self,
        worker: WorkerId,
        blob: BlobId,
        unread: bool,
        out: &mut Vec<Action<T>>,
    ) {
        self.blobs.let_go(worker, blob, unread, out);
    }

    /// Stops accepting calls and ends all live ones.
    pub fn close(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        self.closed = true;
        self.end_all(now, &End::Closed, out);
        self.timers.clear();
    }

    /// Reassigns the number to another function; no call of the old one is alive. Returns the counters of the old
    /// one.
    pub fn replace_function(&mut self, function: FunctionId) -> CallCounters {
        self.pace.forget(function);
        let hosts = self.workers.iter_mut().filter_map(|worker| worker.host.as_mut());
        hosts.for_each(|host| host.pace.forget(function));
        let index = function.0 as usize;
        if index >= self.versions.len() {
            self.versions.resize(index + 1, 1);
        }
        self.versions[index] = self.versions[index].wrapping_add(1).max(1);
        std::mem::take(self.call_counters.of(function))
    }

    pub(crate) fn view(&mut self, now: Time) -> (&mut P, View<'_, T>) {
        let Core { policy, workers, idle, ready, hosts, host_slots, pace, calls, .. } = self;
        let (queued, here, ahead) = (calls.queued(None), !self.collects_here, true);
        let (ready, host_slots, waiting) = (*ready, *host_slots, queued + calls.bound());
        let view = View {
            now,
            workers,
            idle,
            ready,
            hosts,
            rivals: hosts,
            host_slots,
            pace,
            queued,
            waiting,
            here,
            ahead,
        };
        (policy, view)
    }

    /// Sends its next calls to a worker that has just answered.
    pub(crate) fn refill(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        if self.workers[id.index()].host.is_some() {
            self.pump_nearby(now, id, out);
            if self.has_room_only_on(id) {
                self.refill_host(now, id, out);
            } else {
                self.pump(now, out);
            }
            return self.even_out(out);
        }
        if !self.workers[id.index()].is_common() {
            return self.pump_reserved(now, id, out);
        }
        if self.calls.multicore() > 0 || self.idle.held > self.idle.len() {
            // It may have to keep its place free.
            self.rest(now, id, out);
            self.pump(now, out);
            return self.even_out(out);
        }
        let mut left = false;
        while let Some((line, call)) = self.next_for(id) {
            let Some(function) = self.calls.get(call).map(|call| call.task.function) else { break };
            let worker = &self.workers[id.index()];
            let free = worker.phase == Phase::Ready && worker.sent.is_empty() && !worker.is_spent();
            if !free && !worker.has_room(self.pace.cost(function), now) {
                break;
            }
            let (policy, view) = self.view(now);
            left = !policy.goes_on(&view, id, function);
            if left {
                break;
            }
            self.calls.pop_sent(line, id);
            self.send(now, call, id, out);
        }
        self.rest(now, id, out);
        if self.idle.len() > 0 || left {
            // Calls that have waited for this worker may no longer be light.
            self.pump(now, out);
            self.even_out(out);
        }
    }

    /// Marks a worker without calls as idle, or dismisses it if it has served enough calls or is not wanted.
    pub(crate) fn rest(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        if !worker.sent.is_empty() || worker.phase != Phase::Ready {
            return;
        }
        if !worker.is_spent() {
            return self.idle.push(id, worker);
        }
        self.dismiss(now, id, out);
    }

    /// Makes a worker without calls end.
    pub(crate) fn dismiss(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        self.ready -= usize::from(worker.is_ready_here());
        worker.phase = Phase::Ending;
        let timer = Timer::Retired { worker: id, generation: worker.generation };
        self.set_timer(now + RETIREMENT, timer);
        out.push(Action::Dismiss(id));
    }

    /// Sends a call that has been taken from its queue.
    pub(crate) fn send(&mut self, now: Time, id: CallId, to: WorkerId, out: &mut Vec<Action<T>>) {
        let Some(call) = self.calls.get(id) else { return };
        let function = call.task.function;
        let cost = self.pace.cost(function);
        let slots =
            if call.task.options.cores > 1 { self.slots(call.task.options.cores, to) } else { 1 };
        let (owner, resources) = (call.task.owner, call.task.options.resources.clone());
        let group = call.task.options.group;
        let charged = self.calls.owners.sent(owner, cost, slots as u32);
        let Some(call) = self.calls.get(id) else { return };
        let worker = &mut self.workers[to.index()];
        if worker.sent.is_empty() {
            worker.head_since = now;
        }
        let was_free = worker.taken() < worker.host.as_ref().map_or(1, |host| host.slots);
        self.uneven |= !was_free;
        let payload = call.task.payload.clone();
        let serial = worker.sent_ever;
        worker.sent_ever += 1;
        worker.sent.push_back(SentCall {
            call: id,
            serial,
            at: now,
            was_free,
            payload: payload.clone(),
            abandoned: false,
            retracting: false,
            function,
            cost,
            group,
            owner,
            charged,
            cpu_before: None,
            slots: slots as u32,
            resources: resources.clone(),
        });
        worker.cost += cost;
        let common = worker.is_common();
        if slots > 1 {
            worker.held += slots - 1;
            self.idle.held += if common { slots - 1 } else { 0 };
        }
        if !resources.is_empty() {
            worker
                .host
                .as_mut()
                .map_or(&mut self.available, |host| &mut host.available)
                .take(&resources);
        }
        let run_limit = call.task.options.run_limit.filter(|_| worker.is_here());
        let cpu_limited = call.task.options.cpu_limit.is_some() && worker.is_here();
        let is_head = worker.head() == Some(serial);
        let behind = worker.head().filter(|head| *head != serial && worker.is_here());
        let watch = behind.filter(|_| !std::mem::replace(&mut worker.watched, true));
        let generation = worker.generation;
        let version = self.versions.get(function.0 as usize).copied().unwrap_or(1);
        if worker.teach(function, version) {
            out.push(Action::Teach { worker: to, function });
        }
        for blob in &call.task.blobs {
            if let Some(state) = self.blobs.table.get_mut(blob)
                && state.holders.insert(to)
            {
                out.push(Action::Share { worker: to, blob: *blob });
            }
        }
        if call.task.options.cores > 1 || call.task.options.threads > 0 {
            let threads = call.task.options.threads.max(call.task.options.cores);
            out.push(Action::Widen { worker: to, call: id, slots: slots as u32, threads });
        }
        let batch = self.pace.batched(function);
        out.push(Action::Send { worker: to, call: id, function, batch, payload });
        if self.dependents.has(id) && !self.hosts.is_empty() {
            self.keep_result(id, out);
        }
        if cpu_limited {
            if is_head {
                out.push(Action::MeasureCpu { worker: to, call: id });
            }
            let timer = Timer::CpuTime { worker: to, generation, serial };
            self.set_timer(now + CPU_CHECK, timer);
        }
        if let Some(limit) = run_limit {
            let timer = Timer::RunLimit { worker: to, generation, serial };
            self.set_timer(now + ns(limit), timer);
        }
        if let Some(head) = watch {
            self.set_timer(now + STUCK, Timer::Stuck { worker: to, generation, head });
        }
        if common {
            self.policy.sent(to);
        }
    }
}
