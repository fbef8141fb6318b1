//! What one connected user may do, checked at each step.

use std::fmt;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_agent::{Access, CallEnd, Denied, Found, NamedData, Notify, Offered, Permit, Target};
use gridrpc_client::{FunctionRef, Profile};
use gridrpc_core::{BlobId, CallOptions};
use gridrpc_wire::{FunctionForm, RemoteError, TraceContext};

use crate::audit::{AuditEvent, AuditRecord};
use crate::catalogue::{Code, OfferedModule};
use crate::config::{Cores, Policy};
use crate::limits::{CallToken, LimitReached};
use crate::pools::PoolError;
use crate::roles::Role;
use crate::shared::Shared;
use crate::statistics::EndedCall;
use crate::traces::{CallSpan, SpanEnd};

/// Largest payload of a call whose user has no limit, bytes.
const MAX_PAYLOAD: u64 = 1 << 40;

/// A user who makes calls.
pub(crate) struct Caller {
    pub(crate) shared: Arc<Shared>,
    /// Name of the user.
    pub(crate) user: Arc<str>,
    /// Where the calls come from.
    pub(crate) address: String,
    pub(crate) role: Role,
}

/// Why a user may not do something, or cannot.
#[derive(Debug)]
pub(crate) struct AccessError {
    pub(crate) error: RemoteError,
    pub(crate) message: String,
    /// When to try again, if that helps.
    pub(crate) retry_after: Option<Duration>,
}

/// What a user with a connection may do.
#[derive(Debug)]
pub(crate) struct UserAccess(pub(crate) Arc<Caller>);

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("user", &self.user).finish_non_exhaustive()
    }
}

pub(crate) fn denied(error: RemoteError, message: impl Into<String>) -> AccessError {
    AccessError { error, message: message.into(), retry_after: None }
}

impl From<AccessError> for Denied {
    fn from(error: AccessError) -> Denied {
        Denied { error: error.error.name().to_owned(), message: error.message }
    }
}

impl Caller {
    /// The module of a function that the user may call. `name`: `module/function`.
    pub(crate) fn module_of<'n>(
        &self,
        name: &'n str,
    ) -> Result<(Arc<OfferedModule>, &'n str), AccessError> {
        self.module_with(name, OfferedModule::has)
    }

    /// The module that has a function or class that the user may use. `name`: `module/function` or `module/Class`.
    pub(crate) fn module_of_member(&self, name: &str) -> Result<Arc<OfferedModule>, AccessError> {
        let has =
            |module: &OfferedModule, member: &str| module.has(member) || module.has_class(member);
        self.module_with(name, has).map(|(module, _)| module)
    }

    fn module_with<'n>(
        &self,
        name: &'n str,
        has: impl Fn(&OfferedModule, &str) -> bool,
    ) -> Result<(Arc<OfferedModule>, &'n str), AccessError> {
        let (module, function) = name.split_once('/').ok_or_else(|| {
            let message = format!("`{name}` is not a function's name: write `module/function`");
            denied(RemoteError::FunctionNotFound, message)
        })?;
        let known = self.module(module)?;
        if !has(&known, function) {
            let functions = known.functions();
            let near = gridrpc_idl::nearest(function, functions.iter().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let message = format!("module `{module}` has no function `{function}`{hint}");
            return Err(denied(RemoteError::FunctionNotFound, message));
        }
        Ok((known, function))
    }

    /// A module that the user may call.
    pub(crate) fn module(&self, name: &str) -> Result<Arc<OfferedModule>, AccessError> {
        let known = self.shared.catalogue.module(name);
        // A module that the user may not call is not there, as far as the user can see.
        let known = known.filter(|known| self.role.may_call(name, Some(&known.settings)));
        known.ok_or_else(|| {
            let message = format!("{} has no module `{name}`{}", self.shared.name(), self.listed());
            denied(RemoteError::FunctionNotFound, message)
        })
    }

    /// The modules that the user may call.
    pub(crate) fn modules(&self) -> Vec<Arc<OfferedModule>> {
        let mut modules = self.shared.catalogue.modules();
        modules.retain(|module| self.role.may_call(&module.name, Some(&module.settings)));
        modules
    }

    fn listed(&self) -> String {
        let names: Vec<String> =
            self.modules().iter().map(|module| format!("`{}`", module.name)).collect();
        if names.is_empty() {
            format!(" that user `{}` may call", self.user)
        } else {
            format!(" that user `{}` may call; there is {}", self.user, names.join(", "))
        }
    }

    /// Named data in memory, by its number.
    pub(crate) fn named_data(&self, number: u64) -> Result<Arc<NamedData>, AccessError> {
        let Caller { shared, role, .. } = self;
        let grid = shared.pools.common.grid().map_err(|error| {
            denied(RemoteError::OutOfMemory, format!("the workers cannot start: {error}"))
        })?;
        match shared.named_data.load(&grid, role, number) {
            Ok(Some(data)) => Ok(data),
            Ok(None) => {
                let message = format!(
                    "{} does not keep this shared data any more, or user `{}` may not read it any more: look it up \
                     again with `grid.shared`",
                    shared.name(),
                    self.user
                );
                Err(denied(RemoteError::DataNotFound, message))
            }
            Err(error) => {
                let name = shared.name();
                if error.kind() == io::ErrorKind::OutOfMemory {
                    let message = format!("{name} has no memory for the shared data: {error}");
                    return Err(denied(RemoteError::OutOfMemory, message));
                }
                let message =
                    format!("{name} cannot read the shared data: {error}; share it again");
                Err(denied(RemoteError::DataNotFound, message))
            }
        }
    }

    pub(crate) fn record(&self, event: AuditEvent, function: &str, bytes_in: u64) -> AuditRecord {
        AuditRecord {
            user: Some(self.user.to_string()),
            address: Some(self.address.clone()),
            function: Some(function.to_owned()),
            bytes_in: Some(bytes_in),
            ..AuditRecord::now(event)
        }
    }

    fn limited(&self, function: &str, bytes: u64, reached: &LimitReached) -> AccessError {
        let outcome = Some(reached.limit.to_owned());
        let record = self.record(AuditEvent::Limit, function, bytes);
        self.shared.audit.record(AuditRecord { outcome, ..record });
        let retry_after = reached.retry_after;
        AccessError { retry_after, ..denied(RemoteError::LimitReached, reached.to_string()) }
    }

    pub(crate) fn refused(&self, name: &str, error: &AccessError) {
        let outcome = Some(error.error.name().to_owned());
        let record = self.record(AuditEvent::Refuse, name, 0);
        self.shared.audit.record(AuditRecord { outcome, ..record });
    }

    /// Begins a call within the limits of the user.
    fn permit(
        self: &Arc<Caller>,
        name: &Arc<str>,
        module: Option<Arc<OfferedModule>>,
        bytes: u64,
        workers: u32,
    ) -> Result<Box<CallPermit>, AccessError> {
        if self.shared.is_draining() {
            let message = format!("{} takes no new calls: it is about to stop", self.shared.name());
            return Err(denied(RemoteError::LimitReached, message));
        }
        let begun = self.shared.limiter().try_begin(
            &self.user,
            &self.role.limits,
            bytes,
            self.shared.now(),
        );
        let token = begun.map_err(|reached| self.limited(name, bytes, &reached))?;
        if let Some(module) = &module {
            module.alive.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Box::new(CallPermit {
            caller: Arc::clone(self),
            name: Arc::clone(name),
            module,
            token,
            bytes,
            workers,
            begun: Instant::now(),
            span: None,
            cpu: Mutex::new(None),
        }))
    }
}

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
        if let Some(most) = settings.most_queued {
            let running = u64::from(settings.most_running.unwrap_or(shared.pools.common_workers()));
            let alive = module.alive();
            if alive >= running + u64::from(most) {
                let message = format!(
                    "the queue of module `{}` is full: {alive} calls run or wait, of at most {most} that wait; try \
                     again when calls have ended",
                    module.name
                );
                return Err(denied(RemoteError::LimitReached, message));
            }
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
        };
        Ok((module, target))
    }
}

/// Permission for a call, and the record of its end.
struct CallPermit {
    caller: Arc<Caller>,
    /// The function.
    name: Arc<str>,
    module: Option<Arc<OfferedModule>>,
    token: CallToken,
    bytes: u64,
    workers: u32,
    begun: Instant,
    /// The span of the call, if it is recorded.
    span: Option<CallSpan>,
    /// The CPU time that it has used, once it has ended.
    cpu: Mutex<Option<Duration>>,
}

impl CallPermit {
    /// Begins the span of the call, if traces are exported. `context`: the client's span.
    fn traced(mut self: Box<Self>, context: Option<TraceContext>) -> Box<Self> {
        let tracer = self.caller.shared.tracer.as_ref();
        self.span = tracer.and_then(|tracer| CallSpan::begin(tracer, context));
        self
    }

    fn end_span(&self, outcome: Result<u64, &str>, profile: Option<&Profile>) {
        if let Some(span) = &self.span {
            span.end(&SpanEnd {
                name: &self.name,
                user: &self.caller.user,
                address: &self.caller.address,
                bytes_in: self.bytes,
                outcome,
                profile,
            });
        }
    }
}

impl fmt::Debug for CallPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPermit").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Permit for CallPermit {
    fn try_start(&self, waiting: &Arc<dyn Notify>) -> bool {
        let workers = u64::from(self.workers);
        let mut limiter = self.caller.shared.limiter();
        if limiter.try_start(self.token, &self.caller.role.limits, workers).is_ok() {
            return true;
        }
        // Under the lock, so that no end of a call is missed.
        self.caller.shared.wait(&self.caller.user, waiting);
        false
    }

    fn ended(&self, end: CallEnd<'_>) {
        self.end_span(end.outcome, Some(end.profile));
        let stamps = &end.profile.stamps;
        let ran = Duration::from_nanos(stamps.calc_out.saturating_sub(stamps.calc_in));
        let cpu = ran * self.workers.max(1);
        *self.cpu.lock().unwrap_or_else(PoisonError::into_inner) = Some(cpu);
        let (outcome, bytes_out) = match end.outcome {
            Ok(bytes) => ("ok", Some(bytes)),
            Err(error) => (error, None),
        };
        self.caller.shared.statistics.ended(
            &self.name,
            &self.caller.user,
            EndedCall {
                is_returned: end.outcome.is_ok(),
                ran,
                bytes_in: self.bytes,
                bytes_out: bytes_out.unwrap_or(0),
            },
        );
        self.caller.shared.audit.record(AuditRecord {
            user: Some(self.caller.user.to_string()),
            address: Some(self.caller.address.clone()),
            function: Some(self.name.to_string()),
            bytes_in: Some(self.bytes),
            bytes_out,
            duration: Some(self.begun.elapsed()),
            outcome: Some(outcome.to_owned()),
            ..AuditRecord::now(AuditEvent::End)
        });
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(module) = &self.module {
            module.alive.fetch_sub(1, Ordering::Relaxed);
        }
        let cpu = *self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        if cpu.is_none() {
            // Cancelled or refused before a worker could have it.
            self.end_span(Err("NotRun"), None);
        }
        let mut limiter = self.caller.shared.limiter();
        limiter.end(self.token, cpu.unwrap_or_default(), self.caller.shared.now());
        let waiting = self.caller.shared.take_waiting(&self.caller.user);
        drop(limiter);
        waiting.iter().for_each(|one| one.notify());
    }
}
