//! Choice among servers.

use std::str::FromStr;

use crate::prediction::{Candidate, Work};

/// Least time of a call, s.
const SHORTEST: f64 = 1e-9;

/// How the server of a call is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The least predicted time. Where loads are old, calls are spread as `shares` says.
    #[default]
    LeastTime,
    /// The least load.
    LeastLoad,
    /// The least predicted time of two that are drawn at random: clients with the same old loads spread out.
    TwoChoices,
    /// One after the other.
    RoundRobin,
    /// Any, with the same probability.
    Random,
    /// The server that has most of the arguments; among several, the least predicted time.
    DataLocality,
}

impl Policy {
    /// The names of all policies.
    pub const NAMES: [&str; 6] =
        ["least-time", "least-load", "two-choices", "round-robin", "random", "data-locality"];
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Policy, String> {
        const ALL: [Policy; 6] = [
            Policy::LeastTime,
            Policy::LeastLoad,
            Policy::TwoChoices,
            Policy::RoundRobin,
            Policy::Random,
            Policy::DataLocality,
        ];
        let known = Policy::NAMES.iter().position(|known| *known == name);
        known.map(|index| ALL[index]).ok_or_else(|| {
            format!("there is no policy `{name}`: write one of {}", Policy::NAMES.join(", "))
        })
    }
}

/// Probability of each server under `LeastTime`. Their sum is 1, or 0 if no server has a finite
/// predicted time.
///
/// While an announcement grows old, calls of other clients end, and new ones begin wherever the same announcements send
/// them. If all clients went to the server that was best, it would be the worst one until its next announcement. So the
/// calls that have probably ended are placed again, each where its time is least, until the predicted times of the
/// servers that get any are equal. A server's probability is the part of these calls that it gets. Without calls of
/// others, or with recent announcements, only the servers with the least predicted time have any.
#[must_use]
pub fn shares(work: &Work, servers: &[Candidate]) -> Vec<f64> {
    struct Level {
        index: usize,
        time: f64,
        /// Calls that make this time one second longer.
        calls: f64,
    }
    let mut moved = 0.0;
    let mut levels = Vec::with_capacity(servers.len());
    for (index, server) in servers.iter().enumerate().filter(|(_, server)| !server.is_full) {
        let predicted = server.predict(work);
        let age = server.age.max(0.0);
        // Of calls that take as long as this one, so many have ended.
        let ended = age / (age + (predicted.total() - predicted.wait).max(SHORTEST));
        let load = server.load.max(0.0);
        let now = Candidate { load: load * (1.0 - ended), ..*server };
        let time = now.predict(work).total();
        if time.is_finite() && ended.is_finite() {
            let alone = Candidate { load: 0.0, wait: 0.0, ..*server }.predict(work).total();
            levels.push(Level { index, time, calls: server.cores / alone.max(SHORTEST) });
            moved += ended * load * server.cores;
        }
    }
    let mut found = vec![0.0; servers.len()];
    let least = levels.iter().map(|one| one.time).fold(f64::INFINITY, f64::min);
    loop {
        let calls: f64 = levels.iter().map(|one| one.calls).sum();
        let filled: f64 = levels.iter().map(|one| one.calls * one.time).sum();
        let level = ((moved + filled) / calls).max(least);
        let before = levels.len();
        levels.retain(|one| one.time <= level);
        if levels.len() < before {
            continue;
        }
        let sum: f64 = levels.iter().map(|one| one.calls * (level - one.time)).sum();
        if sum > 0.0 {
            for one in &levels {
                found[one.index] = one.calls * (level - one.time) / sum;
            }
        } else {
            // The least time of all. Try servers without measurements.
            let has_new = levels.iter().any(|one| !servers[one.index].is_measured);
            levels.retain(|one| !(has_new && servers[one.index].is_measured));
            for one in &levels {
                found[one.index] = 1.0 / levels.len() as f64;
            }
        }
        return found;
    }
}

/// The index that a random number chooses, with these probabilities.
fn drawn(shares: &[f64], draw: u64) -> Option<usize> {
    let mut left = (draw >> 11) as f64 / (1_u64 << 53) as f64;
    let positive = || shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
    let found = positive().find(|(_, share)| {
        left -= **share;
        left < 0.0
    });
    // Rounding errors may leave a little.
    found.or_else(|| positive().next_back()).map(|(index, _)| index)
}

/// The index of the server for a call; none: all are full, or there is none. `draw`: the number of the call for
/// `RoundRobin`, a random number for `LeastTime`, `Random` and `TwoChoices`.
#[must_use]
pub fn choose(policy: Policy, work: &Work, servers: &[Candidate], draw: u64) -> Option<usize> {
    let free = || servers.iter().enumerate().filter(|(_, server)| !server.is_full);
    let time = |server: &Candidate| server.predict(work).total();
    let least = |by: &dyn Fn(&Candidate) -> f64| {
        free()
            .map(|(index, server)| (by(server), server.is_measured, index))
            .min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
            .map(|(_, _, index)| index)
    };
    match policy {
        Policy::LeastTime => drawn(&shares(work, servers), draw).or_else(|| least(&time)),
        Policy::LeastLoad => least(&|server| server.load + server.own_load),
        Policy::TwoChoices => {
            let count = free().count() as u64;
            let first = draw.checked_rem(count)?;
            // The other one is any of the rest; of a single server, the same.
            let other = (first + 1 + (draw >> 32) % (count - 1).max(1)) % count;
            let drawn = [first.min(other), first.max(other)].map(|turn| free().nth(turn as usize));
            let drawn = drawn.into_iter().flatten();
            drawn
                .map(|(index, server)| (time(server), server.is_measured, index))
                .min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
                .map(|(_, _, index)| index)
        }
        Policy::RoundRobin | Policy::Random => {
            let count = free().count() as u64;
            let turn = draw.checked_rem(count)?;
            free().nth(turn as usize).map(|(index, _)| index)
        }
        Policy::DataLocality => {
            let there = |server: &Candidate| server.bytes_there.min(work.bytes_in);
            let order = |one: &Candidate, other: &Candidate| {
                there(other)
                    .total_cmp(&there(one))
                    .then(time(one).total_cmp(&time(other)))
                    .then(one.is_measured.cmp(&other.is_measured))
            };
            free().min_by(|(_, one), (_, other)| order(one, other)).map(|(index, _)| index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { bytes_in: 8e6, bytes_out: 8e3, operations: 1e9 };
    const FAST: Candidate = Candidate {
        speed: 4e9,
        load: 0.0,
        age: 0.0,
        cores: 4.0,
        own_load: 0.0,
        wait: 0.0,
        queue: 0.0,
        bandwidth_in: 1e6,
        bandwidth_out: 1e6,
        bytes_there: 0.0,
        is_full: false,
        is_measured: true,
    };
    const NEAR: Candidate =
        Candidate { speed: 1e9, load: 0.5, bandwidth_in: 1e8, bandwidth_out: 1e8, ..FAST };
    const FULL: Candidate = Candidate { speed: 1e12, is_full: true, ..NEAR };

    fn chosen(policy: Policy, servers: &[Candidate], draw: u64) -> Option<usize> {
        choose(policy, &WORK, servers, draw)
    }

    #[test]
    fn transfers_and_computing_both_count() {
        assert_eq!(chosen(Policy::LeastTime, &[FULL, FAST, NEAR], 0), Some(2));
        let waiting = Candidate { wait: 8.0, ..NEAR };
        assert_eq!(chosen(Policy::LeastTime, &[waiting, FAST], 0), Some(1));
        let large = Work { operations: 1e12, ..WORK };
        assert_eq!(choose(Policy::LeastTime, &large, &[FULL, FAST, NEAR], 0), Some(1));
        let busy = Candidate { load: 9.0, ..FAST };
        assert_eq!(choose(Policy::LeastTime, &large, &[busy, NEAR], 0), Some(1));
    }

    #[test]
    fn other_policies_ignore_the_predicted_time() {
        assert_eq!(chosen(Policy::LeastLoad, &[NEAR, FULL, FAST], 0), Some(2));
        let called = Candidate { own_load: 1.0, ..FAST };
        assert_eq!(chosen(Policy::LeastLoad, &[called, NEAR], 0), Some(1));
        let turns = (0..4).map(|turn| chosen(Policy::RoundRobin, &[NEAR, FULL, FAST], turn));
        assert_eq!(turns.collect::<Vec<_>>(), [Some(0), Some(2), Some(0), Some(2)]);
        assert_eq!(chosen(Policy::Random, &[NEAR, FULL, FAST], u64::MAX), Some(2));
        let has_data = Candidate { bytes_there: 8e6, load: 99.0, ..FAST };
        assert_eq!(chosen(Policy::DataLocality, &[NEAR, has_data], 0), Some(1));
        assert_eq!(chosen(Policy::DataLocality, &[FAST, NEAR], 0), Some(1));
    }

    #[test]
    fn of_two_drawn_servers_the_faster_one_is_chosen() {
        // All pairs of FAST, NEAR and a slow one are drawn: the slow one never wins.
        let slow = Candidate { speed: 1e6, ..FAST };
        let draws = (0..3).flat_map(|first| (0..2).map(move |other| (other << 32) | first));
        let counts = draws.fold([0; 3], |mut counts, draw| {
            counts[chosen(Policy::TwoChoices, &[FULL, FAST, NEAR, slow], draw).unwrap() - 1] += 1;
            counts
        });
        assert_eq!(counts, [2, 4, 0]);
        assert_eq!(chosen(Policy::TwoChoices, &[slow, FULL], u64::MAX), Some(0));
    }

    #[test]
    fn of_equal_servers_the_first_that_is_not_measured_is_chosen() {
        let unmeasured = Candidate { is_measured: false, ..NEAR };
        for policy in [Policy::LeastTime, Policy::LeastLoad, Policy::DataLocality] {
            let servers = [NEAR, unmeasured, unmeasured];
            assert_eq!(chosen(policy, &servers, 0), Some(1), "{policy:?}");
            assert_eq!(chosen(policy, &[NEAR, NEAR], 0), Some(0), "{policy:?}");
        }
        // Clients that know the same do not all begin with the same server.
        assert_eq!(shares(&WORK, &[NEAR, unmeasured, unmeasured]), [0.0, 0.5, 0.5]);
        assert_eq!(chosen(Policy::LeastTime, &[NEAR, unmeasured, unmeasured], u64::MAX), Some(2));
    }

    #[test]
    fn old_loads_spread_calls_and_recent_ones_do_not() {
        let work = Work { operations: 1e9, ..Work::default() };
        let server = |load, age| Candidate { speed: 1e9, load, age, cores: 2.0, ..FAST };
        let of = |servers: &[Candidate]| shares(&work, servers);
        assert_eq!(of(&[server(1.0, 0.0), server(2.0, 0.0)]), [1.0, 0.0]);
        // Without calls of others, nothing has changed since.
        assert_eq!(of(&[server(0.0, 60.0), FULL, server(0.0, 60.0)]), [0.5, 0.0, 0.5]);
        let slower = Candidate { speed: 0.5e9, ..server(0.0, 60.0) };
        assert_eq!(of(&[server(0.0, 60.0), slower]), [1.0, 0.0]);
        // After the time of a call, half of the 4 at the first server have ended. With 0.5 of these 2 there again, and 1.5
        // at the other server, both take 2.25 s.
        let half = of(&[server(2.0, 3.0), Candidate { wait: 0.5, ..server(0.0, 0.0) }]);
        assert!((half[0] - 0.25).abs() < 1e-9, "{half:?}");
        // Nobody knows what old loads are now: servers get calls by their speed.
        let unknown = of(&[server(50.0, 1e9), server(90.0, 1e9), slower]);
        assert!((unknown[0] - unknown[1]).abs() < 1e-6, "{unknown:?}");
        assert!((unknown[0] - 2.0 * unknown[2]).abs() < 0.01, "{unknown:?}");
        assert!((unknown.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_random_number_chooses_by_the_shares() {
        let numbers = (0..1000_u64).map(|number| number << 54 | number);
        let count = |wanted| {
            numbers.clone().filter(|&one| drawn(&[0.0, 0.25, 0.75], one) == Some(wanted)).count()
        };
        assert_eq!([0, 1, 2].map(count), [0, 256, 744]);
        assert_eq!(drawn(&[0.3, 0.3, 0.0], u64::MAX), Some(1));
        assert_eq!(drawn(&[0.0], 0), None);
        assert_eq!(drawn(&[], 7), None);
    }

    #[test]
    fn ages_that_make_no_sense_do_not_choose() {
        for age in [f64::NAN, f64::INFINITY, -1.0] {
            let lying = Candidate { age, load: 5.0, ..NEAR };
            let found = chosen(Policy::LeastTime, &[lying, NEAR], 0);
            assert_eq!(found, Some(1), "{age}");
        }
        let lying = Candidate { age: f64::NAN, ..NEAR };
        assert_eq!(chosen(Policy::LeastTime, &[lying], 0), Some(0));
    }

    #[test]
    fn without_a_free_server_there_is_no_choice() {
        for name in Policy::NAMES {
            let policy = name.parse().unwrap();
            assert_eq!(chosen(policy, &[], 7), None, "{name}");
            assert_eq!(chosen(policy, &[FULL, FULL], 7), None, "{name}");
            assert_eq!(chosen(policy, &[FULL, FAST], 7), Some(1), "{name}");
        }
    }

    #[test]
    fn lying_figures_are_not_the_best_ones() {
        let lying = Candidate { speed: f64::NAN, ..FAST };
        assert_eq!(chosen(Policy::LeastTime, &[lying, NEAR], 0), Some(1));
        assert_eq!(chosen(Policy::LeastTime, &[lying, lying], 0), Some(0));
    }

    #[test]
    fn an_unknown_policy_lists_those_that_exist() {
        let error = "fastest".parse::<Policy>().unwrap_err();
        assert!(error.contains("`fastest`") && error.contains("least-time"), "{error}");
    }
}
