//! Run time of functions, and the number of calls that a worker may hold ahead.
//!
//! A worker that runs microsecond calls must find the next one waiting, or the round trip costs more than the work. A
//! worker that runs longer calls must hold none, or it delays calls while other workers idle. So calls are limited by
//! their expected time.

use crate::ids::FunctionId;
use crate::interface::OccupiedTime;

/// Work that a worker may hold, ns. A round trip takes some 20 us: 4 % of it.
pub(crate) const AHEAD: u64 = 500_000;
/// Maximum number of calls that a worker may hold without having begun them, and without having answered them.
pub(crate) const MAX_AHEAD: usize = 256;
pub(crate) const MAX_UNANSWERED: usize = 1024;
/// Minimum time that a worker spends on a call besides running its function, ns.
const OVERHEAD: u64 = 1_000;
/// Cost of waking a worker, ns: an awake worker first takes calls worth this much.
const WAKING: u64 = 20_000;
/// Maximum time of a light call, ns. Light calls run about as fast as a client makes them, so one worker keeps up. A
/// second worker would only add more and smaller messages, and more wake-ups. So light calls wait for the first one,
/// up to a limit.
const LIGHT: u64 = 1_500;
pub(crate) const LIGHT_WAITING: usize = 1024;
/// Maximum run time of a function whose replies are batched, ns.
const BATCHED: u64 = 50_000;
/// Limit on the weight of a call that takes longer than expected, as a multiple of the expectation. The limit is
/// lower for the question whether calls are light, because other load on the machine does not make them heavy.
const SURPRISE: u64 = 16;
/// The time that a link takes grows by this fraction with each call that takes longer.
const LINK_GROWTH: u64 = 1024;
const LIGHT_SURPRISE: u64 = 2;
/// A host holds work for this fraction of the round-trip time more than for that time, as run times scatter.
const SPARE: u64 = 16;

/// The load of a function's call for a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Its expected cost, ns.
    pub(crate) cost: u64,
    /// Whether one worker keeps up with such calls.
    pub(crate) light: bool,
    /// Work, ns, that a worker may hold including this call before waking another one is preferred.
    pub(crate) awake: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Expected times by function number; `None` before the first reply.
    expected: Vec<Option<OccupiedTime>>,
}

impl Pace {
    /// Expected cost of a call, ns. A call of [`AHEAD`] or more is sent alone.
    pub(crate) fn cost(&self, function: FunctionId) -> u64 {
        self.expected(function).map_or(AHEAD, |took| took.ran.saturating_add(OVERHEAD))
    }

    /// The same, if the function is known.
    pub(crate) fn known_cost(&self, function: FunctionId) -> Option<u64> {
        self.expected(function).map(|took| took.ran.saturating_add(OVERHEAD))
    }

    /// The load of a call of this function.
    pub(crate) fn load(&self, function: FunctionId) -> Load {
        let light = self.expected(function).is_some_and(|took| took.whole <= LIGHT);
        let awake = if light { AHEAD } else { WAKING };
        Load { cost: self.cost(function), light, awake }
    }

    pub(crate) fn batched(&self, function: FunctionId) -> bool {
        self.expected(function).is_some_and(|took| took.ran <= BATCHED)
    }

    fn expected(&self, function: FunctionId) -> Option<OccupiedTime> {
        self.expected.get(function.0 as usize).copied().flatten()
    }

    pub(crate) fn forget(&mut self, function: FunctionId) {
        if let Some(expected) = self.expected.get_mut(function.0 as usize) {
            *expected = None;
        }
    }

    /// Learns from a call. One slow call among thousands of fast ones, as after a page fault or a lost time slice,
    /// hardly counts; several in a row do.
    pub(crate) fn learn(&mut self, function: FunctionId, took: OccupiedTime) {
        let index = function.0 as usize;
        if index >= self.expected.len() {
            self.expected.resize(index + 1, None);
        }
        let OccupiedTime { ran, whole } = took;
        let expected = self.expected[index].unwrap_or(took);
        self.expected[index] = Some(OccupiedTime {
            ran: drawn(expected.ran, ran, SURPRISE),
            whole: drawn(expected.whole, whole, LIGHT_SURPRISE),
        });
    }
}

/// Times of a function on one host, ns.
#[derive(Clone, Copy, Debug)]
struct HostTimes {
    ran: u64,
    /// Time between sending a call to a free worker and its answer.
    turnaround: u64,
    /// What of the turnaround the link takes when no other result is on it: the shortest observed time, which grows
    /// slowly, because links change.
    link: u64,
}

/// Calls of a function on one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flow {
    /// Calls per ns that it answers at most.
    pub(crate) rate: f64,
    /// Time between sending a call behind all that it may hold and its answer, ns.
    pub(crate) time: f64,
}

/// Times of functions on one host, which depend on its speed and its link.
#[derive(Debug, Default)]
pub struct HostPace {
    times: Vec<Option<HostTimes>>,
}

impl HostPace {
    /// Learns from a call. `turnaround`: if a worker was free when it was sent.
    pub fn learn(&mut self, function: FunctionId, took: OccupiedTime, turnaround: Option<u64>) {
        let index = function.0 as usize;
        let OccupiedTime { ran, whole } = took;
        // A worker's first call of a function may import modules for seconds, which is not the link's time.
        let link = |turnaround: u64| turnaround.saturating_sub(ran.max(whole));
        if index >= self.times.len() {
            self.times.resize(index + 1, None);
        }
        let first =
            turnaround.map(|turnaround| HostTimes { ran, turnaround, link: link(turnaround) });
        let Some(known) = self.times[index].or(first) else { return };
        let grown = known.link + known.link / LINK_GROWTH;
        self.times[index] = Some(HostTimes {
            ran: drawn(known.ran, ran, SURPRISE),
            turnaround: turnaround
                .map_or(known.turnaround, |seen| drawn(known.turnaround, seen, SURPRISE)),
            link: turnaround.map_or(known.link, |seen| grown.min(link(seen))),
        });
    }

    pub(crate) fn forget(&mut self, function: FunctionId) {
        if let Some(times) = self.times.get_mut(function.0 as usize) {
            *times = None;
        }
    }

    fn of(&self, function: FunctionId) -> Option<HostTimes> {
        self.times.get(function.0 as usize).copied().flatten()
    }

    /// Expected time between sending a call to a free worker and its answer, ns, if it is known.
    pub(crate) fn turnaround(&self, function: FunctionId) -> Option<u64> {
        Some(self.of(function)?.turnaround)
    }

    /// Number of calls that a host is sent beyond its number of workers: what those run while a message and its answer
    /// are on their way, rounded to whole calls. 0 for a function that has not run there.
    #[must_use]
    pub fn ahead(&self, function: FunctionId, workers: usize, round_trip: u64) -> usize {
        let Some(times) = self.of(function) else { return 0 };
        let cost = times.ran.saturating_add(OVERHEAD);
        let away = round_trip.max(times.link);
        let spare = AHEAD.saturating_add(round_trip / SPARE);
        let work = away.saturating_add(spare).saturating_mul(workers as u64);
        let calls = work.saturating_add(cost / 2) / cost;
        usize::try_from(calls).unwrap_or(usize::MAX).min(workers * MAX_AHEAD)
    }

    /// What a host with so many workers, and calls ahead of them, does with calls of this function.
    pub(crate) fn flow(
        &self,
        function: FunctionId,
        workers: usize,
        ahead: usize,
        round_trip: u64,
    ) -> Option<Flow> {
        let times = self.of(function)?;
        let cost = times.ran.saturating_add(OVERHEAD) as f64;
        let rate = workers as f64 / cost;
        let away = round_trip.max(times.link) as f64;
        Some(Flow { rate, time: away + cost + ahead as f64 / rate })
    }
}

/// The expected time, ns, adjusted towards the observed one.
fn drawn(expected: u64, seen: u64, surprise: u64) -> u64 {
    let seen = seen.min(expected.saturating_mul(surprise));
    (expected - expected / 8 + seen / 8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: FunctionId = FunctionId(3);
    const SLOW: OccupiedTime = OccupiedTime { ran: 1_000_000_000, whole: 1_000_000_000 };

    fn fast() -> Pace {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.learn(F, OccupiedTime { ran: 2_000, whole: 3_000 }));
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

    fn took(ran: u64) -> OccupiedTime {
        OccupiedTime { ran, whole: ran }
    }

    #[test]
    fn hosts_are_sent_ahead_what_a_message_takes() {
        let ahead = |ran, workers, round_trip| {
            let mut pace = HostPace::default();
            pace.learn(F, took(ran), Some(ran + round_trip));
            pace.ahead(F, workers, round_trip)
        };
        assert_eq!(HostPace::default().ahead(F, 8, 300_000), 0, "unknown");
        assert_eq!(ahead(100_000_000, 8, 300_000), 0, "a tenth of a second, near");
        assert_eq!(ahead(100_000_000, 8, 80_000_000), 7, "the same, far away");
        assert_eq!(ahead(10_000_000, 8, 300_000), 1);
        assert_eq!(ahead(1_000, 8, 300_000), 8 * MAX_AHEAD);
    }

    #[test]
    fn a_host_answers_a_call_behind_all_that_it_holds_after_their_time_and_the_way() {
        let mut pace = HostPace::default();
        assert_eq!(pace.flow(F, 8, 0, 80_000_000), None, "unknown");
        pace.learn(F, took(4_999_000), Some(84_999_000));
        let flow = pace.flow(F, 8, 128, 80_000_000).unwrap();
        assert!((flow.rate * 1e9 - 1600.0).abs() < 1.0, "{flow:?}");
        assert!((flow.time / 1e6 - (80.0 + 5.0 + 80.0)).abs() < 0.1, "{flow:?}");
    }

    #[test]
    fn the_first_import_of_a_module_does_not_make_the_link_longer() {
        let (ran, import, away) = (5_000_000, 3_000_000_000, 80_000_000);
        let mut pace = HostPace::default();
        pace.learn(F, OccupiedTime { ran, whole: import + ran }, Some(import + ran + away));
        let mut warm = HostPace::default();
        warm.learn(F, took(ran), Some(ran + away));
        assert_eq!(pace.ahead(F, 8, away), warm.ahead(F, 8, away));
        assert_eq!(pace.flow(F, 8, 0, away), warm.flow(F, 8, 0, away));
    }

    #[test]
    fn results_that_wait_for_the_link_do_not_make_it_longer() {
        let mut pace = HostPace::default();
        let (ran, link) = (12_000_000_000, 1_500_000_000);
        (1..=10).for_each(|n| pace.learn(F, took(ran), Some(ran + n * link)));
        assert_eq!(pace.ahead(F, 10, 80_000_000), 1);
        assert!(pace.turnaround(F).unwrap() > ran + 2 * link);
        pace.learn(F, took(ran), None);
        assert_eq!(pace.ahead(F, 10, 80_000_000), 1);
    }

    #[test]
    fn calls_with_much_to_unpickle_are_not_light() {
        let mut pace = Pace::default();
        assert!(!pace.load(F).light, "unknown");
        pace.learn(F, OccupiedTime { ran: 100, whole: 300 });
        assert!(pace.load(F).light);
        (0..20).for_each(|_| pace.learn(F, OccupiedTime { ran: 100, whole: 9_000 }));
        assert!(!pace.load(F).light && pace.cost(F) < 2_000);
    }
}
