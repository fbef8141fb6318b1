//! Host groups: places with workers, as a configuration names them.
//!
//! They are read from a file ([`read_file`]; docs/grid-toml.md is its reference) or made of a URL ([`from_url`]).

mod batch_options;
mod batch_systems;
mod group;
mod host_list;
mod keys;
mod problems;
mod read;
mod schema;
pub mod selection;
#[cfg(test)]
mod tests;
mod url;
mod values;
mod write;

pub use batch_systems::{BatchSystem, Node};
pub use group::{
    Batch, FOREVER, HEARTBEAT, HostGroup, IDLE, LauncherKind, QUEUE_TIMEOUT, RequestForm,
    START_TIMEOUT, STOP_TIMEOUT, WorkerOutput,
};
pub use host_list::{Host, HostFault};
pub use problems::{Fault, Part, Problem, Problems, listed};
pub use read::{read, read_file, small_text};
pub use selection::chosen;
pub use url::from_url;
pub use write::write;
