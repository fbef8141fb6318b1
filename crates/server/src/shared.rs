//! State of a server that its connections share.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_agent::Notify;

use crate::api_tokens::ApiTokens;
use crate::audit::AuditLog;
use crate::catalogue::Catalogue;
use crate::config::ServerConfig;
use crate::limits::Limiter;
use crate::named_data::NamedStore;
use crate::pools::Pools;
use crate::presence::{Presence, PresenceKind};
use crate::statistics::Statistics;
use crate::traces::Tracer;

/// Clients that wait for calls of their user to end, by user.
type Waiting = HashMap<Arc<str>, Vec<Arc<dyn Notify>>>;

pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    pub(crate) catalogue: Catalogue,
    pub(crate) pools: Pools,
    pub(crate) audit: AuditLog,
    pub(crate) statistics: Statistics,
    pub(crate) presence: Presence,
    /// Data that is shared by name.
    pub(crate) named_data: NamedStore,
    /// API tokens, if the server serves HTTP.
    pub(crate) tokens: Option<ApiTokens>,
    /// Exporter of traces, if they are exported.
    pub(crate) tracer: Option<Arc<Tracer>>,
    limiter: Mutex<Limiter>,
    waiting: Mutex<Waiting>,
    started: Instant,
    draining: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("name", &self.config.name).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        config: ServerConfig,
        catalogue: Catalogue,
        pools: Pools,
        audit: AuditLog,
        named_data: NamedStore,
        tokens: Option<ApiTokens>,
        tracer: Option<Arc<Tracer>>,
    ) -> Shared {
        Shared {
            config,
            catalogue,
            pools,
            audit,
            statistics: Statistics::default(),
            presence: Presence::default(),
            named_data,
            tokens,
            tracer,
            limiter: Mutex::default(),
            waiting: Mutex::default(),
            started: Instant::now(),
            draining: AtomicBool::new(false),
        }
    }

    /// The server's name, for messages.
    pub(crate) fn name(&self) -> String {
        format!("server `{}`", self.config.name)
    }

    /// Time since the server started.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies a client when a call of this user has ended.
    pub(crate) fn wait(&self, user: &Arc<str>, waiting: &Arc<dyn Notify>) {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = all.entry(Arc::clone(user)).or_default();
        if !of_user.iter().any(|one| Arc::ptr_eq(one, waiting)) {
            of_user.push(Arc::clone(waiting));
        }
    }

    /// The clients that wait for calls of this user to end, who do not wait any more.
    pub(crate) fn take_waiting(&self, user: &str) -> Vec<Arc<dyn Notify>> {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(user).unwrap_or_default()
    }

    /// Ends a user's presence.
    pub(crate) fn leave(&self, user: &str, what: PresenceKind) {
        self.presence.leave(user, what, || self.pools.forget(user));
    }

    /// Takes no new calls from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}
