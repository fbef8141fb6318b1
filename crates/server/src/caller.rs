//! A user who makes calls, and the permission for each of them.

use std::fmt;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_agent::{CallEnd, Denied, NamedData, Notify, Permit};
use gridrpc_client::{CallLimits, Profile};
use gridrpc_wire::{RemoteError, TraceContext};

use crate::audit::{AuditEvent, AuditRecord};
use crate::catalogue::OfferedModule;
use crate::config::Cores;
use crate::limits::{CallToken, LimitReached, rounded};
use crate::pools::has_own_pool;
use crate::roles::Role;
use crate::shared::Shared;
use crate::statistics::EndedCall;
use crate::traces::{CallSpan, SpanEnd};

/// A user who makes calls.
pub(crate) struct Caller {
    pub(crate) shared: Arc<Shared>,
    /// Name of the user.
    pub(crate) user: Arc<str>,
    /// Where the calls come from.
    pub(crate) address: Arc<str>,
    pub(crate) role: Role,
    /// Whether it is root or the server's own user, on this machine.
    pub(crate) owns_server: bool,
}

/// Why a user may not do something, or cannot.
#[derive(Debug)]
pub(crate) struct AccessError {
    pub(crate) error: RemoteError,
    pub(crate) message: String,
    /// When to try again, if that helps.
    pub(crate) retry_after: Option<Duration>,
}

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
            user: Some(Arc::clone(&self.user)),
            address: Some(Arc::clone(&self.address)),
            function: Some(function.into()),
            bytes_in: Some(bytes_in),
            ..AuditRecord::now(event)
        }
    }

    fn limited(&self, function: &str, bytes: u64, reached: &LimitReached) -> AccessError {
        let outcome = Some(reached.limit.into());
        let record = self.record(AuditEvent::Limit, function, bytes);
        self.shared.audit.record(AuditRecord { outcome, ..record });
        let retry_after = reached.retry_after;
        AccessError { retry_after, ..denied(RemoteError::LimitReached, reached.to_string()) }
    }

    /// The error of a call that the queue of its module takes no more. `limit`: what is reached, for the audit log.
    pub(crate) fn not_queued(
        &self,
        function: &str,
        bytes: u64,
        limit: &'static str,
        message: String,
        retry_after: Option<Duration>,
    ) -> AccessError {
        let record = self.record(AuditEvent::Limit, function, bytes);
        self.shared.audit.record(AuditRecord { outcome: Some(limit.into()), ..record });
        let remedy = match retry_after {
            Some(time) => format!("try again in {}", rounded(time)),
            None => "try again when calls have ended".to_owned(),
        };
        let message = format!("{message}; {remedy}");
        AccessError { retry_after, ..denied(RemoteError::LimitReached, message) }
    }

    pub(crate) fn refused(&self, name: &str, error: &AccessError) {
        let outcome = Some(error.error.name().into());
        let record = self.record(AuditEvent::Refuse, name, 0);
        self.shared.audit.record(AuditRecord { outcome, ..record });
    }

    /// The limits that concern calls of a module by this user, for clients to check before they send.
    pub(crate) fn limits(&self, module: &OfferedModule) -> CallLimits {
        let (limits, settings) = (&self.role.limits, &module.settings);
        let workers = u64::from(self.shared.pools.common_workers());
        let cores = match settings.cores {
            Cores::One => Some(1),
            _ if has_own_pool(settings) => None,
            Cores::All => Some(workers),
            Cores::Count(count) => Some(workers.min(count.into())),
        };
        CallLimits {
            user: self.user.to_string(),
            bytes: limits.bytes.most(),
            calls: limits.calls.most(),
            queued: limits.queued.most(),
            workers: limits.workers.most(),
            cores,
            most_queued: settings.most_queued.map(u64::from),
            memory: settings.memory,
        }
    }

    /// Begins a call within the limits of the user.
    pub(crate) fn permit(
        self: &Arc<Caller>,
        name: &Arc<str>,
        module: Option<Arc<OfferedModule>>,
        bytes: u64,
        workers: u32,
    ) -> Result<Box<CallPermit>, AccessError> {
        self.check_draining()?;
        let (shared, limits) = (&self.shared, &self.role.limits);
        let begun = shared.limiter().try_begin(&self.user, limits, bytes, shared.now());
        let token = begun.map_err(|reached| self.limited(name, bytes, &reached))?;
        if let Some(module) = &module {
            module.alive.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Box::new(self.permit_of(name, module, token, bytes, workers)))
    }

    /// Reserves a worker for an object within the limits of the user, as long as the permit lives.
    pub(crate) fn reserve(self: &Arc<Caller>) -> Result<Box<CallPermit>, AccessError> {
        self.check_draining()?;
        let (shared, limits) = (&self.shared, &self.role.limits);
        let name: Arc<str> = "an object".into();
        let reserved = shared.limiter().try_reserve(&self.user, limits, shared.now());
        let token = reserved.map_err(|reached| self.limited(&name, 0, &reached))?;
        Ok(Box::new(self.permit_of(&name, None, token, 0, 1)))
    }

    fn check_draining(&self) -> Result<(), AccessError> {
        if self.shared.is_draining() {
            let message = format!("{} takes no new calls: it is about to stop", self.shared.name());
            return Err(denied(RemoteError::LimitReached, message));
        }
        Ok(())
    }

    fn permit_of(
        self: &Arc<Caller>,
        name: &Arc<str>,
        module: Option<Arc<OfferedModule>>,
        token: CallToken,
        bytes: u64,
        workers: u32,
    ) -> CallPermit {
        CallPermit {
            caller: Arc::clone(self),
            name: Arc::clone(name),
            module,
            token,
            bytes,
            workers,
            begun: Instant::now(),
            trace: None,
            span: None,
            cpu: Mutex::new(None),
        }
    }
}

/// Permission for a call, and the record of its end.
pub(crate) struct CallPermit {
    caller: Arc<Caller>,
    /// The function.
    name: Arc<str>,
    module: Option<Arc<OfferedModule>>,
    token: CallToken,
    bytes: u64,
    workers: u32,
    begun: Instant,
    /// The client's span.
    trace: Option<TraceContext>,
    /// The span of the call, if it is recorded.
    span: Option<CallSpan>,
    /// The CPU time that it has used, once it has ended.
    cpu: Mutex<Option<Duration>>,
}

impl CallPermit {
    /// Begins the span of the call, if traces are exported. `context`: the client's span, for the audit log as well.
    pub(crate) fn traced(mut self: Box<Self>, context: Option<TraceContext>) -> Box<Self> {
        self.trace = context;
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
        // One that was cancelled or lost has no run time.
        if let Some(module) = self.module.as_ref().filter(|_| !ran.is_zero()) {
            module.ran(ran);
        }
        let cpu = ran * self.workers.max(1);
        *self.cpu.lock().unwrap_or_else(PoisonError::into_inner) = Some(cpu);
        let (outcome, bytes_out) = match end.outcome {
            Ok(bytes) => ("ok".into(), Some(bytes)),
            Err(error) => (error.to_owned().into(), None),
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
            user: Some(Arc::clone(&self.caller.user)),
            address: Some(Arc::clone(&self.caller.address)),
            function: Some(Arc::clone(&self.name)),
            trace: self.trace,
            bytes_in: Some(self.bytes),
            bytes_out,
            duration: Some(self.begun.elapsed()),
            outcome: Some(outcome),
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
