//! Reactor lock: its holder reads for all threads and leads.
//!
//! A caller that waits for its own call leads by itself where it can: the answer then wakes one thread instead of
//! two. Otherwise a thread of the grid leads. The protocol:
//!
//! - A waiting caller registers as a follower *before* it tries the lock. If the lock is taken, its holder checks for
//!   followers *after* it has released the lock, and calls the grid's own thread if there are any. So there is no
//!   follower without a leader.
//! - The grid's thread leads until a caller requests the lock: a caller that got an answer as the only follower,
//!   and is therefore likely to wait for the next one alone. The thread steps back only while there are no followers.
//!   While it is away, it checks whether a caller has led or leads, and takes the lock again if none does: every
//!   millisecond, and less and less often while it finds a caller leading. When callers stop, calls that nobody waits
//!   for, timers and losses are therefore delayed once, by no more than the longest of these intervals.
//!
//! A model (crates/client/model) checks that no thread sleeps forever. In the model the grid's thread does not come
//! back by itself.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, Time, TryMutex, fence, now,
};

/// The object behind the lock: the reactor.
pub(crate) trait Read {
    /// Waits for events until `until` at most, and handles them. Returns `false` when the grid has ended.
    fn turn(&mut self, until: Option<Time>) -> bool;
}

/// Wakes the thread that holds the lock.
pub(crate) trait Wake {
    /// Ends the current turn, or the next one, at once.
    fn wake(&self);
}

/// How long the grid's thread steps back while callers lead: at first, and at most.
const STEP_BACK: Duration = Duration::from_millis(1);
const LONGEST_STEP_BACK: Duration = Duration::from_millis(8);

#[derive(Debug)]
pub(crate) struct ReactorLock<R, W> {
    reactor: TryMutex<R>,
    wakeup: Arc<W>,
    /// Threads that wait for calls, whether they lead or not.
    followers: AtomicUsize,
    /// A caller wants to lead.
    wanted: AtomicBool,
    /// Number of times that callers have led.
    leads: AtomicU64,
    /// Calls the grid's thread back.
    called: Mutex<bool>,
    call: Condvar,
}

/// Registration of a follower, for as long as it lives.
struct Follower<'s>(&'s AtomicUsize);

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<R: Read, W: Wake> ReactorLock<R, W> {
    pub(crate) fn new(wakeup: Arc<W>, reactor: R) -> ReactorLock<R, W> {
        ReactorLock {
            reactor: TryMutex::new(reactor),
            wakeup,
            followers: AtomicUsize::new(0),
            wanted: AtomicBool::new(false),
            leads: AtomicU64::new(0),
            called: Mutex::new(false),
            call: Condvar::new(),
        }
    }

    /// Wakes the leader.
    pub(crate) fn wakeup(&self) -> &W {
        &self.wakeup
    }

    /// Runs the grid's own thread: leads while no caller does, until the grid is closed.
    pub(crate) fn serve(&self) {
        while self.lead_for_all() {
            self.step_back();
        }
    }

    /// Leads until a caller wants to. Returns `false` when the grid has ended.
    fn lead_for_all(&self) -> bool {
        let mut reactor = self.reactor.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if !reactor.turn(None) {
                return false;
            }
            if self.wanted.swap(false, Ordering::SeqCst) && !self.has_followers() {
                drop(reactor);
                if self.has_followers() {
                    // A follower arrived while this thread left, and found the lock taken.
                    self.call_back();
                }
                return true;
            }
        }
    }

    /// Leaves the lock to callers while they use it.
    fn step_back(&self) {
        let mut pause = STEP_BACK;
        loop {
            let led = self.leads.load(Ordering::SeqCst);
            let called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
            let mut called = if *called {
                called
            } else {
                // A spurious wake-up is harmless: it only ends the pause early.
                let waited = self.call.wait_timeout(called, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
            if std::mem::take(&mut *called) {
                return;
            }
            drop(called);
            // A call may take longer than the pause.
            let is_led = self.reactor.try_lock().is_err();
            if !is_led && self.leads.load(Ordering::SeqCst) == led {
                return;
            }
            // A caller with many calls leads only now and then, and its answers must not wait in between.
            pause = if is_led { (2 * pause).min(LONGEST_STEP_BACK) } else { STEP_BACK };
        }
    }

    /// Makes the grid's own thread lead, if it has stepped back.
    pub(crate) fn call_back(&self) {
        *self.called.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.call.notify_one();
    }

    /// Makes the leader check again whether it is ready.
    pub(crate) fn nudge(&self) {
        self.wakeup.wake();
    }

    /// Waits until `ready`, or until `until`. Leads in the meantime if the lock is free; otherwise sleeps by `sleep`,
    /// which returns early when it is ready. Returns whether it is.
    pub(crate) fn wait(
        &self,
        until: Time,
        ready: impl Fn() -> bool,
        sleep: impl FnOnce(Duration) -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        let follower = self.follower();
        let Ok(mut reactor) = self.reactor.try_lock() else {
            let is_ready = sleep(Duration::from_nanos(until.since(now())));
            drop(follower);
            if is_ready && !self.has_followers() && !self.wanted.swap(true, Ordering::SeqCst) {
                self.wakeup.wake();
            }
            return is_ready;
        };
        self.leads.fetch_add(1, Ordering::SeqCst);
        let is_open = turns(&mut *reactor, until, &ready);
        drop(reactor);
        drop(follower);
        if self.has_followers() || !is_open {
            self.call_back();
        }
        ready()
    }

    /// Leads until `ready`, or until `until`, if the lock is free. Returns whether it is ready; none if the lock is
    /// taken. For a thread that also has to wait for other things.
    pub(crate) fn lead(&self, until: Time, ready: impl Fn() -> bool) -> Option<bool> {
        let follower = self.follower();
        let Ok(mut reactor) = self.reactor.try_lock() else {
            drop(follower);
            if !self.has_followers() && !self.wanted.swap(true, Ordering::SeqCst) {
                self.wakeup.wake();
            }
            return None;
        };
        self.leads.fetch_add(1, Ordering::SeqCst);
        let is_open = turns(&mut *reactor, until, &ready);
        drop(reactor);
        drop(follower);
        let is_ready = ready();
        if self.has_followers() || !is_ready || !is_open {
            self.call_back();
        }
        Some(is_ready)
    }

    /// Registers the caller as a follower, so that every later release of the lock takes it into account.
    fn follower(&self) -> Follower<'_> {
        self.followers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Follower(&self.followers)
    }

    /// Whether anybody waits. Checked after the lock has been released, or before stepping back.
    fn has_followers(&self) -> bool {
        fence(Ordering::SeqCst);
        self.followers.load(Ordering::SeqCst) > 0
    }
}

/// Reads until `ready`, or until `until`. Returns `false` when the grid has ended.
fn turns(reactor: &mut impl Read, until: Time, ready: impl Fn() -> bool) -> bool {
    while !ready() && now() < until {
        if !reactor.turn(Some(until)) {
            return false;
        }
    }
    true
}
