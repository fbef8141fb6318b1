//! The client's side: a grid of worker processes, and calls to them.
//!
//! Callers write to idle workers themselves; one thread per grid, the reactor, reads all
//! answers, keeps the timers and starts and buries workers.

mod alarm;
mod arrays;
mod call;
mod common;
mod config;
mod error;
mod function;
mod grid;
pub(crate) mod hosts;
pub mod invoke;
mod live;
mod names;
mod notice;
mod output;
mod printer;
mod reactor;
mod seat;
mod shared;
mod state;
pub(crate) mod sync;
mod trust;
pub(crate) mod upstream;

pub(crate) use arrays::tell;
pub use arrays::{SharedArray, find as find_shared};
pub use call::{
    Call, CallbackHandler, Callbacks, Dependency, Hold, LostItems, Outcome, Profile, Watch, Watcher,
};
pub(crate) use call::{loss_from_the_wire, loss_on_the_wire};
pub use common::request::{Request, SubmitError};
pub use config::{Config, Launch, Preload, Preparation, PythonWorkers, RemoteWorkers, Servers};
pub use error::GridError;
pub use function::FunctionRef;
pub use grid::{Counts, Grid, Waiter};
pub use hosts::states::HostState;
pub use live::name_program;
pub use notice::Progress;
pub use output::Output;
pub(crate) use printer::Printer;
pub use reactor::spawner::Forked;
pub use shared::SharedData;
