//! The twin of crates/client/src/sync.rs.

use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, TryLockError, TryLockResult};

use loom::sync::MutexGuard;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use loom::sync::{Arc, Condvar, Mutex};

/// A lock whose `try_lock` never waits. (In loom 0.7 a thread that tries a lock is taken for blocked
/// as soon as another one gets it.)
#[derive(Debug)]
pub(crate) struct TryMutex<T> {
    held: Mutex<bool>,
    free: Condvar,
    /// Locked by the holder only.
    value: Mutex<T>,
}

impl<T> TryMutex<T> {
    pub(crate) fn new(value: T) -> TryMutex<T> {
        TryMutex { held: Mutex::new(false), free: Condvar::new(), value: Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> LockResult<TryGuard<'_, T>> {
        let mut held = self.held.lock().unwrap();
        while *held {
            held = self.free.wait(held).unwrap();
        }
        *held = true;
        drop(held);
        Ok(TryGuard { lock: self, value: Some(self.value.lock().unwrap()) })
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<TryGuard<'_, T>> {
        let mut held = self.held.lock().unwrap();
        if *held {
            return Err(TryLockError::WouldBlock);
        }
        *held = true;
        drop(held);
        Ok(TryGuard { lock: self, value: Some(self.value.lock().unwrap()) })
    }
}

pub(crate) struct TryGuard<'l, T> {
    lock: &'l TryMutex<T>,
    value: Option<MutexGuard<'l, T>>,
}

impl<T> Deref for TryGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().unwrap()
    }
}

impl<T> DerefMut for TryGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().unwrap()
    }
}

impl<T> Drop for TryGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        *self.lock.held.lock().unwrap() = false;
        self.lock.free.notify_one();
    }
}

/// Time stands still here.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Time(pub(crate) u64);

impl Time {
    pub(crate) fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

pub(crate) fn now() -> Time {
    Time(0)
}
