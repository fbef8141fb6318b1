//! Looking again for a moment before going to sleep.
//!
//! Waking a process takes longer than a call of a microsecond. Where an answer is likely to come within
//! the time that it takes to fall asleep and be woken, it is better to stay awake. Whether it is, the
//! last waits tell: after some in vain there is only a try now and then, so that a wait that
//! takes long, or whose other end needs this very processor, costs nothing more.

use crate::sys::monotonic_ns;

/// How long to look, ns: about what falling asleep and being woken takes at both ends.
const LOOK: u64 = 60_000;
/// Waits in vain after which looking stops, if none was of use before.
const TRUST: u32 = 4;
/// The most trust that waits of use can earn.
const MOST: u32 = 16;
/// Waits after which there is another try.
const RETRY: u32 = 64;

/// Whether looking has been of use lately.
#[derive(Debug)]
pub(crate) struct Patience {
    trust: u32,
    skipped: u32,
}

impl Patience {
    pub(crate) fn new() -> Patience {
        Patience { trust: TRUST, skipped: 0 }
    }

    /// Looks for a moment, if that makes sense. `look` says whether what was waited for is there.
    pub(crate) fn look(&mut self, mut look: impl FnMut() -> bool) -> bool {
        if self.trust == 0 {
            self.skipped += 1;
            if self.skipped < RETRY {
                return false;
            }
            self.skipped = 0;
        }
        let until = monotonic_ns() + LOOK;
        loop {
            if look() {
                self.trust = (self.trust + 2).min(MOST);
                return true;
            }
            if monotonic_ns() >= until {
                self.trust = self.trust.saturating_sub(1);
                return false;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_vain_end_the_looking_but_for_a_try_now_and_then() {
        let mut patience = Patience::new();
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
