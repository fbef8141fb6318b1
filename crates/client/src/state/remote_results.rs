//! Results that stay on the host where they were made, for calls that are sent there. The client fetches a result
//! when somebody waits for it, and makes the host drop it when nobody needs it any more.

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
pub(crate) struct KeptCall {
    pub(crate) call: Weak<Call>,
    host: WorkerId,
    pub(crate) again: Option<Task<()>>,
    /// Whether it has been fetched.
    here: bool,
    /// Calls whose arguments can be assembled when it has been fetched.
    pub(crate) waiting: Vec<(CallId, Arc<Call>)>,
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

    /// Delays a call's arguments until a result arrives. Returns them if the result is here or lost.
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

    /// The calls that waited for a result that has arrived.
    pub(crate) fn came(&mut self, id: u64) -> Vec<(CallId, Arc<Call>)> {
        let Some(kept) = self.0.get_mut(&id) else { return Vec::new() };
        kept.here = true;
        std::mem::take(&mut kept.waiting)
    }

    /// Forgets the result of a call that a host is to drop.
    pub(crate) fn forget(&mut self, host: WorkerId, id: u64) {
        if self.0.get(&id).is_some_and(|kept| kept.host == host) {
            self.0.remove(&id);
        }
    }

    /// Whether a host keeps the result of any call.
    pub(crate) fn has_some_of(&self, host: WorkerId) -> bool {
        self.0.values().any(|kept| kept.host == host)
    }

    /// Takes out the calls whose results this host keeps.
    pub(crate) fn take_of(&mut self, host: WorkerId) -> Vec<KeptCall> {
        self.0.extract_if(|_, kept| kept.host == host).map(|(_, kept)| kept).collect()
    }
}
