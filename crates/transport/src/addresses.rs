//! Addresses of this host for others.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;

/// All addresses, IPv4 first; the loopback address if there are no others.
pub fn of_this_host() -> Vec<String> {
    let own = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    let usable = |address: &IpAddr| match address {
        IpAddr::V4(address) => !address.is_loopback(),
        // Link-local addresses are useless without the interface name.
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    };
    let mut own: Vec<IpAddr> = own.filter(usable).collect();
    own.sort_by_key(IpAddr::is_ipv6);
    let mut own: Vec<String> = own.iter().map(IpAddr::to_string).collect();
    if own.is_empty() {
        own.push("127.0.0.1".to_owned());
    }
    own
}

/// A name or an address with a port, in the form that diallers take.
pub fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
