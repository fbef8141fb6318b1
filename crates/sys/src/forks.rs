//! What happens when a process of a grid forks.
//!
//! When the client does (a process pool beside the grid, say), the child must not keep the grid's
//! control connection open: the spawner could not see the client's end. When a function does, its
//! child must not answer the call, and may read the function's shared data for as long as it lives.

use std::cell::UnsafeCell;
use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A list behind a spin lock, since a child of fork can take no other.
struct Registry {
    locked: AtomicBool,
    descriptors: UnsafeCell<Vec<RawFd>>,
}

// SAFETY: the list is touched only between `lock` and `unlock`.
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

/// How many forks lie between this process and the first of its line.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// How often this process has forked.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// How often this process has forked since forks are noticed.
pub fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Names this process among its forked children and parents.
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

/// Has forks of this process noticed from here on.
pub fn notice() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handlers only do what is allowed around fork.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    });
}

/// Has children of this process close the descriptor.
pub fn close_in_children(descriptor: RawFd) {
    with(|list| list.push(descriptor));
}

/// The descriptor is about to be closed.
pub fn forget(descriptor: RawFd) {
    with(|list| list.retain(|other| *other != descriptor));
}
