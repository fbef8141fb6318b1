//! The handle of a call: what it was sent with, how it ends, and waiting for that.

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
use gridrpc_wire::{FunctionForm, Stamps};

use crate::call::handler::Callbacks;
use crate::call::outcome::{Kept, Outcome, Profile, moved};
use crate::call::remote_result::KeptResult;
use crate::call::trace;
use crate::call::watch::Watcher;
use crate::function::FunctionRef;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) id: Option<CallId>,
    pub(super) payload: Option<Arc<Payload>>,
    pub(super) profile: Profile,
    pub(super) outcome: Option<Kept>,
    pub(super) done: bool,
    /// It has ended, and not returned.
    pub(super) failed: bool,
    /// It may run again when its worker is lost.
    idempotent: bool,
    /// Threads that sleep until it has ended: to wake nobody is a system call as well.
    pub(super) sleepers: u32,
    /// Few calls have any: they take memory of their own.
    pub(super) beside: Option<Box<Beside>>,
}

/// Calls that a function may have made without having been given their results. Workers keep to it as well, by
/// waiting (MOST_UNDER_WAY in python/gridrpc/_current.py).
const MOST_CHILDREN: usize = 1000;
/// Callbacks of one call that may run. There may be one of each worker that was lost with it.
const MOST_CALLBACKS: u32 = 16;

/// What only some calls have.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Those that have been dropped meanwhile are told nothing.
    pub(super) watches: Vec<(Weak<dyn Watcher>, u64)>,
    /// What the worker was sent beside the call itself, and may still read.
    pub(super) sent_beside: Vec<Arc<Payload>>,
    /// Calls whose results it needs, until it has them.
    pub(super) dependencies: Vec<Dependency>,
    /// Calls that its function has made and has not been given the results of, by their own numbers, until that
    /// function has ended.
    pub(super) children: HashMap<CallId, Arc<Call>>,
    /// Callbacks of its function that have not been answered.
    pub(super) callbacks: u32,
    /// How many others need its own result.
    pub(super) holds: u32,
    /// Its result, once the caller has taken it: for those that need it.
    pub(super) returned: Option<Vec<Incoming>>,
    /// Its result, if a host keeps it.
    pub(super) kept: Option<KeptResult>,
    /// Whether that has been asked for.
    pub(super) fetching: bool,
    /// Threads that wait until it has returned, wherever its result is.
    pub(super) settling: u32,
    /// How many sections its arguments have, and bytes, without the results of other calls.
    pub(super) own: Option<(usize, u64)>,
}

/// A call whose result another one needs: its result is kept for that one, whoever else takes it.
#[derive(Debug)]
pub struct Hold(pub(crate) Arc<Call>);

/// A call whose result is an argument of another.
pub struct Dependency {
    /// The call.
    pub call: Arc<Hold>,
    /// What the binding knows it by; dropped when the result has been passed on.
    pub owner: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl Dependency {
    /// Its name in the grid.
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
    /// What calls of modules' functions have.
    pub(super) extras: Option<Box<Extras>>,
}

#[derive(Debug)]
pub(super) struct Extras {
    pub(super) callbacks: Option<Callbacks>,
    /// Where streamed sections of the result are to lie.
    pub(super) sinks: Vec<(u16, Arc<Sink>)>,
}

impl Inner {
    pub(super) fn forget_kept(&mut self) -> Option<KeptResult> {
        self.beside.as_mut()?.kept.take()
    }
}

impl Call {
    pub(crate) fn new(
        function: Arc<FunctionRef>,
        payload: Payload,
        callbacks: Option<Callbacks>,
        sinks: Vec<(u16, Arc<Sink>)>,
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
            inner.beside = Some(Box::new(Beside { dependencies: after, ..Beside::default() }));
        }
        let (inner, finished) = (Mutex::new(inner), Condvar::new());
        let extras = (callbacks.is_some() || !sinks.is_empty())
            .then(|| Box::new(Extras { callbacks, sinks }));
        Arc::new(Call { inner, finished, function, extras })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may run again when its worker is lost.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.lock().idempotent
    }

    pub(crate) fn named(&self, id: CallId) {
        self.lock().id = Some(id);
    }

    /// Its name in the grid, once it has been taken.
    pub(crate) fn id(&self) -> Option<CallId> {
        self.lock().id
    }

    /// What has to be sent. None once the call has ended.
    pub(crate) fn send(&self, worker: u32, pid: u32) -> Option<Arc<Payload>> {
        let mut inner = self.lock();
        inner.profile.sent = monotonic_ns();
        inner.profile.worker = worker;
        inner.profile.pid = pid;
        inner.payload.clone()
    }

    /// Finds the results that the worker has left where arguments lay. Those of module functions find
    /// their own way.
    ///
    /// # Errors
    /// When they are not there.
    pub(crate) fn find_left(&self, outcome: &mut Outcome) -> io::Result<()> {
        let (Outcome::Returned(sections) | Outcome::Raised { sections, .. }) = outcome else {
            return Ok(());
        };
        if self.function.form() == FunctionForm::Library {
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

    /// Takes the payload out, to be kept or given up by the connection.
    pub(crate) fn take_payload(&self) -> Option<Arc<Payload>> {
        self.lock().payload.take()
    }

    /// What the worker was sent for a callback is kept until the call ends.
    pub(crate) fn keep(&self, payload: Arc<Payload>) {
        self.lock().beside.get_or_insert_default().sent_beside.push(payload);
    }

    pub(crate) fn callbacks(&self) -> Option<&Callbacks> {
        self.extras.as_ref()?.callbacks.as_ref()
    }

    /// Where a streamed section of the result is to lie.
    pub(crate) fn sink(&self, section: usize) -> Option<Arc<Sink>> {
        let mut sinks = self.extras.as_ref()?.sinks.iter();
        let sink = sinks.find(|(index, _)| usize::from(*index) == section);
        sink.map(|(_, sink)| Arc::clone(sink))
    }

    pub(crate) fn finish(&self, outcome: Outcome, stamps: Option<Stamps>) {
        self.finish_in(self.lock(), outcome, stamps);
    }

    /// The same with stamps of another host, which may be wrong by so much, ns; `host`: its name, if it is
    /// another machine.
    pub(crate) fn finish_there(&self, outcome: Outcome, stamps: Stamps, error: u64, host: &str) {
        let mut inner = self.lock();
        inner.profile.clock_error = error;
        self.finish_at(inner, outcome, Some(stamps), host);
    }

    pub(super) fn finish_in(
        &self,
        inner: MutexGuard<'_, Inner>,
        outcome: Outcome,
        stamps: Option<Stamps>,
    ) {
        self.finish_at(inner, outcome, stamps, "");
    }

    /// `host`: where it ran, if that was not this machine.
    fn finish_at(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        outcome: Outcome,
        stamps: Option<Stamps>,
        host: &str,
    ) {
        inner.profile.retrieve = monotonic_ns();
        if let Some(stamps) = stamps {
            inner.profile.stamps = stamps;
            if stamps.pid != 0 {
                // A host says which of its workers it was.
                (inner.profile.worker, inner.profile.pid) = (stamps.worker, stamps.pid);
            }
        }
        if let Outcome::Returned(sections) | Outcome::Raised { sections, .. } = &outcome {
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
        inner.failed = !matches!(outcome, Outcome::Returned(_));
        inner.outcome = Some(Kept::keep(outcome));
        inner.done = true;
        let beside = inner.beside.as_mut().map(|beside| {
            // What it needs is needed no more, but to tell what has failed.
            let mut dependencies = std::mem::take(&mut beside.dependencies);
            let failed =
                dependencies.iter().position(|one| missing.is_some() && one.id() == missing);
            beside.dependencies.extend(failed.map(|failed| dependencies.swap_remove(failed)));
            let children = std::mem::take(&mut beside.children);
            (std::mem::take(&mut beside.watches), (dependencies, children))
        });
        let (holds, settling) =
            inner.beside.as_ref().map_or((0, 0), |beside| (beside.holds, beside.settling));
        let kept = if holds == 0 { inner.forget_kept() } else { None };
        let sleepers = inner.sleepers + settling;
        drop(inner);
        drop(kept);
        let watches = beside.map(|(watches, _)| watches);
        if sleepers > 0 {
            self.finished.notify_all();
        }
        for (watch, token) in watches.into_iter().flatten() {
            if let Some(watch) = watch.upgrade() {
                watch.ended(token);
            }
        }
    }

    /// What it runs.
    #[must_use]
    pub fn function(&self) -> &FunctionRef {
        &self.function
    }

    /// Whether it has ended, and its result is here. One that a host keeps is fetched if this is asked.
    #[must_use]
    pub fn done(&self) -> bool {
        self.want(self.lock()).done
    }

    /// Somebody wants the result: if a host keeps it, it is asked for.
    pub(super) fn want<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let to_ask = match &inner.beside {
            Some(beside) if !inner.done && !beside.fetching => beside.kept.as_ref(),
            _ => None,
        };
        let Some(keeper) = to_ask.map(|kept| Arc::clone(&kept.keeper)) else { return inner };
        inner.beside.get_or_insert_default().fetching = true;
        drop(inner);
        keeper.fetch();
        self.lock()
    }

    /// Waits until it has ended, at most so long. Returns whether it has.
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

    /// Takes the outcome, once, for somebody who holds on to it as long as to the call. What lies in
    /// shared memory can then still become an argument of another call.
    #[must_use]
    pub fn take_outcome_to_hold(&self) -> Option<Outcome> {
        self.take(true)
    }

    fn take(&self, to_hold: bool) -> Option<Outcome> {
        let mut inner = self.lock();
        let mut kept = inner.outcome.take()?;
        let needed = inner.beside.as_ref().is_some_and(|beside| beside.holds > 0);
        if needed || to_hold && kept.lies_in_shared_memory() {
            inner.beside.get_or_insert_default().returned = kept.returned();
        }
        drop(inner);
        Some(kept.take())
    }

    /// Whether its function may make one more call: the function, or the host that says it runs it, could else
    /// have the client hold any number.
    pub(crate) fn has_room_for_child(&self) -> bool {
        let inner = self.lock();
        inner.beside.as_ref().is_none_or(|beside| beside.children.len() < MOST_CHILDREN)
    }

    /// Its function has made a call. Returns that one's number, or None if this one has ended.
    pub(crate) fn add_child(&self, child: &Arc<Call>) -> Option<CallId> {
        let id = child.id()?;
        let mut inner = self.lock();
        if inner.done {
            return None;
        }
        inner.beside.get_or_insert_default().children.insert(id, Arc::clone(child));
        Some(id)
    }

    /// The call of that number that its function has made.
    pub(crate) fn child(&self, number: CallId) -> Option<Arc<Call>> {
        self.lock().beside.as_ref()?.children.get(&number).cloned()
    }

    /// Its function is given the result of a call that it has made, and asks for it no more.
    pub(crate) fn leave_child(&self, child: &Call) {
        let Some(id) = child.id() else { return };
        let left = self.lock().beside.as_mut().and_then(|beside| beside.children.remove(&id));
        // Behind the lock.
        drop(left);
    }

    pub(crate) fn take_children(&self) -> Vec<Arc<Call>> {
        let mut inner = self.lock();
        let children = inner.beside.as_mut().map(|beside| std::mem::take(&mut beside.children));
        drop(inner);
        children.unwrap_or_default().into_values().collect()
    }

    /// Its function waits for a callback. Returns whether it may: a function makes one at a time.
    pub(crate) fn begin_callback(&self) -> bool {
        let mut inner = self.lock();
        let callbacks = &mut inner.beside.get_or_insert_default().callbacks;
        if *callbacks >= MOST_CALLBACKS {
            return false;
        }
        *callbacks += 1;
        true
    }

    /// A callback of its function is answered.
    pub(crate) fn end_callback(&self) {
        if let Some(beside) = &mut self.lock().beside {
            beside.callbacks = beside.callbacks.saturating_sub(1);
        }
    }

    /// Its times so far.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.lock().profile
    }

    /// Has `token` appear in `watch` when the call ends, or now if it has. The call does not keep the
    /// watch alive: a program may wait again and again, with a new watch each time.
    pub fn watch<W: Watcher + 'static>(&self, watch: &Arc<W>, token: u64) {
        let mut inner = self.want(self.lock());
        if inner.done {
            drop(inner);
            watch.ended(token);
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
        let sizes = [size_of::<Call>(), size_of::<Kept>(), size_of::<Profile>()];
        assert!(sizes[0] <= 232, "{sizes:?}: a client may hold a million calls");
    }
}
