//! A call as its caller sees it: what was sent, what came of it, and who waits for it.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use gridrpc_core::{CallId, End};
use gridrpc_wire::{FunctionForm, Stamps};

use crate::client::callbacks::Callbacks;
use crate::client::function::FunctionRef;
use crate::client::gather::{Dependency, Hold};
use crate::client::hosts::kept::KeptResult;
use crate::loan::Sink;
use crate::payload::{Incoming, Payload};
use crate::sys::monotonic_ns;

/// What came of a call.
#[derive(Debug)]
pub enum Outcome {
    /// The function has returned these sections.
    Returned(Vec<Incoming>),
    /// The function has raised an error.
    Raised {
        /// Type of the error; the protocol's own start with `gridrpc.`.
        error: String,
        /// Its message.
        message: String,
        /// Where it was raised, for people.
        trace: String,
        /// The error itself, pickled, if it could be.
        sections: Vec<Incoming>,
    },
    /// It ended without an answer.
    Ended(End),
}

/// Times and places of a call. Times are ns on this host's monotonic clock; 0: not reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    /// The caller handed it over.
    pub submit: u64,
    /// It was sent to a worker.
    pub sent: u64,
    /// The function started, and returned.
    pub stamps: Stamps,
    /// The result was here.
    pub retrieve: u64,
    /// The worker's number; `u32::MAX`: none.
    pub worker: u32,
    /// The worker's process id.
    pub pid: u32,
    /// Payload bytes sent.
    pub bytes_in: u64,
    /// Payload bytes that came back.
    pub bytes_out: u64,
    /// By how much the stamps may be wrong, as they are of another host's clock.
    pub clock_error: u64,
}

/// An outcome while it waits to be taken. There may be a million, nearly all of them small results.
#[derive(Debug)]
enum Kept {
    /// Returned one section, received bytes.
    Small(Box<[u8]>),
    Other(Box<Outcome>),
}

impl Kept {
    fn keep(outcome: Outcome) -> Kept {
        match outcome {
            Outcome::Returned(mut sections) if matches!(&sections[..], [Incoming::Bytes(bytes)] if bytes.len() < SMALL) => {
                match sections.pop() {
                    Some(Incoming::Bytes(bytes)) => Kept::Small(bytes.into_boxed_slice()),
                    other => Kept::Other(Box::new(Outcome::Returned(other.into_iter().collect()))),
                }
            }
            other => Kept::Other(Box::new(other)),
        }
    }

    /// The sections of a result. Large ones are there once, whoever has them.
    fn returned(&mut self) -> Option<Vec<Incoming>> {
        match self {
            Kept::Small(bytes) => Some(vec![Incoming::Bytes(bytes.to_vec())]),
            Kept::Other(outcome) => match &mut **outcome {
                Outcome::Returned(sections) => {
                    for section in sections.iter_mut() {
                        if let Incoming::Bytes(bytes) = section
                            && bytes.len() >= SMALL
                        {
                            *section = Incoming::Kept(Arc::new(std::mem::take(bytes)));
                        }
                    }
                    Some(sections.clone())
                }
                _ => None,
            },
        }
    }

    /// Whether it is a small pickle with parts beside it that lie in shared memory. They stay there as long
    /// as what is made of them, and can be passed on.
    fn lies_in_shared_memory(&self) -> bool {
        let Kept::Other(outcome) = self else { return false };
        let Outcome::Returned(sections) = &**outcome else { return false };
        matches!(&sections[..], [Incoming::Bytes(_), rest @ ..]
            if rest.iter().any(|section| matches!(section, Incoming::Shared(_))))
    }

    fn take(self) -> Outcome {
        match self {
            Kept::Small(bytes) => Outcome::Returned(vec![Incoming::Bytes(bytes.into_vec())]),
            Kept::Other(outcome) => match *outcome {
                Outcome::Returned(sections) => {
                    Outcome::Returned(sections.into_iter().map(taken).collect())
                }
                other => other,
            },
        }
    }
}

/// A section for the caller, who may change it.
fn taken(section: Incoming) -> Incoming {
    match section {
        Incoming::Kept(bytes) => Incoming::Bytes(Arc::unwrap_or_clone(bytes)),
        other => other,
    }
}

#[derive(Debug)]
struct Inner {
    id: Option<CallId>,
    payload: Option<Arc<Payload>>,
    profile: Profile,
    outcome: Option<Kept>,
    done: bool,
    /// It has ended, and not returned.
    failed: bool,
    /// Threads that sleep until it has ended: to wake nobody is a system call as well.
    sleepers: u32,
    /// Few calls have any: they take memory of their own.
    beside: Option<Box<Beside>>,
}

/// What only some calls have.
#[derive(Debug, Default)]
struct Beside {
    /// Those that have been dropped meanwhile are told nothing.
    watches: Vec<(Weak<dyn Watcher>, u64)>,
    /// What the worker was sent beside the call itself, and may still read.
    sent_beside: Vec<Arc<Payload>>,
    /// Calls whose results it needs, until it has them.
    dependencies: Vec<Dependency>,
    /// Calls that its function has made, until that has ended.
    children: Vec<Arc<Call>>,
    /// How many others need its own result.
    holds: u32,
    /// Its result, once the caller has taken it: for those that need it.
    returned: Option<Vec<Incoming>>,
    /// Its result, if a host keeps it.
    kept: Option<KeptResult>,
    /// Whether that has been asked for.
    fetching: bool,
    /// Threads that wait until it has returned, wherever its result is.
    settling: u32,
    /// How many sections its arguments have, and bytes, without the results of other calls.
    own: Option<(usize, u64)>,
}

/// A call has no result, or it is not there any more.
#[derive(Debug)]
pub(crate) struct Missing;

/// One call. Shared between its caller and the grid.
#[derive(Debug)]
pub struct Call {
    inner: Mutex<Inner>,
    finished: Condvar,
    function: Arc<FunctionRef>,
    /// What calls of modules' functions have.
    extras: Option<Box<Extras>>,
}

#[derive(Debug)]
struct Extras {
    callbacks: Option<Callbacks>,
    /// Where streamed sections of the result are to lie.
    sinks: Vec<(u16, Arc<Sink>)>,
}

/// Results below this size are kept without more memory than they need, bytes.
const SMALL: usize = 4096;

impl Inner {
    fn forget_kept(&mut self) -> Option<KeptResult> {
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The same with stamps of another host, which may be wrong by so much, ns.
    pub(crate) fn finish_there(&self, outcome: Outcome, stamps: Stamps, error: u64) {
        let mut inner = self.lock();
        inner.profile.clock_error = error;
        self.finish_in(inner, outcome, Some(stamps));
    }

    fn finish_in(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        outcome: Outcome,
        stamps: Option<Stamps>,
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
    fn want<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
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

    /// Keeps the result for a call that needs it. `false`: it has been taken and is not there any more.
    pub(crate) fn hold(&self) -> bool {
        let mut inner = self.lock();
        let taken = inner.done && !inner.failed && inner.outcome.is_none();
        let is_gone = |beside: &Beside| beside.returned.is_none() && beside.kept.is_none();
        let gone = taken && inner.beside.as_deref().is_none_or(is_gone);
        if !gone {
            inner.beside.get_or_insert_default().holds += 1;
        }
        !gone
    }

    /// Its function has made a call. Returns that one's number, or None if this one has ended.
    pub(crate) fn add_child(&self, child: &Arc<Call>) -> Option<usize> {
        let mut inner = self.lock();
        if inner.done {
            return None;
        }
        let children = &mut inner.beside.get_or_insert_default().children;
        children.push(Arc::clone(child));
        Some(children.len() - 1)
    }

    /// The call of that number that its function has made.
    pub(crate) fn child(&self, number: usize) -> Option<Arc<Call>> {
        self.lock().beside.as_ref()?.children.get(number).cloned()
    }

    pub(crate) fn take_children(&self) -> Vec<Arc<Call>> {
        let mut inner = self.lock();
        inner.beside.as_mut().map(|beside| std::mem::take(&mut beside.children)).unwrap_or_default()
    }

    /// One of those that need the result has it, or needs it no more.
    pub(crate) fn let_go(&self) {
        let mut inner = self.lock();
        let Some(beside) = inner.beside.as_mut() else { return };
        beside.holds -= 1;
        let shared = |sections: &Vec<Incoming>| {
            sections.iter().any(|section| matches!(section, Incoming::Shared(_)))
        };
        let gone = beside.returned.take_if(|sections| beside.holds == 0 && !shared(sections));
        let unneeded = beside.holds == 0;
        let kept = if unneeded && inner.done { inner.forget_kept() } else { None };
        drop(inner);
        drop((gone, kept));
    }

    /// A host has answered, and keeps the result.
    pub(crate) fn keep_there(&self, kept: KeptResult, stamps: Stamps, clock_error: u64) {
        let mut inner = self.lock();
        inner.profile.retrieve = monotonic_ns();
        inner.profile.clock_error = clock_error;
        inner.profile.stamps = stamps;
        (inner.profile.worker, inner.profile.pid) = (stamps.worker, stamps.pid);
        let wanted = inner.sleepers > 0;
        let beside = inner.beside.get_or_insert_default();
        let wanted = wanted || beside.watches.iter().any(|(watch, _)| watch.strong_count() > 0);
        beside.kept = Some(kept);
        beside.fetching = false;
        let settling = beside.settling;
        if wanted {
            drop(self.want(inner));
        } else {
            drop(inner);
        }
        if settling > 0 {
            self.finished.notify_all();
        }
    }

    /// The host that keeps the result is gone. Whether it was not here as well.
    pub(crate) fn lose_kept(&self) -> bool {
        let mut inner = self.lock();
        let kept = inner.forget_kept();
        let lost = kept.is_some() && !inner.done;
        drop(inner);
        drop(kept);
        lost
    }

    /// Its result, if a host keeps it.
    pub(crate) fn kept(&self) -> Option<KeptResult> {
        self.lock().beside.as_ref()?.kept.clone()
    }

    /// If a host keeps its result, that is fetched.
    pub(crate) fn fetch(&self) {
        drop(self.want(self.lock()));
    }

    /// The result that a host keeps has come.
    pub(crate) fn fetched(&self, sections: Vec<Incoming>) {
        let inner = self.lock();
        if !inner.done {
            self.finish_in(inner, Outcome::Returned(sections), None);
        }
    }

    /// Waits until it has returned, wherever its result is, or ended otherwise; at most so long. Returns whether
    /// it has.
    pub(crate) fn settled(&self, timeout: Duration) -> bool {
        let has = |inner: &Inner| {
            inner.done || inner.beside.as_ref().is_some_and(|beside| beside.kept.is_some())
        };
        let mut inner = self.lock();
        if has(&inner) {
            return true;
        }
        inner.beside.get_or_insert_default().settling += 1;
        let waited = self.finished.wait_timeout_while(inner, timeout, |inner| !has(inner));
        let mut inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        inner.beside.get_or_insert_default().settling -= 1;
        has(&inner)
    }

    /// Whether its result may stay where it is made: nobody has made room for it.
    pub(crate) fn result_can_stay(&self) -> bool {
        self.extras.as_ref().is_none_or(|extras| extras.sinks.is_empty())
    }

    /// Whether its arguments can be sent to anybody.
    pub(crate) fn arguments_are_here(&self) -> bool {
        self.lock().payload.as_ref().is_some_and(|payload| !payload.is_kept_in_part())
    }

    /// Takes out its arguments without the results of other calls, which are to be added.
    pub(crate) fn take_own_arguments(&self) -> Option<Payload> {
        let mut inner = self.lock();
        let mut payload = Arc::into_inner(inner.payload.take()?)?;
        let own = (payload.parts.len(), payload.bytes);
        let (sections, bytes) = *inner.beside.get_or_insert_default().own.get_or_insert(own);
        drop(inner);
        payload.cut_back(sections, bytes);
        Some(payload)
    }

    /// Takes back what [`Call::take_own_arguments`] has given.
    pub(crate) fn give_back_arguments(&self, payload: Payload) {
        self.lock().payload = Some(Arc::new(payload));
    }

    /// What it has returned.
    pub(crate) fn returned(&self) -> Result<Vec<Incoming>, Missing> {
        let mut inner = self.lock();
        let returned = inner.outcome.as_mut().and_then(Kept::returned);
        let taken = || inner.beside.as_ref()?.returned.clone();
        returned.or_else(taken).ok_or(Missing)
    }

    /// The calls whose results it needs.
    pub(crate) fn needs(&self) -> Vec<Arc<Hold>> {
        let inner = self.lock();
        let dependencies = inner.beside.iter().flat_map(|beside| &beside.dependencies);
        dependencies.map(|one| Arc::clone(&one.call)).collect()
    }

    /// Its arguments are all there.
    pub(crate) fn complete(&self, payload: Payload) {
        let mut inner = self.lock();
        if inner.done {
            drop(inner);
            return;
        }
        inner.profile.bytes_in = payload.bytes;
        // They may be needed once more, if they are lost.
        let again = payload.is_kept_in_part();
        inner.payload = Some(Arc::new(payload));
        let beside = inner.beside.as_mut().filter(|_| !again);
        let dependencies = beside.map(|beside| std::mem::take(&mut beside.dependencies));
        drop(inner);
        drop(dependencies);
    }

    /// Gives the owner of the dependency that has failed to `tell`, if the call has ended with one.
    pub fn with_failed_dependency<R>(&self, tell: impl FnOnce(&dyn Any) -> R) -> Option<R> {
        let failed = self.lock().beside.as_mut()?.dependencies.pop()?;
        let told = tell(&*failed.owner);
        Some(told)
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

/// Bytes of a section that were moved. What the worker has written into the caller's own memory was
/// not.
fn moved(section: &Incoming) -> u64 {
    match section {
        Incoming::Argument(..) | Incoming::Left(_) => 0,
        other => other.len() as u64,
    }
}

/// What is told that calls have ended, in whichever thread notices.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// The call with this token has ended.
    fn ended(&self, token: u64);
}

impl Watcher for Watch {
    fn ended(&self, token: u64) {
        self.push(token);
    }
}

/// Calls that have ended, in the order in which they did, by the tokens of their watchers.
#[derive(Debug, Default)]
pub struct Watch {
    ended: Mutex<VecDeque<u64>>,
    more: Condvar,
}

impl Watch {
    /// Appends a token. Also for waking a thread that waits for calls.
    pub fn push(&self, token: u64) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push_back(token);
        self.more.notify_one();
    }

    /// The tokens that have come, waiting at most so long for the first.
    #[must_use]
    pub fn take(&self, timeout: Duration) -> VecDeque<u64> {
        let until = Instant::now() + timeout;
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while ended.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            ended = self.more.wait_timeout(ended, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::take(&mut ended)
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
