//! Waiting for calls of a grid.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_sys::forks;
use gridrpc_sys::spin_wait::SpinWait;

use crate::call::Call;
use crate::common::Common;
use crate::error::GridError;
use crate::grid::Grid;
use crate::reactor::Reactor;
use crate::reactor_lock::ReactorLock;
use crate::sync::{now, ns};

/// Waits for calls of one grid, and reads answers meanwhile.
#[derive(Clone, Debug)]
pub struct Waiter {
    reactor_lock: Arc<ReactorLock<Reactor, Common>>,
    generation: u64,
}

impl Grid {
    /// What to wait for calls with.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter { reactor_lock: Arc::clone(&self.reactor_lock), generation: self.generation }
    }
}

impl Waiter {
    /// Whether this process may wait: not if it is a forked child of the one that opened the grid.
    /// Ask before anything else; a thread of the parent may have held any lock at the fork.
    ///
    /// # Errors
    /// `GridError::Forked` if it may not.
    pub fn check(&self) -> Result<(), GridError> {
        if forks::generation() == self.generation { Ok(()) } else { Err(GridError::Forked) }
    }

    /// Waits until the call has ended, at most so long. Returns whether it has.
    #[must_use]
    pub fn wait(&self, call: &Call, timeout: Duration) -> bool {
        self.wait_until(timeout, || call.done(), |left| call.wait(left))
    }

    /// Reads answers for a moment, as long as the call has not ended, if that has been of use lately, and does
    /// not sleep.
    pub fn look(&self, call: &Call, patience: &mut SpinWait) {
        if patience.makes_sense() {
            let _ = self.reactor_lock.look(|step| patience.look_now(step), || call.done());
        }
    }

    /// Has a thread that waits by [`Waiter::wait_until`] and reads answers meanwhile look again
    /// whether it is ready. Needed when something else than an answer makes it so.
    pub fn nudge(&self) {
        self.reactor_lock.nudge();
    }

    /// Waits until `ready`, at most so long, and reads answers meanwhile; if another thread does,
    /// by `sleep`, which has to return as soon as it is ready. Returns whether it is.
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
        // What is waited for may be a call that still waits for others to be sent with.
        let wakeup = self.reactor_lock.wakeup();
        let mut state = wakeup.lock();
        let unsent = state.take_all_unsent();
        drop(state);
        unsent.flush();
        self.reactor_lock.wait(now() + ns(timeout), ready, sleep)
    }
}
