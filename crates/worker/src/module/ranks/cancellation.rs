//! Cancellation flag of the call that this rank runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the worker has cancelled the last call.
pub(super) static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Whether the call that this rank runs has been cancelled. `false` in processes that are not ranks.
pub(in crate::module) fn is_cancelled() -> bool {
    CANCELLED.load(Ordering::Relaxed)
}
