//! A model of how the reader's role is handed over (crates/runtime/src/client/seat.rs, which is
//! compiled here as it is): loom runs it in all orders of its threads, up to a number of
//! preemptions, and fails where one of them is left asleep.
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

mod call;
mod hand_over;
mod socket;
