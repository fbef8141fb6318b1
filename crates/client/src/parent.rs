//! Client of an agent: receives the events of the agent's grid.

use std::fmt;

use gridrpc_core::Loss;

/// The client of an agent. All methods return at once; the grid's own threads call them.
pub trait Parent: fmt::Debug + Send + Sync {
    /// The answers given so far can be sent.
    fn settle(&self);

    /// The number of ready workers has changed.
    fn changed(&self);

    /// No worker can be started any more. All calls have already ended.
    fn has_no_workers(&self, loss: &Loss);

    /// A worker has written to its standard error or output.
    fn said(&self, worker: u32, stderr: bool, bytes: &[u8]);
}
