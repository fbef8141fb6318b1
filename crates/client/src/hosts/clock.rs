//! Offset of another host's clock, and its maximum error.

use std::collections::VecDeque;

/// Maximum drift between two clocks, ns per second. A quartz clock drifts less.
const DRIFT: u64 = 50_000;
/// Number of readings kept.
const KEPT: usize = 32;

/// A reading of the other clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Time of the reading on this clock, ns.
    at: u64,
    /// Offset of the other clock at that time, ns.
    ahead: i64,
    /// Maximum error of the offset, ns.
    error: u64,
}

impl Reading {
    /// Maximum error now.
    fn error_at(&self, now: u64) -> u64 {
        let age = now.saturating_sub(self.at);
        self.error.saturating_add(age / 1_000_000 * DRIFT / 1_000)
    }
}

/// A host's clock.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Whether it seems to be the same clock as this one.
    same: bool,
    readings: VecDeque<Reading>,
}

/// Offset of a clock from this one, and its maximum error, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offset {
    ahead: i64,
    pub(crate) error: u64,
}

impl Offset {
    /// Converts a time of the other clock to this clock.
    pub(crate) fn here(self, theirs: u64) -> u64 {
        theirs.saturating_add_signed(self.ahead.saturating_neg())
    }
}

impl Clock {
    /// `same`: both hosts run the same kernel and so read the same clock, unless one of them is in a time namespace.
    pub(crate) fn new(same: bool) -> Clock {
        Clock { same, readings: VecDeque::new() }
    }

    /// Adds a reading of the other clock, taken between these two times.
    pub(crate) fn add_sample(&mut self, sent: u64, received: u64, theirs: u64) {
        let error = received.saturating_sub(sent).div_ceil(2);
        let middle = sent + error;
        let ahead = i64::try_from(i128::from(theirs) - i128::from(middle)).unwrap_or(0);
        // A larger difference means another clock, or one that has been set in the meantime.
        let differs = |from: i64, error: u64| ahead.abs_diff(from) > error;
        self.same &= !differs(0, error);
        self.readings
            .retain(|old| !differs(old.ahead, old.error_at(received).saturating_add(error)));
        if self.readings.len() == KEPT {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading { at: received, ahead, error });
    }

    /// The best estimate now. Before the first reading the error is unbounded.
    pub(crate) fn offset(&self, now: u64) -> Offset {
        if self.same {
            return Offset::default();
        }
        let best = self.readings.iter().min_by_key(|reading| reading.error_at(now));
        best.map_or(Offset { ahead: 0, error: u64::MAX }, |best| Offset {
            ahead: best.ahead,
            error: best.error_at(now),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_same_clock_needs_no_correction() {
        let mut clock = Clock::new(true);
        clock.add_sample(10, 20, 13);
        assert_eq!(clock.offset(30), Offset::default());
    }

    #[test]
    fn one_that_should_be_the_same_and_is_not_is_corrected() {
        let mut clock = Clock::new(true);
        clock.add_sample(10, 20, 3_600 * SECOND + 15);
        assert_eq!(clock.offset(20).here(3_600 * SECOND + 15), 15);
    }

    #[test]
    fn what_was_read_before_a_clock_jumped_counts_no_more() {
        let mut clock = Clock::new(false);
        clock.add_sample(SECOND, SECOND + 100, SECOND + 50);
        let later = 2 * SECOND;
        clock.add_sample(later, later + 1_000_000, later + 3_600 * SECOND);
        let offset = clock.offset(later + 1_000_000);
        assert_eq!(offset.error, 500_000);
        assert!(offset.here(later + 3_600 * SECOND).abs_diff(later) <= 500_000);
    }

    #[test]
    fn the_quickest_answer_counts_as_long_as_it_is_fresh() {
        let mut clock = Clock::new(false);
        assert_eq!(clock.offset(0).error, u64::MAX, "nothing is known");
        clock.add_sample(1_000, 1_200, 5_000_100);
        clock.add_sample(2_000, 42_000, 5_030_000);
        let offset = clock.offset(50_000);
        assert_eq!((offset.here(5_000_100), offset.error), (1_100, 100));
        // After an hour, a new slow answer is more precise.
        let later = 3_600 * SECOND;
        clock.add_sample(later, later + 1_000_000, later + 9_500_000);
        let offset = clock.offset(later + 1_000_000);
        assert_eq!((offset.here(later + 9_500_000), offset.error), (later + 500_000, 500_000));
    }

    #[test]
    fn a_clock_behind_this_one_is_put_forward() {
        let mut clock = Clock::new(false);
        clock.add_sample(SECOND, SECOND + 10, 5);
        assert_eq!(clock.offset(SECOND + 10).here(105), SECOND + 105);
    }
}
