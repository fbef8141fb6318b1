//! Sessions in the order in which they ended: what makes waiting for any of many cheap.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct Queue {
    /// Those at the front may have been waited for otherwise.
    ids: VecDeque<i32>,
    /// How many have been taken from the front.
    gone: u64,
    /// Changes when somebody who waits has to look again for another reason.
    wakes: u64,
    waiting: usize,
}

/// Sessions that have ended.
#[derive(Debug, Default)]
pub struct Finished {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Sessions that nobody has waited for, running or not.
    outstanding: AtomicUsize,
    /// Threads that wait for any of several, asleep or not.
    waiters: AtomicUsize,
}

/// What has been seen of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    end: u64,
    wakes: u64,
}

impl Finished {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session has begun.
    pub fn begun(&self) {
        self.outstanding.fetch_add(1, Ordering::AcqRel);
    }

    /// Somebody has waited for a session.
    pub fn taken(&self) {
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Whoever waits for any waits in vain.
            self.wake();
        }
    }

    /// A thread is about to wait for any of several; it looks once more before it sleeps.
    pub fn wait_begins(&self) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
    }

    /// It does not wait any more.
    pub fn wait_ends(&self) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether threads wait for any of several.
    pub fn is_waited_for(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// Sessions that nobody has waited for.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Has all who wait look again.
    pub fn wake(&self) {
        let mut queue = self.lock();
        queue.wakes += 1;
        drop(queue);
        self.changed.notify_all();
    }

    /// A session has ended.
    pub fn push(&self, id: i32) {
        let mut queue = self.lock();
        queue.ids.push_back(id);
        let is_waited_for = queue.waiting > 0;
        drop(queue);
        if is_waited_for {
            self.changed.notify_all();
        }
    }

    /// The one that ended first.
    pub fn pop(&self) -> Option<i32> {
        let mut queue = self.lock();
        let id = queue.ids.pop_front()?;
        queue.gone += 1;
        Some(id)
    }

    /// What there is to be seen now.
    pub fn look(&self) -> Seen {
        let queue = self.lock();
        Seen { end: queue.gone + queue.ids.len() as u64, wakes: queue.wakes }
    }

    /// Those that have ended since, up to `most`, and what has been seen with them. `None`: there
    /// are more.
    pub fn since(&self, seen: Seen, most: usize) -> Option<(Vec<i32>, Seen)> {
        let queue = self.lock();
        let first = usize::try_from(seen.end.saturating_sub(queue.gone)).unwrap_or(usize::MAX);
        let first = first.min(queue.ids.len());
        if queue.ids.len() - first > most {
            return None;
        }
        let end = queue.gone + queue.ids.len() as u64;
        let ids = queue.ids.range(first..).copied().collect();
        Some((ids, Seen { end, wakes: queue.wakes }))
    }

    /// Those that are there, if they are not more than so many.
    pub fn few(&self, most: usize) -> Option<Vec<i32>> {
        let queue = self.lock();
        (queue.ids.len() <= most).then(|| queue.ids.iter().copied().collect())
    }

    /// Whether there is anything new.
    pub fn is_new(&self, seen: Seen) -> bool {
        self.look() != seen
    }

    /// Sleeps until there is something new, at most so long. Returns whether there is.
    pub fn sleep(&self, seen: Seen, timeout: Duration) -> bool {
        let mut queue = self.lock();
        let old = |queue: &Queue| {
            seen == Seen { end: queue.gone + queue.ids.len() as u64, wakes: queue.wakes }
        };
        queue.waiting += 1;
        let waited = self.changed.wait_timeout_while(queue, timeout, |queue| old(queue));
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waiting -= 1;
        !old(&queue)
    }

    /// Takes those out that have been waited for otherwise, if there may be too many of them.
    pub fn tidy(&self, is_taken: impl Fn(i32) -> bool) {
        let mut queue = self.lock();
        if queue.ids.len() <= 2 * self.outstanding() + 1024 {
            return;
        }
        let before = queue.ids.len();
        queue.ids.retain(|id| !is_taken(*id));
        // Whoever has seen some of them sees others again, which does no harm.
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
