//! Users whose requests come over HTTP. A request has no connection that counts as a client, so each user stays one for
//! a while: its share of the workers outlives a request.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;

use crate::presence::PresenceKind;
use crate::shared::Shared;

/// How long a user stays a client after its last request.
const STAY: Duration = Duration::from_secs(60);

/// The users of recent requests.
pub(super) struct HttpClients {
    shared: Arc<Shared>,
    users: Mutex<HashMap<Arc<str>, Recent>>,
}

#[derive(Debug)]
struct Recent {
    /// Calls that have begun and not ended.
    calls: usize,
    last: Instant,
}

/// A call of a user, until it is dropped.
pub(super) struct HttpCall<'c> {
    clients: &'c HttpClients,
    user: Arc<str>,
}

impl HttpClients {
    pub(super) fn new(shared: Arc<Shared>) -> HttpClients {
        HttpClients { shared, users: Mutex::default() }
    }

    /// A call of a user begins.
    pub(super) fn begin(&self, user: &Arc<str>) -> HttpCall<'_> {
        let mut users = lock(&self.users);
        let recent = users.entry(Arc::clone(user)).or_insert_with(|| {
            self.shared.presence.enter(user, PresenceKind::Http);
            Recent { calls: 0, last: Instant::now() }
        });
        recent.calls += 1;
        HttpCall { clients: self, user: Arc::clone(user) }
    }

    /// Removes the users who have made no calls for a while.
    pub(super) fn remove_idle(&self) {
        lock(&self.users).retain(|user, recent| {
            let stays = recent.calls > 0 || recent.last.elapsed() < STAY;
            if !stays {
                self.shared.leave(user, PresenceKind::Http);
            }
            stays
        });
    }
}

impl fmt::Debug for HttpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClients").field("users", &self.users).finish_non_exhaustive()
    }
}

impl Drop for HttpCall<'_> {
    fn drop(&mut self) {
        if let Some(recent) = lock(&self.clients.users).get_mut(&self.user) {
            recent.calls -= 1;
            recent.last = Instant::now();
        }
    }
}
