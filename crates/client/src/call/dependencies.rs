//! Results that other calls need.

use std::any::Any;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use gridrpc_link::payload::{Incoming, Outgoing, Payload};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{Order, Stamps};

use crate::call::handle::{Call, Hold, Inner, RareFields, ResultArray};
use crate::call::outcome::{Missing, Outcome, StoredOutcome};
use crate::call::remote_result::RemoteResult;

impl Hold {
    /// Returns `None` if the result has been taken already and cannot be handed out again.
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
    /// Keeps the result for a call that needs it. Returns `false` if the result has been taken and is gone.
    pub(crate) fn hold(&self) -> bool {
        let mut inner = self.lock();
        let taken = inner.done && !inner.failed && inner.outcome.is_none();
        let is_gone = |beside: &RareFields| beside.returned.is_none() && beside.remote.is_none();
        let gone = taken && inner.beside.as_deref().is_none_or(is_gone);
        if !gone {
            inner.beside.get_or_insert_default().holds += 1;
        }
        !gone
    }

    /// Drops one hold: a call that needed the result has it or no longer needs it.
    pub(crate) fn let_go(&self) {
        let mut inner = self.lock();
        let Some(beside) = inner.beside.as_mut() else { return };
        beside.holds -= 1;
        let shared = |sections: &[Incoming]| {
            sections.iter().any(|section| matches!(section, Incoming::Shared(_)))
        };
        let gone = beside.returned.take_if(|(sections, _)| beside.holds == 0 && !shared(sections));
        let unneeded = beside.holds == 0;
        let remote = if unneeded && inner.done { inner.take_remote() } else { None };
        drop(inner);
        drop((gone, remote));
    }

    /// Records that the call has returned and that a host keeps the result.
    pub(crate) fn set_remote_result(&self, remote: RemoteResult, stamps: Stamps, clock_error: u64) {
        let mut inner = self.lock();
        inner.profile.retrieve = monotonic_ns();
        inner.profile.clock_error = clock_error;
        inner.profile.stamps = stamps;
        (inner.profile.worker, inner.profile.pid) = (stamps.worker, stamps.pid);
        let wanted = inner.sleepers > 0;
        let beside = inner.beside.get_or_insert_default();
        let wanted = wanted || beside.watches.iter().any(|(watch, _)| watch.strong_count() > 0);
        beside.remote = Some(remote);
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

    /// Handles the loss of the host that keeps the result. Returns whether there was no copy here either.
    pub(crate) fn lose_kept(&self) -> bool {
        let mut inner = self.lock();
        let remote = inner.take_remote();
        let lost = remote.is_some() && !inner.done;
        drop(inner);
        drop(remote);
        lost
    }

    /// The result, if a host keeps it.
    pub(crate) fn remote_result(&self) -> Option<RemoteResult> {
        self.lock().beside.as_ref()?.remote.clone()
    }

    /// Fetches the result if a host keeps it.
    pub(crate) fn fetch(&self) {
        drop(self.want(self.lock()));
    }

    /// Stores the result that a host has sent.
    pub(crate) fn fetched(&self, sections: Vec<Incoming>, order: Order) {
        let inner = self.lock();
        if !inner.done {
            self.finish_in(inner, Outcome::Returned(sections, order), None);
        }
    }

    /// Waits up to `timeout` until the call has returned, wherever its result is, or ended otherwise. Returns whether
    /// it has.
    pub(crate) fn settled(&self, timeout: Duration) -> bool {
        let has = |inner: &Inner| {
            inner.done || inner.beside.as_ref().is_some_and(|beside| beside.remote.is_some())
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

    /// Whether the result may stay on the host that makes it: the caller has not provided memory for it.
    pub(crate) fn result_can_stay(&self) -> bool {
        self.extras.as_ref().is_none_or(|extras| extras.sinks.is_empty())
    }

    /// Whether its arguments can be sent to any executor.
    pub(crate) fn arguments_are_here(&self) -> bool {
        self.lock().payload.as_ref().is_some_and(|payload| !payload.is_kept_in_part())
    }

    /// Takes its arguments without the results of other calls, which are added later.
    pub(crate) fn take_own_arguments(&self) -> Option<Payload> {
        let mut inner = self.lock();
        let mut payload = Arc::into_inner(inner.payload.take()?)?;
        let own = (payload.parts.len(), payload.bytes);
        let (sections, bytes) = *inner.beside.get_or_insert_default().own.get_or_insert(own);
        drop(inner);
        payload.cut_back(sections, bytes);
        Some(payload)
    }

    /// Restores the arguments that [`Call::take_own_arguments`] has returned.
    pub(crate) fn give_back_arguments(&self, payload: Payload) {
        self.lock().payload = Some(Arc::new(payload));
    }

    /// The result of the call, and its byte order.
    pub(crate) fn returned(&self) -> Result<(Vec<Incoming>, Order), Missing> {
        let mut inner = self.lock();
        let returned = inner.outcome.as_mut().and_then(StoredOutcome::returned);
        let taken = || inner.beside.as_ref()?.returned.clone();
        returned.or_else(taken).ok_or(Missing)
    }

    /// The calls whose results are among its arguments and stay on hosts.
    pub(crate) fn remote_results(&self) -> Vec<u64> {
        let inner = self.lock();
        let parts = inner.payload.iter().flat_map(|payload| &payload.parts);
        let mut calls: Vec<u64> = parts.filter_map(Outgoing::remote_call).collect();
        calls.dedup();
        calls
    }

    /// The calls whose results it needs, and the array that it takes of each; `None`: all of the result.
    pub(crate) fn needs(&self) -> Vec<(Arc<Hold>, Option<ResultArray>)> {
        let inner = self.lock();
        let dependencies = inner.beside.iter().flat_map(|beside| &beside.dependencies);
        dependencies.map(|one| (Arc::clone(&one.call), one.array)).collect()
    }

    /// Stores the complete arguments.
    pub(crate) fn complete(&self, payload: Payload) {
        let mut inner = self.lock();
        if inner.done {
            drop(inner);
            return;
        }
        inner.profile.bytes_in = payload.bytes;
        // They may be needed again if they are lost.
        let again = payload.is_kept_in_part();
        inner.payload = Some(Arc::new(payload));
        let beside = inner.beside.as_mut().filter(|_| !again);
        let dependencies = beside.map(|beside| std::mem::take(&mut beside.dependencies));
        drop(inner);
        drop(dependencies);
    }

    /// Passes the owner of the failed dependency to `tell`, if the call ended because of one.
    pub fn with_failed_dependency<R>(&self, tell: impl FnOnce(&dyn Any) -> R) -> Option<R> {
        let failed = self.lock().beside.as_mut()?.dependencies.pop()?;
        let result = tell(&*failed.owner);
        Some(result)
    }
}
