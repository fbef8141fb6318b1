//! One session: a call and its result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_client::{Call, Waiter, Watcher};
use gridrpc_invoke::{DetachError, detach_call};

use super::finished::Finished;
use super::record::HandleRecord;
use crate::c_types::Handle;
use crate::call::function::Function;
use crate::call::info::CallInfo;
use crate::call::pending::{Ended, Pending, abandoned};
use crate::context::call_grid::CallGrid;
use crate::context::{Context, log::Level};
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// The session's handle.
#[derive(Debug)]
pub struct Origin {
    /// Address of the caller's handle; 0 for internal handles.
    pub address: usize,
    /// The handle.
    pub handle: Handle,
    /// Whether it is an object handle.
    pub is_object: bool,
    /// The sessions of the handle.
    pub record: Arc<HandleRecord>,
    /// The grid that runs its calls.
    pub grid: Arc<CallGrid>,
    /// Told of the end of calls by a grid whose answers waits for any session do not read.
    pub nudged: Option<Waiter>,
}

#[derive(Debug)]
enum State {
    /// Its results have not landed.
    Begun(Pending),
    /// Its results will not land.
    Abandoned(Arc<Call>),
    /// Transient, during a change of state.
    Changing,
    Ended(Arc<Ended>),
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Its number.
    pub id: i32,
    /// Where it came from.
    pub origin: Origin,
    function: Arc<Function>,
    state: Mutex<State>,
    /// Whether the call has ended.
    has_finished: AtomicBool,
    /// Whether a wait has collected it.
    is_taken: AtomicBool,
    /// The id of the detached call whose result it gives.
    detached: Mutex<Option<String>>,
    finished: Arc<Finished>,
}

impl Watcher for Session {
    fn ended(&self, _: u64) {
        self.has_finished.store(true, Ordering::Release);
        self.finished.push(self.id);
        if let Some(waiter) = &self.origin.nudged {
            waiter.nudge();
        }
    }
}

impl Session {
    /// A session for a call that has begun.
    pub fn new(
        id: i32,
        origin: Origin,
        function: Arc<Function>,
        pending: Pending,
        finished: Arc<Finished>,
    ) -> Session {
        Session {
            id,
            origin,
            function,
            state: Mutex::new(State::Begun(pending)),
            has_finished: AtomicBool::new(false),
            is_taken: AtomicBool::new(false),
            detached: Mutex::default(),
            finished,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call, until its result has been taken.
    pub fn call(&self) -> Option<Arc<Call>> {
        match &*self.state() {
            State::Begun(pending) => Some(Arc::clone(&pending.call)),
            State::Abandoned(call) => Some(Arc::clone(call)),
            State::Changing | State::Ended(_) => None,
        }
    }

    /// Cancels the call, if it runs.
    pub fn cancel(&self) {
        if let Some(call) = self.call() {
            self.origin.grid.grid.cancel(&call);
        }
    }

    /// Has the server of the call keep it as a detached one. Returns its id.
    pub fn detach(&self) -> Result<String, Failure> {
        // Locked meanwhile: the call is detached once.
        let mut detached = self.detached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = &*detached {
            return Ok(id.clone());
        }
        let target = &self.function.target;
        let call = self.call().ok_or_else(|| DetachError::Ended(Arc::clone(&target.name)))?;
        let (id, _) = detach_call(&self.origin.grid.grid, target, &call, &mut || false)?;
        Ok(detached.insert(id).clone())
    }

    /// Whether this thread runs a callback of the call. The call cannot end before the callback returns.
    pub fn calls_back_here(&self) -> bool {
        matches!(&*self.state(), State::Begun(pending) if pending.calls_back_here())
    }

    /// Whether the call has ended.
    pub fn has_finished(&self) -> bool {
        self.has_finished.load(Ordering::Acquire)
    }

    /// Whether a wait has collected it.
    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Acquire)
    }

    /// Collects the session. Returns `false` if another wait was first.
    pub fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::AcqRel)
    }

    /// Stores the results at their destinations, once. `None`: the call has not ended.
    pub fn settle(&self, context: &Context) -> Option<Arc<Ended>> {
        let mut state = self.state();
        match &*state {
            State::Ended(ended) => return Some(Arc::clone(ended)),
            State::Begun(pending) if !pending.call.done() => return None,
            State::Abandoned(call) if !call.done() => return None,
            State::Begun(_) | State::Abandoned(_) | State::Changing => {}
        }
        let ended = match std::mem::replace(&mut *state, State::Changing) {
            State::Begun(pending) => pending.land(),
            State::Abandoned(call) => abandoned(&call, &self.function),
            State::Changing | State::Ended(_) => return None,
        };
        let ended = Arc::new(ended);
        *state = State::Ended(Arc::clone(&ended));
        drop(state);
        if let Err(failure) = &ended.result
            && failure.code != ErrorCode::Canceled
        {
            let detail = &failure.detail;
            context.log.write(Level::Error, || format!("session {}: {detail}", self.id));
        }
        self.origin.record.landed(self.id);
        self.origin.record.ended(ended.result.as_ref().err());
        context.call_ended(ended.info, self.id, ended.code());
        Some(ended)
    }

    /// Releases the caller's memory. Returns the call if it still runs.
    pub fn abandon(&self) -> Option<Arc<Call>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Changing) {
            State::Begun(pending) if !pending.call.done() => {
                let call = pending.abandon();
                *state = State::Abandoned(Arc::clone(&call));
                Some(call)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Whether it has ended with an error.
    pub fn failed(&self) -> bool {
        matches!(&*self.state(), State::Ended(ended) if ended.result.is_err())
    }

    /// Its times and places so far, and how it ended, if it has.
    pub fn info(&self, context: &Context) -> (CallInfo, Option<Arc<Ended>>) {
        if let Some(ended) = self.settle(context) {
            return (ended.info, Some(ended));
        }
        let profile = self.call().map(|call| call.profile()).unwrap_or_default();
        (CallInfo::so_far(profile), None)
    }
}
