//! The request to stop a server.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A request to stop, from any thread.
#[derive(Debug, Default)]
pub struct Stop {
    is_requested: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Requests it.
    pub fn request(&self) {
        *self.is_requested.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits up to `timeout` for the request. Returns whether it was made.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let requested = self.is_requested.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(requested, timeout, |requested| !*requested);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
