//! What a client knows of servers: the answers of a directory, corrected by its own calls and measurements.

use crate::prediction::{ASSUMED_BANDWIDTH, Candidate};

/// Maximum age of a directory's answer, s.
pub const ANSWER_VALID: f64 = 2.0;
/// Maximum age of an answer while the next one is fetched, s.
pub const ANSWER_STALE: f64 = 20.0;
/// State of a server, as a directory reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnnouncedLoad {
    /// Operations per second of a call that runs alone.
    pub speed: f64,
    /// Calls that run or wait, for each core.
    pub load: f64,
    /// Time since the announcement, s.
    pub age: f64,
    /// Number of cores.
    pub cores: u32,
    /// Whether it takes no calls now.
    pub is_full: bool,
}

/// A client's measurements of a server, and its calls there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Operations per second of the function.
    pub speed: Option<f64>,
    /// Bytes per second to the server.
    pub bandwidth_in: Option<f64>,
    /// Bytes per second from the server.
    pub bandwidth_out: Option<f64>,
    /// Calls of the client that the announced load counts: those at the time of the announcement.
    pub announced_calls: u32,
    /// Its calls now.
    pub calls: u32,
    /// Time until a core is free of them, s.
    pub wait: f64,
    /// Time that its calls have waited at the server for calls of others, s.
    pub queue: Option<f64>,
}

/// A server that has not been measured is assumed to be so many times as fast as the best at most.
const MOST_BETTER: f64 = 100.0;

/// The candidates for a call of a function, in the order of the servers. A server that has not been measured is assumed
/// to be as good as the best, so that it is tried: it reaches as much of the speed that it announces, or has the best
/// speed if it announces that. `has_cost`: the function has `CalcOrder`, so that announced speeds are in its unit.
pub fn candidates(
    servers: &[(AnnouncedLoad, Measured)],
    has_cost: bool,
    found: &mut Vec<Candidate>,
) {
    let best = |of: fn(&Measured) -> Option<f64>| {
        servers.iter().filter_map(|(_, measured)| of(measured)).reduce(f64::max)
    };
    let announced_speed = |server: &AnnouncedLoad| match server.speed {
        _ if !has_cost => 1.0,
        speed if speed.is_finite() => speed.max(0.0),
        _ => 0.0,
    };
    let reached = |(announced, measured): &(AnnouncedLoad, Measured)| {
        let announced = announced_speed(announced);
        measured.speed.filter(|_| announced > 0.0).map(|speed| speed / announced)
    };
    let share = servers.iter().filter_map(reached).reduce(f64::max).unwrap_or(1.0);
    let most = best(|measured| measured.speed).unwrap_or(f64::INFINITY);
    let assumed =
        |announced: f64| (share * announced).min(MOST_BETTER * most).max(announced.min(most));
    let to = best(|measured| measured.bandwidth_in).unwrap_or(ASSUMED_BANDWIDTH);
    let from = best(|measured| measured.bandwidth_out).unwrap_or(ASSUMED_BANDWIDTH);
    found.clear();
    found.extend(servers.iter().map(|(announced, measured)| {
        let cores = f64::from(announced.cores.max(1));
        Candidate {
            speed: measured.speed.unwrap_or_else(|| assumed(announced_speed(announced))),
            load: (announced.load - f64::from(measured.announced_calls) / cores).max(0.0),
            age: announced.age.max(0.0),
            cores,
            own_load: f64::from(measured.calls) / cores,
            wait: measured.wait,
            queue: measured.queue.unwrap_or(0.0),
            bandwidth_in: measured.bandwidth_in.unwrap_or(to),
            bandwidth_out: measured.bandwidth_out.unwrap_or(from),
            bytes_there: 0.0,
            is_full: announced.is_full,
            is_measured: measured.speed.is_some(),
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: AnnouncedLoad =
        AnnouncedLoad { speed: 1e9, load: 0.5, age: 0.0, cores: 4, is_full: false };

    fn of(servers: &[(AnnouncedLoad, Measured)], has_cost: bool) -> Vec<Candidate> {
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
    fn announced_speeds_tell_servers_apart_that_have_not_been_measured() {
        let measured = Measured { speed: Some(5e8), ..Measured::default() };
        let slow = AnnouncedLoad { speed: 1e8, ..IDLE };
        let found = of(&[(IDLE, measured), (slow, Measured::default())], true);
        assert_eq!([found[0].speed, found[1].speed], [5e8, 1e8]);
        let fast = AnnouncedLoad { speed: 4e9, ..IDLE };
        assert_eq!(of(&[(IDLE, measured), (fast, Measured::default())], true)[1].speed, 2e9);
        let lying = AnnouncedLoad { speed: 1e300, ..IDLE };
        assert_eq!(of(&[(IDLE, measured), (lying, Measured::default())], true)[1].speed, 5e10);
        assert_eq!(of(&[(lying, measured), (slow, Measured::default())], true)[1].speed, 1e8);
        for speed in [f64::NAN, f64::INFINITY, -1.0] {
            let wrong = AnnouncedLoad { speed, ..IDLE };
            assert_eq!(of(&[(IDLE, measured), (wrong, Measured::default())], true)[1].speed, 0.0);
        }
        let low = AnnouncedLoad { speed: 1e-300, ..IDLE };
        assert_eq!(of(&[(low, measured), (IDLE, Measured::default())], true)[1].speed, 5e10);
    }

    #[test]
    fn own_calls_are_no_load_by_others() {
        let own = Measured { announced_calls: 1, calls: 6, wait: 2.0, ..Measured::default() };
        let found = of(&[(IDLE, own)], true)[0];
        assert_eq!((found.load, found.own_load, found.wait, found.queue), (0.25, 1.5, 2.0, 0.0));
        let queued = Measured { queue: Some(0.5), ..own };
        assert_eq!(of(&[(IDLE, queued)], true)[0].queue, 0.5);
        let older = Measured { announced_calls: 9, ..own };
        assert_eq!(of(&[(IDLE, older)], true)[0].load, 0.0);
        let lying = AnnouncedLoad { cores: 0, ..IDLE };
        assert_eq!(of(&[(lying, own)], true)[0].own_load, 6.0);
    }
}
