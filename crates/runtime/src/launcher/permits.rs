//! Permits: how many hosts are connected to at once, and how many jobs submitted.

use std::sync::{Condvar, Mutex, PoisonError};

use super::agents::lock;

/// Gives permits, a bounded number at a time.
#[derive(Debug)]
pub(super) struct Permits {
    free: Mutex<usize>,
    changed: Condvar,
}

/// A permit, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    pub(super) fn new(at_once: usize) -> Permits {
        Permits { free: Mutex::new(at_once), changed: Condvar::new() }
    }

    /// A permit if there is one just now.
    pub(super) fn try_take(&self) -> Option<Permit<'_>> {
        let mut free = lock(&self.free);
        *free = free.checked_sub(1)?;
        Some(Permit(self))
    }

    /// Waits for a permit. None when it is not wanted any longer, which [`Permits::wake`] has looked at.
    pub(super) fn take(&self, wanted: impl Fn() -> bool) -> Option<Permit<'_>> {
        let mut free = lock(&self.free);
        while wanted() {
            if let Some(left) = free.checked_sub(1) {
                *free = left;
                return Some(Permit(self));
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

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}
