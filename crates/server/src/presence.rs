//! Users that are present: with connections that make calls, with recent requests over HTTP, or with detached calls that
//! have not ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kind of a user's presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PresenceKind {
    /// A connection that makes calls.
    Connection,
    /// Requests over HTTP, until a while after the last one.
    Http,
    /// A detached call that has not ended.
    DetachedCall,
}

/// The numbers of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PresenceCounts {
    connections: usize,
    http: usize,
    detached: usize,
}

/// The users that are present.
#[derive(Debug, Default)]
pub(crate) struct Presence(Mutex<HashMap<Arc<str>, PresenceCounts>>);

impl PresenceCounts {
    fn of(&mut self, what: PresenceKind) -> &mut usize {
        match what {
            PresenceKind::Connection => &mut self.connections,
            PresenceKind::Http => &mut self.http,
            PresenceKind::DetachedCall => &mut self.detached,
        }
    }
}

impl Presence {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, PresenceCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, user: &Arc<str>, what: PresenceKind) {
        *self.lock().entry(Arc::clone(user)).or_default().of(what) += 1;
    }

    /// Ends a presence. `last`: what to do when nothing of the user is left; a user who enters meanwhile waits
    /// for it.
    pub(crate) fn leave(&self, user: &str, what: PresenceKind, last: impl FnOnce()) {
        let mut present = self.lock();
        let Some(ties) = present.get_mut(user) else { return };
        let number = ties.of(what);
        *number = number.saturating_sub(1);
        if *ties == PresenceCounts::default() {
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
        presence.enter(&user, PresenceKind::Connection);
        presence.enter(&user, PresenceKind::Http);
        presence.enter(&user, PresenceKind::DetachedCall);
        presence.leave(&user, PresenceKind::Connection, || gone += 1);
        assert_eq!(presence.connections().get("alice"), Some(&0));
        presence.leave(&user, PresenceKind::Connection, || gone += 1);
        presence.leave(&user, PresenceKind::Http, || gone += 1);
        assert_eq!(gone, 0);
        presence.leave(&user, PresenceKind::DetachedCall, || gone += 1);
        assert_eq!(gone, 1);
        assert!(presence.connections().is_empty());
    }
}
