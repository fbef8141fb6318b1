//! Results that stay on the host where they were made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridrpc_core::WorkerId;
use gridrpc_link::payload::Incoming;
use gridrpc_wire::Order;

use crate::reactor_lock::Wake;
use crate::wakeup::Wakeup;

/// Keeps a result on a host for as long as it lives.
#[derive(Debug)]
pub(crate) struct ResultLease {
    pub(crate) host: WorkerId,
    pub(crate) call: u64,
    requests: Weak<RemoteResultRequests>,
}

impl ResultLease {
    pub(crate) fn new(
        host: WorkerId,
        call: u64,
        requests: &Arc<RemoteResultRequests>,
    ) -> Arc<ResultLease> {
        Arc::new(ResultLease { host, call, requests: Arc::downgrade(requests) })
    }

    /// Makes the reactor request the result.
    pub(crate) fn fetch(&self) {
        self.ask(RemoteResultRequest::Fetch(self.host, self.call));
    }

    fn ask(&self, request: RemoteResultRequest) {
        if let Some(requests) = self.requests.upgrade() {
            requests.push(request);
        }
    }
}

impl Drop for ResultLease {
    fn drop(&mut self) {
        self.ask(RemoteResultRequest::Drop(self.host, self.call));
    }
}

/// A section of a result that a host keeps.
#[derive(Clone, Debug)]
pub(crate) enum RemotePart {
    /// A small section that came with the answer.
    Here(Incoming),
    /// A section that stayed on the host: its length, bytes.
    There(u64),
}

/// A result that a host keeps.
#[derive(Clone, Debug)]
pub(crate) struct RemoteResult {
    pub(crate) lease: Arc<ResultLease>,
    pub(crate) parts: Vec<RemotePart>,
    /// The byte order of its numbers.
    pub(crate) order: Order,
}

impl RemotePart {
    /// Whether it stayed on the host.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self, RemotePart::There(_))
    }
}

impl RemoteResult {
    /// A section that came with the answer.
    pub(crate) fn here(&self, section: usize) -> Option<&Incoming> {
        match self.parts.get(section)? {
            RemotePart::Here(section) => Some(section),
            RemotePart::There(_) => None,
        }
    }

    /// The length of a section, bytes.
    pub(crate) fn len(&self, section: usize) -> Option<u64> {
        match self.parts.get(section)? {
            RemotePart::Here(section) => Some(section.len() as u64),
            RemotePart::There(len) => Some(*len),
        }
    }

    /// Number of bytes that stayed on the host.
    pub(crate) fn bytes(&self) -> u64 {
        let there = |part: &RemotePart| match part {
            RemotePart::Here(_) => 0,
            RemotePart::There(len) => *len,
        };
        self.parts.iter().map(there).sum()
    }
}

/// A request to a host about a kept result. Any thread may queue one under any lock; the reactor sends it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RemoteResultRequest {
    Fetch(WorkerId, u64),
    Drop(WorkerId, u64),
}

/// Requests that have not been sent yet.
#[derive(Debug)]
pub(crate) struct RemoteResultRequests {
    list: Mutex<Vec<RemoteResultRequest>>,
    any: AtomicBool,
    /// Wakes the reactor, which sends the requests.
    wakeup: Arc<Wakeup>,
}

impl RemoteResultRequests {
    pub(crate) fn new(wakeup: Arc<Wakeup>) -> Arc<RemoteResultRequests> {
        Arc::new(RemoteResultRequests {
            list: Mutex::default(),
            any: AtomicBool::new(false),
            wakeup,
        })
    }

    fn push(&self, request: RemoteResultRequest) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        self.any.store(true, Ordering::Release);
        self.wakeup.wake();
    }

    pub(crate) fn take(&self) -> Vec<RemoteResultRequest> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
