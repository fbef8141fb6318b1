//! Rates per second from two samples of a grid.

use std::collections::HashMap;

use gridrpc_client::live::{CallCounts, FunctionStats, HostStats, Stats};

/// The current sample of a grid, and the previous one.
#[derive(Debug)]
pub(super) struct Rates {
    pub(super) now: Stats,
    before: Option<Stats>,
}

/// Rates of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CallRates {
    /// Completed calls.
    pub(super) calls: f64,
    pub(super) argument_bytes: f64,
    pub(super) result_bytes: f64,
    /// Average number of workers that are busy with them.
    pub(super) workers: f64,
}

impl Rates {
    /// Starts with one sample: rates are averages since the grid was opened.
    pub(super) fn new(now: Stats) -> Rates {
        Rates { now, before: None }
    }

    /// Adds a sample.
    pub(super) fn note(&mut self, now: Stats) {
        self.before = Some(std::mem::replace(&mut self.now, now));
    }

    fn seconds(&self) -> f64 {
        let before = self.before.as_ref().map_or(0.0, |before| before.uptime);
        (self.now.uptime - before).max(1e-3)
    }

    fn calls(&self, now: &CallCounts, before: Option<&CallCounts>) -> CallRates {
        let seconds = self.seconds();
        let nothing = CallCounts::default();
        let before = before.unwrap_or(&nothing);
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        CallRates {
            calls: per_second(now.ended(), before.ended()),
            argument_bytes: per_second(now.argument_bytes, before.argument_bytes),
            result_bytes: per_second(now.result_bytes, before.result_bytes),
            workers: (now.seconds - before.seconds).max(0.0) / seconds,
        }
    }

    /// Rates of all calls.
    pub(super) fn all(&self) -> CallRates {
        self.calls(&self.now.calls, self.before.as_ref().map(|before| &before.calls))
    }

    /// Rates of each function, the busiest first.
    pub(super) fn functions(&self) -> Vec<(&FunctionStats, CallRates)> {
        let before = self.before.iter().flat_map(|before| &before.functions);
        let before: HashMap<&str, &CallCounts> =
            before.map(|function| (function.name.as_str(), &function.calls)).collect();
        let rates = |function: &'_ FunctionStats| {
            self.calls(&function.calls, before.get(function.name.as_str()).copied())
        };
        let mut all: Vec<_> =
            self.now.functions.iter().map(|function| (function, rates(function))).collect();
        // A stable sort: equally busy functions keep the order of their totals.
        all.sort_by(|(_, a), (_, b)| b.workers.total_cmp(&a.workers));
        all
    }

    /// Answered calls per second of each host.
    pub(super) fn hosts(&self) -> Vec<(&HostStats, f64)> {
        let before = self.before.iter().flat_map(|before| &before.hosts);
        let before: HashMap<(&str, &str), u64> =
            before.map(|host| ((&*host.server, &*host.host), host.calls)).collect();
        let rate = |host: &HostStats| {
            let before = before.get(&(&*host.server, &*host.host)).copied().unwrap_or(0);
            host.calls.saturating_sub(before) as f64 / self.seconds()
        };
        self.now.hosts.iter().map(|host| (host, rate(host))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(uptime: f64, returned: u64, seconds: f64) -> Stats {
        let calls = CallCounts { submitted: returned + 1, returned, seconds, ..Default::default() };
        let function = FunctionStats { name: "f".into(), calls: calls.clone() };
        let host = HostStats { calls: returned, ..Default::default() };
        let (functions, hosts) = (vec![function], vec![host]);
        Stats { uptime, calls, functions, hosts, ..Default::default() }
    }

    #[test]
    fn the_first_look_tells_the_average_and_others_what_has_been_since() {
        let mut rates = Rates::new(stats(10.0, 100, 5.0));
        assert_eq!((rates.all().calls, rates.all().workers), (10.0, 0.5));
        rates.note(stats(12.0, 180, 8.0));
        assert_eq!((rates.all().calls, rates.all().workers), (40.0, 1.5));
        assert_eq!(rates.functions()[0].1, rates.all());
        assert_eq!(rates.hosts()[0].1, 40.0);
    }
}
