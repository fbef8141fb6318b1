//! Counters of the outboxes. The model of the outbox (crates/client/model) has a twin of this file, whose
//! counters are tried in all orders.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
