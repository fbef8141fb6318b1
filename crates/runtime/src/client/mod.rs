//! The client's side: a grid of worker processes, and calls to them.
//!
//! Callers write to idle workers themselves; one thread per grid, the reactor, reads all
//! answers, keeps the timers and starts and buries workers.

mod call;
mod fork;
mod function;
mod grid;
mod launch;
mod lifecycle;
mod reactor;
mod seat;
mod shared;
mod state;
mod tail;

pub use call::{Call, Outcome, Profile, Watch};
pub use function::FunctionRef;
pub use grid::{
    Config, Counts, Grid, GridError, Launch, Preparation, Request, SubmitError, Transport, Waiter,
};
pub use shared::SharedData;
