//! The trait of what connects the hosts of a group.

use std::fmt;

use gridrpc_launch::Launcher;

/// A host to connect.
#[derive(Clone, Debug)]
pub(crate) struct HostRequest {
    /// The number of its next agent.
    pub(crate) agent: u32,
    /// Its name in the configuration.
    pub(crate) host: String,
}

/// A host that could not be requested.
#[derive(Debug)]
pub(crate) struct NotRequested {
    pub(crate) agent: u32,
    /// Why, and what to do.
    pub(crate) why: String,
}

/// Connects the hosts of a group. No method blocks. Connections arrive in the reactor's inbox, each with the number of
/// its agent; an agent that the host itself does not have counts as well.
pub(crate) trait HostConnector: fmt::Debug + Send {
    /// Requests connections to these hosts. Returns those that could not be requested.
    fn connect(&mut self, hosts: Vec<HostRequest>) -> Vec<NotRequested>;

    /// Records that the connection of an agent is lost. Returns whether news will report the reason.
    fn lost(&mut self, agent: u32) -> bool;

    /// Ends an agent, wherever it is, unless it serves others as well.
    fn stop(&mut self, agent: u32);

    /// Whether agents live as long as their grid, so that closing the grid waits for their end.
    fn owns_agents(&self) -> bool;

    /// Accepts no more connections. Returns the launcher, if agents are still to be ended: those of all groups are
    /// closed in parallel.
    fn close(&mut self) -> Option<Box<dyn Launcher>>;
}
