//! Locks and counters of the reactor lock, and the client's clock. The model of the lock (crates/client/model) has a twin of this file, whose locks and
//! counters are tried in all orders.

/// A lock that is also tried: there is a type of its own for that in the model.
pub(crate) use std::sync::Mutex as TryMutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Condvar, Mutex};

pub(crate) use gridrpc_core::Time;

/// A span of time in the client's unit, ns.
pub(crate) fn ns(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// What the client's clock shows.
pub(crate) fn now() -> Time {
    Time(gridrpc_sys::monotonic_ns())
}
