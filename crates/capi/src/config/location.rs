//! Detection of servers that are this machine.

use std::net::{IpAddr, ToSocketAddrs};

use nix::ifaddrs::getifaddrs;
use nix::unistd::gethostname;

/// Location of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Here,
    /// On another one, or unknown.
    Elsewhere,
}

/// Facts about a machine. Tests supply their own.
pub trait Machine {
    /// Its host name.
    fn name(&self) -> String;

    /// The addresses of its interfaces.
    fn addresses(&self) -> Vec<IpAddr>;

    /// The addresses of a name; empty if it is unknown.
    fn look_up(&self, name: &str) -> Vec<IpAddr>;
}

/// The machine that this program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn name(&self) -> String {
        gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
    }

    fn addresses(&self) -> Vec<IpAddr> {
        let Ok(interfaces) = getifaddrs() else { return Vec::new() };
        interfaces
            .filter_map(|interface| {
                let address = interface.address?;
                let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
            })
            .collect()
    }

    fn look_up(&self, name: &str) -> Vec<IpAddr> {
        (name, 0).to_socket_addrs().map_or_else(
            |_| Vec::new(),
            |addresses| addresses.map(|address| address.ip()).collect(),
        )
    }
}

/// The host in a server's name. Ninf-G allows `host:port/jobmanager:subject`, where everything but the host
/// is optional.
#[must_use]
pub fn host_of(name: &str) -> &str {
    if name.parse::<IpAddr>().is_ok() {
        return name;
    }
    if let Some((address, _)) = name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    name.split([':', '/']).next().unwrap_or(name)
}

/// The location of the host with this name.
pub fn locate(host: &str, machine: &dyn Machine) -> Location {
    if is_here(host, machine) { Location::Here } else { Location::Elsewhere }
}

fn is_here(host: &str, machine: &dyn Machine) -> bool {
    // Last, since a name server can take seconds to answer.
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_own(address, &machine.addresses());
    }
    let host = host.trim_end_matches('.');
    let own = machine.name();
    let is_short_name = !host.contains('.') && own.split('.').next() == Some(host);
    if host.eq_ignore_ascii_case("localhost")
        || host.eq_ignore_ascii_case(&own)
        || (is_short_name && !host.is_empty())
    {
        return true;
    }
    if host.is_empty() {
        return false;
    }
    let addresses = machine.look_up(host);
    let own = machine.addresses();
    !addresses.is_empty() && addresses.iter().all(|address| is_own(*address, &own))
}

fn is_own(address: IpAddr, own: &[IpAddr]) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || own.iter().any(|own| own.to_canonical() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Node7;

    impl Machine for Node7 {
        fn name(&self) -> String {
            "node7.example.org".into()
        }

        fn addresses(&self) -> Vec<IpAddr> {
            ["127.0.0.1", "10.0.0.7", "::1", "fe80::7"].map(|text| text.parse().unwrap()).into()
        }

        fn look_up(&self, name: &str) -> Vec<IpAddr> {
            let addresses: &[&str] = match name {
                "alias.example.org" => &["10.0.0.7"],
                "node8" => &["10.0.0.8"],
                "both" => &["10.0.0.7", "10.0.0.8"],
                _ => &[],
            };
            addresses.iter().map(|text| text.parse().unwrap()).collect()
        }
    }

    #[test]
    fn names_of_this_machine() {
        for name in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "127.0.0.1",
            "127.1.2.3",
            "::1",
            "10.0.0.7",
            "fe80::7",
            "::ffff:10.0.0.7",
            "node7",
            "node7.example.org",
            "Node7.Example.Org",
            "alias.example.org",
        ] {
            assert_eq!(locate(name, &Node7), Location::Here, "{name}");
        }
    }

    #[test]
    fn names_of_others() {
        for name in ["", ".", "node8", "10.0.0.8", "::2", "node7.example.com", "both", "nobody"] {
            assert_eq!(locate(name, &Node7), Location::Elsewhere, "{name}");
        }
    }

    #[test]
    fn hosts_in_contacts() {
        for (name, expected) in [
            ("node1", "node1"),
            ("node1:2119", "node1"),
            ("node1:2119/jobmanager-pbs", "node1"),
            ("node1/jobmanager", "node1"),
            ("node1::/O=Grid/CN=me", "node1"),
            ("::1", "::1"),
            ("[fe80::7]:2119", "fe80::7"),
            ("10.0.0.7:1", "10.0.0.7"),
            ("", ""),
            (":1", ""),
        ] {
            assert_eq!(host_of(name), expected, "{name}");
        }
    }

    #[test]
    fn this_machine_knows_itself() {
        assert_eq!(locate(&ThisMachine.name(), &ThisMachine), Location::Here);
        for address in ThisMachine.addresses() {
            assert_eq!(locate(&address.to_string(), &ThisMachine), Location::Here);
        }
    }
}
