//! Binding of calls to a host group, a host or this machine.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use gridrpc_core::{GroupId, Refusal, Time};

use crate::error::GridError;
use crate::grid::Grid;
use crate::state::State;

impl Grid {
    /// Finds what calls can be bound to by this name: a host group, a host, or this machine's own workers,
    /// "localhost", if it has any.
    ///
    /// # Errors
    /// When nothing has this name.
    pub fn group(&self, name: &str) -> Result<GroupId, GridError> {
        self.check_process()?;
        self.common.group(name)
    }

    /// Waits up to `timeout` until a worker of a group is ready. Returns whether one is.
    ///
    /// # Errors
    /// When none can be started, or the grid has been closed.
    pub fn wait_for_group(&self, id: GroupId, timeout: Duration) -> Result<bool, GridError> {
        self.check_process()?;
        let mut state = self.common.lock();
        let now = Time(gridrpc_sys::monotonic_ns());
        state.drive(|core, out| core.want_workers(now, 1, Some(id), out));
        self.common.finish(state);
        let state = self.common.lock();
        let waiting = |state: &mut State| {
            !state.closing && state.core.broken().is_none() && state.core.ready_on(id) == Ok(0)
        };
        let waited = self.common.changed.wait_timeout_while(state, timeout, waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(loss) = state.core.broken() {
            return Err(Refusal::NoWorkers(Arc::clone(loss)).into());
        }
        if state.closing {
            return Err(Refusal::Closed.into());
        }
        Ok(state.core.ready_on(id)? > 0)
    }

    /// Whether the grid has executors other than this machine's own workers.
    #[must_use]
    pub fn has_hosts(&self) -> bool {
        self.common.names.has_hosts()
    }
}
