//! Client: a grid of worker processes, and calls to them.
//!
//! Callers write to idle workers themselves. One thread per grid, the reactor, reads all answers, runs the timers,
//! starts workers and cleans up after them.

mod call;
mod common;
mod config;
mod daemon_connection;
mod detached;
mod error;
mod function;
mod grid;
mod hosts;
pub mod live;
mod named_data;
mod names;
mod output;
mod parent;
mod reactor;
mod reactor_lock;
mod server_access;
mod server_catalogue;
mod server_module;
mod shared;
mod state;
mod sync;
mod trust;
mod wakeup;

pub use call::{
    Call, CallbackHandler, Callbacks, Dependency, Hold, LostItems, Outcome, Profile, ResultArray,
    Watch, Watcher,
};
pub use call::{loss_from_the_wire, loss_on_the_wire};
pub use common::request::{Request, SubmitError};
pub use config::{Config, HostGroups, Launch, Preload, Preparation, PythonWorkers, RemoteWorkers};
pub use daemon_connection::{
    DaemonConnection, DaemonRequestError, MAX_ANSWER, RequestError, RequestSections,
};
pub use detached::{DetachedCall, DetachedError, server_of_detached};
pub use error::GridError;
pub use function::FunctionRef;
pub use grid::{Counts, Grid, LimitsInForce, Waiter};
pub use gridrpc_sys::status_line::Progress;
pub use gridrpc_sys::worker_limits::{LimitError, RunAs, WorkerLimits};
pub use hosts::dialled_server::dial_session;
pub use hosts::listeners::Listeners;
pub use hosts::states::HostState;
pub use live::name_program;
pub use named_data::SharedName;
pub use output::Output;
pub use parent::Parent;
pub use reactor::spawner::Forked;
pub use server_access::{ServerAccess, ServerUnreachable};
pub use server_catalogue::{ServerCatalogue, ServerCatalogueError, ServerFunction};
pub use server_module::{CallLimits, ServerModule};
pub use shared::SharedData;
pub use trust::Code;
