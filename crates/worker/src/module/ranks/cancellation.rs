//! Cancellation flag of the call that this rank runs.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The flag of the running call; null if none runs.
pub(super) static CANCELLED: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the call that this rank runs has been cancelled. `false` in processes that are not ranks.
pub(in crate::module) fn is_cancelled() -> bool {
    let place = NonNull::new(CANCELLED.load(Ordering::Acquire));
    // SAFETY: set to a place in a mapping, and to null again before that goes.
    place.is_some_and(|place| unsafe { place.as_ref() }.load(Ordering::Relaxed) != 0)
}
