//! Detached calls that have not ended. One thread starts them and stores their results.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use gridrpc_agent::{AcceptedCall, CallEnd, DetachedEntry, InPlace, Notify, Permit, Target};
use gridrpc_client::{Call, Grid, Outcome, Request, Watch};
use gridrpc_core::End;
use gridrpc_link::payload::{Incoming, Outgoing, Payload};
use gridrpc_shm::segment::{InPlaceResult, PooledSegment};
use gridrpc_sys::safe_path::UnsafePath;
use gridrpc_wire::RemoteError;

use crate::audit::{AuditEvent, AuditRecord};
use crate::caller::{AccessError, Caller};
use crate::detached::record::{DetachedId, Record, StoredFailure};
use crate::detached::store::{Stage, Store, StoreError};
use crate::log;
use crate::offered_function::OfferedFunction;
use crate::presence::PresenceKind;
use crate::roles::Role;
use crate::shared::Shared;

/// How often calls that could not start are tried again, and old results are removed.
const CHECK: Duration = Duration::from_millis(250);
/// Calls of a user that a pool has at a time, for each worker. The others wait on disk.
const AHEAD: usize = 2;
/// Token of a wake-up that belongs to no call.
const WAKE_UP: u64 = 0;

/// The detached calls of all users.
pub(crate) struct DetachedCalls {
    shared: Arc<Shared>,
    pub(super) store: Store,
    state: Mutex<State>,
    /// Signalled when a call has ended.
    ended: Condvar,
    events: Arc<Events>,
    stopping: AtomicBool,
}

/// Calls that have ended, and wake-ups.
#[derive(Debug, Default)]
struct Events(Arc<Watch>);

#[derive(Default)]
struct State {
    /// Calls that have not ended.
    alive: HashMap<DetachedId, Alive>,
    /// Those that wait, by user, in order.
    queues: BTreeMap<Arc<str>, VecDeque<DetachedId>>,
    /// Those that run, by token.
    running: HashMap<u64, DetachedId>,
    /// Number of those that run, by user.
    ahead: HashMap<Arc<str>, usize>,
    last_token: u64,
}

/// A call that has not ended.
struct Alive {
    caller: Arc<Caller>,
    record: Record,
    /// Where it will run; none: it is from before a restart.
    target: Option<Target>,
    running: Option<Running>,
    is_cancelled: bool,
}

/// A call that runs.
struct Running {
    call: Arc<Call>,
    grid: Arc<Grid>,
    /// Attaches results that were left in the memory of arguments.
    in_place: InPlace,
    permit: Option<Box<dyn Permit>>,
}

/// A call that is stored, and that this thread does not know yet.
struct StoredCall {
    calls: Arc<DetachedCalls>,
    id: DetachedId,
    /// The same as text.
    text: String,
    caller: Arc<Caller>,
    record: Record,
}

impl DetachedEntry for StoredCall {
    fn id(&self) -> &str {
        &self.text
    }

    fn start(self: Box<Self>, target: Target) {
        let StoredCall { calls, id, caller, record, .. } = *self;
        let target = Some(target);
        calls.queue(id, Alive { caller, record, target, running: None, is_cancelled: false });
        calls.events.notify();
    }

    fn resume(self: Box<Self>, left: AcceptedCall) {
        let StoredCall { calls, id, caller, record, .. } = *self;
        let AcceptedCall { call, grid, permit, in_place } = left;
        let mut state = calls.lock();
        let token = state.begin(id, &caller.user);
        let running = Some(Running { call: Arc::clone(&call), grid, in_place, permit });
        state
            .alive
            .insert(id, Alive { caller, record, target: None, running, is_cancelled: false });
        drop(state);
        call.watch(&calls.events.0, token);
    }
}

impl State {
    /// Counts a call that runs. Returns its token.
    fn begin(&mut self, id: DetachedId, user: &Arc<str>) -> u64 {
        self.last_token += 1;
        self.running.insert(self.last_token, id);
        *self.ahead.entry(Arc::clone(user)).or_default() += 1;
        self.last_token
    }
}

/// A call as its owner sees it.
pub(super) struct CallView {
    pub(super) record: Record,
    pub(super) state: &'static str,
}

/// Outcome of starting a call.
enum Start {
    Running(Running),
    /// A limit of its user is reached for now.
    Waits(Option<Target>),
    Failed(StoredFailure),
}

impl fmt::Debug for DetachedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedCalls").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Notify for Events {
    fn notify(&self) {
        self.0.push(WAKE_UP);
    }
}

impl DetachedCalls {
    /// Opens the folder with the calls of earlier runs.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        folder: &Path,
    ) -> Result<Arc<DetachedCalls>, UnsafePath> {
        let (store, unfinished) = Store::open(folder, &shared.config.results)?;
        let calls = DetachedCalls {
            shared: Arc::clone(shared),
            store,
            state: Mutex::default(),
            ended: Condvar::new(),
            events: Arc::default(),
            stopping: AtomicBool::new(false),
        };
        for (id, stage) in unfinished {
            calls.restore(id, stage);
        }
        Ok(Arc::new(calls))
    }

    /// Takes up a call from before a restart, or ends it if it may not run again.
    fn restore(&self, id: DetachedId, stage: Stage) {
        let (record, sections) = match self.store.read_unfinished(id, stage, 1) {
            Ok(read) => read,
            Err(error) => {
                let what = "a detached call cannot be read";
                log::warning(what, &[("call", &id), ("reason", &error)]);
                return self.store.forget(id, stage);
            }
        };
        if stage == Stage::Running {
            let message = format!(
                "call `{id}` of {} was running when {} stopped, and is not idempotent: it may have run in part",
                record.function,
                self.shared.name()
            );
            let failure = Some(StoredFailure::new(RemoteError::CallLost, message));
            let values = sections.first().map_or(&[][..], Vec::as_slice);
            return self.store.end(id, Record { failure, ..record }, &[values]);
        }
        let caller = Arc::new(Caller {
            shared: Arc::clone(&self.shared),
            user: record.user.as_str().into(),
            address: "detached".into(),
            role: Role::of(&self.shared.config, &record.user, &record.groups),
            owns_server: false,
        });
        self.shared.presence.enter(&caller.user, PresenceKind::DetachedCall);
        self.queue(id, Alive { caller, record, target: None, running: None, is_cancelled: false });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the server's end, when calls that run are not over.
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Starts no more calls. The results of those that run do not count.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.events.notify();
        // A thread that has just checked the flag waits by now.
        drop(self.lock());
        self.ended.notify_all();
    }

    /// The server's name, for messages.
    pub(super) fn name(&self) -> String {
        self.shared.name()
    }

    /// Adds a call. It survives a crash of the server when this returns.
    pub(super) fn add(
        &self,
        caller: &Arc<Caller>,
        record: Record,
        sections: &[&[u8]],
    ) -> Result<DetachedId, AddError> {
        let user = &caller.user;
        self.shared.presence.enter(user, PresenceKind::DetachedCall);
        let bytes = sections.iter().map(|section| section.len() as u64).sum();
        let added = offered(caller, &record)
            .begin_call(bytes, None, None)
            .map_err(AddError::Denied)
            .and_then(|(_, target)| {
                Ok((target, self.store.add(record.clone(), sections, Stage::Queued)?))
            });
        let (target, id) = added.inspect_err(|_| {
            self.shared.leave(user, PresenceKind::DetachedCall);
        })?;
        let (caller, target) = (Arc::clone(caller), Some(target));
        self.queue(id, Alive { caller, record, target, running: None, is_cancelled: false });
        self.events.notify();
        Ok(id)
    }

    fn queue(&self, id: DetachedId, alive: Alive) {
        let mut state = self.lock();
        state.queues.entry(Arc::clone(&alive.caller.user)).or_default().push_back(id);
        state.alive.insert(id, alive);
    }

    /// Keeps a call that its client has made already. `again`: whether it may run again; `has_begun`: whether a worker may
    /// have begun it.
    pub(super) fn keep(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        record: Record,
        sections: &[&[u8]],
        has_begun: bool,
    ) -> Result<Box<dyn DetachedEntry>, StoreError> {
        let stage = if has_begun && !record.idempotent { Stage::Running } else { Stage::Queued };
        let id = self.store.add(record.clone(), sections, stage)?;
        self.shared.presence.enter(&caller.user, PresenceKind::DetachedCall);
        let (calls, caller) = (Arc::clone(self), Arc::clone(caller));
        Ok(Box::new(StoredCall { calls, id, text: id.to_string(), caller, record }))
    }

    /// A call of this user; none: there is no such call.
    pub(super) fn see(&self, user: &str, id: DetachedId) -> io::Result<Option<CallView>> {
        if let Some(alive) = self.lock().alive.get(&id) {
            let state = if alive.running.is_some() { "running" } else { "queued" };
            let is_owner = *alive.caller.user == *user;
            return Ok(is_owner.then(|| CallView { record: alive.record.clone(), state }));
        }
        let read = self.store.read(id, 0)?.filter(|(record, _)| record.user == user);
        Ok(read.map(|(record, _)| {
            let state = if record.failure.is_some() { "failed" } else { "done" };
            CallView { record, state }
        }))
    }

    /// The values of the arguments of a call, which its owner needs to take the result.
    pub(super) fn values(&self, id: DetachedId) -> io::Result<Vec<u8>> {
        for _ in 0..2 {
            // It may end between the two.
            for stage in [Stage::Queued, Stage::Running] {
                match self.store.read_unfinished(id, stage, 1) {
                    Ok((_, sections)) => {
                        return Ok(sections.into_iter().next().unwrap_or_default());
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            if let Some((_, sections)) = self.store.read(id, 1)? {
                return Ok(sections.into_iter().next().unwrap_or_default());
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// The calls of a user that have not ended.
    pub(super) fn unfinished(&self, user: &str) -> Vec<DetachedId> {
        let state = self.lock();
        let own = state.alive.iter().filter(|(_, alive)| *alive.caller.user == *user);
        own.map(|(id, _)| *id).collect()
    }

    /// Numbers of calls that wait, that run, and that have ended and have a result.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let ended = self.store.ended().len();
        let state = self.lock();
        let running = state.running.len();
        (state.alive.len().saturating_sub(running), running, ended)
    }

    /// Waits until one of these calls has ended, or is unknown. Returns all such calls.
    pub(super) fn wait(&self, ids: &[DetachedId], timeout: Duration) -> Vec<DetachedId> {
        let ended = |state: &State| -> Vec<DetachedId> {
            ids.iter().copied().filter(|id| !state.alive.contains_key(id)).collect()
        };
        let state = self.lock();
        let goes_on = |state: &mut State| !self.is_stopping() && ended(state).is_empty();
        let waited = self.ended.wait_timeout_while(state, timeout, goes_on);
        ended(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Cancels a call. Returns whether it had not ended yet.
    pub(super) fn cancel(&self, id: DetachedId) -> bool {
        let mut state = self.lock();
        let Some(alive) = state.alive.get_mut(&id) else { return false };
        alive.is_cancelled = true;
        if let Some(running) = &alive.running {
            let (grid, call) = (Arc::clone(&running.grid), Arc::clone(&running.call));
            drop(state);
            grid.cancel(&call);
        } else {
            drop(state);
            self.events.notify();
        }
        true
    }

    /// Cancels the calls of a user, or of all, and of a function, or of all. Returns how many had not ended yet.
    pub(crate) fn cancel_all(&self, user: Option<&str>, function: Option<&str>) -> usize {
        let state = self.lock();
        let is_unwanted = |alive: &Alive| {
            user.is_none_or(|user| alive.record.user == user)
                && function.is_none_or(|function| alive.record.function == function)
        };
        let unwanted = state.alive.iter().filter(|(_, alive)| is_unwanted(alive));
        let unwanted: Vec<DetachedId> = unwanted.map(|(id, _)| *id).collect();
        drop(state);
        unwanted.into_iter().filter(|id| self.cancel(*id)).count()
    }

    /// Cancels the call with this id, of a user, or of any. Returns whether it had not ended yet.
    pub(crate) fn cancel_by_id(&self, id: &str, user: Option<&str>) -> bool {
        let Some(id) = DetachedId::parse(id) else { return false };
        let is_meant = |alive: &Alive| user.is_none_or(|user| alive.record.user == user);
        let is_unwanted = self.lock().alive.get(&id).is_some_and(is_meant);
        is_unwanted && self.cancel(id)
    }

    /// Starts calls and stores their results until the server stops.
    pub(crate) fn run(&self) {
        let mut checked = Instant::now();
        while !self.is_stopping() {
            self.events.0.take(CHECK).into_iter().for_each(|token| self.finish(token));
            self.start_queued();
            if checked.elapsed() >= CHECK {
                checked = Instant::now();
                self.store.save();
                self.store.expire(SystemTime::now());
            }
        }
        // The workers are still there: these calls have really ended.
        self.events.0.take(Duration::ZERO).into_iter().for_each(|token| self.finish(token));
    }

    /// Starts the calls of each user in order, up to the first that has to wait.
    fn start_queued(&self) {
        self.drop_cancelled();
        let users: Vec<Arc<str>> = self.lock().queues.keys().cloned().collect();
        for user in users {
            while !self.is_stopping() && self.start_next(&user) {}
        }
    }

    /// Ends calls that were cancelled while they waited.
    fn drop_cancelled(&self) {
        let state = self.lock();
        let is_dropped = |alive: &Alive| alive.is_cancelled && alive.running.is_none();
        let dropped = state.alive.iter().filter(|(_, alive)| is_dropped(alive));
        let dropped: Vec<DetachedId> = dropped.map(|(id, _)| *id).collect();
        drop(state);
        for id in dropped {
            self.fail(id, StoredFailure::new(RemoteError::CallCancelled, "the call was cancelled"));
        }
    }

    /// Starts the next call of a user. Returns whether there may be another one to start.
    fn start_next(&self, user: &Arc<str>) -> bool {
        let mut state = self.lock();
        let Some(queue) = state.queues.get(user) else { return false };
        let Some(&id) = queue.front() else {
            state.queues.remove(user);
            return false;
        };
        let ahead = state.ahead.get(user).copied().unwrap_or(0);
        let Some(alive) = state.alive.get_mut(&id) else {
            // It was cancelled.
            pop(&mut state, user);
            return true;
        };
        let target = alive.target.take();
        let (caller, record) = (Arc::clone(&alive.caller), alive.record.clone());
        drop(state);
        match self.start(id, &caller, &record, target, ahead) {
            Start::Waits(target) => {
                if let Some(alive) = self.lock().alive.get_mut(&id) {
                    alive.target = target;
                }
                false
            }
            Start::Failed(failure) => {
                self.fail(id, failure);
                true
            }
            Start::Running(running) => {
                let call = Arc::clone(&running.call);
                let mut state = self.lock();
                let token = state.begin(id, user);
                pop(&mut state, user);
                let is_cancelled = state.alive.get_mut(&id).is_some_and(|alive| {
                    alive.running = Some(running);
                    alive.is_cancelled
                });
                drop(state);
                call.watch(&self.events.0, token);
                if is_cancelled {
                    self.cancel(id);
                }
                true
            }
        }
    }

    /// Submits a call. `ahead`: the number of calls of its user that run.
    fn start(
        &self,
        id: DetachedId,
        caller: &Arc<Caller>,
        record: &Record,
        target: Option<Target>,
        ahead: usize,
    ) -> Start {
        let target = match target {
            Some(target) => target,
            None => match offered(caller, record).begin_call(0, None, None) {
                Ok((_, target)) => target,
                // Its limits were checked when it was detached.
                Err(AccessError { error: RemoteError::LimitReached, .. }) => {
                    return Start::Waits(None);
                }
                Err(AccessError { error, message, .. }) => {
                    return Start::Failed(StoredFailure::new(error, message));
                }
            },
        };
        if ahead >= AHEAD * target.grid.workers().max(1) as usize {
            return Start::Waits(Some(target));
        }
        let waiting: Arc<dyn Notify> = Arc::clone(&self.events) as _;
        if target.permit.as_ref().is_some_and(|permit| !permit.try_start(&waiting)) {
            return Start::Waits(Some(target));
        }
        self.submit(id, record, target).unwrap_or_else(|error| {
            let message = format!("the call could not be started: {error}");
            Start::Failed(StoredFailure::new(RemoteError::CallLost, message))
        })
    }

    fn submit(&self, id: DetachedId, record: &Record, target: Target) -> io::Result<Start> {
        let Target { grid, function, owner, mut options, permit, .. } = target;
        let (_, sections) = self.store.read_unfinished(id, Stage::Queued, usize::MAX)?;
        let mut payload = grid.payload();
        for section in sections {
            payload.add_owned(section)?;
        }
        let payload = Payload { order: record.order(), ..payload.finish() };
        let lies = |part: &Outgoing| match part {
            Outgoing::Shared { lent, .. } => Some(Arc::clone(lent)),
            _ => None,
        };
        let lent: Vec<Option<Arc<PooledSegment>>> = payload.parts.iter().map(lies).collect();
        let in_place: InPlace = Box::new(move |parts| in_place(parts, &lent));
        if !record.idempotent {
            self.store.begin(id)?;
        }
        options.idempotent = record.idempotent;
        let request = Request { owner, ..Request::new(function, payload, options) };
        let call = grid.submit_at_once(request).map_err(io::Error::other)?;
        Ok(Start::Running(Running { call, grid, in_place, permit }))
    }

    /// Stores the outcome of a call that has run.
    fn finish(&self, token: u64) {
        let mut state = self.lock();
        let Some(id) = state.running.remove(&token) else { return };
        let Some(alive) = state.alive.get_mut(&id) else { return };
        let (user, mut record) = (Arc::clone(&alive.caller.user), alive.record.clone());
        let running = alive.running.take();
        if let Some(ahead) = state.ahead.get_mut(&user) {
            *ahead = ahead.saturating_sub(1);
            if *ahead == 0 {
                state.ahead.remove(&user);
            }
        }
        drop(state);
        let Some(running) = running else { return };
        let values = self.values(id).unwrap_or_default();
        let parts = match running.call.take_outcome() {
            Some(Outcome::Returned(parts, _)) => (running.in_place)(parts).map_err(|error| {
                let message = format!("the result cannot be read: {error}");
                StoredFailure::new(RemoteError::OutOfMemory, message)
            }),
            Some(Outcome::Raised { error, message, trace, .. }) => {
                Err(StoredFailure { error, message, trace })
            }
            Some(Outcome::Ended(end)) => Err(failure_of(&end, &record.function)),
            None => Err(StoredFailure::new(RemoteError::CallLost, "the call has no result")),
        };
        let outcome = match &parts {
            Ok(parts) => Ok(parts.iter().map(|part| part.bytes().len() as u64).sum()),
            Err(failure) => Err(failure.error.as_str()),
        };
        if let Some(permit) = &running.permit {
            permit.ended(CallEnd { outcome, profile: &running.call.profile() });
        }
        let mut sections = vec![values.as_slice()];
        match &parts {
            Ok(parts) => sections.extend(parts.iter().map(Incoming::bytes)),
            Err(failure) => record.failure = Some(failure.clone()),
        }
        self.end(id, &user, record, &sections);
    }

    /// Ends a call that does not run.
    fn fail(&self, id: DetachedId, failure: StoredFailure) {
        let Some((caller, record)) = self
            .lock()
            .alive
            .get(&id)
            .map(|alive| (Arc::clone(&alive.caller), alive.record.clone()))
        else {
            return;
        };
        let values = self.values(id).unwrap_or_default();
        let user = &caller.user;
        self.shared.audit.record(AuditRecord {
            outcome: Some(failure.error.clone().into()),
            ..caller.record(AuditEvent::End, &record.function, 0)
        });
        self.end(id, user, Record { failure: Some(failure), ..record }, &[&values]);
    }

    fn end(&self, id: DetachedId, user: &Arc<str>, record: Record, sections: &[&[u8]]) {
        self.store.end(id, record, sections);
        let alive = self.lock().alive.remove(&id);
        // Its permit goes without the lock.
        drop(alive);
        self.shared.leave(user, PresenceKind::DetachedCall);
        self.ended.notify_all();
    }
}

/// Why a call cannot be detached.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddError {
    /// The user may not, or a limit is reached.
    #[error("{}", .0.message)]
    Denied(AccessError),
    /// It cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Removes the first call from the queue of a user.
fn pop(state: &mut State, user: &Arc<str>) {
    if let Some(queue) = state.queues.get_mut(user) {
        queue.pop_front();
    }
}

fn offered(caller: &Arc<Caller>, record: &Record) -> OfferedFunction {
    let (name, hash) = (record.function.as_str().into(), Some(record.hash.clone()));
    OfferedFunction { caller: Arc::clone(caller), name, hash, is_method: false }
}

/// Why a call ended without an answer of its function.
fn failure_of(end: &End, function: &str) -> StoredFailure {
    let of =
        |error, why: String| StoredFailure::new(error, format!("the call of {function} {why}"));
    match end {
        End::Cancelled => of(RemoteError::CallCancelled, "was cancelled".to_owned()),
        End::WorkerLost(loss) => {
            of(RemoteError::CallLost, format!("was lost with its worker: {loss}"))
        }
        End::NoWorkers(loss) | End::NoServer(_, loss) => {
            of(RemoteError::CallLost, format!("had no worker: {loss}"))
        }
        End::RunLimit(limit) => of(RemoteError::LimitReached, format!("was ended: {limit}")),
        End::TooManyCores(why) => of(RemoteError::LimitReached, format!("could not run: {why}")),
        End::NoFittingHost(why) => of(RemoteError::LimitReached, format!("could not run: {why}")),
        End::NestedCallLimit(limit) => {
            of(RemoteError::LimitReached, format!("could not run: {limit}"))
        }
        End::NotGathered(why) => of(RemoteError::OutOfMemory, format!("could not run: {why}")),
        End::Closed | End::DeadlineExceeded(_) | End::DependencyFailed(_) => {
            of(RemoteError::CallLost, "was ended by the server".to_owned())
        }
    }
}

/// Attaches results that were left in the memory of arguments.
fn in_place(
    parts: Vec<Incoming>,
    lent: &[Option<Arc<PooledSegment>>],
) -> io::Result<Vec<Incoming>> {
    let find = |part: Incoming| match part {
        Incoming::Argument(index, len) => {
            let lent = lent.get(usize::from(index)).and_then(Option::as_ref);
            Ok(Incoming::Left(InPlaceResult::new(
                lent.ok_or(io::ErrorKind::InvalidInput)?,
                0,
                len,
            )?))
        }
        other => Ok(other),
    };
    parts.into_iter().map(find).collect()
}
