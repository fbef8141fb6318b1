//! Configuration of host groups, the machines with workers.
//!
//! [`read_file`] reads groups from a file (reference: docs/grid-toml.md), [`from_url`] from a URL.

mod batch_options;
mod batch_systems;
mod document;
mod group;
mod host_list;
mod keys;
mod problems;
mod read;
mod schema;
pub mod selection;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod url;
mod values;
mod write;

pub use batch_systems::{BatchSystem, Node};
pub use document::{parse, read_text, small_text};
pub use group::{
    Batch, FOREVER, HEARTBEAT, HostGroup, IDLE, LauncherKind, QUEUE_TIMEOUT, RECONNECT_TIMEOUT,
    RequestForm, START_TIMEOUT, STOP_TIMEOUT, WorkerOutput,
};
pub use host_list::{Host, HostFault};
pub use problems::{Fault, Part, Problem, Problems, Report, listed};
pub use read::{is_name, read, read_file};
pub use selection::chosen;
pub use server::{SERVER_PORT, ServerAddress, credentials_folder};
pub use session::session_socket;
pub use url::from_url;
pub use values::{Entry, found, in_order, shown};
pub use write::write;
