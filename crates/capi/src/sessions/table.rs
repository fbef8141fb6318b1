//! Sessions by number.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use super::session::Session;

/// Numbering continues when the library is initialized again.
static NEXT: AtomicI32 = AtomicI32::new(0);

/// Failed sessions are kept longer than others, so that a program that waits for many at once can query each
/// reason.
const FAILED: usize = 4096;

/// Sessions that can be queried.
#[derive(Debug)]
pub struct Table {
    sessions: HashMap<i32, Arc<Session>>,
    /// Collected sessions, oldest first.
    finished: VecDeque<i32>,
    failed: VecDeque<i32>,
    /// How many of those are kept; `None`: all.
    keep: Option<usize>,
}

impl Table {
    /// An empty table.
    pub fn new(keep: Option<usize>) -> Table {
        Table { sessions: HashMap::new(), finished: VecDeque::new(), failed: VecDeque::new(), keep }
    }

    /// An unused number.
    pub fn new_id(&self) -> i32 {
        loop {
            let id = NEXT.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }

    /// Adds a session.
    pub fn insert(&mut self, session: Arc<Session>) {
        self.sessions.insert(session.id, session);
    }

    /// The session with a number.
    pub fn get(&self, id: i32) -> Option<&Arc<Session>> {
        self.sessions.get(&id)
    }

    /// Uncollected sessions.
    pub fn outstanding(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values().filter(|session| !session.is_taken())
    }

    /// Moves a collected session to those that are kept for a while.
    pub fn taken(&mut self, session: &Session) {
        let failed = session.failed();
        if failed {
            self.failed.push_back(session.id)
        } else {
            self.finished.push_back(session.id)
        }
        self.trim();
    }

    /// Changes how many are kept.
    pub fn keep(&mut self, keep: Option<usize>) {
        self.keep = keep;
        self.trim();
    }

    fn trim(&mut self) {
        let Some(keep) = self.keep else { return };
        let failed = if keep == 0 { 0 } else { keep.max(FAILED) };
        for (list, most) in [(&mut self.finished, keep), (&mut self.failed, failed)] {
            while list.len() > most {
                if let Some(oldest) = list.pop_front() {
                    self.sessions.remove(&oldest);
                }
            }
        }
    }

    /// Removes a collected session.
    pub fn forget(&mut self, id: i32) {
        self.sessions.remove(&id);
        self.finished.retain(|finished| *finished != id);
        self.failed.retain(|finished| *finished != id);
    }
}
