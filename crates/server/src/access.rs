//! What one connected user may do, checked at each step.

use std::sync::Arc;

use gridrpc_agent::{Access, Denied, Found, NamedData, Notify, Offered, Permit, Target};
use gridrpc_client::FunctionRef;
use gridrpc_core::{BlobId, CallOptions};
use gridrpc_wire::{FunctionForm, RemoteError, TraceContext};

use crate::caller::{AccessError, Caller, denied};
use crate::catalogue::{Code, OfferedModule};
use crate::config::{Cores, Policy};
use crate::pools::PoolError;

/// Largest payload of a call whose user has no limit, bytes.
const MAX_PAYLOAD: u64 = 1 << 40;

/// What a user with a connection may do.
#[derive(Debug)]
pub(crate) struct UserAccess(pub(crate) Arc<Caller>);

impl Access for UserAccess {
    fn find(&self, form: FunctionForm, name: &str) -> Result<Found, Denied> {
        let UserAccess(caller) = self;
        if form == FunctionForm::Named {
            let (name, hash) = match name.split_once('#') {
                Some((name, hash)) => (name, Some(hash.to_owned())),
                None => (name, None),
            };
            match caller.module_of(name) {
                Ok((module, function)) => {
                    let is_method =
                        matches!(module.code, Code::Python(_)) && function.contains('.');
                    let (caller, name) = (Arc::clone(caller), name.into());
                    let offered = OfferedFunction { caller, name, hash, is_method };
                    return Ok(Found::Offered(Arc::new(offered)));
                }
                Err(denied) if !caller.role.code => {
                    caller.refused(name, &denied);
                    return Err(denied.into());
                }
                Err(_) => {}
            }
        }
        if caller.role.code {
            return Ok(Found::Sent);
        }
        let message = format!(
            "{} runs the functions that it offers, and none that clients send: its owner can allow user `{}` to send \
             code (code = true in server.toml)",
            caller.shared.name(),
            caller.user
        );
        let denied = denied(RemoteError::NotPermitted, message);
        caller.refused(name, &denied);
        Err(denied.into())
    }

    fn begin(
        &self,
        function: &FunctionRef,
        bytes: u64,
        trace: Option<TraceContext>,
        options: &mut CallOptions,
    ) -> Result<Box<dyn Permit>, Denied> {
        options.priority = self.0.role.priority;
        let permit = self.0.permit(&function.name().into(), None, bytes, options.cores)?;
        Ok(permit.traced(trace))
    }

    fn reserve(&self) -> Result<Box<dyn Permit>, Denied> {
        let permit = self.0.permit(&"an object".into(), None, 0, 1)?;
        let waiting: Arc<dyn Notify> = Arc::new(Nobody);
        if permit.try_start(&waiting) {
            return Ok(permit);
        }
        let message = format!("user `{}` may use no more workers now", self.0.user);
        Err(denied(RemoteError::LimitReached, message).into())
    }

    fn share(&self, bytes: u64) -> Result<Box<dyn Permit>, Denied> {
        Ok(self.0.permit(&"shared data".into(), None, bytes, 0)?)
    }

    fn named_data(&self, blob: BlobId) -> Result<Arc<NamedData>, Denied> {
        Ok(self.0.named_data(blob.0)?)
    }

    fn max_payload(&self) -> u64 {
        self.0.role.limits.bytes.most().unwrap_or(MAX_PAYLOAD)
    }

    fn exceeds_payload(&self, bytes: u64) -> Denied {
        match self.0.permit(&"a payload".into(), None, bytes, 0) {
            Err(reached) => reached.into(),
            Ok(_) => {
                let message = format!("{bytes} bytes are more than the server accepts at a time");
                denied(RemoteError::LimitReached, message).into()
            }
        }
    }
}

/// Waits for nothing.
#[derive(Debug)]
struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

/// A function that the server offers to a user.
#[derive(Debug)]
pub(crate) struct OfferedFunction {
    pub(crate) caller: Arc<Caller>,
    /// `module/function`.
    pub(crate) name: Arc<str>,
    /// The interface that the client knows; none: it has not asked for one.
    pub(crate) hash: Option<String>,
    /// Whether it is a method of a Python class.
    pub(crate) is_method: bool,
}

impl Offered for OfferedFunction {
    fn needs_object(&self) -> bool {
        self.is_method
    }

    fn begin(&self, bytes: u64, trace: Option<TraceContext>) -> Result<Target, Denied> {
        Ok(self.begin_call(bytes, trace)?.1)
    }
}

impl OfferedFunction {
    /// Begins a call with this many bytes of arguments. `trace`: the client's span. Returns the version of the module
    /// that it runs, and where.
    pub(crate) fn begin_call(
        &self,
        bytes: u64,
        trace: Option<TraceContext>,
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
                "the queue of module `{}` is full: {alive} calls run or wait, of at most {most} that wait; try again \
                 when calls have ended",
                module.name
            );
            return Err(denied(RemoteError::LimitReached, message));
        }
        let unavailable = |error: PoolError| {
            let message = format!("module `{}` is not available: {error}", module.name);
            denied(RemoteError::ModuleError, message)
        };
        let pool = shared.pools.of(&module, user).map_err(unavailable)?;
        let place = pool.place(&module, function, user, role.weight);
        let place = place.map_err(|error| unavailable(error.into()))?;
        let workers = place.grid.workers().max(1);
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
        let permit = self.caller.permit(&self.name, Some(Arc::clone(&module)), bytes, cores)?;
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
}
