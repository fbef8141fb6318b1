//! A function that the server offers to one user, and how its calls begin.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_agent::{Denied, ServedFunction, Target};
use gridrpc_client::Grid;
use gridrpc_core::CallOptions;
use gridrpc_wire::{RemoteError, TraceContext};

use crate::caller::{AccessError, Caller, denied};
use crate::catalogue::{Code, OfferedModule};
use crate::config::{Cores, Policy};
use crate::limits::rounded;
use crate::pools::PoolError;

/// A function that the server offers to a user.
#[derive(Debug)]
pub(crate) struct OfferedFunction {
    pub(crate) caller: Arc<Caller>,
    /// `module/function`.
    pub(crate) name: Arc<str>,
    /// The interface that the client knows; none: it has not asked for one.
    pub(crate) hash: Option<String>,
    /// Whether it is a method, whose calls run in the worker that their object has reserved.
    pub(crate) is_method: bool,
}

impl ServedFunction for OfferedFunction {
    fn needs_object(&self) -> bool {
        self.is_method
    }

    fn begin(&self, bytes: u64, trace: Option<TraceContext>) -> Result<Target, Denied> {
        Ok(self.begin_call(bytes, trace, None)?.1)
    }
}

impl OfferedFunction {
    /// Begins a call with this many bytes of arguments. `trace`: the client's span. `deadline`: the time in which it has
    /// to end. Returns the version of the module that it runs, and where.
    pub(crate) fn begin_call(
        &self,
        bytes: u64,
        trace: Option<TraceContext>,
        deadline: Option<Duration>,
    ) -> Result<(Arc<OfferedModule>, Target), AccessError> {
        let Caller { shared, user, role, .. } = &*self.caller;
        let (module, function) = self.caller.module_of(&self.name)?;
        if let (Some(known), Code::Library { hash, .. }) = (&self.hash, &module.code)
            && known != hash
        {
            let message =
                format!("the interface of `{}` has changed on {}", self.name, shared.name());
            return Err(denied(RemoteError::InterfaceChanged, message));
        }
        let settings = &module.settings;
        if let Some(most) = settings.most_queued
            && module.is_full(shared.pools.common_workers())
        {
            let alive = module.alive();
            let message = format!(
                "the queue of module `{}` is full: {alive} calls run or wait, of at most {most} that wait",
                module.name
            );
            let next = module.expected_wait(1, module.most_running(shared.pools.common_workers()));
            return Err(self.caller.not_queued(&self.name, bytes, "most_queued", message, next));
        }
        let unavailable = |error: PoolError| {
            let message = format!("module `{}` is not available: {error}", module.name);
            denied(RemoteError::ModuleError, message)
        };
        let pool = shared.pools.of(&module, user).map_err(unavailable)?;
        let place = pool.place(&module, function, user, role.weight);
        let place = place.map_err(|error| unavailable(error.into()))?;
        let workers = place.grid.workers().max(1);
        if let Some(deadline) = deadline {
            self.check_deadline(&module, &place.grid, deadline, bytes)?;
        }
        let cores = match settings.cores {
            Cores::One => 1,
            Cores::All => workers,
            Cores::Count(count) => count.min(workers),
        };
        let priority = if settings.policy == Policy::Priority { role.priority } else { 0 };
        let threads = if cores > 1 { cores } else { 0 };
        let options = CallOptions {
            cores,
            threads,
            priority,
            run_limit: settings.wall_time,
            cpu_limit: settings.cpu_time,
            ..CallOptions::DEFAULT
        };
        // The worker of an object counts from its reservation on.
        let more_workers = if self.is_method { 0 } else { cores };
        let permit =
            self.caller.permit(&self.name, Some(Arc::clone(&module)), bytes, more_workers)?;
        let target = Target {
            grid: place.grid,
            function: place.function,
            owner: place.owner,
            options,
            permit: Some(permit.traced(trace)),
            uses_memory: self.caller.owns_server || settings.is_isolated(),
        };
        Ok((module, target))
    }

    /// Refuses a call that would probably wait in the queue until its deadline.
    fn check_deadline(
        &self,
        module: &OfferedModule,
        grid: &Grid,
        deadline: Duration,
        bytes: u64,
    ) -> Result<(), AccessError> {
        let counts = grid.counts();
        let waiting = counts.queued as u64;
        let wait = module.expected_wait(waiting, grid.workers());
        let Some(wait) = wait.filter(|wait| *wait > deadline) else { return Ok(()) };
        let message = format!(
            "the call would not end within its {}: {waiting} calls wait for the workers of module `{}`, and it would \
             begin in about {}",
            rounded(deadline),
            module.name,
            rounded(wait)
        );
        let next = Some(wait - deadline);
        Err(self.caller.not_queued(&self.name, bytes, "deadline", message, next))
    }
}
