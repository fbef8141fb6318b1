//! Models of two protocols, whose code is compiled here as it is: how the reader's role is handed over
//! (crates/runtime/src/client/seat.rs), and how a worker and its client agree about answers that have
//! not been sent (crates/runtime/src/worker/outbox.rs). Loom runs them in all orders of their threads, up
//! to a number of preemptions, and fails where a thread is left asleep, or an answer is lost.
//!
//! The condition variables here know no time-outs. So it also shows that no caller depends on the
//! millisecond after which the grid's thread comes back by itself.

#![cfg(test)]

mod client {
    #[path = "../../../src/client/seat.rs"]
    #[allow(dead_code, unreachable_pub)]
    pub(crate) mod seat;
    pub(crate) mod sync;
}

#[path = "../../src/worker/outbox.rs"]
#[allow(dead_code, unreachable_pub)]
mod outbox;

mod call;
mod hand_over;
mod socket;
mod unsent;
