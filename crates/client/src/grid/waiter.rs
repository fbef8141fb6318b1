//! Waiting for calls of a grid.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_sys::forks;

use crate::call::Call;
use crate::common::Common;
use crate::error::GridError;
use crate::grid::Grid;
use crate::reactor::Reactor;
use crate::reactor_lock::ReactorLock;
use crate::sync::{now, ns};

/// Waits for calls of one grid and reads answers in the meantime.
#[derive(Clone, Debug)]
pub struct Waiter {
    reactor_lock: Arc<ReactorLock<Reactor, Common>>,
    generation: u64,
}

impl Grid {
    /// Returns a waiter for calls.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter { reactor_lock: Arc::clone(&self.reactor_lock), generation: self.generation }
    }
}

impl Waiter {
    /// Checks that this process may wait: not if it is a forked child of the process that opened the grid. Check
    /// first; a thread of the parent may have held any lock at the fork.
    ///
    /// # Errors
    /// `GridError::Forked` if it may not.
    pub fn check(&self) -> Result<(), GridError> {
        if forks::generation() == self.generation { Ok(()) } else { Err(GridError::Forked) }
    }

    /// Waits up to `timeout` until the call has ended. Returns whether it has.
    #[must_use]
    pub fn wait(&self, call: &Call, timeout: Duration) -> bool {
        self.wait_until(timeout, || call.done(), |left| call.wait(left))
    }

    /// Reads answers up to `timeout`, until the call has ended. Returns whether it has; none if the grid has other
    /// calls, another thread reads its answers, or the last `caller` was another one: callers that take turns would
    /// hand the lead from thread to thread with each call.
    #[must_use]
    pub fn lead(&self, caller: usize, call: &Call, timeout: Duration) -> Option<bool> {
        let mut state = self.reactor_lock.wakeup().lock();
        let last = state.last_single_caller.replace(caller);
        let is_alone = last == Some(caller) && state.core.live() <= 1;
        drop(state);
        is_alone.then(|| self.reactor_lock.lead(now() + ns(timeout), || call.done()))?
    }

    /// Makes a thread in [`Waiter::wait_until`] check again whether it is ready. Needed when something other than an
    /// answer makes it so.
    pub fn nudge(&self) {
        self.reactor_lock.nudge();
    }

    /// Waits up to `timeout` until `ready`, and reads answers in the meantime. If another thread reads them, waits by
    /// `sleep`, which must return as soon as it is ready. Returns whether it is.
    #[must_use]
    pub fn wait_until(
        &self,
        timeout: Duration,
        ready: impl Fn() -> bool,
        sleep: impl FnOnce(Duration) -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        // The awaited call may still be held back in a batch.
        let wakeup = self.reactor_lock.wakeup();
        let mut state = wakeup.lock();
        let unsent = state.take_all_unsent();
        drop(state);
        unsent.flush();
        self.reactor_lock.wait(now() + ns(timeout), ready, sleep)
    }
}
