//! Modules that servers offer, and functions of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gridrpc_core::{GroupId, WorkerId};
use gridrpc_idl::Module;

/// A module that a server offers.
#[derive(Debug)]
pub struct ServerModule {
    /// The name of the server in its grid.
    pub server: String,
    /// Its interface.
    pub interface: Arc<Module>,
    /// The hash of the interface's text, from the server.
    pub hash: String,
    has_changed: AtomicBool,
}

impl ServerModule {
    pub(crate) fn new(server: String, interface: Module, hash: String) -> ServerModule {
        let (interface, has_changed) = (Arc::new(interface), AtomicBool::new(false));
        ServerModule { server, interface, hash, has_changed }
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
