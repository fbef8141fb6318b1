//! The worker's side: the process that starts workers, the connection to the client, and the
//! workers that run native functions: the built-in ones, and those of modules.

pub(crate) mod blobs;
mod builtin;
mod debug;
mod each;
pub(crate) mod leftovers;
pub(crate) mod lendings;
mod link;
mod module;
mod native;
mod orphan;
pub(crate) mod outbox;
pub(crate) mod outboxes;
pub(crate) mod progress;
mod spawner;
mod stopped;

pub use link::{Answer, CallbackAnswer, Job, KnownFunction, Turn, WorkerLink};
pub use module::Modules;
pub use native::{builtin_names, serve as serve_native};
pub use spawner::{Role, Spawner};
