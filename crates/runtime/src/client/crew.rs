//! More workers for a grid, and workers that work for one owner.

use std::sync::atomic::Ordering;
use std::time::Duration;

use gridrpc_core::{Refusal, Reservation, ServerId, Standing, Time};

use crate::client::error::GridError;
use crate::client::grid::{Grid, check_workers};
use crate::client::state::State;
use crate::sys;

impl Grid {
    /// Asks for more workers, so that there are `workers` in all.
    ///
    /// # Errors
    /// When there are too many for this system.
    pub fn grow(&self, workers: u32) -> Result<(), GridError> {
        self.check_process()?;
        let mut state = self.common.lock();
        let here = self.workers.load(Ordering::Relaxed);
        let more = workers.saturating_sub(here + state.core.places_on_hosts() as u32);
        if more == 0 || here == 0 {
            // A grid of hosts alone stays one.
            return Ok(());
        }
        check_workers(more)?;
        self.workers.store(here + more, Ordering::Relaxed);
        state.drive(|core, out| core.add_workers(more, out));
        self.common.finish(state);
        Ok(())
    }

    /// Asks for workers that work for one owner each, on a server if that is named, and returns without
    /// waiting for them.
    ///
    /// # Errors
    /// When there are too many for this system, or the grid is closed.
    pub fn reserve(
        &self,
        count: u32,
        server: Option<ServerId>,
    ) -> Result<Vec<Reservation>, GridError> {
        self.check_process()?;
        if count == 0 {
            return Ok(Vec::new());
        }
        check_workers(count)?;
        let mut state = self.common.lock();
        if state.closing {
            return Err(Refusal::Closed.into());
        }
        let reserved = state.drive(|core, out| core.reserve(count, server, out));
        self.common.finish(state);
        Ok(reserved)
    }

    /// How a reserved worker is getting on.
    #[must_use]
    pub fn standing(&self, of: Reservation) -> Standing {
        let state = self.common.lock();
        if state.closing { Standing::Released } else { state.core.standing(of) }
    }

    /// Waits, at most so long, until a reserved worker has answered or is known to be lost.
    #[must_use]
    pub fn wait_for_reserved(&self, of: Reservation, timeout: Duration) -> Standing {
        let state = self.common.lock();
        let starting =
            |state: &mut State| !state.closing && state.core.standing(of) == Standing::Starting;
        let waited = self.common.changed.wait_timeout_while(state, timeout, starting);
        drop(waited);
        self.standing(of)
    }

    /// Gives a reserved worker up: its calls are cancelled, and its process ends.
    pub fn release(&self, of: Reservation) {
        if self.check_process().is_err() {
            return;
        }
        let mut state = self.common.lock();
        let now = Time(sys::monotonic_ns());
        state.drive(|core, out| core.release(now, of, out));
        self.common.finish(state);
    }
}
