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
//! - A caller that waits for a long call keeps the lock all the time. The grid's thread then rests until the caller
//!   releases the lock, instead of waking up every few milliseconds. It says so *before* it tries the lock once more, and
//!   a caller looks for that *after* it has released the lock.
//! - A thread that has submitted a call and does not wait for it here calls the grid's thread if that has stepped back,
//!   unless a caller leads: that one checks for other calls *after* it has released the lock, or requested it. The
//!   grid's thread says that it is away *before* it takes the request and steps back.
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
/// How often in a row it finds the same caller leading before it rests, and the duration of a rest, ns, after which it
/// rests again at once: a caller that makes long calls.
const REST_AFTER: u32 = 5;
const LONG_CALL: u64 = 16_000_000;
/// A caller that has waited within this time, ns, is likely to wait again soon. For others, stepping back and returning
/// would wake the grid's thread twice for nothing.
const RECENT: u64 = 20_000_000;

#[derive(Debug)]
pub(crate) struct ReactorLock<R, W> {
    reactor: TryMutex<R>,
    wakeup: Arc<W>,
    /// Threads that wait for calls, whether they lead or not.
    followers: AtomicUsize,
    /// A caller wants to lead.
    wanted: AtomicBool,
    /// The grid's thread has stepped back, or is about to.
    is_away: AtomicBool,
    /// A caller leads.
    caller_leads: AtomicBool,
    /// Number of times that callers have led.
    leads: AtomicU64,
    /// When the last wait of a caller ended, ns.
    waited: AtomicU64,
    /// The grid's thread sleeps until the leading caller releases the lock.
    rests: AtomicBool,
    /// Wakes the grid's thread.
    called: Mutex<Called>,
    call: Condvar,
}

/// Why the grid's thread is woken.
#[derive(Debug, Default)]
struct Called {
    /// It has to lead.
    back: bool,
    /// A caller has released the lock for which it rests.
    released: bool,
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
            is_away: AtomicBool::new(false),
            caller_leads: AtomicBool::new(false),
            leads: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            rests: AtomicBool::new(false),
            called: Mutex::new(Called::default()),
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
        self.is_away.store(false, Ordering::SeqCst);
        loop {
            if !reactor.turn(None) {
                return false;
            }
            if !self.wanted.load(Ordering::SeqCst) {
                continue;
            }
            self.is_away.store(true, Ordering::SeqCst);
            if !self.wanted.swap(false, Ordering::SeqCst) || self.has_followers() {
                self.is_away.store(false, Ordering::SeqCst);
            } else {
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
        let (mut same, mut makes_long_calls) = (0, false);
        loop {
            let led = self.leads.load(Ordering::SeqCst);
            let called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
            let mut called = if called.back {
                called
            } else {
                // A spurious wake-up is harmless: it only ends the pause early.
                let waited = self.call.wait_timeout(called, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
            if std::mem::take(&mut called.back) {
                return;
            }
            drop(called);
            // A call may take longer than the pause.
            let is_led = self.is_led();
            let is_same = self.leads.load(Ordering::SeqCst) == led;
            if !is_led && is_same {
                return;
            }
            // A caller with many calls leads only now and then, and its answers must not wait in between.
            pause = if is_led { (2 * pause).min(LONGEST_STEP_BACK) } else { STEP_BACK };
            same = if is_led && is_same { same + 1 } else { 0 };
            if is_led && (same >= REST_AFTER || makes_long_calls) {
                let begin = now();
                self.rest();
                makes_long_calls = now().since(begin) >= LONG_CALL;
                (pause, same) = (STEP_BACK, 0);
            }
        }
    }

    /// Sleeps until the caller that leads releases the lock, or the thread is called back.
    pub(crate) fn rest(&self) {
        self.rests.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_led = self.is_led();
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        while is_led && !called.back && !called.released {
            called = self.call.wait(called).unwrap_or_else(PoisonError::into_inner);
        }
        called.released = false;
        self.rests.store(false, Ordering::SeqCst);
    }

    /// Whether a caller leads. For the grid's thread, which leads next if a caller found the lock taken meanwhile.
    fn is_led(&self) -> bool {
        let Ok(reactor) = self.reactor.try_lock() else { return true };
        drop(reactor);
        if self.has_followers() {
            self.call_back();
        }
        false
    }

    /// Makes the grid's own thread lead, if it has stepped back.
    pub(crate) fn call_back(&self) {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).back = true;
        self.call.notify_one();
    }

    /// Whether the grid's own thread has stepped back, or is about to.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::SeqCst)
    }

    /// Makes the grid's own thread lead if nobody does. For a thread that has submitted a call and does not wait here.
    pub(crate) fn ensure_leader(&self) {
        fence(Ordering::SeqCst);
        self.wanted.swap(false, Ordering::SeqCst);
        if self.is_away() && !self.caller_leads.load(Ordering::SeqCst) {
            self.call_back();
        }
    }

    /// Wakes the grid's thread where that is needed, after a caller has released the lock. `nobody_waits`: the caller
    /// has what it waited for.
    fn released(&self, nobody_waits: bool) {
        if self.has_followers() || !nobody_waits {
            self.call_back();
        } else if self.rests.load(Ordering::SeqCst) {
            self.called.lock().unwrap_or_else(PoisonError::into_inner).released = true;
            self.call.notify_one();
        }
    }

    /// Makes the leader check again whether it is ready.
    pub(crate) fn nudge(&self) {
        self.wakeup.wake();
    }

    /// Waits until `ready`, or until `until`. Leads in the meantime if the lock is free; otherwise sleeps by `sleep`,
    /// which returns early when it is ready. `others`: whether there are calls that nobody waits for here and whose
    /// answers must not be late. Returns whether it is ready.
    pub(crate) fn wait(
        &self,
        until: Time,
        ready: impl Fn() -> bool,
        sleep: impl FnOnce(Duration) -> bool,
        others: impl Fn() -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        let follower = self.follower();
        let Ok(mut reactor) = self.reactor.try_lock() else {
            let is_ready = sleep(Duration::from_nanos(until.since(now())));
            drop(follower);
            let waits_often = self.waits_often();
            if is_ready && waits_often && !self.has_followers() && !others() {
                if !self.wanted.swap(true, Ordering::SeqCst) {
                    self.wakeup.wake();
                }
                fence(Ordering::SeqCst);
                // One that has been submitted meanwhile.
                if others() {
                    self.ensure_leader();
                }
            }
            return is_ready;
        };
        self.caller_leads.store(true, Ordering::SeqCst);
        self.leads.fetch_add(1, Ordering::SeqCst);
        let is_open = turns(&mut *reactor, until, &ready);
        self.waits_often();
        self.caller_leads.store(false, Ordering::SeqCst);
        drop(reactor);
        drop(follower);
        fence(Ordering::SeqCst);
        self.released(is_open && !others());
        ready()
    }

    /// Records the end of a wait. Returns whether the last one was a short time ago.
    fn waits_often(&self) -> bool {
        let now = now();
        now.since(Time(self.waited.swap(now.0, Ordering::Relaxed))) < RECENT
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
