//! Sessions: calls that were begun without waiting for them.
//!
//! Each has a number. The table knows a session until it has been waited for, and some of them
//! longer, so that one can ask how they went.

mod finished;
mod record;
mod session;
mod table;
mod wait;

pub use record::HandleRecord;
pub use session::{Origin, Session};
pub use wait::Waited;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_client::Call;

use crate::context::Context;
use crate::failure::Failure;
use finished::Finished;
use table::Table;

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    context: Arc<Context>,
    table: Mutex<Table>,
    finished: Arc<Finished>,
    /// Calls without a session, whose callers wait for them, with the records of their handles.
    calls: Mutex<Vec<(Arc<HandleRecord>, Arc<Call>)>>,
}

impl Sessions {
    /// An empty table that keeps `keep` sessions after they were waited for.
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

    fn calls(&self) -> MutexGuard<'_, Vec<(Arc<HandleRecord>, Arc<Call>)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call without a session has begun, and its caller waits for it.
    pub fn called(&self, record: &Arc<HandleRecord>, call: &Arc<Call>) {
        self.calls().push((Arc::clone(record), Arc::clone(call)));
    }

    /// The caller has seen its end.
    pub fn returned(&self, call: &Arc<Call>) {
        let mut calls = self.calls();
        if let Some(at) = calls.iter().position(|(_, other)| Arc::ptr_eq(other, call)) {
            calls.swap_remove(at);
        }
    }

    /// Cancels calls without sessions: those of one handle, or all. Returns whether there were any.
    pub fn cancel_calls(&self, of: Option<&Arc<HandleRecord>>) -> bool {
        let calls: Vec<Arc<Call>> = self
            .calls()
            .iter()
            .filter(|(record, _)| of.is_none_or(|wanted| Arc::ptr_eq(record, wanted)))
            .map(|(_, call)| Arc::clone(call))
            .collect();
        for call in &calls {
            self.context.grid.cancel(call);
        }
        !calls.is_empty()
    }

    /// Changes how many are kept.
    pub fn keep(&self, keep: Option<usize>) {
        self.table().keep(keep);
    }

    /// A call has begun. Returns its session's number.
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

    /// Has those who wait for any session look again. One of them may be reading answers, and sees
    /// nothing else.
    fn look_again(&self) {
        if self.finished.is_waited_for() {
            self.context.waiter.nudge();
        }
    }

    /// A session that is there.
    pub fn get(&self, id: i32) -> Result<Arc<Session>, Failure> {
        self.table().get(id).cloned().ok_or_else(|| Failure::no_session(id))
    }

    /// Cancels a session.
    pub fn cancel(&self, id: i32) -> Result<(), Failure> {
        if let Some(call) = self.get(id)?.call() {
            self.context.grid.cancel(&call);
        }
        Ok(())
    }

    /// Cancels all sessions that run.
    pub fn cancel_all(&self) {
        let calls: Vec<Arc<Call>> =
            self.table().outstanding().filter_map(|session| session.call()).collect();
        for call in calls {
            self.context.grid.cancel(&call);
        }
    }

    /// Cancels the running calls of a destructed handle. Nothing is written to the caller's memory for
    /// its sessions any more. Returns whether any call ran.
    pub fn abandon_handle(&self, record: &Arc<HandleRecord>) -> bool {
        let mut is_any = self.cancel_calls(Some(record));
        for id in record.take_sessions() {
            let session = self.table().get(id).cloned();
            let Some(session) = session else { continue };
            match session.abandon() {
                Some(call) => {
                    self.context.grid.cancel(&call);
                    is_any = true;
                }
                // It has ended: its results are brought to their places now, and never later.
                None => drop(session.settle(&self.context)),
            }
        }
        is_any
    }

    /// Forgets a session that has ended. `false`: it still runs.
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

    /// Nobody has to wait any more: all calls have ended.
    pub fn close(&self) {
        self.finished.wake();
    }
}
