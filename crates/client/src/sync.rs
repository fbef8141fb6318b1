//! Locks and counters of the reactor lock, and the client's clock. The model of the lock (crates/client/model)
//! replaces this file with one whose locks and counters are tested in all orders.

/// A lock that supports `try_lock`: the model has a separate type for it.
pub(crate) use std::sync::Mutex as TryMutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Condvar, Mutex};

pub(crate) use gridrpc_core::Time;

/// A duration in the client's unit, ns.
pub(crate) fn ns(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Current time of the client's clock.
pub(crate) fn now() -> Time {
    Time(gridrpc_sys::monotonic_ns())
}
