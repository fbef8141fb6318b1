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

    /// Number of calls of this call's function to keep under way so that no host runs out of them; 0 if none has run it,
    /// or in a forked child.
    #[must_use]
    pub fn window(&self, call: &Call) -> usize {
        if self.check().is_err() {
            return 0;
        }
        self.reactor_lock.wakeup().lock().core.window(call.function().id())
    }

    /// Waits up to `timeout` until the call has ended. Returns whether it has.
    #[must_use]
    pub fn wait(&self, call: &Call, timeout: Duration) -> bool {
        self.wait_until(timeout, || call.done(), |left| call.wait(left))
    }

    /// Waits up to `timeout` until the call has ended, for a thread that has to do other things as well. Returns whether
    /// it has; none at once if the grid has other calls, or if callers take turns: they would hand the lead from thread
    /// to thread with each call. Then the grid's own thread reads the answer.
    #[must_use]
    pub fn lead(&self, caller: usize, call: &Call, timeout: Duration) -> Option<bool> {
        let common = self.reactor_lock.wakeup();
        let mut state = common.lock();
        let may_lead = state.callers.may_lead(caller, self.reactor_lock.is_away());
        let is_alone = state.core.live() <= 1;
        drop(state);
        if !(may_lead && is_alone) {
            self.leave_to_grid();
            return None;
        }
        let others = || common.lock().core.live() > 0;
        let until = now() + ns(timeout);
        Some(self.reactor_lock.wait(until, || call.done(), |left| call.wait(left), others))
    }

    /// Makes the grid's own thread read answers if nobody does. For a thread that has submitted a call and will not wait
    /// for it.
    pub fn leave_to_grid(&self) {
        self.reactor_lock.ensure_leader();
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
        self.reactor_lock.wait(now() + ns(timeout), ready, sleep, || false)
    }
}
