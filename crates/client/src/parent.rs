//! Clients that a grid works for: an agent's grid has one, a daemon's grid any number.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use gridrpc_core::Loss;

/// A client that a grid works for. All methods return at once, and call no method of the grid; the grid's own threads
/// call them.
pub trait Parent: fmt::Debug + Send + Sync {
    /// The number of ready workers has changed.
    fn changed(&self);

    /// No worker can be started any more. All calls have already ended.
    fn has_no_workers(&self, loss: &Loss);

    /// A worker has written to its standard error or output.
    fn said(&self, worker: u32, stderr: bool, bytes: &[u8]);
}

/// The clients of a grid, other than its own process.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// Whether there has been one. Most grids have none and never take the lock.
    any: AtomicBool,
    list: RwLock<Vec<Arc<dyn Parent>>>,
}

impl Parents {
    pub(crate) fn add(&self, parent: Arc<dyn Parent>) {
        self.list.write().unwrap_or_else(PoisonError::into_inner).push(parent);
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn remove(&self, parent: &Arc<dyn Parent>) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|one| !Arc::ptr_eq(one, parent));
    }

    /// Whether there is, or was, one.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Calls `notify` for each client.
    pub(crate) fn each(&self, notify: impl Fn(&dyn Parent)) {
        if self.any() {
            let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
            list.iter().for_each(|parent| notify(&**parent));
        }
    }
}
