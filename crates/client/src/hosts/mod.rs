//! Hosts with workers of this grid: connections to them, commands to their agents, and the agents' reports.

pub(crate) mod agent_messages;
pub(crate) mod apply;
pub(crate) mod clock;
pub(crate) mod commands;
pub(crate) mod connector;
pub(crate) mod connectors;
pub(crate) mod dialled;
pub mod dialled_server;
pub(crate) mod error_hints;
pub(crate) mod fetches;
pub(crate) mod inbox;
mod launched_agents;
pub mod listeners;
pub(crate) mod peers;
pub(crate) mod plans;
mod results;
pub(crate) mod server_hints;
pub(crate) mod session_hints;
pub(crate) mod shared_server;
pub(crate) mod states;
