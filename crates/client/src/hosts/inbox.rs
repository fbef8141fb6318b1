//! Inbox of the reactor: news of hosts from other threads.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_launch::Event;
use gridrpc_transport::Transport;

use crate::common::Common;
use crate::reactor_lock::Wake as _;

/// News of an agent. A server that runs already has the number of an agent for each connection.
#[derive(Debug)]
pub(crate) enum InboxEvent {
    Launcher(u32, Event),
    /// Its connection, which does not block.
    Connected(u32, Arc<dyn Transport>),
}

/// News that the reactor has not read yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Vec<InboxEvent>>);

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<InboxEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Vec<InboxEvent> {
        std::mem::take(&mut *self.lock())
    }
}

/// Delivers news to an inbox and wakes the reactor. Any thread may call it, and it returns at once.
#[derive(Clone)]
pub(crate) struct Deliver(pub(crate) Arc<dyn Fn(InboxEvent) + Send + Sync>);

impl Deliver {
    pub(crate) fn to(inbox: Arc<Inbox>, common: Arc<Common>) -> Deliver {
        Deliver(Arc::new(move |news| {
            inbox.lock().push(news);
            common.wake();
        }))
    }
}

impl fmt::Debug for Deliver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deliver")
    }
}
