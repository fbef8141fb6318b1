//! Connections that have not sent a request yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// Whether a connection has sent a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Established(Arc<AtomicBool>);

impl Established {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A limited number of connections that have not sent a request yet, the oldest first.
#[derive(Debug)]
pub(crate) struct Pending {
    limit: usize,
    connections: VecDeque<(AbortHandle, Established)>,
}

impl Pending {
    pub(crate) fn new(limit: usize) -> Pending {
        Pending { limit: limit.max(1), connections: VecDeque::new() }
    }

    /// Adds a connection. Closes the oldest ones if there are too many.
    pub(crate) fn add(&mut self, task: AbortHandle, established: Established) {
        self.connections.push_back((task, established));
        if self.connections.len() <= self.limit {
            return;
        }
        let is_pending = |(task, established): &(AbortHandle, Established)| {
            !established.is_set() && !task.is_finished()
        };
        self.connections.retain(is_pending);
        while self.connections.len() > self.limit {
            if let Some((oldest, _)) = self.connections.pop_front() {
                oldest.abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_silent_connection_is_closed() {
        let mut pending = Pending::new(2);
        let mut tasks = Vec::new();
        for connection in 0..4 {
            let task = tokio::spawn(std::future::pending::<()>());
            let established = Established::default();
            if connection == 0 {
                established.set();
            }
            pending.add(task.abort_handle(), established);
            tasks.push(task);
        }
        let closed = tasks.remove(1).await.unwrap_err();
        assert!(closed.is_cancelled());
        assert!(tasks.iter().all(|task| !task.is_finished()));
    }
}
