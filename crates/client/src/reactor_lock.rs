//! The reactor lock: whoever holds it reads for all, and leads.
//!
//! A caller that waits for its own call leads by itself where it can: the answer then wakes one
//! thread instead of two. Otherwise a thread of the grid's own leads. The protocol:
//!
//! - A caller that waits counts itself as a follower *before* it tries the lock. If the lock is
//!   taken, its holder looks for followers *after* it has left the lock, and calls the grid's own
//!   thread if there are any. So no follower is left with nobody leading.
//! - The grid's thread leads until a caller asks for the lock: one that has got an answer as the
//!   only follower, and so is likely to wait for the next one alone. The thread leaves only while
//!   there are no followers. While it is back it looks every millisecond whether a caller has led
//!   meanwhile, and takes the lock again if none has; so calls that nobody waits for, timers and
//!   deaths are never late by more than that.

//!
//! That no thread is left asleep for ever is checked by a model (crates/client/model), in which the
//! grid's thread does not come back by itself.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, Time, TryMutex, fence, now,
};

/// What sits there: the reactor.
pub(crate) trait Read {
    /// Waits for something to happen, at most until `until`, and deals with it. False: it has ended.
    fn turn(&mut self, until: Option<Time>) -> bool;
}

/// How to have whoever is in a turn come out of it.
pub(crate) trait Wake {
    /// The turn that is going on, or the next one, ends at once.
    fn wake(&self);
}

/// How long the grid's thread stays away while callers lead.
const STEP_BACK: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct ReactorLock<R, W> {
    reactor: TryMutex<R>,
    wakeup: Arc<W>,
    /// Threads that wait for calls, leading or not.
    followers: AtomicUsize,
    /// A caller would rather lead itself.
    wanted: AtomicBool,
    /// How often callers have led.
    leads: AtomicU64,
    /// Calls the grid's thread back.
    called: Mutex<bool>,
    call: Condvar,
}

/// Counts a follower for as long as it lives.
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

    /// What whoever leads is woken by.
    pub(crate) fn wakeup(&self) -> &W {
        &self.wakeup
    }

    /// The grid's own thread: leads while no caller does, until the grid is closed.
    pub(crate) fn serve(&self) {
        while self.lead_for_all() {
            self.step_back();
        }
    }

    /// Leads until a caller would rather do so; false when there is nothing more to lead.
    fn lead_for_all(&self) -> bool {
        let mut reactor = self.reactor.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if !reactor.turn(None) {
                return false;
            }
            if self.wanted.swap(false, Ordering::SeqCst) && !self.has_followers() {
                drop(reactor);
                if self.has_followers() {
                    // One came while we left: it has not found the lock free.
                    self.call_back();
                }
                return true;
            }
        }
    }

    /// Leaves the lock to callers while they use it.
    fn step_back(&self) {
        loop {
            let led = self.leads.load(Ordering::SeqCst);
            let called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
            let mut called = if *called {
                called
            } else {
                // Waking for no reason does no harm: it is as if the time had passed.
                let waited = self.call.wait_timeout(called, STEP_BACK);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
            if std::mem::take(&mut *called) || self.leads.load(Ordering::SeqCst) == led {
                return;
            }
        }
    }

    /// Has the grid's own thread lead, if it has stepped back.
    pub(crate) fn call_back(&self) {
        *self.called.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.call.notify_one();
    }

    /// Has whoever leads look again whether it is ready.
    pub(crate) fn nudge(&self) {
        self.wakeup.wake();
    }

    /// Waits until `ready`, at most until `until`; leads meanwhile if the lock is free, else sleeps
    /// by `sleep`, which returns early when it is ready. Returns whether it is.
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
        let mut going_on = true;
        while going_on && !ready() && now() < until {
            going_on = reactor.turn(Some(until));
        }
        drop(reactor);
        drop(follower);
        if self.has_followers() || !going_on {
            self.call_back();
        }
        ready()
    }

    /// Leads for a moment, if the lock is free, without sleeping: `look` asks what it is given as often as it
    /// sees fit. Returns whether it is ready. It is for a thread that has other things to wait for.
    pub(crate) fn look(
        &self,
        look: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
        ready: impl Fn() -> bool,
    ) -> bool {
        let follower = self.follower();
        let Ok(mut reactor) = self.reactor.try_lock() else {
            drop(follower);
            if !self.has_followers() && !self.wanted.swap(true, Ordering::SeqCst) {
                self.wakeup.wake();
            }
            return false;
        };
        self.leads.fetch_add(1, Ordering::SeqCst);
        let mut going_on = true;
        let is_ready = look(&mut || {
            going_on = going_on && reactor.turn(Some(now()));
            !going_on || ready()
        });
        drop(reactor);
        drop(follower);
        if self.has_followers() || !is_ready || !going_on {
            self.call_back();
        }
        is_ready
    }

    /// Counts the caller in, so that whoever leaves the lock from here on sees it.
    fn follower(&self) -> Follower<'_> {
        self.followers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Follower(&self.followers)
    }

    /// Whether anybody waits. Asked by whoever has just left the lock, or thinks of it.
    fn has_followers(&self) -> bool {
        fence(Ordering::SeqCst);
        self.followers.load(Ordering::SeqCst) > 0
    }
}
