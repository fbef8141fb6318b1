//! Workers of a grid: counting, waiting, growing and reserving.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use gridrpc_core::{
    GroupId, Loss, Refusal, Reservation, ReservationState, Time, WorkerId, summarise_hosts,
};

use crate::error::GridError;
use crate::grid::Grid;
use crate::grid::limits::check_workers;
use crate::state::State;
use crate::trust::Code;

impl Grid {
    /// Waits up to `timeout` until all workers are ready. Returns whether they are.
    ///
    /// # Errors
    /// When not all can be started, or the grid has been closed.
    pub fn wait_until_ready(&self, timeout: Duration) -> Result<bool, GridError> {
        self.wait_for(None, timeout)
    }

    /// Waits up to `timeout` until this many workers are ready. Returns whether they are.
    ///
    /// # Errors
    /// When so many cannot be started, or the grid has been closed.
    pub fn wait_for_workers(&self, wanted: usize, timeout: Duration) -> Result<bool, GridError> {
        self.wait_for(Some(wanted), timeout)
    }

    /// Waits for this many workers, or for all.
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

    /// Hosts without a ready worker and their details, for people. At most some lines.
    #[must_use]
    pub fn absent_hosts(&self) -> Vec<String> {
        let state = self.common.lock();
        let status = |(id, loss): (WorkerId, Option<&Arc<Loss>>)| match loss {
            Some(loss) => (loss.host.clone(), loss.to_string()),
            None => state.hosts.how_far(id),
        };
        summarise_hosts(state.core.absent_hosts().map(status))
    }

    /// Number of workers that the grid is to have. Hosts count once they have reported theirs.
    #[must_use]
    pub fn workers(&self) -> u32 {
        let here = self.workers.load(Ordering::Relaxed);
        here + self.common.lock().core.places_on_hosts() as u32
    }

    /// Whether hosts start while calls wait for them.
    #[must_use]
    pub fn has_hosts_on_demand(&self) -> bool {
        self.common.lock().core.is_elastic()
    }

    /// The host of a worker, as the configuration names it; `None`: this machine.
    #[must_use]
    pub fn host_of(&self, worker: u32) -> Option<Arc<str>> {
        self.common.lock().hosts.host_of(worker)
    }

    /// Sets the number of workers, those of hosts included: workers of this machine start or end. Surplus ones get no
    /// more calls and end after those that they have begun. Without any worker, calls wait.
    ///
    /// # Errors
    /// When there are too many for this system.
    pub fn set_workers(&self, workers: u32) -> Result<(), GridError> {
        self.resize(workers, false)
    }

    /// Requests more workers, up to `workers` in all.
    ///
    /// # Errors
    /// When there are too many for this system.
    pub fn grow(&self, workers: u32) -> Result<(), GridError> {
        self.resize(workers, true)
    }

    fn resize(&self, workers: u32, only_grow: bool) -> Result<(), GridError> {
        self.check_process()?;
        let mut state = self.common.lock();
        if !self.has_own_workers {
            // A grid of hosts only remains one.
            return Ok(());
        }
        let here = self.workers.load(Ordering::Relaxed);
        let wanted = workers.saturating_sub(state.core.places_on_hosts() as u32);
        if only_grow && wanted <= here {
            return Ok(());
        }
        if wanted > here {
            check_workers(wanted - here)?;
        }
        self.workers.store(wanted, Ordering::Relaxed);
        let now = Time(gridrpc_sys::monotonic_ns());
        state.drive(|core, out| core.set_workers(now, wanted, out));
        self.common.finish(state);
        // Fewer workers may be all that somebody waits for.
        self.common.workers_changed(None);
        Ok(())
    }

    /// Reserves workers that serve one owner each, on a group if one is named, and returns without waiting for them.
    /// `code`: what they run.
    ///
    /// # Errors
    /// When there are too many for this system, no host is trusted with the code, or the grid is closed.
    pub fn reserve(
        &self,
        count: u32,
        group: Option<GroupId>,
        code: Code,
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
            Some(trust) => trust.bound(code, group, describe_code(code))?,
            None => group,
        };
        let reserved = state.drive(|core, out| core.reserve(count, group, out));
        self.common.finish(state);
        Ok(reserved)
    }

    /// State of a reserved worker.
    #[must_use]
    pub fn standing(&self, of: Reservation) -> ReservationState {
        let state = self.common.lock();
        if state.closing { ReservationState::Released } else { state.core.standing(of) }
    }

    /// Waits up to `timeout` until a reserved worker is ready or lost.
    #[must_use]
    pub fn wait_for_reserved(&self, of: Reservation, timeout: Duration) -> ReservationState {
        let state = self.common.lock();
        let starting = |state: &mut State| {
            !state.closing && state.core.standing(of) == ReservationState::Starting
        };
        let waited = self.common.changed.wait_timeout_while(state, timeout, starting);
        drop(waited);
        self.standing(of)
    }

    /// Releases a reserved worker: its calls are cancelled and its process ends.
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

/// An object that runs this code, for messages.
fn describe_code(code: Code) -> &'static str {
    match code {
        Code::Python => "an object of a Python class",
        Code::Module => "an object of a module of this client",
        Code::Offered => "an object",
    }
}
