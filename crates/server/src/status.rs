//! State of a server, for its users, administrators and monitors.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::detached::DetachedCalls;
use crate::publisher::source_of;
use crate::shared::Shared;
use crate::statistics::CallCount;

/// The state of a server.
#[derive(Debug, Serialize)]
pub(crate) struct ServerStatus {
    pub(crate) name: String,
    pub(crate) version: &'static str,
    pub(crate) pid: u32,
    /// Time since its start, s.
    pub(crate) uptime: f64,
    pub(crate) draining: bool,
    pub(crate) pools: Vec<PoolStatus>,
    pub(crate) detached: DetachedStatus,
    pub(crate) shared: SharedStatus,
    pub(crate) modules: Vec<ModuleStatus>,
    pub(crate) functions: BTreeMap<String, CallCount>,
    /// What only administrators and monitors see.
    #[serde(flatten)]
    pub(crate) private: Option<PrivateStatus>,
}

/// What only administrators and monitors see.
#[derive(Debug, Serialize)]
pub(crate) struct PrivateStatus {
    pub(crate) users: BTreeMap<String, UserStatus>,
    /// Connections that make calls, by user; 0: only requests over HTTP or detached calls.
    pub(crate) clients: BTreeMap<String, usize>,
    /// Connections and requests that were not admitted.
    pub(crate) refused: u64,
    /// Records that the audit log lacks.
    pub(crate) audit_dropped: u64,
    /// Exported and dropped spans; none: no traces are exported.
    pub(crate) spans: Option<SpanStatus>,
}

/// Numbers of spans since the server started.
#[derive(Debug, Serialize)]
pub(crate) struct SpanStatus {
    pub(crate) exported: u64,
    pub(crate) dropped: u64,
}

/// A pool of workers.
#[derive(Debug, Serialize)]
pub(crate) struct PoolStatus {
    /// None: the common pool.
    pub(crate) module: Option<String>,
    pub(crate) user: Option<String>,
    /// Workers that are ready.
    pub(crate) ready: usize,
    /// Calls that wait for a worker.
    pub(crate) queued: usize,
    /// Calls that have begun and not ended.
    pub(crate) alive: usize,
}

/// Detached calls of all users.
#[derive(Debug, Serialize)]
pub(crate) struct DetachedStatus {
    /// Calls that wait.
    pub(crate) queued: usize,
    pub(crate) running: usize,
    /// Calls that have ended and have a result.
    pub(crate) ended: usize,
}

/// Data that is shared by name.
#[derive(Debug, Serialize)]
pub(crate) struct SharedStatus {
    pub(crate) names: usize,
    pub(crate) bytes: u64,
}

/// A module.
#[derive(Debug, Serialize)]
pub(crate) struct ModuleStatus {
    pub(crate) name: String,
    pub(crate) source: String,
    /// Number of its functions.
    pub(crate) functions: usize,
    /// Calls that have begun and not ended.
    pub(crate) alive: u64,
}

/// A user.
#[derive(Debug, Serialize)]
pub(crate) struct UserStatus {
    #[serde(flatten)]
    pub(crate) ended: CallCount,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    /// Bytes of arguments that are held.
    pub(crate) bytes: u64,
}

impl ServerStatus {
    /// The state of a server. `all`: with all users.
    pub(crate) fn of(shared: &Shared, detached: &DetachedCalls, all: bool) -> ServerStatus {
        let pools = shared.pools.all().into_iter().map(|(key, pool)| {
            let (ready, queued, alive) = pool.counts();
            let user = key.user.filter(|_| all).map(|user| user.to_string());
            PoolStatus { module: key.module, user, ready, queued, alive }
        });
        let modules = shared.catalogue.modules().into_iter().map(|module| ModuleStatus {
            name: module.name.clone(),
            source: source_of(&module.code).display().to_string(),
            functions: module.functions().len(),
            alive: module.alive(),
        });
        let (queued, running, ended) = detached.counts();
        let (names, bytes) = shared.named_data.counts();
        let (functions, users) = shared.statistics.counts();
        ServerStatus {
            name: shared.config.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime: shared.now().as_secs_f64(),
            draining: shared.is_draining(),
            pools: pools.collect(),
            detached: DetachedStatus { queued, running, ended },
            shared: SharedStatus { names, bytes },
            modules: modules.collect(),
            functions,
            private: all.then(|| private(shared, users)),
        }
    }
}

fn private(shared: &Shared, ended: BTreeMap<String, CallCount>) -> PrivateStatus {
    let clients = shared.presence.connections();
    let mut users = ended;
    // Users whose first calls run are users too.
    for user in clients.keys() {
        users.entry(user.clone()).or_default();
    }
    let limiter = shared.limiter();
    let users = users.into_iter().map(|(user, ended)| {
        let queue = limiter.queue(&user);
        let (running, waiting, bytes) = (queue.running, queue.waiting, queue.bytes);
        (user, UserStatus { ended, running, waiting, bytes })
    });
    PrivateStatus {
        users: users.collect(),
        clients,
        refused: shared.statistics.refused_count(),
        audit_dropped: shared.audit.dropped(),
        spans: shared.tracer.as_ref().map(|tracer| {
            let (exported, dropped) = tracer.counts();
            SpanStatus { exported, dropped }
        }),
    }
}
