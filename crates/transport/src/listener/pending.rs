//! Connections that have not been admitted, a bounded number.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use super::handshake::Handshake;

/// Criterion for dropping a connection when there are too many.
pub(super) trait PendingConnection {
    fn address(&self) -> IpAddr;
    /// Whether it has sent nothing at all.
    fn is_silent(&self) -> bool;
    fn until(&self) -> Instant;
}

/// PendingConnections connections, the oldest first.
pub(super) struct PendingConnections<C> {
    limit: usize,
    connections: Vec<C>,
}

impl<C: PendingConnection> PendingConnections<C> {
    pub(super) fn new(limit: usize) -> PendingConnections<C> {
        PendingConnections { limit, connections: Vec::new() }
    }

    pub(super) fn push(&mut self, connection: C) {
        self.connections.push(connection);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &C> {
        self.connections.iter()
    }

    pub(super) fn take_all(&mut self) -> Vec<C> {
        std::mem::take(&mut self.connections)
    }

    /// Removes the connections whose time is over.
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<C> {
        self.connections.extract_if(.., |one| one.until() <= now).collect()
    }

    /// Removes a connection if there is no room for another one: the oldest of the network that has most, and
    /// preferably one that has sent nothing, because an honest client sends at once.
    pub(super) fn make_room(&mut self) -> Option<C> {
        if self.connections.len() < self.limit {
            return None;
        }
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for one in &self.connections {
            *counts.entry(network(one.address())).or_default() += 1;
        }
        let most = *counts.values().max()?;
        let is_crowded = |one: &C| counts.get(&network(one.address())) == Some(&most);
        let silent = self.connections.iter().position(|one| is_crowded(one) && one.is_silent());
        let oldest = silent.or_else(|| self.connections.iter().position(is_crowded))?;
        Some(self.connections.remove(oldest))
    }
}

impl PendingConnection for Handshake {
    fn address(&self) -> IpAddr {
        self.from.ip()
    }

    fn is_silent(&self) -> bool {
        self.silent
    }

    fn until(&self) -> Instant {
        self.until
    }
}

/// The address, or its /64 network: a host with IPv6 usually has all addresses of one.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Fake(u32, IpAddr, bool);

    impl PendingConnection for Fake {
        fn address(&self) -> IpAddr {
            self.1
        }

        fn is_silent(&self) -> bool {
            self.2
        }

        fn until(&self) -> Instant {
            Instant::now() + Duration::from_secs(1)
        }
    }

    fn pending(limit: usize, connections: &[(u32, &str, bool)]) -> PendingConnections<Fake> {
        let mut pending = PendingConnections::new(limit);
        for (number, address, silent) in connections {
            pending.push(Fake(*number, address.parse().unwrap(), *silent));
        }
        pending
    }

    fn dropped(limit: usize, connections: &[(u32, &str, bool)]) -> Option<u32> {
        pending(limit, connections).make_room().map(|one| one.0)
    }

    #[test]
    fn nothing_is_dropped_while_there_is_room() {
        assert_eq!(dropped(2, &[(1, "10.0.0.1", true)]), None);
    }

    #[test]
    fn the_oldest_connection_of_the_most_frequent_address_is_dropped() {
        let one = (1, "10.0.0.1", false);
        assert_eq!(dropped(3, &[one, (2, "10.0.0.2", false), (3, "10.0.0.2", false)]), Some(2));
        // A silent connection of an address with fewer stays.
        let silent = (1, "10.0.0.1", true);
        assert_eq!(dropped(3, &[silent, (2, "10.0.0.2", false), (3, "10.0.0.2", false)]), Some(2));
        // Among connections of one address, one that has sent something stays.
        assert_eq!(dropped(2, &[one, (2, "10.0.0.1", true)]), Some(2));
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let others = [(2, "2001:db8::1", false), (3, "2001:db8::2", false)];
        assert_eq!(dropped(3, &[(1, "2001:db8:0:1::1", false), others[0], others[1]]), Some(2));
    }
}
