//! Looking again for a moment before going to sleep.
//!
//! Waking a process takes longer than a call of a microsecond. Where an answer is likely to come within
//! the time that it takes to fall asleep and be woken, it is better to stay awake. Whether it is, the
//! last waits tell: after some in vain there is only a try now and then, so that a wait that
//! takes long, or whose other end needs this very processor, costs nothing more.

use crate::monotonic_ns;

/// How long to look, ns: about what falling asleep and being woken takes at both ends.
const LOOK: u64 = 60_000;
/// How long to look if that is when what is waited for tends to come, ns: an answer and the next call on their
/// way between two hosts that are near.
const LONGER: u64 = 150_000;
/// Waits in a row that looking for longer would have served, after which it does.
const CLOSE: u32 = 4;
/// Waits in vain after which looking stops, if none was of use before.
const TRUST: u32 = 4;
/// The most trust that waits of use can earn.
const MOST: u32 = 16;
/// Waits after which there is another try.
const RETRY: u32 = 64;

/// Whether looking has been of use lately.
#[derive(Debug)]
pub struct SpinWait {
    trust: u32,
    skipped: u32,
    /// How long it looks, ns, as a rule and now.
    usual: u64,
    longest: u64,
    /// Waits in a row that looking for longer would have served.
    close: u32,
}

impl Default for SpinWait {
    fn default() -> SpinWait {
        SpinWait { trust: TRUST, skipped: 0, usual: LOOK, longest: LOOK, close: 0 }
    }
}

impl SpinWait {
    /// A wait for somebody who may have to be woken first, to do what is waited for.
    pub fn with_sleepers() -> SpinWait {
        SpinWait { usual: LONGER, longest: LONGER, ..SpinWait::default() }
    }

    /// Looks for a moment, if that makes sense. `look` says whether what was waited for is there.
    pub fn look(&mut self, look: impl FnMut() -> bool) -> bool {
        self.makes_sense() && self.look_now(look)
    }

    /// Whether to look this time.
    pub fn makes_sense(&mut self) -> bool {
        if self.trust == 0 {
            self.skipped += 1;
            if self.skipped < RETRY {
                return false;
            }
            self.skipped = 0;
        }
        true
    }

    /// Looks for a moment, as makes sense.
    pub fn look_now(&mut self, mut look: impl FnMut() -> bool) -> bool {
        let until = monotonic_ns() + self.longest;
        loop {
            if look() {
                self.trust = (self.trust + 2).min(MOST);
                return true;
            }
            if monotonic_ns() >= until {
                self.trust = self.trust.saturating_sub(1);
                if self.trust == 0 {
                    self.longest = self.usual;
                }
                return false;
            }
            std::hint::spin_loop();
        }
    }

    /// What was waited for has come after a sleep, so long after the wait began, ns.
    pub fn slept(&mut self, waited: u64) {
        // To fall asleep and to be woken have taken a part of that.
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
        let mut patience = SpinWait::default();
        (0..CLOSE - 1).for_each(|_| patience.slept(LONGER));
        patience.slept(2 * LONGER);
        assert_eq!(patience.longest, LOOK, "not in a row");
        (0..CLOSE).for_each(|_| patience.slept(LONGER));
        assert_eq!(patience.longest, LONGER);
        while patience.trust > 0 {
            patience.look(|| false);
        }
        assert_eq!(patience.longest, LOOK, "it was of no use");
    }

    #[test]
    fn waits_in_vain_end_the_looking_but_for_a_try_now_and_then() {
        let mut patience = SpinWait::default();
        let mut looked = 0;
        for _ in 0..1000 {
            let mut first = true;
            patience.look(|| {
                looked += u32::from(std::mem::take(&mut first));
                false
            });
        }
        assert!((4 + 10..4 + 20).contains(&looked), "{looked}");
        assert!(!patience.look(|| true) || looked > 0);
        for _ in 0..RETRY {
            patience.look(|| true);
        }
        assert!(patience.look(|| true), "one of use is followed by others");
    }
}
