//! Handle of a call: its request, its outcome, and waiting for it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gridrpc_core::{CallId, End};
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{DType, Order, Stamps, TraceContext};

use crate::call::handler::Callbacks;
use crate::call::outcome::{Outcome, Profile, StoredOutcome, moved};
use crate::call::remote_result::RemoteResult;
use crate::call::trace;
use crate::call::watch::{NotifiedWatchers, Watcher};
use crate::function::FunctionRef;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) id: Option<CallId>,
    pub(super) payload: Option<Arc<Payload>>,
    pub(super) profile: Profile,
    pub(super) outcome: Option<StoredOutcome>,
    pub(super) done: bool,
    /// The call ended without returning.
    pub(super) failed: bool,
    /// The call may run again when its worker is lost.
    idempotent: bool,
    /// Threads that sleep until the call ends. Counted because waking nobody costs a system call too.
    pub(super) sleepers: u32,
    /// Boxed because few calls have any.
    pub(super) beside: Option<Box<RareFields>>,
}

/// Maximum number of calls per function whose results the function has not received. Workers enforce the same bound
/// by waiting (MOST_UNDER_WAY in python/gridrpc/_current.py).
const MOST_CHILDREN: usize = 1000;
/// Maximum number of concurrent callbacks of a call: one for each worker that was lost with it.
const MOST_CALLBACKS: u32 = 16;

/// Fields that only some calls need.
#[derive(Debug, Default)]
pub(super) struct RareFields {
    /// Watchers of the call. Watchers that have been dropped are skipped.
    pub(super) watches: Vec<(Weak<dyn Watcher>, u64)>,
    /// Payloads sent to the worker in addition to the call itself. The worker may still read them.
    pub(super) sent_beside: Vec<Arc<Payload>>,
    /// Calls whose results this call still needs.
    pub(super) dependencies: Vec<Dependency>,
    /// Calls that its function has made and whose results it has not received, by number, until the function ends.
    pub(super) children: HashMap<CallId, Arc<Call>>,
    /// Unanswered callbacks of its function.
    pub(super) callbacks: u32,
    /// Number of calls that need the result of this one.
    pub(super) holds: u32,
    /// The result, kept for the calls that need it after the caller has taken it.
    pub(super) returned: Option<(Vec<Incoming>, Order)>,
    /// The result, if a host keeps it.
    pub(super) remote: Option<RemoteResult>,
    /// Whether the kept result has been requested.
    pub(super) fetching: bool,
    /// Threads that wait until the call has returned, wherever its result is.
    pub(super) settling: u32,
    /// Number of sections and bytes of its arguments, without the results of other calls.
    pub(super) own: Option<(usize, u64)>,
}

/// A call whose result another call needs. The result is kept for that call even if the caller takes it.
#[derive(Debug)]
pub struct Hold(pub(crate) Arc<Call>);

/// An array among the results of a call of a module function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultArray {
    /// Its parameter.
    pub parameter: usize,
    /// The type of its elements.
    pub dtype: DType,
    /// Its length, bytes.
    pub len: u64,
}

/// A call whose result is an argument of another.
pub struct Dependency {
    /// The call.
    pub call: Arc<Hold>,
    /// The array of its result that becomes a section of the other call, which is one of a module function. `None`: all
    /// of the result, for a Python function.
    pub array: Option<ResultArray>,
    /// The binding's object for the call; dropped when the result has been passed on.
    pub owner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl Dependency {
    /// The call's id in the grid.
    pub(crate) fn id(&self) -> Option<CallId> {
        self.call.0.id()
    }
}

/// One call. Shared between its caller and the grid.
#[derive(Debug)]
pub struct Call {
    inner: Mutex<Inner>,
    pub(super) finished: Condvar,
    function: Arc<FunctionRef>,
    /// Fields that few calls need.
    pub(super) extras: Option<Box<Extras>>,
}

#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) callbacks: Option<Callbacks>,
    /// Destinations of streamed sections of the result.
    pub(crate) sinks: Vec<(u16, Arc<Sink>)>,
    /// Span of the calling program.
    pub(crate) trace: Option<TraceContext>,
}

impl Inner {
    pub(super) fn take_remote(&mut self) -> Option<RemoteResult> {
        self.beside.as_mut()?.remote.take()
    }
}

impl Call {
    pub(crate) fn new(
        function: Arc<FunctionRef>,
        payload: Payload,
        extras: Extras,
        after: Vec<Dependency>,
        idempotent: bool,
    ) -> Arc<Call> {
        let profile = Profile {
            submit: monotonic_ns(),
            worker: u32::MAX,
            bytes_in: payload.bytes,
            ..Profile::default()
        };
        let mut inner = Inner {
            id: None,
            payload: Some(Arc::new(payload)),
            profile,
            outcome: None,
            done: false,
            failed: false,
            idempotent,
            sleepers: 0,
            beside: None,
        };
        if !after.is_empty() {
            inner.beside =
                Some(Box::new(RareFields { dependencies: after, ..RareFields::default() }));
        }
        let (inner, finished) = (Mutex::new(inner), Condvar::new());
        let Extras { callbacks, sinks, trace } = &extras;
        let has_extras = callbacks.is_some() || !sinks.is_empty() || trace.is_some();
        let extras = has_extras.then(|| Box::new(extras));
        Arc::new(Call { inner, finished, function, extras })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the call may run again when its worker is lost.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.lock().idempotent
    }

    pub(crate) fn named(&self, id: CallId) {
        self.lock().id = Some(id);
    }

    /// The call's id in the grid, once the grid has accepted it.
    pub(crate) fn id(&self) -> Option<CallId> {
        self.lock().id
    }

    /// The payload to send. `None` once the call has ended.
    pub(crate) fn send(&self, worker: u32, pid: u32) -> Option<Arc<Payload>> {
        let mut inner = self.lock();
        inner.profile.sent = monotonic_ns();
        inner.profile.worker = worker;
        inner.profile.pid = pid;
        inner.payload.clone()
    }

    /// Finds the results that the worker has left in place of arguments. Module functions find their own.
    ///
    /// # Errors
    /// When they are not there.
    pub(crate) fn find_left(&self, outcome: &mut Outcome) -> io::Result<()> {
        let (Outcome::Returned(sections, _) | Outcome::Raised { sections, .. }) = outcome else {
            return Ok(());
        };
        if self.function.is_native() {
            return Ok(());
        }
        for section in sections {
            if let Incoming::Argument(index, len) = *section {
                let payload = self.lock().payload.clone();
                let payload = payload.ok_or(io::ErrorKind::InvalidInput)?;
                *section = Incoming::Left(payload.left(index, len)?);
            }
        }
        Ok(())
    }

    /// The payload, until the call ends.
    #[must_use]
    pub fn payload(&self) -> Option<Arc<Payload>> {
        self.lock().payload.clone()
    }

    /// Takes the payload, for the connection to keep or drop.
    pub(crate) fn take_payload(&self) -> Option<Arc<Payload>> {
        self.lock().payload.take()
    }

    /// Keeps the payload sent for a callback until the call ends.
    pub(crate) fn keep(&self, payload: Arc<Payload>) {
        self.lock().beside.get_or_insert_default().sent_beside.push(payload);
    }

    /// Whether a client that the grid works for serves the calls that its function makes.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.callbacks().is_some_and(|Callbacks(handler)| handler.is_of_parent())
    }

    pub(crate) fn callbacks(&self) -> Option<&Callbacks> {
        self.extras.as_ref()?.callbacks.as_ref()
    }

    /// Span of the calling program that the call belongs to.
    pub(crate) fn trace_context(&self) -> Option<TraceContext> {
        self.extras.as_ref()?.trace
    }

    /// Destination of a streamed section of the result.
    pub(crate) fn sink(&self, section: usize) -> Option<Arc<Sink>> {
        let mut sinks = self.extras.as_ref()?.sinks.iter();
        let sink = sinks.find(|(index, _)| usize::from(*index) == section);
        sink.map(|(_, sink)| Arc::clone(sink))
    }

    pub(crate) fn finish(&self, outcome: Outcome, stamps: Option<Stamps>) -> NotifiedWatchers {
        self.finish_in(self.lock(), outcome, stamps)
    }

    /// Finishes the call with stamps of another host, which may be wrong by `error` ns. `host`: its name, if it is
    /// another machine.
    pub(crate) fn finish_there(
        &self,
        outcome: Outcome,
        stamps: Stamps,
        error: u64,
        host: &str,
    ) -> NotifiedWatchers {
        let mut inner = self.lock();
        inner.profile.clock_error = error;
        self.finish_at(inner, outcome, Some(stamps), host)
    }

    pub(super) fn finish_in(
        &self,
        inner: MutexGuard<'_, Inner>,
        outcome: Outcome,
        stamps: Option<Stamps>,
    ) -> NotifiedWatchers {
        self.finish_at(inner, outcome, stamps, "")
    }

    /// `host`: where the call ran, if not on this machine.
    fn finish_at(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        outcome: Outcome,
        stamps: Option<Stamps>,
        host: &str,
    ) -> NotifiedWatchers {
        inner.profile.retrieve = monotonic_ns();
        if let Some(stamps) = stamps {
            inner.profile.stamps = stamps;
            if stamps.pid != 0 {
                // A host reports which of its workers ran the call.
                (inner.profile.worker, inner.profile.pid) = (stamps.worker, stamps.pid);
            }
        }
        if let Outcome::Returned(sections, _) | Outcome::Raised { sections, .. } = &outcome {
            inner.profile.bytes_out = sections.iter().map(moved).sum();
        }
        if let Outcome::Ended(End::WorkerLost(loss)) = &outcome
            && loss.pid != 0
        {
            (inner.profile.worker, inner.profile.pid) = (loss.worker, loss.pid);
        }
        trace::record(&inner.profile, &outcome, host);
        let missing = match &outcome {
            Outcome::Ended(End::DependencyFailed(missing)) => Some(*missing),
            _ => None,
        };
        inner.failed = !matches!(outcome, Outcome::Returned(..));
        inner.outcome = Some(StoredOutcome::keep(outcome));
        inner.done = true;
        let beside = inner.beside.as_mut().map(|beside| {
            // The dependencies are no longer needed, except to report which one failed.
            let mut dependencies = std::mem::take(&mut beside.dependencies);
            let failed =
                dependencies.iter().position(|one| missing.is_some() && one.id() == missing);
            beside.dependencies.extend(failed.map(|failed| dependencies.swap_remove(failed)));
            let children = std::mem::take(&mut beside.children);
            (std::mem::take(&mut beside.watches), (dependencies, children))
        });
        let (holds, settling) =
            inner.beside.as_ref().map_or((0, 0), |beside| (beside.holds, beside.settling));
        let remote = if holds == 0 { inner.take_remote() } else { None };
        let sleepers = inner.sleepers + settling;
        drop(inner);
        drop(remote);
        let watches = beside.map(|(watches, _)| watches);
        if sleepers > 0 {
            self.finished.notify_all();
        }
        let mut notified = NotifiedWatchers::default();
        for (watch, token) in watches.into_iter().flatten() {
            if let Some(watch) = watch.upgrade() {
                notified.notify(watch, token);
            }
        }
        notified
    }

    /// The function that it runs.
    #[must_use]
    pub fn function(&self) -> &FunctionRef {
        &self.function
    }

    /// Whether the call has ended and its result is here. Fetches the result if a host keeps it.
    #[must_use]
    pub fn done(&self) -> bool {
        self.want(self.lock()).done
    }

    /// Requests the result if a host keeps it.
    pub(super) fn want<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let to_ask = match &inner.beside {
            Some(beside) if !inner.done && !beside.fetching => beside.remote.as_ref(),
            _ => None,
        };
        let Some(lease) = to_ask.map(|remote| Arc::clone(&remote.lease)) else { return inner };
        inner.beside.get_or_insert_default().fetching = true;
        drop(inner);
        lease.fetch();
        self.lock()
    }

    /// Waits up to `timeout` until the call has ended. Returns whether it has.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut inner = self.want(self.lock());
        inner.sleepers += 1;
        let waited = self.finished.wait_timeout_while(inner, timeout, |inner| !inner.done);
        let mut inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        inner.sleepers -= 1;
        inner.done
    }

    /// Takes the outcome, once.
    #[must_use]
    pub fn take_outcome(&self) -> Option<Outcome> {
        self.take(false)
    }

    /// Takes the outcome, once, for a caller that keeps it as long as the call. Data in shared memory can then still
    /// become an argument of another call.
    #[must_use]
    pub fn take_outcome_to_hold(&self) -> Option<Outcome> {
        self.take(true)
    }

    fn take(&self, to_hold: bool) -> Option<Outcome> {
        let mut inner = self.lock();
        let mut remote = inner.outcome.take()?;
        let needed = inner.beside.as_ref().is_some_and(|beside| beside.holds > 0);
        if needed || to_hold && remote.lies_in_shared_memory() {
            inner.beside.get_or_insert_default().returned = remote.returned();
        }
        drop(inner);
        Some(remote.take())
    }

    /// Whether its function may make one more call. Without this bound a function, or a host that claims to run it,
    /// could make the client keep any number of calls.
    pub(crate) fn has_room_for_child(&self) -> bool {
        let inner = self.lock();
        inner.beside.as_ref().is_none_or(|beside| beside.children.len() < MOST_CHILDREN)
    }

    /// Adds a call that its function has made. Returns the number of that call, or `None` if this call has ended.
    pub(crate) fn add_child(&self, child: &Arc<Call>) -> Option<CallId> {
        let id = child.id()?;
        let mut inner = self.lock();
        if inner.done {
            return None;
        }
        inner.beside.get_or_insert_default().children.insert(id, Arc::clone(child));
        Some(id)
    }

    /// The call with this number that its function has made.
    pub(crate) fn child(&self, number: CallId) -> Option<Arc<Call>> {
        self.lock().beside.as_ref()?.children.get(&number).cloned()
    }

    /// Removes a call whose result its function has received or no longer needs.
    pub(crate) fn leave_child(&self, child: &Call) {
        let Some(id) = child.id() else { return };
        let left = self.lock().beside.as_mut().and_then(|beside| beside.children.remove(&id));
        // Dropped after the lock is released.
        drop(left);
    }

    pub(crate) fn take_children(&self) -> Vec<Arc<Call>> {
        let mut inner = self.lock();
        let children = inner.beside.as_mut().map(|beside| std::mem::take(&mut beside.children));
        drop(inner);
        children.unwrap_or_default().into_values().collect()
    }

    /// Registers a callback that its function waits for. Returns whether it may: a function makes one at a time.
    pub(crate) fn begin_callback(&self) -> bool {
        let mut inner = self.lock();
        let callbacks = &mut inner.beside.get_or_insert_default().callbacks;
        if *callbacks >= MOST_CALLBACKS {
            return false;
        }
        *callbacks += 1;
        true
    }

    /// Unregisters an answered callback of its function.
    pub(crate) fn end_callback(&self) {
        if let Some(beside) = &mut self.lock().beside {
            beside.callbacks = beside.callbacks.saturating_sub(1);
        }
    }

    /// Timestamps recorded so far.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.lock().profile
    }

    /// Pushes `token` to `watch` when the call ends, or now if it has. The call does not keep the watch alive: a
    /// program may wait repeatedly, each time with a new watch.
    pub fn watch<W: Watcher + 'static>(&self, watch: &Arc<W>, token: u64) {
        let mut inner = self.want(self.lock());
        if inner.done {
            drop(inner);
            watch.ended(token);
            watch.settle();
        } else {
            let watcher = Arc::downgrade(watch);
            let watches = &mut inner.beside.get_or_insert_default().watches;
            watches.retain(|(watch, _)| watch.strong_count() > 0);
            watches.push((watcher, token));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_stays_small() {
        let sizes = [size_of::<Call>(), size_of::<StoredOutcome>(), size_of::<Profile>()];
        assert!(sizes[0] <= 232, "{sizes:?}: a client may hold a million calls");
    }
}
