//! Users that are present: with connections that make calls, with recent requests over HTTP, or with detached calls that
//! have not ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What makes a user present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// A connection that makes calls.
    Connection,
    /// Requests over HTTP, until a while after the last one.
    Http,
    /// A detached call that has not ended.
    DetachedCall,
}

/// The numbers of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ties {
    connections: usize,
    http: usize,
    detached: usize,
}

/// The users that are present.
#[derive(Debug, Default)]
pub(crate) struct Presence(Mutex<HashMap<Arc<str>, Ties>>);

impl Ties {
    fn of(&mut self, what: Tie) -> &mut usize {
        match what {
            Tie::Connection => &mut self.connections,
            Tie::Http => &mut self.http,
            Tie::DetachedCall => &mut self.detached,
        }
    }
}

impl Presence {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Ties>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, user: &Arc<str>, what: Tie) {
        *self.lock().entry(Arc::clone(user)).or_default().of(what) += 1;
    }

    /// Ends what has entered. `last`: what to do when nothing of the user is left; a user who enters meanwhile waits
    /// for it.
    pub(crate) fn leave(&self, user: &str, what: Tie, last: impl FnOnce()) {
        let mut present = self.lock();
        let Some(ties) = present.get_mut(user) else { return };
        let number = ties.of(what);
        *number = number.saturating_sub(1);
        if *ties == Ties::default() {
            present.remove(user);
            last();
        }
    }

    /// Number of connections that make calls, by user. Those who are present without one have 0.
    pub(crate) fn connections(&self) -> BTreeMap<String, usize> {
        let present = self.lock();
        present.iter().map(|(user, ties)| (user.to_string(), ties.connections)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_gone_when_nothing_of_it_is_left() {
        let presence = Presence::default();
        let user: Arc<str> = "alice".into();
        let mut gone = 0;
        presence.enter(&user, Tie::Connection);
        presence.enter(&user, Tie::Http);
        presence.enter(&user, Tie::DetachedCall);
        presence.leave(&user, Tie::Connection, || gone += 1);
        assert_eq!(presence.connections().get("alice"), Some(&0));
        presence.leave(&user, Tie::Connection, || gone += 1);
        presence.leave(&user, Tie::Http, || gone += 1);
        assert_eq!(gone, 0);
        presence.leave(&user, Tie::DetachedCall, || gone += 1);
        assert_eq!(gone, 1);
        assert!(presence.connections().is_empty());
    }
}
