//! Waiting for sessions, for each way that the API has.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Sessions;
use super::finished::Seen;
use super::session::Session;
use crate::call::pending::Ended;
use crate::environment::{Environment, LONG};
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// Whoever waits for one of many looks at so many of them one by one. From there on it is cheaper to
/// look whether those that have ended are among them.
const ONE_BY_ONE: usize = 1024;
/// As long as there are not more that have ended than these.
const FEW: usize = 64;

/// What waiting brought.
#[derive(Debug, Default)]
pub struct Waited {
    /// The session that was waited for, where one of several was.
    pub done: Option<i32>,
    /// Those that failed.
    pub failed: VecDeque<i32>,
}

/// What was found among some sessions.
enum Search {
    Done(Arc<Session>),
    /// Some still run.
    Running,
    /// All have been waited for.
    AllTaken,
}

impl Search {
    /// The same, given that some others still run.
    fn or_running(self) -> Search {
        match self {
            Search::AllTaken => Search::Running,
            found => found,
        }
    }
}

fn taken_before(id: i32) -> Failure {
    Failure::new(
        ErrorCode::InvalidSessionId,
        format!("session {id} has been waited for already: grpc_get_error tells how it went"),
    )
}

impl Sessions {
    /// Waits until a call has ended and its results have landed.
    fn await_end(&self, environment: &Environment, session: &Session) -> Arc<Ended> {
        loop {
            if let Some(ended) = session.settle(environment) {
                return ended;
            }
            // Without a call another thread is at its results: `settle` waits for that.
            if let Some(call) = session.call() {
                let _ = environment.waiter.wait(&call, LONG);
            }
        }
    }

    /// The session has been waited for by the caller, who may not be the only one.
    fn took(&self, session: &Session) {
        if session.take() {
            self.took_first(session);
        }
    }

    /// The same for the first one.
    fn took_first(&self, session: &Session) {
        let mut table = self.table();
        table.taken(session);
        drop(table);
        self.finished.taken();
        self.finished.tidy(|id| self.table().get(id).is_none_or(|session| session.is_taken()));
    }

    /// Waits for all of these.
    pub fn wait_for(&self, environment: &Environment, ids: &[i32]) -> Result<Waited, Failure> {
        let mut sessions = Vec::with_capacity(ids.len());
        let table = self.table();
        for id in ids {
            let session = table.get(*id).ok_or_else(|| Failure::no_session(*id))?;
            if session.is_taken() {
                return Err(taken_before(*id));
            }
            sessions.push(Arc::clone(session));
        }
        drop(table);
        Ok(self.wait_for_each(environment, &sessions))
    }

    /// Waits for those of these that nobody has waited for.
    pub fn wait_for_untaken(&self, environment: &Environment, ids: &[i32]) -> Waited {
        let table = self.table();
        let untaken =
            ids.iter().filter_map(|id| table.get(*id)).filter(|session| !session.is_taken());
        let sessions: Vec<Arc<Session>> = untaken.cloned().collect();
        drop(table);
        self.wait_for_each(environment, &sessions)
    }

    fn wait_for_each(&self, environment: &Environment, sessions: &[Arc<Session>]) -> Waited {
        let mut waited = Waited::default();
        for session in sessions {
            let ended = self.await_end(environment, session);
            self.took(session);
            // The same one may have been named twice.
            if ended.result.is_err() && waited.failed.back() != Some(&session.id) {
                waited.failed.push_back(session.id);
            }
        }
        waited
    }

    /// Waits for all that nobody has waited for.
    pub fn wait_for_all(&self, environment: &Environment) -> Waited {
        let mut sessions: Vec<Arc<Session>> = self.table().outstanding().cloned().collect();
        sessions.sort_unstable_by_key(|session| session.id);
        self.wait_for_each(environment, &sessions)
    }

    /// Waits for any. Nothing is done if there is none.
    pub fn wait_for_any(&self, environment: &Environment) -> Waited {
        loop {
            let seen = self.finished.look();
            while let Some(id) = self.finished.pop() {
                let session = self.table().get(id).cloned();
                if let Some(session) = session.filter(|session| session.take()) {
                    return self.done(environment, &session);
                }
            }
            if self.finished.outstanding() == 0 {
                return Waited::default();
            }
            self.sleep(environment, seen);
        }
    }

    /// The session, which the caller has taken, has ended.
    fn done(&self, environment: &Environment, session: &Session) -> Waited {
        let ended = self.await_end(environment, session);
        self.took_first(session);
        let mut waited = Waited { done: Some(session.id), ..Waited::default() };
        if ended.result.is_err() {
            waited.failed.push_back(session.id);
        }
        waited
    }

    /// Waits until something else has ended.
    fn sleep(&self, environment: &Environment, seen: Seen) {
        let (ready, finished) = (|| self.finished.is_new(seen), &self.finished);
        let _ = environment.waiter.wait_until(LONG, ready, |left| finished.sleep(seen, left));
    }

    /// Looks at sessions one by one.
    fn search(&self, ids: &[i32]) -> Result<Search, Failure> {
        let table = self.table();
        let mut found = Search::AllTaken;
        for id in ids {
            let session = table.get(*id).ok_or_else(|| Failure::no_session(*id))?;
            if session.is_taken() {
                continue;
            }
            if !session.has_finished() {
                found = Search::Running;
            } else if session.take() {
                return Ok(Search::Done(Arc::clone(session)));
            }
        }
        Ok(found)
    }

    /// Looks whether one of those that have ended is among these. If all that are have been waited
    /// for, others may have been as well.
    fn among(&self, ended: &[i32], ids: &[i32]) -> Search {
        let mut found = Search::Running;
        for id in ended.iter().filter(|id| ids.contains(id)) {
            let session = self.table().get(*id).cloned();
            match session.filter(|session| session.take()) {
                Some(session) => return Search::Done(session),
                None => found = Search::AllTaken,
            }
        }
        found
    }

    /// Finds one that has ended, if there is one.
    fn find_done(&self, ids: &[i32]) -> Result<Search, Failure> {
        let (first, rest) = ids.split_at(ids.len().min(ONE_BY_ONE));
        let found = self.search(first)?;
        match found {
            Search::Running if !rest.is_empty() => match self.finished.few(FEW) {
                Some(few) => Ok(self.among(&few, rest).or_running()),
                None => Ok(self.search(rest)?.or_running()),
            },
            Search::AllTaken if !rest.is_empty() => self.search(rest),
            found => Ok(found),
        }
    }

    /// Waits for one of these.
    pub fn wait_for_one(&self, environment: &Environment, ids: &[i32]) -> Result<Waited, Failure> {
        let mut seen = self.finished.look();
        match self.find_done(ids)? {
            Search::Done(session) => return Ok(self.done(environment, &session)),
            Search::AllTaken => return Err(none_left(ids)),
            Search::Running => {}
        }
        loop {
            self.sleep(environment, seen);
            let mut found = Search::AllTaken;
            if let Some((ended, now)) = self.finished.since(seen, FEW) {
                found = self.among(&ended, ids);
                seen = now;
            }
            if matches!(found, Search::AllTaken) {
                // Much has happened, or others wait for the same.
                seen = self.finished.look();
                found = self.find_done(ids)?;
            }
            match found {
                Search::Done(session) => return Ok(self.done(environment, &session)),
                Search::AllTaken => return Err(none_left(ids)),
                Search::Running => {}
            }
        }
    }

    /// One of these that has ended, if there is one.
    pub fn probe_one(
        &self,
        environment: &Environment,
        ids: &[i32],
    ) -> Result<Option<i32>, Failure> {
        let table = self.table();
        let mut all_taken = true;
        let mut found = None;
        for id in ids {
            let session = table.get(*id).ok_or_else(|| Failure::no_session(*id))?;
            if session.is_taken() {
                continue;
            }
            all_taken = false;
            if session.has_finished() {
                found = Some(Arc::clone(session));
                break;
            }
        }
        drop(table);
        match found {
            Some(session) => Ok(session.settle(environment).map(|_| session.id)),
            None if all_taken => Err(none_left(ids)),
            None => Ok(None),
        }
    }
}

fn none_left(ids: &[i32]) -> Failure {
    match ids {
        [] => Failure::new(ErrorCode::InvalidSessionId, "no sessions are given"),
        [id] => taken_before(*id),
        _ => Failure::new(
            ErrorCode::InvalidSessionId,
            "all of these sessions have been waited for already",
        ),
    }
}
