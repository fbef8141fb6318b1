//! Listening sockets, on one port of several addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen as begin, setsockopt,
    socket, sockopt,
};

/// Maximum number of connections waiting to be accepted; the system's limit may be lower.
const BACKLOG: i32 = 4096;
/// How many ports to try if the one that the system chose is in use at another address.
const TRIES: u32 = 16;

/// Listens on one port of all these addresses; without any, on all addresses of this host.
///
/// # Errors
/// When no port is free, or an address is none of this host's.
pub fn listen(
    addresses: &[IpAddr],
    ports: Option<(u16, u16)>,
) -> io::Result<(Vec<TcpListener>, u16)> {
    let everywhere = [IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    // Without IPv6, listen on all IPv4 addresses.
    let without_v6 = [IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    if addresses.is_empty() {
        return listen_at(&everywhere, ports).or_else(|_| listen_at(&without_v6, ports));
    }
    listen_at(addresses, ports)
}

fn listen_at(
    addresses: &[IpAddr],
    ports: Option<(u16, u16)>,
) -> io::Result<(Vec<TcpListener>, u16)> {
    let Some((first, last)) = ports else {
        let mut tries = 0;
        return loop {
            tries += 1;
            match listen_at_port(addresses, 0) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < TRIES => {}
                result => break result,
            }
        };
    };
    for port in first..=last {
        match listen_at_port(addresses, port) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
    let taken = if first == last {
        format!("port {first} is taken")
    } else {
        format!("all ports from {first} to {last} are taken")
    };
    Err(io::Error::new(io::ErrorKind::AddrInUse, taken))
}

fn listen_at_port(addresses: &[IpAddr], mut port: u16) -> io::Result<(Vec<TcpListener>, u16)> {
    let mut listeners = Vec::new();
    for address in addresses {
        // Beside IPv4 addresses, the IPv6 ones have to leave IPv4 to them.
        let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
        let listener = listener(SocketAddr::new(*address, port), has_v4).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("no connections can be taken at {address}: {error}"),
            )
        })?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok((listeners, port))
}

fn listener(address: SocketAddr, has_v4: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, SockType::Stream, flags, None)?;
    // Allows reuse of the port of a client that has just ended.
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    if address.is_ipv6() {
        let v6_only = has_v4 || !address.ip().is_unspecified();
        setsockopt(&socket, sockopt::Ipv6V6Only, &v6_only)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    begin(&socket, Backlog::new(BACKLOG)?)?;
    Ok(TcpListener::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_both_families_share_a_port() {
        if !std::path::Path::new("/proc/net/if_inet6").exists() {
            return;
        }
        let both = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        let (sockets, port) = listen(&both, None).expect("both are free");
        assert_eq!(sockets.len(), 2);
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            std::net::TcpStream::connect((address, port)).expect("it listens");
        }
    }
}
