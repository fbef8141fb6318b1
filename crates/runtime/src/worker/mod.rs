//! The worker's side: the process that starts workers, the connection to the client, and the
//! workers that run functions of compiled modules.

pub(crate) mod blobs;
mod debug;
pub(crate) mod leftovers;
pub(crate) mod lendings;
mod link;
mod module;
mod native;
mod orphan;
pub(crate) mod outbox;
pub(crate) mod outboxes;
pub(crate) mod partial;
pub(crate) mod progress;
mod spawner;
mod stopped;
mod threads;

pub use link::{Answer, CallbackAnswer, Entrance, Job, KnownFunction, Turn, WorkerLink};
pub use module::{Modules, Program, environment as ranks_environment, run_rank};
pub use native::serve as serve_native;
pub use partial::{Items, Recovered, Stretch};
pub(crate) use spawner::NOT_PRELOADED;
pub use spawner::{Role, Spawner};
