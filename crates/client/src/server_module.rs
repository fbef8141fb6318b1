//! Modules that servers offer, and functions of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use gridrpc_core::{GroupId, WorkerId};
use gridrpc_idl::Module;
use serde::{Deserialize, Serialize};

/// What a server allows this user for calls of one module; the user may be the only one to whom it applies. The server
/// announces it with the interface, and enforces it. `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallLimits {
    /// The user, as the server knows this client.
    pub user: String,
    /// Bytes of arguments of all calls that have not ended.
    pub bytes: Option<u64>,
    /// Calls that run at a time.
    pub calls: Option<u64>,
    /// Calls that wait.
    pub queued: Option<u64>,
    /// Workers in use at a time.
    pub workers: Option<u64>,
    /// Workers that a call takes; none: not known.
    pub cores: Option<u64>,
    /// Calls of all users that wait for workers of the module.
    pub most_queued: Option<u64>,
    /// Memory of a worker, bytes.
    pub memory: Option<u64>,
}

/// A module that a server offers.
#[derive(Debug)]
pub struct ServerModule {
    /// The name of the server in its grid.
    pub server: String,
    /// Its interface.
    pub interface: Arc<Module>,
    /// The hash of the interface's text, from the server.
    pub hash: String,
    limits: RwLock<Arc<CallLimits>>,
    has_changed: AtomicBool,
}

impl ServerModule {
    pub(crate) fn new(
        server: String,
        interface: Module,
        hash: String,
        limits: CallLimits,
    ) -> ServerModule {
        let (interface, has_changed) = (Arc::new(interface), AtomicBool::new(false));
        let limits = RwLock::new(Arc::new(limits));
        ServerModule { server, interface, hash, limits, has_changed }
    }

    /// The limits of calls, when the server announced them last.
    #[must_use]
    pub fn limits(&self) -> Arc<CallLimits> {
        Arc::clone(&self.limits.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_limits(&self, limits: Arc<CallLimits>) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Whether the server has another interface by now.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    /// Records that the server has refused a call because of the interface.
    pub(crate) fn change(&self) {
        self.has_changed.store(true, Ordering::Release);
    }
}

/// The server that runs a function, for calls of it.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) module: Arc<ServerModule>,
    /// The server alone.
    pub(crate) group: GroupId,
    pub(crate) host: Option<WorkerId>,
}
