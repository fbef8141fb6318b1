//! Heartbeats to clients. A thread of their own sends them, so that a client receives them even while the thread that
//! serves it is busy, for example allocating gigabytes for an argument on a host short of memory. Only a stopped or
//! disconnected agent is silent.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use gridrpc_wire::Message;

use crate::answers::Answers;

/// Heartbeats per timeout: an agent that is silent for the whole timeout is considered lost.
const BEATS: u32 = 3;

/// Sends heartbeats to all clients of this process, in one thread.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    schedule: Arc<Schedule>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Schedule {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By the time of the next one, and a number that makes it unique.
    beats: BTreeMap<(Instant, u64), Beat>,
    added: u64,
    is_closed: bool,
}

/// The heartbeat of one client. It ends with the connection.
#[derive(Debug)]
struct Beat {
    answers: Weak<Answers>,
    interval: Duration,
    number: u64,
}

impl Heartbeats {
    /// Sends heartbeats to another client. `timeout`: how long the client waits for one.
    ///
    /// # Errors
    /// When the thread cannot start.
    pub(super) fn add(&self, timeout: Duration, answers: &Arc<Answers>) -> io::Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let schedule = Arc::clone(&self.schedule);
            let builder = Builder::new().name("gridrpc-heart".to_owned());
            *thread = Some(builder.spawn(move || schedule.run())?);
        }
        drop(thread);
        let interval = timeout / BEATS;
        let beat = Beat { answers: Arc::downgrade(answers), interval, number: 0 };
        let mut state = self.schedule.lock();
        state.added += 1;
        let key = (Instant::now() + interval, state.added);
        state.beats.insert(key, beat);
        drop(state);
        self.schedule.changed.notify_one();
        Ok(())
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.schedule.lock().is_closed = true;
        self.schedule.changed.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        // It has no reason to panic, and nobody to report a panic to.
        let _ = thread.take().map(JoinHandle::join);
    }
}

impl Schedule {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.is_closed {
            let now = Instant::now();
            while let Some(first) = state.beats.first_entry().filter(|first| first.key().0 <= now) {
                let (key, mut beat) = first.remove_entry();
                if beat.send() {
                    state.beats.insert((now + beat.interval, key.1), beat);
                }
            }
            state = match state.beats.first_key_value() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(((next, _), _)) => {
                    let left = next.saturating_duration_since(now);
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Beat {
    /// Returns whether the client is still connected.
    fn send(&mut self) -> bool {
        let Some(answers) = self.answers.upgrade() else { return false };
        self.number += 1;
        answers.tell(&Message::Ping { number: self.number });
        answers.send();
        true
    }
}
