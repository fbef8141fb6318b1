//! Results that stay on the host where they were made, for calls that are sent there, or to hosts that get copies from
//! there. The client fetches a result when somebody waits for it, and makes the hosts drop it when nobody needs it any
//! more.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use gridrpc_core::{CallId, CallOptions, Core, Task, WorkerId};

use crate::call::Call;

/// The task of an unanswered idempotent call whose arguments are here, so that its result can be computed again. Its
/// deadline is met when it is answered.
pub(crate) fn again(core: &Core<Arc<Call>>, id: CallId) -> Option<Task<()>> {
    let repeats = |task: &&Task<_>| task.options.idempotent && task.options.on.is_none();
    let task = core.task(id).filter(repeats)?;
    let again = || {
        let options = CallOptions { deadline: None, ..task.options.clone() };
        Task { options, ..task.clone().with(()) }
    };
    task.payload.arguments_are_here().then(again)
}

/// A call whose result a host keeps.
#[derive(Debug)]
pub(crate) struct RemoteResultState {
    pub(crate) call: Weak<Call>,
    host: WorkerId,
    pub(crate) again: Option<Task<()>>,
    /// Whether it has been fetched.
    here: bool,
    /// Calls whose arguments can be assembled when it has been fetched.
    pub(crate) waiting: Vec<(CallId, Arc<Call>)>,
}

/// A copy of a result that another host has, or gets from the one that keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultCopy {
    /// The call of the result.
    pub(crate) result: u64,
    pub(crate) from: WorkerId,
    pub(crate) to: WorkerId,
}

/// The calls whose results hosts keep, by number.
#[derive(Debug, Default)]
pub(crate) struct RemoteResults {
    calls: HashMap<u64, RemoteResultState>,
    /// By their number as shared data.
    copies: HashMap<u64, ResultCopy>,
    /// The number of the copy of a result on a host.
    numbers: HashMap<(u64, WorkerId), u64>,
    /// Number of copies so far, without those that did not arrive.
    pub(crate) moved: u64,
    /// Number of those that did not arrive.
    pub(crate) not_moved: u64,
}

impl RemoteResults {
    pub(crate) fn add(
        &mut self,
        id: u64,
        call: &Arc<Call>,
        host: WorkerId,
        again: Option<Task<()>>,
    ) {
        let remote = RemoteResultState {
            call: Arc::downgrade(call),
            host,
            again,
            here: false,
            waiting: Vec::new(),
        };
        self.calls.insert(id, remote);
    }

    /// Whether no host keeps a result.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The host that keeps this result.
    pub(crate) fn host_of(&self, result: u64) -> Option<WorkerId> {
        self.calls.get(&result).map(|remote| remote.host)
    }

    /// The number of the copy of a result on a host.
    pub(crate) fn copy_on(&self, result: u64, host: WorkerId) -> Option<u64> {
        self.numbers.get(&(result, host)).copied()
    }

    /// Records a copy, with its number as shared data.
    pub(crate) fn add_copy(&mut self, blob: u64, copy: ResultCopy) {
        self.moved += 1;
        self.copies.insert(blob, copy);
        self.numbers.insert((copy.result, copy.to), blob);
    }

    /// Forgets a copy.
    pub(crate) fn take_copy(&mut self, blob: u64) -> Option<ResultCopy> {
        let copy = self.copies.remove(&blob)?;
        self.numbers.remove(&(copy.result, copy.to));
        Some(copy)
    }

    /// Forgets copies of a result, or on a host. Returns their numbers.
    pub(crate) fn take_copies(
        &mut self,
        mut which: impl FnMut(&ResultCopy) -> bool,
    ) -> Vec<(u64, ResultCopy)> {
        if self.copies.is_empty() {
            return Vec::new();
        }
        let taken: Vec<_> = self.copies.extract_if(|_, copy| which(copy)).collect();
        for (_, copy) in &taken {
            self.numbers.remove(&(copy.result, copy.to));
        }
        taken
    }

    /// The call with this number, if a host keeps its result.
    pub(crate) fn call(&self, id: u64) -> Option<Arc<Call>> {
        self.calls.get(&id)?.call.upgrade()
    }

    /// Delays a call's arguments until a result arrives. Returns them if the result is here or lost.
    pub(crate) fn wait(
        &mut self,
        result: u64,
        waiting: (CallId, Arc<Call>),
    ) -> Option<(CallId, Arc<Call>)> {
        match self.calls.get_mut(&result) {
            Some(remote) if !remote.here => {
                remote.waiting.push(waiting);
                None
            }
            _ => Some(waiting),
        }
    }

    /// The calls that waited for a result that has arrived.
    pub(crate) fn came(&mut self, id: u64) -> Vec<(CallId, Arc<Call>)> {
        let Some(remote) = self.calls.get_mut(&id) else { return Vec::new() };
        remote.here = true;
        std::mem::take(&mut remote.waiting)
    }

    /// Forgets the result of a call that a host is to drop.
    pub(crate) fn forget(&mut self, host: WorkerId, id: u64) {
        if self.calls.get(&id).is_some_and(|remote| remote.host == host) {
            self.calls.remove(&id);
        }
    }

    /// Whether a host keeps the result of any call.
    pub(crate) fn has_some_of(&self, host: WorkerId) -> bool {
        self.calls.values().any(|remote| remote.host == host)
    }

    /// Takes out the calls whose results this host keeps.
    pub(crate) fn take_of(&mut self, host: WorkerId) -> Vec<RemoteResultState> {
        self.calls.extract_if(|_, remote| remote.host == host).map(|(_, remote)| remote).collect()
    }
}
