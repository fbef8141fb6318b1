//! Record of a handle's calls.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;

/// Sessions of one handle whose results have not landed, and the error of its last call.
#[derive(Debug, Default)]
pub struct HandleRecord {
    sessions: Mutex<HashSet<i32>>,
    last: Mutex<Option<Failure>>,
}

impl HandleRecord {
    fn sessions(&self) -> MutexGuard<'_, HashSet<i32>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a new session.
    pub fn begun(&self, session: i32) {
        self.sessions().insert(session);
    }

    /// Records that the results of a session have landed.
    pub fn landed(&self, session: i32) {
        self.sessions().remove(&session);
    }

    /// Takes the sessions whose results have not landed.
    pub fn take_sessions(&self) -> Vec<i32> {
        std::mem::take(&mut *self.sessions()).into_iter().collect()
    }

    /// Records the end of a call.
    pub fn ended(&self, failure: Option<&Failure>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = failure.cloned();
    }

    /// Error of the last call, if it failed.
    pub fn last(&self) -> Option<Failure> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
