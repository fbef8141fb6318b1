//! Hosts with workers of this grid: what their agents are told, and what they say.

mod applied;
mod clock;
mod conversation;
pub(crate) mod doors;
mod fetching;
mod guests;
mod inbound;
pub(crate) mod keeper;
pub(crate) mod kept;
mod launching;
mod losses;
mod outgoing;
mod peers;
mod remedies;
mod results;
mod starts;
mod wishes;

use std::path::PathBuf;

use crate::servers::Server;

pub(crate) use conversation::told;
pub(super) use launching::expected;
pub(crate) use outgoing::{HostsOut, Terms};
pub(super) use peers::Hosts;
pub(super) use wishes::Wishes;

/// The servers of a grid.
#[derive(Clone, Debug)]
pub struct Servers {
    /// Which.
    pub list: Vec<Server>,
    /// The `gridrpc` program of this machine, which hosts get a copy of.
    pub program: PathBuf,
    /// What their workers are.
    pub workers: RemoteWorkers,
}

/// What the workers on hosts are.
#[derive(Clone, Debug, Default)]
pub struct RemoteWorkers {
    /// Python workers; none: native ones.
    pub python: Option<PythonWorkers>,
    /// Environment variables, before those of each server.
    pub environment: Vec<(String, String)>,
    /// Working directory on this machine, for servers that name none; empty: where the agent is.
    pub directory: String,
}

/// How Python workers are started.
#[derive(Clone, Debug, Default)]
pub struct PythonWorkers {
    /// The client's own interpreter, for agents on this machine.
    pub here: String,
    /// Arguments of an interpreter on another host.
    pub arguments: Vec<String>,
    /// Arguments of one on this machine.
    pub arguments_here: Vec<String>,
    /// Where this machine's look for modules.
    pub path: Vec<String>,
    /// Modules to import before workers are started.
    pub modules: Vec<String>,
}
