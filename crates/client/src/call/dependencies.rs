//! Results that other calls need: whoever else takes them, and wherever they are.

use std::any::Any;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::Stamps;

use crate::call::handle::{Beside, Call, Hold, Inner};
use crate::call::outcome::{Kept, Missing, Outcome};
use crate::call::remote_result::KeptResult;

impl Hold {
    /// None: its result has been taken already, and cannot be given again.
    #[must_use]
    pub fn new(call: &Arc<Call>) -> Option<Hold> {
        call.hold().then(|| Hold(Arc::clone(call)))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl Call {
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
}
