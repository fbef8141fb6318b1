//! The worker's side: the process that starts workers, the connection to the client, and the
//! worker that runs native functions.

mod builtin;
mod link;
mod native;
pub(crate) mod progress;
mod spawner;

pub use link::{Answer, Job, KnownFunction, WorkerLink};
pub use native::{builtin_names, serve as serve_native};
pub use spawner::{Role, Spawner};
