//! The workers of a grid: how many there are, waiting for them, more of them, and workers that work for one owner.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use gridrpc_core::{
    GroupId, Loss, Refusal, Reservation, Standing, Time, WorkerId, summarise_hosts,
};

use crate::error::GridError;
use crate::grid::Grid;
use crate::grid::limits::check_workers;
use crate::state::State;

impl Grid {
    /// Waits, at most so long, until all workers have answered. Returns whether they have.
    ///
    /// # Errors
    /// When not all can be started, or the grid has been closed.
    pub fn wait_until_ready(&self, timeout: Duration) -> Result<bool, GridError> {
        self.wait_for(None, timeout)
    }

    /// Waits, at most so long, until so many workers have answered. Returns whether they have.
    ///
    /// # Errors
    /// When so many cannot be started, or the grid has been closed.
    pub fn wait_for_workers(&self, wanted: usize, timeout: Duration) -> Result<bool, GridError> {
        self.wait_for(Some(wanted), timeout)
    }

    /// Waits for so many workers, or for all.
    fn wait_for(&self, wanted: Option<usize>, timeout: Duration) -> Result<bool, GridError> {
        self.check_process()?;
        let mut state = self.common.lock();
        if let Some(count) = wanted {
            let now = Time(gridrpc_sys::monotonic_ns());
            state.drive(|core, out| core.want_workers(now, count, None, out));
            self.common.finish(state);
            state = self.common.lock();
        }
        let wanted = |state: &State| wanted.unwrap_or_else(|| state.core.places());
        let unknown = |state: &State| !state.core.knows_places();
        let hopeless = |state: &State| {
            state.core.broken().is_some() || state.core.too_few(wanted(state)).is_some()
        };
        let waiting = |state: &mut State| {
            (state.core.ready() < wanted(state) || unknown(state))
                && !hopeless(state)
                && !state.closing
        };
        let waited = self.common.changed.wait_timeout_while(state, timeout, waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(loss) = state.core.broken() {
            return Err(Refusal::NoWorkers(Arc::clone(loss)).into());
        }
        if state.closing {
            return Err(Refusal::Closed.into());
        }
        let wanted = wanted(&state);
        match state.core.too_few(wanted) {
            Some(loss) => Err(GridError::TooFewWorkers(loss)),
            None => Ok(state.core.ready() >= wanted && !unknown(&state)),
        }
    }

    /// Hosts without a worker that has answered, with what is known of them, for people: some lines at most.
    #[must_use]
    pub fn absent_hosts(&self) -> Vec<String> {
        let state = self.common.lock();
        let told = |(id, loss): (WorkerId, Option<&Arc<Loss>>)| match loss {
            Some(loss) => (loss.host.clone(), loss.to_string()),
            None => state.hosts.how_far(id),
        };
        summarise_hosts(state.core.absent_hosts().map(told))
    }

    /// How many workers it is to have, those of hosts as far as they have told.
    #[must_use]
    pub fn workers(&self) -> u32 {
        let here = self.workers.load(Ordering::Relaxed);
        here + self.common.lock().core.places_on_hosts() as u32
    }

    /// The host of a worker, as the configuration names it; none: this machine.
    #[must_use]
    pub fn host_of(&self, worker: u32) -> Option<Arc<str>> {
        self.common.lock().hosts.host_of(worker)
    }

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

    /// Asks for workers that work for one owner each, on a group if that is named, and returns without
    /// waiting for them. `python`: what they run are not only functions of compiled modules.
    ///
    /// # Errors
    /// When there are too many for this system, no host is trusted with Python, or the grid is closed.
    pub fn reserve(
        &self,
        count: u32,
        group: Option<GroupId>,
        python: bool,
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
        let group = match &state.trust {
            Some(trust) if python => trust.bound(group, "an object of a Python class")?,
            _ => group,
        };
        let reserved = state.drive(|core, out| core.reserve(count, group, out));
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
        let now = Time(gridrpc_sys::monotonic_ns());
        state.drive(|core, out| core.release(now, of, out));
        self.common.finish(state);
    }
}
