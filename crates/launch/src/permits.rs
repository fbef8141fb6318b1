//! Permits: limit concurrent connections to hosts and concurrent submissions of jobs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use gridrpc_sys::lock;

/// A counting semaphore. After a fork, the child does not lack the permits that the parent had given out.
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

/// A permit, returned on drop.
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

    /// Takes a permit if one is available.
    pub(super) fn try_take(&self) -> Option<Permit<'_>> {
        let mut free = self.free();
        free.left = free.left.checked_sub(1)?;
        Some(Permit(self))
    }

    /// Waits for a permit. Returns none once `wanted` returns false; [`Permits::wake`] triggers the check.
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

    /// Makes all waiting threads check `wanted` again.
    pub(super) fn wake(&self) {
        // With the lock held, every thread that has checked already waits.
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
