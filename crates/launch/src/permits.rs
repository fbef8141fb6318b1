//! Permits: how many hosts are connected to at once, and how many jobs submitted.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use gridrpc_sys::lock;

/// Gives permits, a bounded number at a time. Those that a process had given when it was forked are not missing in
/// the other one.
#[derive(Debug)]
pub(super) struct Permits {
    at_once: usize,
    free: Mutex<Free>,
    changed: Condvar,
}

#[derive(Debug)]
struct Free {
    process: u32,
    left: usize,
}

/// A permit, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    pub(super) fn new(at_once: usize) -> Permits {
        let free = Free { process: std::process::id(), left: at_once };
        Permits { at_once, free: Mutex::new(free), changed: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        let mut free = lock(&self.free);
        let process = std::process::id();
        if free.process != process {
            *free = Free { process, left: self.at_once };
        }
        free
    }

    /// A permit if there is one just now.
    pub(super) fn try_take(&self) -> Option<Permit<'_>> {
        let mut free = self.free();
        free.left = free.left.checked_sub(1)?;
        Some(Permit(self))
    }

    /// Waits for a permit. None when it is not wanted any longer, which [`Permits::wake`] has looked at.
    pub(super) fn take(&self, wanted: impl Fn() -> bool) -> Option<Permit<'_>> {
        let mut free = self.free();
        while wanted() {
            if let Some(left) = free.left.checked_sub(1) {
                free.left = left;
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
        self.0.free().left += 1;
        self.0.changed.notify_one();
    }
}
