//! Forks of grid processes.
//!
//! When the client forks (for a process pool beside the grid, say), the child must not keep the grid's control
//! connection open, because the spawner could not detect the client's end. When a function forks, its child must not
//! answer the call, and may read the function's shared data for as long as it lives.

use std::cell::UnsafeCell;
use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A list behind a spin lock, because a forked child can take no other lock.
struct Registry {
    locked: AtomicBool,
    descriptors: UnsafeCell<Vec<RawFd>>,
}

// SAFETY: the list is accessed only between `lock` and `unlock`.
unsafe impl Sync for Registry {}

static REGISTRY: Registry =
    Registry { locked: AtomicBool::new(false), descriptors: UnsafeCell::new(Vec::new()) };

fn lock() {
    while REGISTRY.locked.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
}

fn unlock() {
    REGISTRY.locked.store(false, Ordering::Release);
}

fn with<R>(change: impl FnOnce(&mut Vec<RawFd>) -> R) -> R {
    lock();
    // SAFETY: the lock is held.
    let result = change(unsafe { &mut *REGISTRY.descriptors.get() });
    unlock();
    result
}

/// Number of forks between the first counting process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Number of forks by this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Number of forks by this process since [`notice`].
pub fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Distinguishes this process from its forked children and its parents.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

extern "C" fn before() {
    lock();
}

extern "C" fn after_in_parent() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    unlock();
}

extern "C" fn after_in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `before` took the lock in the parent, so the list is whole and ours; closing a
    // descriptor is allowed in a child of fork.
    unsafe {
        for descriptor in (*REGISTRY.descriptors.get()).drain(..) {
            libc::close(descriptor);
        }
    }
    unlock();
}

/// Starts counting forks of this process.
pub fn notice() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handlers only do what is allowed around fork.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    });
}

/// Makes children of this process close the descriptor.
pub fn close_in_children(descriptor: RawFd) {
    with(|list| list.push(descriptor));
}

/// Unregisters a descriptor that is about to be closed.
pub fn forget(descriptor: RawFd) {
    with(|list| list.retain(|other| *other != descriptor));
}
