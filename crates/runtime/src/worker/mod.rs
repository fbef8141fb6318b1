//! The worker's side: the process that starts workers, the connection to the client, and the
//! workers that run native functions: the built-in ones, and those of modules.

pub(crate) mod blobs;
mod builtin;
mod debug;
mod each;
pub(crate) mod lendings;
mod link;
mod module;
mod native;
pub(crate) mod progress;
mod spawner;

pub use link::{Answer, CallbackAnswer, Job, KnownFunction, Turn, WorkerLink};
pub use module::Modules;
pub use native::{builtin_names, serve as serve_native};
pub use spawner::{Role, Spawner};
