//! Ended sessions in the order of their ends, which makes waiting for any of many sessions cheap.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct Queue {
    /// Entries at the front may already have been collected by other waits.
    ids: VecDeque<i32>,
    /// Number of entries removed from the front.
    gone: u64,
    /// Incremented when waiting threads must check again for another reason.
    wakes: u64,
    waiting: usize,
}

/// Ended sessions.
#[derive(Debug, Default)]
pub struct Finished {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Uncollected sessions, running or ended.
    outstanding: AtomicUsize,
    /// Threads in a wait for any session, sleeping or not.
    waiters: AtomicUsize,
}

/// Position in the queue after the last session that a thread has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    end: u64,
    wakes: u64,
}

impl Finished {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a new session.
    pub fn begun(&self) {
        self.outstanding.fetch_add(1, Ordering::AcqRel);
    }

    /// Records that a wait has collected a session.
    pub fn taken(&self) {
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            // With none left, waits for any session would never end.
            self.wake();
        }
    }

    /// Registers a thread before it waits for any session; it must check once more before it sleeps.
    pub fn wait_begins(&self) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
    }

    /// Unregisters the thread.
    pub fn wait_ends(&self) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether threads wait for any session.
    pub fn is_waited_for(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// Number of uncollected sessions.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Makes all waiting threads check again.
    pub fn wake(&self) {
        let mut queue = self.lock();
        queue.wakes += 1;
        drop(queue);
        self.changed.notify_all();
    }

    /// Records the end of a session.
    pub fn push(&self, id: i32) {
        let mut queue = self.lock();
        queue.ids.push_back(id);
        let is_waited_for = queue.waiting > 0;
        drop(queue);
        if is_waited_for {
            self.changed.notify_all();
        }
    }

    /// Removes the session that ended first.
    pub fn pop(&self) -> Option<i32> {
        let mut queue = self.lock();
        let id = queue.ids.pop_front()?;
        queue.gone += 1;
        Some(id)
    }

    /// The current position.
    pub fn look(&self) -> QueuePosition {
        let queue = self.lock();
        QueuePosition { end: queue.gone + queue.ids.len() as u64, wakes: queue.wakes }
    }

    /// Sessions that have ended since, up to `most`, and the new position. `None`: there are more.
    pub fn since(&self, seen: QueuePosition, most: usize) -> Option<(Vec<i32>, QueuePosition)> {
        let queue = self.lock();
        let first = usize::try_from(seen.end.saturating_sub(queue.gone)).unwrap_or(usize::MAX);
        let first = first.min(queue.ids.len());
        if queue.ids.len() - first > most {
            return None;
        }
        let end = queue.gone + queue.ids.len() as u64;
        let ids = queue.ids.range(first..).copied().collect();
        Some((ids, QueuePosition { end, wakes: queue.wakes }))
    }

    /// All ended sessions, unless there are more than `most`.
    pub fn few(&self, most: usize) -> Option<Vec<i32>> {
        let queue = self.lock();
        (queue.ids.len() <= most).then(|| queue.ids.iter().copied().collect())
    }

    /// Whether anything has changed since.
    pub fn is_new(&self, seen: QueuePosition) -> bool {
        self.look() != seen
    }

    /// Sleeps until something changes or the timeout expires. Returns whether something has changed.
    pub fn sleep(&self, seen: QueuePosition, timeout: Duration) -> bool {
        let mut queue = self.lock();
        let old = |queue: &Queue| {
            seen == QueuePosition { end: queue.gone + queue.ids.len() as u64, wakes: queue.wakes }
        };
        queue.waiting += 1;
        let waited = self.changed.wait_timeout_while(queue, timeout, |queue| old(queue));
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waiting -= 1;
        !old(&queue)
    }

    /// Removes sessions that other waits have collected, if too many may have accumulated.
    pub fn tidy(&self, is_taken: impl Fn(i32) -> bool) {
        let mut queue = self.lock();
        if queue.ids.len() <= 2 * self.outstanding() + 1024 {
            return;
        }
        let before = queue.ids.len();
        queue.ids.retain(|id| !is_taken(*id));
        // Threads may see some sessions twice, which is harmless.
        queue.gone += (before - queue.ids.len()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_seen_once() {
        let finished = Finished::default();
        finished.push(1);
        let seen = finished.look();
        assert!(!finished.is_new(seen));
        finished.push(2);
        finished.push(3);
        assert!(finished.sleep(seen, Duration::ZERO));
        let (ids, seen) = finished.since(seen, 10).unwrap();
        assert_eq!(ids, [2, 3]);
        assert!(finished.since(seen, 10).unwrap().0.is_empty());
        assert!(!finished.sleep(seen, Duration::ZERO));
        assert_eq!((finished.pop(), finished.pop()), (Some(1), Some(2)));
        finished.push(4);
        assert_eq!(finished.since(seen, 10).unwrap().0, [4]);
        assert!(finished.since(seen, 0).is_none());
    }

    #[test]
    fn the_last_one_wakes_those_who_wait_for_any() {
        let finished = Finished::default();
        finished.begun();
        let seen = finished.look();
        finished.taken();
        assert!(finished.is_new(seen) && finished.outstanding() == 0);
    }

    #[test]
    fn what_was_waited_for_does_not_pile_up() {
        let finished = Finished::default();
        for id in 0..2000 {
            finished.push(id);
        }
        finished.tidy(|id| id != 1999);
        assert_eq!((finished.pop(), finished.pop()), (Some(1999), None));
    }
}
