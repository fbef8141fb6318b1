//! Notification of callers when calls end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Receiver of notifications that calls have ended, in whichever thread notices.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// The call with this token has ended.
    fn ended(&self, token: u64);
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
