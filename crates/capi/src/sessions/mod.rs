//! Sessions: asynchronous calls.
//!
//! Each has a number. A wait that returns a session collects it. The table keeps a session until it is
//! collected, and some of them longer, so that programs can query how they ended.

mod finished;
mod record;
mod session;
mod table;
mod wait;

pub use record::HandleRecord;
pub use session::{Origin, Session};
pub use wait::WaitResult;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_client::Call;

use crate::context::Context;
use crate::context::call_grid::CallGrid;
use crate::failure::Failure;
use finished::Finished;
use table::Table;

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    context: Arc<Context>,
    table: Mutex<Table>,
    finished: Arc<Finished>,
    /// Synchronous calls, with the records of their handles.
    calls: Mutex<Vec<CallOfHandle>>,
}

/// A synchronous call, with the record of its handle.
#[derive(Clone, Debug)]
struct CallOfHandle {
    record: Arc<HandleRecord>,
    grid: Arc<CallGrid>,
    call: Arc<Call>,
}

impl Sessions {
    /// An empty table that keeps `keep` collected sessions.
    pub fn new(context: Arc<Context>, keep: Option<usize>) -> Sessions {
        Sessions {
            context,
            table: Mutex::new(Table::new(keep)),
            finished: Arc::default(),
            calls: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Vec<CallOfHandle>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a synchronous call.
    pub fn called(&self, record: &Arc<HandleRecord>, grid: &Arc<CallGrid>, call: &Arc<Call>) {
        let (record, grid, call) = (Arc::clone(record), Arc::clone(grid), Arc::clone(call));
        self.calls().push(CallOfHandle { record, grid, call });
    }

    /// Removes a synchronous call that has returned.
    pub fn returned(&self, call: &Arc<Call>) {
        let mut calls = self.calls();
        if let Some(at) = calls.iter().position(|other| Arc::ptr_eq(&other.call, call)) {
            calls.swap_remove(at);
        }
    }

    /// Cancels synchronous calls: those of one handle, or all. Returns whether there were any.
    pub fn cancel_calls(&self, of: Option<&Arc<HandleRecord>>) -> bool {
        let calls: Vec<CallOfHandle> = self
            .calls()
            .iter()
            .filter(|call| of.is_none_or(|wanted| Arc::ptr_eq(&call.record, wanted)))
            .cloned()
            .collect();
        for CallOfHandle { grid, call, .. } in &calls {
            grid.grid.cancel(call);
        }
        !calls.is_empty()
    }

    /// Changes how many collected sessions are kept.
    pub fn keep(&self, keep: Option<usize>) {
        self.table().keep(keep);
    }

    /// Begins a call. Returns its session's number.
    pub fn begin(&self, make: impl FnOnce(i32, Arc<Finished>) -> Session) -> i32 {
        let id = self.table().new_id();
        let session = Arc::new(make(id, Arc::clone(&self.finished)));
        session.origin.record.begun(id);
        self.finished.begun();
        self.table().insert(Arc::clone(&session));
        if let Some(call) = session.call() {
            call.watch(&session, 0);
            if session.has_finished() {
                self.look_again();
            }
        }
        id
    }

    /// Makes threads that wait for any session check again. One of them may be reading answers and would not
    /// notice otherwise.
    fn look_again(&self) {
        if self.finished.is_waited_for() {
            self.context.grids.main.waiter.nudge();
        }
    }

    /// Looks a session up.
    pub fn get(&self, id: i32) -> Result<Arc<Session>, Failure> {
        self.table().get(id).cloned().ok_or_else(|| Failure::no_session(id))
    }

    /// Cancels a session.
    pub fn cancel(&self, id: i32) -> Result<(), Failure> {
        self.get(id)?.cancel();
        Ok(())
    }

    /// Cancels all running sessions.
    pub fn cancel_all(&self) {
        let sessions: Vec<Arc<Session>> = self.table().outstanding().cloned().collect();
        for session in sessions {
            session.cancel();
        }
    }

    /// Cancels the running calls of a destructed handle. Its sessions do not write to the caller's memory any
    /// more. Returns whether any call ran.
    pub fn abandon_handle(&self, record: &Arc<HandleRecord>) -> bool {
        let mut is_any = self.cancel_calls(Some(record));
        for id in record.take_sessions() {
            let session = self.table().get(id).cloned();
            let Some(session) = session else { continue };
            match session.abandon() {
                Some(call) => {
                    session.origin.grid.grid.cancel(&call);
                    is_any = true;
                }
                // It has ended: store its results now, as that must not happen later.
                None => drop(session.settle(&self.context)),
            }
        }
        is_any
    }

    /// Removes an ended session. Returns `false` if it still runs.
    pub fn forget(&self, id: i32) -> Result<bool, Failure> {
        let session = self.get(id)?;
        if session.settle(&self.context).is_none() {
            return Ok(false);
        }
        if session.take() {
            self.table().taken(&session);
            self.finished.taken();
            self.look_again();
        }
        self.table().forget(id);
        Ok(true)
    }

    /// Ends all waits: all calls have ended.
    pub fn close(&self) {
        self.finished.wake();
    }
}
