//! Notification of callers when calls end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Receiver of notifications that calls have ended, in whichever thread notices.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// The call with this token has ended.
    fn ended(&self, token: u64);

    /// Calls that ended at the same time have all been reported.
    fn settle(&self) {}
}

/// Watchers that have been notified. Dropping it settles each of them.
#[derive(Debug, Default)]
pub(crate) struct NotifiedWatchers(Vec<Arc<dyn Watcher>>);

impl NotifiedWatchers {
    pub(super) fn notify(&mut self, watcher: Arc<dyn Watcher>, token: u64) {
        watcher.ended(token);
        self.add(watcher);
    }

    /// Settles the watchers of another call together with these.
    pub(crate) fn merge(&mut self, mut other: NotifiedWatchers) {
        std::mem::take(&mut other.0).into_iter().for_each(|watcher| self.add(watcher));
    }

    fn add(&mut self, watcher: Arc<dyn Watcher>) {
        // Most calls that end together are of few clients.
        if !self.0.iter().rev().take(4).any(|one| Arc::ptr_eq(one, &watcher)) {
            self.0.push(watcher);
        }
    }
}

impl Drop for NotifiedWatchers {
    fn drop(&mut self) {
        self.0.iter().for_each(|watcher| watcher.settle());
    }
}

impl Watcher for Watch {
    fn ended(&self, token: u64) {
        self.push(token);
    }
}

/// Calls that have ended, in order, by their watchers' tokens.
#[derive(Debug, Default)]
pub struct Watch {
    ended: Mutex<VecDeque<u64>>,
    more: Condvar,
}

impl Watch {
    /// Appends a token. Also wakes a thread that waits for calls.
    pub fn push(&self, token: u64) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push_back(token);
        self.more.notify_one();
    }

    /// Takes the tokens that have arrived. Waits up to `timeout` for the first.
    #[must_use]
    pub fn take(&self, timeout: Duration) -> VecDeque<u64> {
        let until = Instant::now() + timeout;
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while ended.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            ended = self.more.wait_timeout(ended, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::take(&mut ended)
    }
}
