//! Measurements: round-trip time, bandwidth, and clock offset.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gridrpc_agent::inspect::Clocks;
use gridrpc_agent::inspect::load::Load;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::Message;

use super::connection::{AgentConnection, LineError};
use super::report::Measured;

/// Limits on the number of pings and on their duration.
const PINGS: u64 = 100;
const PINGING: Duration = Duration::from_millis(300);
/// Size of the first and of the largest bandwidth measurement, bytes.
const LEAST: u32 = 32 << 10;
const MOST: u32 = 8 << 20;
/// A measurement of this duration is long enough.
const ENOUGH: Duration = Duration::from_millis(200);
/// Timeout of an answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures the connection to an agent. `there`: its host's clocks at one moment.
pub(super) fn measure(line: &mut AgentConnection, there: Clocks) -> Result<Measured, LineError> {
    let pings = ping(line)?;
    let mut load = Load::new();
    let nearest = Duration::from_nanos(pings.shortest);
    let bandwidth_there = grow(nearest, |bytes| {
        let (sections, streams) = load.take(bytes as usize);
        let begin = Instant::now();
        line.send(&Message::Echo { number: bytes.into(), back: 0, sections }, streams)?;
        answered(line, bytes.into())?;
        Ok(begin.elapsed())
    })?;
    let bandwidth_back = grow(nearest, |bytes| {
        let begin = Instant::now();
        let number = u64::from(bytes) | 1;
        let ask = Message::Echo { number, back: bytes, sections: Vec::new() };
        line.send(&ask, VecDeque::new())?;
        answered(line, number)?;
        Ok(begin.elapsed())
    })?;
    let (clock_offset, clock_uncertainty) = clock_offset(&pings, there, Clocks::now());
    Ok(Measured {
        round_trip_min: pings.shortest as f64 / 1e9,
        round_trip_median: pings.median as f64 / 1e9,
        clock_offset,
        clock_uncertainty,
        bandwidth_there,
        bandwidth_back,
    })
}

fn answered(line: &mut AgentConnection, number: u64) -> Result<(), LineError> {
    line.wait(HANDSHAKE_TIMEOUT, |message| match message {
        Message::Echoed { number: named, .. } if *named == number => Some(()),
        _ => None,
    })
}

/// Measures bytes per second with growing sizes until a transfer takes long enough.
fn grow(
    nearest: Duration,
    mut carry: impl FnMut(u32) -> Result<Duration, LineError>,
) -> Result<f64, LineError> {
    let mut bytes = LEAST;
    loop {
        let took = carry(bytes)?;
        if took >= ENOUGH || bytes >= MOST {
            // Subtract the latency of the other direction, which carries next to nothing.
            let carried = took.saturating_sub(nearest).max(Duration::from_micros(1));
            return Ok(f64::from(bytes) / carried.as_secs_f64());
        }
        bytes *= 4;
    }
}

/// Result of the pings, ns.
#[derive(Debug, PartialEq, Eq)]
struct Pings {
    shortest: u64,
    median: u64,
    /// The other host's monotonic clock minus this one's; accurate to half of the shortest round trip.
    offset: i128,
}

fn ping(line: &mut AgentConnection) -> Result<Pings, LineError> {
    let begin = Instant::now();
    let mut all = Vec::new();
    for number in 1..=PINGS {
        let sent = monotonic_ns();
        line.send(&Message::Ping { number }, VecDeque::new())?;
        let clock = line.wait(HANDSHAKE_TIMEOUT, |message| match message {
            Message::Pong { number: named, clock } if *named == number => Some(*clock),
            _ => None,
        })?;
        let received = monotonic_ns();
        all.push((received - sent, i128::from(clock) - i128::from(sent.midpoint(received))));
        if begin.elapsed() > PINGING {
            break;
        }
    }
    all.sort_unstable();
    Ok(Pings { shortest: all[0].0, median: all[all.len() / 2].0, offset: all[0].1 })
}

/// How far the other host's clock is ahead of this one's, and the uncertainty, seconds.
fn clock_offset(pings: &Pings, there: Clocks, here: Clocks) -> (f64, f64) {
    // Difference between a host's wall clock and its monotonic clock.
    let since = |clocks: Clocks| i128::from(clocks.real) - i128::from(clocks.monotonic);
    let offset = pings.offset + since(there) - since(here);
    (offset as f64 / 1e9, pings.shortest as f64 / 2e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_is_compared_whenever_hosts_have_booted() {
        let pings = Pings { shortest: 2_000_000, median: 3_000_000, offset: -500_000_000_000 };
        let here = Clocks { monotonic: 900_000_000_000, real: 1_700_000_000_000_000_000 };
        // 400 s after boot, the host's wall clock is 2 s ahead.
        let there = Clocks { monotonic: 400_000_000_000, real: 1_700_000_002_000_000_000 };
        assert_eq!(clock_offset(&pings, there, here), (2.0, 0.001));
    }

    #[test]
    fn a_slow_way_is_not_given_much_to_carry() {
        let mut carried = 0;
        let rate = grow(Duration::ZERO, |bytes| {
            carried += bytes;
            Ok(Duration::from_secs_f64(f64::from(bytes) / 1e6))
        });
        assert!((rate.unwrap() - 1e6).abs() < 1e3);
        assert!(carried < 1 << 20, "{carried}");
    }
}
