//! Turns: how many hosts are connected to at once.

use std::sync::{Condvar, Mutex, PoisonError};

use super::agents::lock;

/// Gives turns, a bounded number at a time.
#[derive(Debug)]
pub(super) struct Turns {
    free: Mutex<usize>,
    changed: Condvar,
}

/// A turn, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    pub(super) fn new(at_once: usize) -> Turns {
        Turns { free: Mutex::new(at_once), changed: Condvar::new() }
    }

    /// A turn if there is one just now.
    pub(super) fn try_take(&self) -> Option<Turn<'_>> {
        let mut free = lock(&self.free);
        *free = free.checked_sub(1)?;
        Some(Turn(self))
    }

    /// Waits for a turn. None when it is not wanted any longer, which [`Turns::wake`] has looked at.
    pub(super) fn take(&self, wanted: impl Fn() -> bool) -> Option<Turn<'_>> {
        let mut free = lock(&self.free);
        while wanted() {
            if let Some(left) = free.checked_sub(1) {
                *free = left;
                return Some(Turn(self));
            }
            free = self.changed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Has all that wait look whether they still want to.
    pub(super) fn wake(&self) {
        // Whoever has looked already waits by the time that this has the lock.
        drop(lock(&self.free));
        self.changed.notify_all();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}
