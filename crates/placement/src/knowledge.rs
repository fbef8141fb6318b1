//! What a client knows of servers: the answers of a directory, corrected by its own calls and measurements.

use crate::average::Average;
use crate::prediction::{ASSUMED_BANDWIDTH, Candidate};

/// Age up to which an answer of a directory is used, s.
pub const ANSWER_VALID: f64 = 2.0;
/// Age up to which an answer is used while the next one is fetched, s.
pub const ANSWER_STALE: f64 = 20.0;
/// Bytes from which on a transfer says something about the bandwidth.
const LEAST_TRANSFER: f64 = 65_536.0;
/// Time from which on a run says something about the speed in operations, s: less is overhead.
const LEAST_RUN: f64 = 1e-3;

/// What a directory says of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Announced {
    /// Operations per second of a call that runs alone.
    pub speed: f64,
    /// Calls that run or wait, for each core.
    pub load: f64,
    /// Number of cores.
    pub cores: u32,
    /// Whether it takes no calls now.
    pub is_full: bool,
}

/// What a client has measured of a server, and did since the announcement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Operations per second of the function.
    pub speed: Option<f64>,
    /// Bytes per second to the server.
    pub bandwidth_in: Option<f64>,
    /// Bytes per second from the server.
    pub bandwidth_out: Option<f64>,
    /// Calls of the client that the announced load does not count.
    pub new_calls: u32,
}

/// The candidates for a call of a function, in the order of the servers. A server that has not been measured is assumed
/// to be as good as the best, so that it is tried. `has_cost`: the function has `CalcOrder`, so that announced speeds
/// are in its unit.
pub fn candidates(servers: &[(Announced, Measured)], has_cost: bool, found: &mut Vec<Candidate>) {
    let best = |of: fn(&Measured) -> Option<f64>| {
        servers.iter().filter_map(|(_, measured)| of(measured)).reduce(f64::max)
    };
    let speed = best(|measured| measured.speed);
    let to = best(|measured| measured.bandwidth_in).unwrap_or(ASSUMED_BANDWIDTH);
    let from = best(|measured| measured.bandwidth_out).unwrap_or(ASSUMED_BANDWIDTH);
    found.clear();
    found.extend(servers.iter().map(|(announced, measured)| Candidate {
        speed: measured.speed.or(speed).unwrap_or(if has_cost { announced.speed } else { 1.0 }),
        load: announced.load + f64::from(measured.new_calls) / f64::from(announced.cores.max(1)),
        bandwidth_in: measured.bandwidth_in.unwrap_or(to),
        bandwidth_out: measured.bandwidth_out.unwrap_or(from),
        bytes_there: 0.0,
        is_full: announced.is_full,
        is_measured: measured.speed.is_some(),
    }));
}

/// Calls of a client on a server that have not ended, by when they began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnCalls(Vec<f64>);

impl OwnCalls {
    /// A call begins; times do not decrease.
    pub fn begin(&mut self, now: f64) {
        self.0.push(now);
    }

    /// A call that began at this time has ended.
    pub fn end(&mut self, begun: f64) {
        let at = self.0.partition_point(|&one| one < begun);
        if self.0.get(at) == Some(&begun) {
            self.0.remove(at);
        }
    }

    /// How many began at this time or later: those that a load announced then does not count.
    #[must_use]
    pub fn since(&self, announced: f64) -> u32 {
        let before = self.0.partition_point(|&one| one < announced);
        u32::try_from(self.0.len() - before).unwrap_or(u32::MAX)
    }
}

impl Average {
    /// Adds the speed of a run. Short ones do not count if the speed is in operations.
    pub fn add_run(&mut self, operations: f64, seconds: f64, has_cost: bool) {
        if seconds > if has_cost { LEAST_RUN } else { 0.0 } {
            self.add(operations / seconds);
        }
    }

    /// Adds the bandwidth of a transfer, unless it is small, or shorter than the possible `error` of its time.
    pub fn add_transfer(&mut self, bytes: f64, seconds: f64, error: f64) {
        if bytes >= LEAST_TRANSFER && seconds > error {
            self.add(bytes / seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Announced = Announced { speed: 1e9, load: 0.5, cores: 4, is_full: false };

    fn of(servers: &[(Announced, Measured)], has_cost: bool) -> Vec<Candidate> {
        let mut found = Vec::new();
        candidates(servers, has_cost, &mut found);
        found
    }

    #[test]
    fn what_is_not_measured_is_assumed_to_be_as_good_as_the_best() {
        let measured =
            Measured { speed: Some(3e9), bandwidth_in: Some(1e6), ..Measured::default() };
        let slower = Measured { speed: Some(2e9), ..measured };
        let servers = [(IDLE, slower), (IDLE, Measured::default()), (IDLE, measured)];
        let found = of(&servers, true);
        assert_eq!(found.iter().map(|one| one.speed).collect::<Vec<_>>(), [2e9, 3e9, 3e9]);
        assert_eq!(found[1].bandwidth_in, 1e6);
        assert_eq!(found[1].bandwidth_out, ASSUMED_BANDWIDTH);
        assert_eq!(
            found.iter().map(|one| one.is_measured).collect::<Vec<_>>(),
            [true, false, true]
        );
    }

    #[test]
    fn announced_speeds_count_until_one_is_measured_and_only_with_a_cost() {
        assert_eq!(of(&[(IDLE, Measured::default())], true)[0].speed, 1e9);
        assert_eq!(of(&[(IDLE, Measured::default())], false)[0].speed, 1.0);
    }

    #[test]
    fn own_new_calls_add_to_the_announced_load() {
        let busy = Measured { new_calls: 6, ..Measured::default() };
        assert_eq!(of(&[(IDLE, busy)], true)[0].load, 2.0);
        let lying = Announced { cores: 0, ..IDLE };
        assert_eq!(of(&[(lying, busy)], true)[0].load, 6.5);
    }

    #[test]
    fn own_calls_are_those_since_the_announcement_that_have_not_ended() {
        let mut calls = OwnCalls::default();
        for at in [1.0, 2.0, 2.0, 5.0] {
            calls.begin(at);
        }
        assert_eq!([0.0, 2.0, 2.5, 6.0].map(|at| calls.since(at)), [4, 3, 1, 0]);
        calls.end(2.0);
        calls.end(7.0);
        assert_eq!([0.0, 2.0, 2.5].map(|at| calls.since(at)), [3, 2, 1]);
    }

    #[test]
    fn short_runs_and_small_transfers_say_nothing() {
        let mut average = Average::default();
        average.add_run(1e6, 1e-3, true);
        average.add_transfer(65_535.0, 1.0, 0.0);
        average.add_transfer(1e6, 0.1, 0.1);
        assert_eq!(average.get(), None);
        average.add_run(1.0, 1e-4, false);
        assert_eq!(average.get(), Some(1e4));
        let mut bandwidth = Average::default();
        bandwidth.add_transfer(65_536.0, 0.5, 0.4);
        assert_eq!(bandwidth.get(), Some(131_072.0));
    }
}
