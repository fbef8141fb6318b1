//! Waits for sessions, in all forms of the API.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Sessions;
use super::finished::QueuePosition;
use super::session::Session;
use crate::call::pending::{Ended, LONG};
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// How many sessions a wait for one of many checks individually. Beyond that, it is cheaper to search the
/// ended sessions for them.
const ONE_BY_ONE: usize = 1024;
/// Limit on the number of ended sessions for that search.
const FEW: usize = 64;

/// Result of a wait.
#[derive(Debug, Default)]
pub struct WaitResult {
    /// The session that ended, for a wait for one of several.
    pub done: Option<i32>,
    /// Failed sessions.
    pub failed: VecDeque<i32>,
}

impl WaitResult {
    fn one(session: &Session, ended: &Ended) -> WaitResult {
        let failed = ended.result.is_err().then_some(session.id);
        WaitResult { done: Some(session.id), failed: failed.into_iter().collect() }
    }
}

/// Result of a search for an ended session.
enum Search {
    /// One has ended.
    Done(Arc<Session>),
    /// All run.
    Running,
}

impl Sessions {
    /// Waits until a call has ended and its results have landed.
    fn await_end(&self, session: &Session) -> Arc<Ended> {
        loop {
            if let Some(ended) = session.settle(&self.context) {
                return ended;
            }
            // Without a call, another thread is storing the results: `settle` waits for it.
            if let Some(call) = session.call() {
                let _ = session.origin.grid.waiter.wait(&call, LONG);
            }
        }
    }

    /// Collects the session for this wait, which may not be the only one.
    fn took(&self, session: &Session) {
        if session.take() {
            self.took_first(session);
        }
    }

    /// Collects the session for the first wait.
    fn took_first(&self, session: &Session) {
        let mut table = self.table();
        table.taken(session);
        drop(table);
        self.finished.taken();
        if self.finished.outstanding() == 0 {
            self.look_again();
        }
        self.finished.tidy(|id| self.table().get(id).is_none_or(|session| session.is_taken()));
    }

    /// Waits for all of these.
    pub fn wait_for(&self, ids: &[i32]) -> Result<WaitResult, Failure> {
        let mut sessions = Vec::with_capacity(ids.len());
        let table = self.table();
        for id in ids {
            let session = table.get(*id).ok_or_else(|| Failure::no_session(*id))?;
            sessions.push(Arc::clone(session));
        }
        drop(table);
        self.wait_for_each(&sessions)
    }

    /// Waits for the uncollected ones among these.
    ///
    /// # Errors
    /// As [`Sessions::wait_for_all`].
    pub fn wait_for_untaken(&self, ids: &[i32]) -> Result<WaitResult, Failure> {
        let table = self.table();
        let untaken =
            ids.iter().filter_map(|id| table.get(*id)).filter(|session| !session.is_taken());
        let sessions: Vec<Arc<Session>> = untaken.cloned().collect();
        drop(table);
        self.wait_for_each(&sessions)
    }

    fn wait_for_each(&self, sessions: &[Arc<Session>]) -> Result<WaitResult, Failure> {
        if let Some(own) = sessions.iter().find(|session| session.calls_back_here()) {
            return Err(Failure::waits_for_itself(own.id));
        }
        let mut waited = WaitResult::default();
        for session in sessions {
            let ended = self.await_end(session);
            self.took(session);
            // A session may be listed twice.
            if ended.result.is_err() && waited.failed.back() != Some(&session.id) {
                waited.failed.push_back(session.id);
            }
        }
        Ok(waited)
    }

    /// Waits for all uncollected sessions.
    ///
    /// # Errors
    /// When this is a callback of one of them.
    pub fn wait_for_all(&self) -> Result<WaitResult, Failure> {
        let mut sessions: Vec<Arc<Session>> = self.table().outstanding().cloned().collect();
        sessions.sort_unstable_by_key(|session| session.id);
        self.wait_for_each(&sessions)
    }

    /// The session that this is a callback of, if that is true of all of these, so that a wait would never
    /// end.
    fn only_own<'s>(sessions: impl Iterator<Item = &'s Arc<Session>>) -> Option<i32> {
        let mut own = None;
        for session in sessions {
            if !session.calls_back_here() {
                return None;
            }
            own = Some(session.id);
        }
        own
    }

    /// Waits for any uncollected session. Returns at once if there is none.
    ///
    /// # Errors
    /// When this is a callback of the only one.
    pub fn wait_for_any(&self) -> Result<WaitResult, Failure> {
        loop {
            let seen = self.finished.look();
            while let Some(id) = self.finished.pop() {
                let session = self.table().get(id).cloned();
                if let Some(session) = session.filter(|session| session.take()) {
                    let ended = self.await_end(&session);
                    self.took_first(&session);
                    return Ok(WaitResult::one(&session, &ended));
                }
            }
            if self.finished.outstanding() == 0 {
                return Ok(WaitResult::default());
            }
            if let Some(own) = Sessions::only_own(self.table().outstanding()) {
                return Err(Failure::waits_for_itself(own));
            }
            self.sleep(seen);
        }
    }

    /// The result for a session that has ended.
    fn done(&self, session: &Session) -> WaitResult {
        let ended = self.await_end(session);
        self.took(session);
        WaitResult::one(session, &ended)
    }

    /// Sleeps until another session has ended.
    fn sleep(&self, seen: QueuePosition) {
        let (ready, finished) = (|| self.finished.is_new(seen), &self.finished);
        finished.wait_begins();
        let _ = self
            .context
            .grids
            .main
            .waiter
            .wait_until(LONG, ready, |left| finished.sleep(seen, left));
        finished.wait_ends();
    }

    /// Checks sessions individually. Prefers uncollected ones.
    fn search(&self, ids: &[i32]) -> Result<Search, Failure> {
        let table = self.table();
        let mut found = Search::Running;
        for id in ids {
            let session = table.get(*id).ok_or_else(|| Failure::no_session(*id))?;
            if !session.has_finished() {
                continue;
            }
            if !session.is_taken() {
                return Ok(Search::Done(Arc::clone(session)));
            }
            if matches!(found, Search::Running) {
                found = Search::Done(Arc::clone(session));
            }
        }
        Ok(found)
    }

    /// Searches the ended sessions for one of these.
    fn among(&self, ended: &[i32], ids: &[i32]) -> Search {
        let candidates = ended.iter().filter(|id| ids.contains(id));
        let mut sessions = candidates.filter_map(|id| self.table().get(*id).cloned());
        sessions.next().map_or(Search::Running, Search::Done)
    }

    /// Finds an ended session, if there is one.
    fn find_done(&self, ids: &[i32]) -> Result<Search, Failure> {
        let (first, rest) = ids.split_at(ids.len().min(ONE_BY_ONE));
        match self.search(first)? {
            Search::Running if !rest.is_empty() => match self.finished.few(FEW) {
                Some(few) => Ok(self.among(&few, rest)),
                None => self.search(rest),
            },
            found => Ok(found),
        }
    }

    /// Waits for one of these.
    pub fn wait_for_one(&self, ids: &[i32]) -> Result<WaitResult, Failure> {
        if ids.is_empty() {
            return Err(Failure::new(ErrorCode::InvalidSessionId, "no sessions are given"));
        }
        let mut seen = self.finished.look();
        let mut found = self.find_done(ids)?;
        loop {
            if let Search::Done(session) = found {
                return Ok(self.done(&session));
            }
            let table = self.table();
            if let Some(own) = Sessions::only_own(ids.iter().filter_map(|id| table.get(*id))) {
                return Err(Failure::waits_for_itself(own));
            }
            drop(table);
            self.sleep(seen);
            if let Some((ended, now)) = self.finished.since(seen, FEW) {
                seen = now;
                found = self.among(&ended, ids);
            } else {
                // Too much has changed: start over.
                seen = self.finished.look();
                found = self.find_done(ids)?;
            }
        }
    }

    /// One of these that has ended, if there is one.
    pub fn probe_one(&self, ids: &[i32]) -> Result<Option<i32>, Failure> {
        match self.search(ids)? {
            Search::Done(session) => Ok(session.settle(&self.context).map(|_| session.id)),
            Search::Running => Ok(None),
        }
    }
}
