//! Whom a grid works for, if it is an agent's: a client on another host, which is told what happens.

use std::fmt;

use gridrpc_core::Loss;

/// The client of an agent. All methods return at once; they are called in the grid's own threads.
pub trait Parent: fmt::Debug + Send + Sync {
    /// The answers given so far can go.
    fn settle(&self);

    /// Workers have answered or are lost.
    fn changed(&self);

    /// No worker can be started any more. All calls have ended before.
    fn has_no_workers(&self, loss: &Loss);

    /// A worker has written this to its standard error, or to its standard output.
    fn said(&self, worker: u32, stderr: bool, bytes: &[u8]);
}
