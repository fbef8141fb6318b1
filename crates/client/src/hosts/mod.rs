//! Hosts with workers of this grid: commands to their agents, and the agents' reports.

pub(crate) mod agent_messages;
pub(crate) mod apply;
pub(crate) mod clock;
pub(crate) mod commands;
pub(crate) mod error_hints;
pub(crate) mod fetches;
pub(crate) mod launching;
pub mod listeners;
pub(crate) mod peers;
mod results;
pub(crate) mod states;
