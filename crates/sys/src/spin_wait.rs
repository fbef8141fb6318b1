//! Spinning for a moment before going to sleep.
//!
//! Waking a process takes longer than a microsecond call. If an answer is likely to arrive within the time that it
//! takes to fall asleep and be woken, it is better to stay awake. The last waits predict this: after some failures
//! there is only an occasional try, so that a long wait, or one whose other end needs this very processor, has no
//! further cost.
//!
//! A call through a server passes three processes, and on two processors the one that has the message could not run
//! beside two that spin: these yield the processor in each turn. If others use it for long then, answers come late. That
//! ends the spinning at once, and for longer each time.

use std::{hint, thread};

use crate::monotonic_ns;

/// How long to spin, ns: about the time for falling asleep and being woken, at both ends.
const LOOK: u64 = 60_000;
/// How long to spin if answers tend to arrive within this time, ns: an answer and the next call in transit between
/// two nearby hosts.
const LONGER: u64 = 150_000;
/// Consecutive waits that longer spinning would have served, after which it spins longer.
const CLOSE: u32 = 4;
/// Failed waits after which spinning stops, if none succeeded before.
const TRUST: u32 = 4;
/// Maximum trust that successful waits can earn.
const MOST: u32 = 16;
/// Waits after which spinning is tried again: at first, and at most.
const RETRY: u32 = 64;
const MOST_RETRY: u32 = 1 << 14;
/// How long after the end of the spinning this thread runs again if others have needed its processor, ns.
const LATE: u64 = 200_000;

/// Decides whether to spin, from recent success.
#[derive(Debug)]
pub struct SpinWait {
    trust: u32,
    skipped: u32,
    /// Waits after which it tries again.
    retry: u32,
    /// How long it spins, ns, by default and now.
    usual: u64,
    longest: u64,
    /// Consecutive waits that longer spinning would have served.
    close: u32,
    yields: bool,
}

impl Default for SpinWait {
    fn default() -> SpinWait {
        SpinWait {
            trust: TRUST,
            skipped: 0,
            retry: RETRY,
            usual: LOOK,
            longest: LOOK,
            close: 0,
            yields: false,
        }
    }
}

impl SpinWait {
    /// Whether to yield the processor while spinning: more than two processes take part in a call.
    pub fn set_yields(&mut self, yields: bool) {
        self.yields = yields;
    }

    /// Records whether a wait of another kind made sense. None: it could not be tried, and is tried again next time.
    pub fn note(&mut self, is_success: impl Into<Option<bool>>) {
        let Some(is_success) = is_success.into() else {
            self.skipped = self.retry;
            return;
        };
        if is_success {
            self.trust = (self.trust + 2).min(MOST);
            self.retry = RETRY;
        } else {
            self.trust = self.trust.saturating_sub(1);
        }
    }

    /// Spins for a moment, if that makes sense. `look` returns whether the wait is over.
    pub fn look(&mut self, look: impl FnMut() -> bool) -> bool {
        self.makes_sense() && self.look_now(look)
    }

    /// Whether to spin this time.
    pub fn makes_sense(&mut self) -> bool {
        if self.trust == 0 {
            self.skipped += 1;
            if self.skipped < self.retry {
                return false;
            }
            self.skipped = 0;
        }
        true
    }

    /// Spins for a moment unconditionally.
    pub fn look_now(&mut self, mut look: impl FnMut() -> bool) -> bool {
        let until = monotonic_ns() + self.longest;
        loop {
            if look() {
                let is_late = self.yields && monotonic_ns() >= until + LATE;
                self.end(true, is_late);
                return true;
            }
            let now = monotonic_ns();
            if now >= until {
                self.end(false, self.yields && now >= until + LATE);
                return false;
            }
            if self.yields {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
    }

    /// Records the end of spinning. `is_late`: others needed the processor.
    fn end(&mut self, is_success: bool, is_late: bool) {
        if is_late {
            self.trust = 0;
            self.retry = (self.retry * 2).min(MOST_RETRY);
        } else {
            self.note(is_success);
        }
        if self.trust == 0 {
            self.longest = self.usual;
        }
    }

    /// Records that the wait ended after a sleep, `waited` ns after it began.
    pub fn slept(&mut self, waited: u64) {
        // Falling asleep and waking have taken a part of that.
        self.close = if waited < 2 * LONGER { self.close + 1 } else { 0 };
        if self.close >= CLOSE {
            self.longest = LONGER;
            self.trust = self.trust.max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_longer_where_that_is_when_things_come() {
        let mut spin_wait = SpinWait::default();
        (0..CLOSE - 1).for_each(|_| spin_wait.slept(LONGER));
        spin_wait.slept(2 * LONGER);
        assert_eq!(spin_wait.longest, LOOK, "not in a row");
        (0..CLOSE).for_each(|_| spin_wait.slept(LONGER));
        assert_eq!(spin_wait.longest, LONGER);
        while spin_wait.trust > 0 {
            spin_wait.look(|| false);
        }
        assert_eq!(spin_wait.longest, LOOK, "it was of no use");
    }

    #[test]
    fn waits_in_vain_end_the_looking_but_for_a_try_now_and_then() {
        let mut spin_wait = SpinWait::default();
        let mut looked = 0;
        for _ in 0..1000 {
            let mut first = true;
            spin_wait.look(|| {
                looked += u32::from(std::mem::take(&mut first));
                false
            });
        }
        assert!((4 + 10..4 + 20).contains(&looked), "{looked}");
        assert!(!spin_wait.look(|| true) || looked > 0);
        for _ in 0..RETRY {
            spin_wait.look(|| true);
        }
        assert!(spin_wait.look(|| true), "one of use is followed by others");
    }
}
