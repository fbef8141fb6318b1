//! Models of two protocols, whose code is compiled here as it is: how the reader's role is handed over
//! (crates/client/src/reactor_lock.rs), and how a worker and its client agree about answers that have
//! not been sent (crates/shm/src/outbox.rs). Loom runs them in all orders of their threads, up
//! to a number of preemptions, and fails where a thread is left asleep, or an answer is lost.
//!
//! The condition variables here know no time-outs. So it also shows that no caller depends on the
//! millisecond after which the grid's thread comes back by itself.

#![cfg(test)]

#[path = "../../../shm/src/outbox.rs"]
#[allow(dead_code, unreachable_pub)]
mod outbox;
#[path = "../../src/reactor_lock.rs"]
#[allow(dead_code, unreachable_pub)]
mod reactor_lock;
mod sync;

mod call;
mod hand_over;
mod socket;
mod unsent;
