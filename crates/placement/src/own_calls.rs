//! Calls of one client at a server: how many there are and were, and how long the next one waits for them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The calls of a client at a server. Times are seconds of any clock, and do not decrease.
///
/// As many calls run as the server has cores, the others wait in the order in which they began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientCalls {
    cores: usize,
    /// Calls that run, and when they are expected to end.
    running: Vec<(ClientCall, f64)>,
    /// Calls that wait, and how long they are expected to keep a core; and the sum of that.
    waiting: VecDeque<(ClientCall, f64)>,
    queued: f64,
    /// Calls that have begun so far.
    begun: u64,
    /// Changes: times, and the number of calls from then on.
    history: VecDeque<(f64, u32)>,
}

/// A call that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientCall(u64);

/// Maximum number of waiting calls that are followed to their cores. Of more, only the sum counts.
const MOST_FOLLOWED: usize = 1024;
/// Changes that are remembered, for how long, and the time within which two count as one, s.
const MOST_CHANGES: usize = 4096;
const REMEMBERED: f64 = 120.0;
const RESOLUTION: f64 = 1e-3;

impl ClientCalls {
    /// Number of calls.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.running.len() + self.waiting.len()).unwrap_or(u32::MAX)
    }

    /// Number of calls at an earlier time.
    #[must_use]
    pub fn before(&self, at: f64) -> u32 {
        let later = self.history.partition_point(|&(time, _)| time <= at);
        later.checked_sub(1).map_or(0, |index| self.history[index].1)
    }

    /// How long a call that begins now waits for a core.
    #[must_use]
    pub fn wait(&self, now: f64) -> f64 {
        if self.running.len() < self.cores || self.running.is_empty() {
            return 0.0;
        }
        // A call that is late by some time is expected to take as long again.
        let left = self.running.iter().map(|&(_, end)| (end - now).abs());
        if self.waiting.len() > MOST_FOLLOWED {
            return (left.sum::<f64>() + self.queued) / self.running.len() as f64;
        }
        // Positive numbers have the order of their bits.
        let mut free: BinaryHeap<Reverse<u64>> = left.map(|left| Reverse(left.to_bits())).collect();
        for &(_, seconds) in &self.waiting {
            if let Some(mut first) = free.peek_mut() {
                *first = Reverse((f64::from_bits(first.0) + seconds).to_bits());
            }
        }
        free.peek().map_or(0.0, |first| f64::from_bits(first.0))
    }

    /// Begins a call that is expected to keep one of the server's cores for some seconds.
    pub fn begin(&mut self, now: f64, seconds: f64, cores: u32) -> ClientCall {
        // A time that nobody knows keeps no core.
        let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        self.cores = (cores as usize).max(1);
        let call = ClientCall(self.begun);
        self.begun += 1;
        self.waiting.push_back((call, seconds));
        self.queued += seconds;
        self.start(now);
        self.note(now);
        call
    }

    /// Ends a call; the next one starts.
    pub fn end(&mut self, now: f64, call: ClientCall) {
        if let Some(index) = self.running.iter().position(|&(one, _)| one == call) {
            self.running.swap_remove(index);
        } else if let Ok(index) = self.waiting.binary_search_by_key(&call, |&(one, _)| one) {
            let ended = self.waiting.remove(index);
            self.queued -= ended.map_or(0.0, |(_, seconds)| seconds);
        }
        self.start(now);
        self.note(now);
    }

    fn start(&mut self, now: f64) {
        while self.running.len() < self.cores {
            let Some((call, seconds)) = self.waiting.pop_front() else {
                // Rounding errors do not add up.
                self.queued = 0.0;
                return;
            };
            self.queued -= seconds;
            self.running.push((call, now + seconds));
        }
    }

    fn note(&mut self, now: f64) {
        let count = self.count();
        let full = self.history.len() >= MOST_CHANGES;
        while self.history.len() > 1 && (full || self.history[1].0 < now - REMEMBERED) {
            self.history.pop_front();
            if full {
                break;
            }
        }
        match self.history.back_mut() {
            Some((at, last)) if now - *at < RESOLUTION => *last = count,
            _ => self.history.push_back((now, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_wait_when_no_core_is_free() {
        let mut calls = ClientCalls::default();
        assert_eq!(calls.wait(10.0), 0.0);
        calls.begin(10.0, 3.0, 2);
        assert_eq!(calls.wait(10.0), 0.0);
        calls.begin(10.0, 1.0, 2);
        assert_eq!(calls.wait(10.0), 1.0);
        assert_eq!(calls.wait(10.5), 0.5);
        calls.begin(10.0, 5.0, 2);
        assert_eq!((calls.wait(10.0), calls.count()), (3.0, 3));
    }

    #[test]
    fn an_end_moves_the_calls_behind_it() {
        let mut calls = ClientCalls::default();
        let [first, second, third] = [2.0, 2.0, 2.0].map(|seconds| calls.begin(0.0, seconds, 1));
        assert_eq!(calls.wait(0.0), 6.0);
        calls.end(3.0, first);
        assert_eq!(calls.wait(3.0), 4.0);
        calls.end(4.0, second);
        assert_eq!(calls.wait(4.0), 2.0);
        calls.end(4.5, third);
        assert_eq!((calls.wait(4.5), calls.count()), (0.0, 0));
    }

    #[test]
    fn the_next_call_gets_the_core_that_is_free_first() {
        let mut calls = ClientCalls::default();
        calls.begin(0.0, 10.0, 2);
        let second = calls.begin(0.0, 20.0, 2);
        let third = calls.begin(0.0, 5.0, 2);
        assert_eq!(calls.wait(0.0), 15.0);
        calls.end(1.0, second);
        assert_eq!(calls.wait(1.0), 5.0);
        calls.begin(1.0, 7.0, 2);
        calls.end(1.0, third);
        assert_eq!((calls.wait(1.0), calls.count()), (7.0, 2));
    }

    #[test]
    fn a_call_that_is_late_is_expected_to_take_as_long_again() {
        let mut calls = ClientCalls::default();
        calls.begin(0.0, 1.0, 1);
        assert_eq!([0.5, 1.0, 4.0].map(|now| calls.wait(now)), [0.5, 0.0, 3.0]);
        // A call that waits may end first, if it is cancelled.
        let cancelled = calls.begin(4.0, 1.0, 1);
        calls.end(4.0, cancelled);
        calls.end(4.0, cancelled);
        assert_eq!((calls.wait(4.0), calls.count()), (3.0, 1));
    }

    #[test]
    fn of_many_calls_the_sum_counts() {
        let mut calls = ClientCalls::default();
        for _ in 0..2 * MOST_FOLLOWED {
            calls.begin(0.0, 1.0, 4);
        }
        assert_eq!(calls.wait(0.0), 512.0);
    }

    #[test]
    fn earlier_numbers_are_remembered_for_a_while() {
        let mut calls = ClientCalls::default();
        let first = calls.begin(1.0, 1.0, 1);
        calls.begin(2.0, 1.0, 1);
        calls.begin(2.0, 1.0, 1);
        calls.end(4.0, first);
        assert_eq!(
            [0.5, 1.0, 1.5, 2.0, 3.9, 4.0, 9.0].map(|at| calls.before(at)),
            [0, 1, 1, 3, 3, 2, 2]
        );
        for at in 0..100_000 {
            let call = calls.begin(f64::from(at), 0.0, 1);
            calls.end(f64::from(at) + 0.5, call);
        }
        assert!(calls.history.len() <= 300, "{}", calls.history.len());
        assert_eq!([99_990.2, 99_990.7].map(|at| calls.before(at)), [3, 2]);
        let (mut dense, mut now) = (ClientCalls::default(), 0.0);
        for _ in 0..100_000 {
            now += 0.01;
            dense.begin(now, 0.0, 1);
        }
        assert!(dense.history.len() <= MOST_CHANGES, "{}", dense.history.len());
        assert_eq!(dense.before(now), 100_000);
    }

    #[test]
    fn times_and_cores_that_make_no_sense_do_not_count() {
        let mut calls = ClientCalls::default();
        for seconds in [f64::INFINITY, f64::NAN, -1.0] {
            calls.begin(1.0, seconds, 0);
        }
        assert_eq!(calls.wait(1.0), 0.0);
        calls.begin(1.0, 1.0, u32::MAX);
        assert_eq!(calls.wait(1.0), 0.0);
    }
}
