//! What a client measures of a server by its own calls.

use std::borrow::Borrow;

use crate::average::Average;
use crate::knowledge::Measured;
use crate::own_calls::{ClientCall, ClientCalls};

/// Smallest transfer that measures the bandwidth, bytes.
const LEAST_TRANSFER: f64 = 65_536.0;
/// Time from which on a run says something about the speed in operations, s: less is overhead.
const LEAST_RUN: f64 = 1e-3;
/// No wait at all, s.
const LEAST_QUEUE: f64 = 1e-9;

/// A call that has returned. Times are seconds of one clock; NaN: unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallTimes {
    /// When the client began to send the arguments.
    pub sent: f64,
    /// When the server had them.
    pub received: f64,
    /// When the function began.
    pub started: f64,
    /// When the function ended.
    pub computed: f64,
    /// When the client had the results.
    pub returned: f64,
    /// Largest error of the difference of two hosts' times.
    pub error: f64,
    /// Bytes of the arguments.
    pub bytes_in: f64,
    /// Bytes of the results.
    pub bytes_out: f64,
    /// Operations by `CalcOrder`; without it, how often the function ran.
    pub operations: f64,
    /// Whether the function has `CalcOrder`.
    pub has_cost: bool,
}

/// Calls and measurements of a client at a server. `F` identifies functions.
#[derive(Clone, Debug)]
pub struct Measurements<F> {
    calls: ClientCalls,
    inbound: Transfers,
    outbound: Transfers,
    /// Time that calls have waited at the server for calls of others, s.
    queue: Average,
    /// For each core that calls of the client have had, when the last of them ended.
    freed: Vec<f64>,
    cores: u32,
    /// By function: operations per second, or calls per second without `CalcOrder`.
    speeds: Vec<(F, Average)>,
}

impl<F> Default for Measurements<F> {
    fn default() -> Measurements<F> {
        Measurements {
            calls: ClientCalls::default(),
            inbound: Transfers::default(),
            outbound: Transfers::default(),
            queue: Average::default(),
            freed: Vec::new(),
            cores: 1,
            speeds: Vec::new(),
        }
    }
}

/// Transfers in one direction. A connection has one at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Transfers {
    bandwidth: Average,
    /// End of the last one.
    last: f64,
}

impl Transfers {
    /// Adds a transfer that began when the connection was free of earlier ones. Its bandwidth does not count if it is
    /// small, or shorter than the possible error of its time.
    fn add(&mut self, bytes: f64, from: f64, until: f64, error: f64) {
        let begun = if self.last < until { self.last.max(from) } else { from };
        self.last = self.last.max(until);
        let seconds = until - begun;
        if bytes >= LEAST_TRANSFER && seconds > error {
            self.bandwidth.add(bytes / seconds);
        }
    }
}

impl<F> Measurements<F> {
    /// Counts a call that begins, and is expected to keep one of the server's cores for some seconds.
    pub fn begin(&mut self, now: f64, seconds: f64, cores: u32) -> ClientCall {
        self.cores = cores.max(1);
        self.calls.begin(now, seconds, cores)
    }

    /// A call has ended.
    pub fn end(&mut self, now: f64, call: ClientCall) {
        self.calls.end(now, call);
    }

    /// Learns from a call that has returned.
    pub fn learn<Q: Eq + ToOwned<Owned = F> + ?Sized>(&mut self, function: &Q, times: &CallTimes)
    where
        F: Borrow<Q>,
    {
        let CallTimes { sent, received, started, computed, returned, error, .. } = *times;
        let run = computed - started;
        if run > if times.has_cost { LEAST_RUN } else { 0.0 } {
            let index = self.speeds.iter().position(|(known, _)| known.borrow() == function);
            let index = index.unwrap_or_else(|| {
                self.speeds.push((function.to_owned(), Average::default()));
                self.speeds.len() - 1
            });
            self.speeds[index].1.add(times.operations / run);
        }
        if received.is_finite() && started.is_finite() {
            self.add_queue(received, started, computed);
        }
        self.inbound.add(times.bytes_in, sent, received, error);
        self.outbound.add(times.bytes_out, computed, returned, error);
    }

    /// Adds the time that a call has waited at the server since a core was free of the client's earlier calls.
    fn add_queue(&mut self, received: f64, started: f64, computed: f64) {
        let mut since = received;
        if self.freed.len() >= self.cores as usize {
            let first = (0..self.freed.len())
                .min_by(|one, other| self.freed[*one].total_cmp(&self.freed[*other]));
            since = first.map_or(since, |index| since.max(self.freed.swap_remove(index)));
        }
        self.queue.add((started - since).max(LEAST_QUEUE));
        self.freed.push(computed);
    }

    /// Measurements for a call of a function. `announced`: when the server announced its load.
    pub fn measured<Q: Eq + ?Sized>(&self, function: &Q, announced: f64, now: f64) -> Measured
    where
        F: Borrow<Q>,
    {
        let known = self.speeds.iter().find(|(known, _)| known.borrow() == function);
        Measured {
            speed: known.and_then(|(_, average)| average.get()),
            bandwidth_in: self.inbound.bandwidth.get(),
            bandwidth_out: self.outbound.bandwidth.get(),
            announced_calls: self.calls.before(announced),
            calls: self.calls.count(),
            wait: self.calls.wait(now),
            queue: self.queue.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: f64 = f64::NAN;
    const TIMES: CallTimes = CallTimes {
        sent: UNKNOWN,
        received: UNKNOWN,
        started: UNKNOWN,
        computed: UNKNOWN,
        returned: UNKNOWN,
        error: 0.0,
        bytes_in: 0.0,
        bytes_out: 0.0,
        operations: 1.0,
        has_cost: false,
    };

    fn learned(cores: u32, calls: &[CallTimes]) -> Measured {
        let mut known = Measurements::<u32>::default();
        let call = known.begin(0.0, 0.0, cores);
        known.end(0.0, call);
        calls.iter().for_each(|times| known.learn(&0, times));
        known.measured(&0, 0.0, 0.0)
    }

    #[test]
    fn short_runs_and_small_transfers_say_nothing() {
        let short = CallTimes { started: 1.0, computed: 1.0 + 1e-4, ..TIMES };
        let counted = CallTimes { operations: 1e6, has_cost: true, ..short };
        assert_eq!(learned(1, &[counted]).speed, None);
        assert!((learned(1, &[short]).speed.unwrap() - 1e4).abs() < 1e-3);
        let transfer =
            |bytes_in, error| CallTimes { bytes_in, error, sent: 1.0, received: 1.5, ..TIMES };
        let bandwidth = |bytes, error| learned(1, &[transfer(bytes, error)]).bandwidth_in;
        assert_eq!(bandwidth(65_535.0, 0.0), None);
        assert_eq!(bandwidth(1e6, 0.5), None);
        assert_eq!(bandwidth(65_536.0, 0.4), Some(131_072.0));
        assert_eq!(learned(1, &[TIMES]), Measured::default());
    }

    #[test]
    fn transfers_wait_for_each_other() {
        // Three calls are sent at once, and their results come back together.
        let call = |received, returned| CallTimes {
            sent: 0.0,
            received,
            started: received,
            computed: 4.0,
            returned,
            bytes_in: 1e6,
            bytes_out: 2e6,
            ..TIMES
        };
        let found = learned(4, &[call(1.0, 5.0), call(2.0, 6.0), call(3.0, 7.0)]);
        assert_eq!((found.bandwidth_in, found.bandwidth_out), (Some(1e6), Some(2e6)));
        // A pause does not count, and a call may return before one that was sent earlier.
        let later = CallTimes { sent: 9.0, ..call(10.0, 11.0) };
        assert_eq!(learned(4, &[later, call(1.0, 5.0)]).bandwidth_in, Some(1e6));
    }

    #[test]
    fn waiting_for_own_calls_is_no_queue() {
        let call = |received, started, computed| CallTimes { received, started, computed, ..TIMES };
        let queue = |cores, calls: &[CallTimes]| learned(cores, calls).queue.unwrap();
        let alone = [call(0.0, 0.0, 2.0), call(0.0, 0.0, 3.0), call(0.0, 2.0, 4.0)];
        assert!(queue(2, &alone) < 1e-8);
        // On one core, the second waited 1 s for others after the first.
        let (first, second) = (call(0.0, 0.0, 2.0), call(0.0, 3.0, 4.0));
        assert!((queue(1, &[first, second]) - 0.1).abs() < 1e-6);
        assert!((queue(2, &[first, second]) - 0.3).abs() < 1e-6);
    }
}
