//! Worker: the process that starts workers, the connection to the client, and the workers that run functions of
//! compiled modules.

mod debug;
mod leftovers;
mod link;
mod module;
mod native;
mod orphan;
mod shared_data;
mod spawner;
mod stopped;
mod threads;

pub use link::{Answer, CallbackAnswer, EntryMark, Job, KnownFunction, NextStep, WorkerLink};
pub use module::{
    Modules, Program, environment as ranks_environment, hosts as hosts_for_ranks,
    options_for_nodes, run_rank,
};
pub use native::serve as serve_native;
pub use spawner::{Role, Spawner};
