//! Results that have stayed on the host where they were made, for calls that are sent there. The client fetches
//! one when somebody waits for it, and has the host drop it when nobody needs it any more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridrpc_core::{CallId, Core, Task, WorkerId};
use gridrpc_wire::Message;

use crate::client::call::Call;
use crate::client::common::Common;
use crate::client::seat::Wake;
use crate::client::state::State;
use crate::client::sync::now;
use crate::payload::Incoming;

/// A result on a host. Whoever holds this has the host keep it.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) host: WorkerId,
    pub(crate) call: u64,
    common: Weak<Common>,
}

impl Keeper {
    pub(crate) fn new(host: WorkerId, call: u64, common: &Arc<Common>) -> Arc<Keeper> {
        Arc::new(Keeper { host, call, common: Arc::downgrade(common) })
    }

    /// Has the reactor ask for the result.
    pub(crate) fn fetch(&self) {
        self.ask(KeptRequest::Fetch(self.host, self.call));
    }

    fn ask(&self, request: KeptRequest) {
        if let Some(common) = self.common.upgrade() {
            common.kept_requests.push(request);
            common.wake();
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
#[derive(Debug, Default)]
pub(crate) struct KeptRequests {
    list: Mutex<Vec<KeptRequest>>,
    any: AtomicBool,
}

impl KeptRequests {
    fn push(&self, request: KeptRequest) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn take(&self) -> Vec<KeptRequest> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What an idempotent call that has not been answered yet was submitted as, if its arguments are here: its
/// result can be made again. Its deadline is met when it is answered.
pub(crate) fn again(core: &Core<Arc<Call>>, id: CallId) -> Option<Task<()>> {
    let task = core.task(id).filter(|task| task.idempotent && task.on.is_none())?;
    let again = || Task { deadline: None, ..task.clone().with(()) };
    task.payload.arguments_are_here().then(again)
}

/// A call whose result a host keeps.
#[derive(Debug)]
struct KeptCall {
    call: Weak<Call>,
    host: WorkerId,
    again: Option<Task<()>>,
    /// It has been fetched.
    here: bool,
    /// Calls whose arguments can be put together when it has been fetched.
    waiting: Vec<(CallId, Arc<Call>)>,
}

/// The calls whose results hosts keep, by number.
#[derive(Debug, Default)]
pub(crate) struct KeptCalls(HashMap<u64, KeptCall>);

impl KeptCalls {
    pub(crate) fn add(
        &mut self,
        id: u64,
        call: &Arc<Call>,
        host: WorkerId,
        again: Option<Task<()>>,
    ) {
        let kept =
            KeptCall { call: Arc::downgrade(call), host, again, here: false, waiting: Vec::new() };
        self.0.insert(id, kept);
    }

    /// The call with this number, if a host keeps its result.
    pub(crate) fn call(&self, id: u64) -> Option<Arc<Call>> {
        self.0.get(&id)?.call.upgrade()
    }

    /// Has the arguments of a call put together when a result has come. Returns them if it has, or is lost.
    pub(crate) fn wait(
        &mut self,
        result: u64,
        waiting: (CallId, Arc<Call>),
    ) -> Option<(CallId, Arc<Call>)> {
        match self.0.get_mut(&result) {
            Some(kept) if !kept.here => {
                kept.waiting.push(waiting);
                None
            }
            _ => Some(waiting),
        }
    }

    /// The calls that have waited for a result that has come.
    pub(crate) fn came(&mut self, id: u64) -> Vec<(CallId, Arc<Call>)> {
        let Some(kept) = self.0.get_mut(&id) else { return Vec::new() };
        kept.here = true;
        std::mem::take(&mut kept.waiting)
    }
}

impl State {
    /// Tells hosts what calls and their users want of the results that they keep.
    pub(crate) fn pass_to_hosts(&mut self, requests: Vec<KeptRequest>) {
        for request in requests {
            match request {
                KeptRequest::Fetch(host, call) => self.push(host, &Message::FetchResult { call }),
                KeptRequest::Drop(host, call) => {
                    if self.kept.0.get(&call).is_some_and(|kept| kept.host == host) {
                        self.kept.0.remove(&call);
                    }
                    self.push(host, &Message::DropResult { call });
                }
            }
        }
    }

    /// A host is gone, and with it the results that it kept. Calls that may run again do so; returns the others.
    pub(crate) fn lose_results(&mut self, host: WorkerId) -> Vec<Arc<Call>> {
        let (lost, left) =
            std::mem::take(&mut self.kept.0).into_iter().partition(|(_, kept)| kept.host == host);
        self.kept.0 = left;
        let lost: HashMap<u64, KeptCall> = lost;
        let mut failed = Vec::new();
        for KeptCall { call, again, waiting, .. } in lost.into_values() {
            self.to_gather.extend(waiting);
            let Some(call) = call.upgrade().filter(|call| call.lose_kept()) else { continue };
            let task = again.filter(|_| !self.closing).map(|again| again.with(Arc::clone(&call)));
            let taken = task.map(|task| self.drive(|core, out| core.submit(now(), task, out)));
            match taken {
                Some(Ok(id)) => call.named(id),
                Some(Err(_)) | None => failed.push(call),
            }
        }
        failed
    }
}
