//! Limits for each address: refused requests per minute, and open connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Refused requests that an address may make in a period.
const MOST_REFUSED: u32 = 10;
const PERIOD: Duration = Duration::from_secs(60);
/// Connections that an address may have at a time.
const MOST_CONNECTIONS: u32 = 16;
/// Addresses that are remembered.
const MOST_ADDRESSES: usize = 10_000;

/// Refused requests and connections of each address.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    addresses: HashMap<IpAddr, Counts>,
}

#[derive(Debug)]
struct Counts {
    since: Instant,
    refused: u32,
    connections: u32,
}

impl Attempts {
    /// Admits a connection, which [`Attempts::disconnected`] ends. Returns whether it was admitted.
    pub(super) fn connected(&mut self, address: IpAddr, now: Instant) -> bool {
        let counts = self.counts(address, now);
        let is_admitted = counts.connections < MOST_CONNECTIONS;
        counts.connections += u32::from(is_admitted);
        is_admitted
    }

    pub(super) fn disconnected(&mut self, address: IpAddr, now: Instant) {
        let counts = self.counts(address, now);
        counts.connections = counts.connections.saturating_sub(1);
    }

    /// Counts a refused request.
    pub(super) fn refused(&mut self, address: IpAddr, now: Instant) {
        self.counts(address, now).refused += 1;
    }

    /// How long an address with too many refused requests has to wait.
    pub(super) fn delay(&mut self, address: IpAddr, now: Instant) -> Option<Duration> {
        let counts = self.counts(address, now);
        let is_limited = counts.refused >= MOST_REFUSED;
        is_limited.then(|| (counts.since + PERIOD).saturating_duration_since(now))
    }

    fn counts(&mut self, address: IpAddr, now: Instant) -> &mut Counts {
        let is_over = |counts: &Counts| now >= counts.since + PERIOD;
        if self.addresses.len() >= MOST_ADDRESSES {
            self.addresses.retain(|_, counts| !is_over(counts) || counts.connections > 0);
        }
        if self.addresses.len() >= MOST_ADDRESSES {
            // Whoever has so many addresses is not slowed down by a limit for each of them.
            self.addresses.retain(|_, counts| counts.connections > 0);
        }
        let new = Counts { since: now, refused: 0, connections: 0 };
        let counts = self.addresses.entry(network(address)).or_insert(new);
        if is_over(counts) {
            (counts.since, counts.refused) = (now, 0);
        }
        counts
    }
}

/// State of one owner: an address, or an IPv6 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_waits_after_too_many_refused_requests() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        let (bad, good) = (address("192.0.2.1"), address("192.0.2.2"));
        for _ in 0..MOST_REFUSED {
            assert_eq!(attempts.delay(bad, start), None);
            attempts.refused(bad, start);
        }
        assert_eq!(attempts.delay(bad, start + PERIOD / 2), Some(PERIOD / 2));
        assert_eq!(attempts.delay(address("::ffff:192.0.2.1"), start), Some(PERIOD));
        assert_eq!(attempts.delay(good, start), None);
        assert_eq!(attempts.delay(bad, start + PERIOD), None);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        for host in 0..MOST_REFUSED {
            attempts.refused(address(&format!("2001:db8::{host:x}")), start);
        }
        assert!(attempts.delay(address("2001:db8::ffff"), start).is_some());
        assert!(attempts.delay(address("2001:db8:0:1::1"), start).is_none());
    }

    #[test]
    fn connections_are_limited_and_memory_is_bounded() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        let flood = address("192.0.2.1");
        for _ in 0..MOST_CONNECTIONS {
            assert!(attempts.connected(flood, start));
        }
        assert!(!attempts.connected(flood, start));
        for host in 0..3 * u32::try_from(MOST_ADDRESSES).unwrap() {
            attempts.refused(IpAddr::from(host.to_be_bytes()), start);
        }
        assert!(attempts.addresses.len() <= MOST_ADDRESSES);
        // An open connection is not forgotten.
        assert!(!attempts.connected(flood, start));
        attempts.disconnected(flood, start);
        assert!(attempts.connected(flood, start));
    }
}
