//! Results that stay on the host where they were made: who has them kept, and what is wanted of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridrpc_core::WorkerId;
use gridrpc_link::payload::Incoming;

use crate::reactor_lock::Wake;
use crate::wakeup::Wakeup;

/// A result on a host. Whoever holds this has the host keep it.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) host: WorkerId,
    pub(crate) call: u64,
    requests: Weak<KeptRequests>,
}

impl Keeper {
    pub(crate) fn new(host: WorkerId, call: u64, requests: &Arc<KeptRequests>) -> Arc<Keeper> {
        Arc::new(Keeper { host, call, requests: Arc::downgrade(requests) })
    }

    /// Has the reactor ask for the result.
    pub(crate) fn fetch(&self) {
        self.ask(KeptRequest::Fetch(self.host, self.call));
    }

    fn ask(&self, request: KeptRequest) {
        if let Some(requests) = self.requests.upgrade() {
            requests.push(request);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ask(KeptRequest::Drop(self.host, self.call));
    }
}

/// A section of a result that a host keeps.
#[derive(Clone, Debug)]
pub(crate) enum KeptPart {
    /// It is small, and came with the answer.
    Here(Incoming),
    /// It stayed there: its length, bytes.
    There(u64),
}

/// A result that a host keeps.
#[derive(Clone, Debug)]
pub(crate) struct KeptResult {
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) parts: Vec<KeptPart>,
}

impl KeptResult {
    /// How much of it is there, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let there = |part: &KeptPart| match part {
            KeptPart::Here(_) => 0,
            KeptPart::There(len) => *len,
        };
        self.parts.iter().map(there).sum()
    }
}

/// What is to be said to a host. It is asked for in any thread, under any lock, and said by the reactor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeptRequest {
    Fetch(WorkerId, u64),
    Drop(WorkerId, u64),
}

/// What has not been said yet.
#[derive(Debug)]
pub(crate) struct KeptRequests {
    list: Mutex<Vec<KeptRequest>>,
    any: AtomicBool,
    /// Wakes the reactor, which says it.
    wakeup: Arc<Wakeup>,
}

impl KeptRequests {
    pub(crate) fn new(wakeup: Arc<Wakeup>) -> Arc<KeptRequests> {
        Arc::new(KeptRequests { list: Mutex::default(), any: AtomicBool::new(false), wakeup })
    }

    fn push(&self, request: KeptRequest) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        self.any.store(true, Ordering::Release);
        self.wakeup.wake();
    }

    pub(crate) fn take(&self) -> Vec<KeptRequest> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
