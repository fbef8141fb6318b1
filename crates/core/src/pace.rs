//! How long functions run, and so how many calls a worker may hold ahead.
//!
//! A worker that runs microsecond calls must find the next one waiting, or the round trip
//! costs more than the work. A worker that runs longer calls must hold none, or it keeps
//! calls waiting while others idle. So calls are counted by the time they are expected to take.

use crate::ids::FunctionId;

/// Work that a worker may hold, ns. A round trip is some 20 us: 4 % of it.
pub(crate) const AHEAD: u64 = 500_000;
/// The most calls a worker may hold that it has not begun, and that it has not answered.
pub(crate) const MAX_AHEAD: usize = 256;
pub(crate) const MAX_UNANSWERED: usize = 1024;
/// What a worker spends on a call beside running its function, ns: about the least that it can be.
const OVERHEAD: u64 = 1_000;
/// What it costs to wake a worker, ns: one that is awake takes calls worth so much first.
pub(crate) const WAKING: u64 = 20_000;
/// A function that runs at most this long has its replies sent together, ns.
const BATCHED: u64 = 50_000;
/// A call that takes longer than expected may count this many times the expectation.
const SURPRISE: u64 = 16;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Expected run time, ns, by function number; `None` before the first reply.
    expected: Vec<Option<u64>>,
}

impl Pace {
    /// What a call is expected to cost, ns; [`AHEAD`] and more means that it is sent alone.
    pub(crate) fn cost(&self, function: FunctionId) -> u64 {
        self.expected(function).map_or(AHEAD, |ran| ran.saturating_add(OVERHEAD))
    }

    pub(crate) fn batched(&self, function: FunctionId) -> bool {
        self.expected(function).is_some_and(|ran| ran <= BATCHED)
    }

    fn expected(&self, function: FunctionId) -> Option<u64> {
        self.expected.get(function.0 as usize).copied().flatten()
    }

    pub(crate) fn forget(&mut self, function: FunctionId) {
        if let Some(expected) = self.expected.get_mut(function.0 as usize) {
            *expected = None;
        }
    }

    /// Learns from a call that ran for `ns`. One slow call among thousands of fast ones
    /// (a page fault, a time slice lost) hardly counts; some in a row do.
    pub(crate) fn learn(&mut self, function: FunctionId, ns: u64) {
        let index = function.0 as usize;
        if index >= self.expected.len() {
            self.expected.resize(index + 1, None);
        }
        let ns = ns.max(1);
        let expected = self.expected[index].map_or(ns, |old| {
            let seen = ns.min(old.saturating_mul(SURPRISE));
            old - old / 8 + seen / 8
        });
        self.expected[index] = Some(expected.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: FunctionId = FunctionId(3);

    #[test]
    fn unknown_functions_are_sent_alone() {
        assert_eq!(Pace::default().cost(F), AHEAD);
    }

    #[test]
    fn one_slow_call_among_fast_ones_hardly_counts() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.learn(F, 2_000));
        pace.learn(F, 1_000_000_000);
        assert!(pace.cost(F) < 10_000, "{}", pace.cost(F));
    }

    #[test]
    fn a_function_that_became_slow_is_sent_alone_after_some_calls() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.learn(F, 2_000));
        (0..10).for_each(|_| pace.learn(F, 1_000_000_000));
        assert!(pace.cost(F) >= AHEAD, "{}", pace.cost(F));
    }
}
