//! What the server offers over HTTP: the functions of its compiled modules, with the roles and limits of all users.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use gridrpc_agent::{CallEnd, Notify, Permit};
use gridrpc_core::End;
use gridrpc_inference::{
    AuthError, FunctionName, Functions, GridCall, InferFuture, InferRequest, InferResponse,
    InferenceError, ModelMetadata, Page, Principal, RequestCredentials, infer_on_grid, is_callable,
};
use gridrpc_invoke::Target;
use gridrpc_sys::lock;
use gridrpc_transport::certificates::{Identity, Revocations};
use gridrpc_wire::RemoteError;

use crate::audit::{AuditEvent, AuditRecord};
use crate::caller::{AccessError, Caller};
use crate::catalogue::{Code, OfferedModule};
use crate::config::HttpConfig;
use crate::detached::DetachedCalls;
use crate::exposition;
use crate::http::clients::HttpClients;
use crate::http::metrics::metrics;
use crate::offered_function::OfferedFunction;
use crate::page;
use crate::roles::Role;
use crate::shared::Shared;
use crate::status::ServerStatus;

/// The functions of a server.
#[derive(Debug)]
pub(super) struct ServerFunctions {
    shared: Arc<Shared>,
    detached: Arc<DetachedCalls>,
    revocations: Revocations,
    config: HttpConfig,
    clients: HttpClients,
    metadata: Mutex<HashMap<FunctionName, KnownMetadata>>,
}

/// Metadata of a function, with the version of the module that it is made from.
type KnownMetadata = (Weak<OfferedModule>, Arc<ModelMetadata>);

impl ServerFunctions {
    pub(super) fn new(
        shared: Arc<Shared>,
        detached: Arc<DetachedCalls>,
        revocations: Revocations,
        config: HttpConfig,
    ) -> ServerFunctions {
        let (clients, metadata) = (HttpClients::new(Arc::clone(&shared)), Mutex::default());
        ServerFunctions { shared, detached, revocations, config, clients, metadata }
    }

    /// Ends what users who are gone have left.
    pub(super) fn remove_idle(&self) {
        self.clients.remove_idle();
        lock(&self.metadata).retain(|_, (module, _)| module.strong_count() > 0);
    }

    fn access(&self, caller: &Principal) -> Arc<Caller> {
        Arc::new(Caller {
            shared: Arc::clone(&self.shared),
            user: Arc::clone(&caller.user),
            address: caller.address.map_or_else(String::new, |address| address.to_string()).into(),
            role: self.role(caller),
            owns_server: false,
        })
    }

    fn role(&self, caller: &Principal) -> Role {
        Role::of(&self.shared.config, &caller.user, &caller.groups)
    }

    fn identify(
        &self,
        credentials: &RequestCredentials,
    ) -> Result<(String, Vec<String>), AuthError> {
        if let Some(token) = &credentials.token {
            let known = self.shared.tokens.as_ref().and_then(|tokens| tokens.find(token));
            let known = known.ok_or_else(|| {
                AuthError::Unauthenticated("the token is unknown, expired or revoked".into())
            })?;
            return Ok((known.user, known.groups));
        }
        if let Some(certificate) = credentials.certificates.first() {
            let identity = Identity::of(certificate)
                .map_err(|error| AuthError::Unauthenticated(error.to_string()))?;
            // A connection may be older than the revocation, and than the end of the certificate.
            if identity.until < SystemTime::now() {
                return Err(AuthError::Unauthenticated("the certificate has expired".into()));
            }
            if self.revocations.is_revoked(&identity) {
                return Err(AuthError::Unauthenticated("the certificate has been revoked".into()));
            }
            return Ok((identity.user, identity.groups));
        }
        match &self.config.anonymous {
            Some(user) => Ok((user.clone(), Vec::new())),
            None => {
                let advice = "send an API token as `Authorization: Bearer`, or use a certificate";
                Err(AuthError::Unauthenticated(advice.into()))
            }
        }
    }

    /// Records a request or handshake that was not admitted.
    fn record_refusal(&self, peer: Option<SocketAddr>, outcome: String) {
        self.shared.statistics.refused();
        self.shared.audit.record(AuditRecord {
            address: peer.map(|peer| peer.to_string().into()),
            outcome: Some(outcome.into()),
            ..AuditRecord::now(AuditEvent::Refuse)
        });
    }

    /// The caller, if it may see metrics and the state of all users.
    fn monitor(&self, credentials: &RequestCredentials) -> Result<(), AuthError> {
        let caller = self.authenticate(credentials)?;
        if self.role(&caller).monitor {
            return Ok(());
        }
        let user = caller.user;
        Err(AuthError::Forbidden(format!(
            "user `{user}` may not see the state of the server: its owner can allow it (monitor = true in server.toml)"
        )))
    }

    async fn call(
        &self,
        caller: &Principal,
        request: InferRequest,
    ) -> Result<InferResponse, InferenceError> {
        let started = Instant::now();
        let name = request.function.clone();
        if self.shared.is_draining() {
            let reason = format!("{} takes no new calls: it is about to stop", self.shared.name());
            return Err(InferenceError::Busy { reason, retry_after: None });
        }
        let _call = self.clients.begin(&caller.user);
        let caller = self.access(caller);
        let bytes = request.inputs.iter().map(|input| input.data.len() as u64).sum();
        let (module, target) = begin(&caller, &name, bytes, &request).await?;
        let Code::Library { interface, .. } = &module.code else {
            return Err(not_found(&name));
        };
        let function = Arc::clone(&target.function);
        let function = Target::registered(interface, name.function(), function)
            .map_err(|_| not_found(&name))?;
        if let Some(permit) = &target.permit {
            let deadline = request.timeout.map(|timeout| started + timeout);
            start(&**permit, &name, deadline).await?;
        }
        let waited = started.elapsed();
        let timeout = request.timeout.map(|timeout| timeout.saturating_sub(waited));
        let call = GridCall {
            grid: target.grid,
            target: Arc::new(function),
            owner: target.owner,
            options: target.options,
            max_result_bytes: self.config.most_result_bytes,
        };
        let permit = target.permit;
        infer_on_grid(call, InferRequest { timeout, ..request }, |outcome, profile| {
            if let Some(permit) = &permit {
                permit.ended(CallEnd { outcome, profile });
            }
        })
        .await
    }
}

/// Begins a call within the limits of its user.
async fn begin(
    caller: &Arc<Caller>,
    name: &FunctionName,
    bytes: u64,
    request: &InferRequest,
) -> Result<(Arc<OfferedModule>, gridrpc_agent::Target), InferenceError> {
    let offered = OfferedFunction {
        caller: Arc::clone(caller),
        name: name.to_string().into(),
        hash: None,
        is_method: false,
    };
    let module = caller.module(name.module()).map_err(|error| from_access(name, error))?;
    let (trace, deadline) = (request.trace, request.timeout);
    let is_started = caller.shared.pools.are_started(&module, &caller.user);
    let begun = if is_started {
        offered.begin_call(bytes, trace, deadline)
    } else {
        // Starting workers takes a while.
        tokio::task::spawn_blocking(move || offered.begin_call(bytes, trace, deadline))
            .await
            .map_err(|error| InferenceError::System(format!("the workers cannot start: {error}")))?
    };
    begun.map_err(|error| from_access(name, error))
}

/// Waits until the limits of the user let a call start.
async fn start(
    permit: &dyn Permit,
    name: &FunctionName,
    deadline: Option<Instant>,
) -> Result<(), InferenceError> {
    let changed = Arc::new(Changed::default());
    let waiting: Arc<dyn Notify> = Arc::clone(&changed) as Arc<dyn Notify>;
    while !permit.try_start(&waiting) {
        let notified = changed.0.notified();
        let Some(deadline) = deadline else {
            notified.await;
            continue;
        };
        if tokio::time::timeout_at(deadline.into(), notified).await.is_err() {
            let (function, end) = (name.to_string(), End::DeadlineExceeded(None));
            return Err(InferenceError::Ended { function, end });
        }
    }
    Ok(())
}

/// Wakes a request that waits for a limit of its user.
#[derive(Debug, Default)]
struct Changed(tokio::sync::Notify);

impl Notify for Changed {
    fn notify(&self) {
        self.0.notify_one();
    }
}

fn not_found(name: &FunctionName) -> InferenceError {
    InferenceError::NotFound { name: name.to_string(), version: String::new() }
}

fn from_access(name: &FunctionName, error: AccessError) -> InferenceError {
    let AccessError { error, message, retry_after } = error;
    match error {
        RemoteError::FunctionNotFound => not_found(name),
        RemoteError::LimitReached => InferenceError::LimitReached { message, retry_after },
        RemoteError::NotPermitted => InferenceError::Denied(AuthError::Forbidden(message)),
        _ => InferenceError::System(message),
    }
}

impl Functions for ServerFunctions {
    fn authenticate(&self, credentials: &RequestCredentials) -> Result<Principal, AuthError> {
        let (user, groups) = self
            .identify(credentials)
            .inspect_err(|denied| self.record_refusal(credentials.peer, denied.to_string()))?;
        Ok(Principal { user: user.into(), groups: groups.into(), address: credentials.peer })
    }

    fn is_ready(&self) -> bool {
        let common = &self.shared.pools.common;
        let has_workers = self.shared.pools.common_workers() == 0 || common.counts().0 > 0;
        has_workers && !self.shared.is_draining()
    }

    fn list(&self, caller: &Principal) -> Vec<FunctionName> {
        let mut names = Vec::new();
        for module in self.access(caller).modules() {
            if let Code::Library { interface, .. } = &module.code {
                let functions = interface.functions.iter().filter(|function| is_callable(function));
                names.extend(
                    functions.filter_map(|function| {
                        FunctionName::new(&module.name, &function.name).ok()
                    }),
                );
            }
        }
        names
    }

    fn metadata(
        &self,
        caller: &Principal,
        name: &FunctionName,
    ) -> Result<Arc<ModelMetadata>, InferenceError> {
        let caller = self.access(caller);
        let module = caller.module(name.module()).map_err(|error| {
            caller.refused(&name.to_string(), &error);
            from_access(name, error)
        })?;
        if let Some((of, metadata)) = lock(&self.metadata).get(name)
            && of.as_ptr() == Arc::as_ptr(&module)
        {
            return Ok(Arc::clone(metadata));
        }
        let Code::Library { interface, .. } = &module.code else { return Err(not_found(name)) };
        let function = interface.function(name.function()).ok_or_else(|| not_found(name))?;
        let metadata = Arc::new(ModelMetadata::new(name, function)?);
        let known = (Arc::downgrade(&module), Arc::clone(&metadata));
        lock(&self.metadata).insert(name.clone(), known);
        Ok(metadata)
    }

    fn infer<'a>(&'a self, caller: &'a Principal, request: InferRequest) -> InferFuture<'a> {
        Box::pin(self.call(caller, request))
    }

    fn page(
        &self,
        path: &str,
        query: Option<&str>,
        credentials: &RequestCredentials,
    ) -> Result<Option<Page>, AuthError> {
        let is_page = matches!(path, "/" | "/page.css" | "/page.js" | "/formats.js");
        if !is_page && !matches!(path, "/metrics" | "/status") {
            return Ok(None);
        }
        let mut credentials = credentials.clone();
        // Browsers cannot add a header to an address that a person opens.
        let token = query.and_then(|query| {
            query.split('&').find_map(|part| part.strip_prefix("token=").map(str::to_owned))
        });
        let is_in_header = credentials.token.is_some();
        credentials.token = credentials.token.or(token);
        self.monitor(&credentials)?;
        // Only one that has been verified goes into the page.
        let token = credentials.token.filter(|_| !is_in_header);
        let query = token.map_or_else(String::new, |token| format!("?token={token}"));
        let status = || ServerStatus::of(&self.shared, &self.detached, true);
        let (content_type, content) = match path {
            "/" => ("text/html; charset=utf-8", page::server_page(&query).into()),
            "/page.css" => ("text/css; charset=utf-8", Bytes::from_static(page::STYLE.as_bytes())),
            "/formats.js" => (page::JAVASCRIPT, Bytes::from_static(page::FORMATS.as_bytes())),
            "/page.js" => (page::JAVASCRIPT, Bytes::from_static(page::SERVER_SCRIPT.as_bytes())),
            "/metrics" => (exposition::CONTENT_TYPE, metrics(&status()).into()),
            _ => {
                let text = serde_json::to_vec(&status()).unwrap_or_default();
                ("application/json", text.into())
            }
        };
        Ok(Some(Page { content_type, content }))
    }

    fn refused(&self, peer: SocketAddr, error: &io::Error) {
        self.record_refusal(Some(peer), format!("the TLS handshake failed: {error}"));
    }
}
