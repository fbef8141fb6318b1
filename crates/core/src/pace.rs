//! How long functions run, and so how many calls a worker may hold ahead.
//!
//! A worker that runs microsecond calls must find the next one waiting, or the round trip
//! costs more than the work. A worker that runs longer calls must hold none, or it keeps
//! calls waiting while others idle. So calls are counted by the time they are expected to take.

use crate::ids::FunctionId;
use crate::interface::Took;

/// Work that a worker may hold, ns. A round trip is some 20 us: 4 % of it.
pub(crate) const AHEAD: u64 = 500_000;
/// The most calls a worker may hold that it has not begun, and that it has not answered.
pub(crate) const MAX_AHEAD: usize = 256;
pub(crate) const MAX_UNANSWERED: usize = 1024;
/// What a worker spends on a call beside running its function, ns: about the least that it can be.
const OVERHEAD: u64 = 1_000;
/// What it costs to wake a worker, ns: one that is awake takes calls worth so much first.
const WAKING: u64 = 20_000;
/// Calls that keep a worker at most this long, ns, are light: they are done about as fast as a client
/// makes them. One worker keeps up, and with another there would only be more and smaller messages,
/// and more wake-ups. So they wait for it, as long as they are not more than so many.
const LIGHT: u64 = 1_500;
pub(crate) const LIGHT_WAITING: usize = 1024;
/// A function that runs at most this long has its replies sent together, ns.
const BATCHED: u64 = 50_000;
/// A call that takes longer than expected may count this many times the expectation; less where it is
/// asked whether calls are light, as the machine's other work does not make them heavy.
const SURPRISE: u64 = 16;
const LIGHT_SURPRISE: u64 = 2;

/// A call of some function as a load for a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// What it is expected to cost, ns.
    pub(crate) cost: u64,
    /// Whether one worker keeps up with such calls.
    pub(crate) light: bool,
    /// Work, ns, that a worker may hold with it before one that would have to be woken is preferred.
    pub(crate) awake: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// What calls are expected to take, by function number; `None` before the first reply.
    expected: Vec<Option<Took>>,
}

impl Pace {
    /// What a call is expected to cost, ns; [`AHEAD`] and more means that it is sent alone.
    pub(crate) fn cost(&self, function: FunctionId) -> u64 {
        self.expected(function).map_or(AHEAD, |took| took.ran.saturating_add(OVERHEAD))
    }

    /// The same, if the function is known.
    pub(crate) fn known_cost(&self, function: FunctionId) -> Option<u64> {
        self.expected(function).map(|took| took.ran.saturating_add(OVERHEAD))
    }

    /// A call of it as a load for a worker.
    pub(crate) fn load(&self, function: FunctionId) -> Load {
        let light = self.expected(function).is_some_and(|took| took.whole <= LIGHT);
        let awake = if light { AHEAD } else { WAKING };
        Load { cost: self.cost(function), light, awake }
    }

    /// How many calls more than it has workers a host is sent: what those do while a message goes there
    /// and back, to the nearest whole call. None of a function that is not known.
    pub(crate) fn ahead(&self, function: FunctionId, workers: usize, round_trip: u64) -> usize {
        let Some(took) = self.expected(function) else { return 0 };
        let cost = took.ran.saturating_add(OVERHEAD);
        let work = (round_trip + AHEAD).saturating_mul(workers as u64);
        let calls = (work + cost / 2) / cost;
        usize::try_from(calls).unwrap_or(usize::MAX).min(workers * MAX_AHEAD)
    }

    pub(crate) fn batched(&self, function: FunctionId) -> bool {
        self.expected(function).is_some_and(|took| took.ran <= BATCHED)
    }

    fn expected(&self, function: FunctionId) -> Option<Took> {
        self.expected.get(function.0 as usize).copied().flatten()
    }

    pub(crate) fn forget(&mut self, function: FunctionId) {
        if let Some(expected) = self.expected.get_mut(function.0 as usize) {
            *expected = None;
        }
    }

    /// Learns from a call. One slow call among thousands of fast ones (a page fault, a time slice
    /// lost) hardly counts; some in a row do.
    pub(crate) fn learn(&mut self, function: FunctionId, took: Took) {
        let index = function.0 as usize;
        if index >= self.expected.len() {
            self.expected.resize(index + 1, None);
        }
        let Took { ran, whole } = took;
        let expected = self.expected[index].unwrap_or(took);
        self.expected[index] = Some(Took {
            ran: drawn(expected.ran, ran, SURPRISE),
            whole: drawn(expected.whole, whole, LIGHT_SURPRISE),
        });
    }
}

/// What is expected, ns, drawn towards what was seen.
fn drawn(expected: u64, seen: u64, surprise: u64) -> u64 {
    let seen = seen.min(expected.saturating_mul(surprise));
    (expected - expected / 8 + seen / 8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: FunctionId = FunctionId(3);
    const SLOW: Took = Took { ran: 1_000_000_000, whole: 1_000_000_000 };

    fn fast() -> Pace {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.learn(F, Took { ran: 2_000, whole: 3_000 }));
        pace
    }

    #[test]
    fn unknown_functions_are_sent_alone() {
        assert_eq!(Pace::default().cost(F), AHEAD);
    }

    #[test]
    fn one_slow_call_among_fast_ones_hardly_counts() {
        let mut pace = fast();
        pace.learn(F, SLOW);
        assert!(pace.cost(F) < 10_000, "{}", pace.cost(F));
    }

    #[test]
    fn a_function_that_became_slow_is_sent_alone_after_some_calls() {
        let mut pace = fast();
        (0..10).for_each(|_| pace.learn(F, SLOW));
        assert!(pace.cost(F) >= AHEAD, "{}", pace.cost(F));
    }

    #[test]
    fn hosts_are_sent_ahead_what_a_message_takes() {
        let ahead = |ran, workers, round_trip| {
            let mut pace = Pace::default();
            pace.learn(F, Took { ran, whole: ran });
            pace.ahead(F, workers, round_trip)
        };
        assert_eq!(Pace::default().ahead(F, 8, 300_000), 0, "unknown");
        assert_eq!(ahead(100_000_000, 8, 300_000), 0, "a tenth of a second, near");
        assert_eq!(ahead(100_000_000, 8, 80_000_000), 6, "the same, far away");
        assert_eq!(ahead(10_000_000, 8, 300_000), 1);
        assert_eq!(ahead(1_000, 8, 300_000), 8 * MAX_AHEAD);
    }

    #[test]
    fn calls_with_much_to_unpickle_are_not_light() {
        let mut pace = Pace::default();
        assert!(!pace.load(F).light, "unknown");
        pace.learn(F, Took { ran: 100, whole: 300 });
        assert!(pace.load(F).light);
        (0..20).for_each(|_| pace.learn(F, Took { ran: 100, whole: 9_000 }));
        assert!(!pace.load(F).light && pace.cost(F) < 2_000);
    }
}
