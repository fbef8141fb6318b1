//! Counters of the outboxes. The model of the outbox (crates/client/model) replaces this file with one whose counters
//! are tested in all orders.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
