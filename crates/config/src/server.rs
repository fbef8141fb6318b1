//! Servers that many clients share: how they are reached, and where the client's certificate is.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use gridrpc_sys::safe_path;

use super::problems::Fault;
use super::values::shown;

/// The port of servers.
pub const SERVER_PORT: u16 = 7711;
/// Longest name of a host, bytes.
const LONGEST: usize = 255;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// By TLS, with certificates on both sides.
    Tls {
        /// Name or address, without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// At a Unix socket of this machine, which knows the client's user id.
    Socket(PathBuf),
}

impl ServerAddress {
    /// Parses `host`, `host:port`, `[address]:port`, or the absolute path of a Unix socket.
    #[must_use]
    pub fn parse(text: &str) -> Option<ServerAddress> {
        if text.starts_with('/') {
            return Some(ServerAddress::Socket(text.into()));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']')? {
                (address, "") => (address, None),
                (address, rest) => (address, Some(rest.strip_prefix(':')?)),
            },
            None if is_ipv6(text) => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let is_valid = if text.starts_with('[') { is_ipv6(host) } else { is_host(host) };
        let port = port.map_or(Some(SERVER_PORT), parse_port)?;
        is_valid.then(|| ServerAddress::Tls { host: host.to_owned(), port })
    }

    /// The address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            ServerAddress::Tls { .. } => format!("gridrpc://{self}"),
            ServerAddress::Socket(path) => format!("gridrpc+unix://{}", path.display()),
        }
    }

    /// Name of the server if the configuration gives none: without the usual port.
    pub(super) fn name(&self) -> String {
        match self {
            ServerAddress::Tls { host, port: SERVER_PORT } => host.clone(),
            ServerAddress::Tls { .. } | ServerAddress::Socket(_) => self.to_string(),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Tls { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            ServerAddress::Tls { host, port } => write!(f, "{host}:{port}"),
            ServerAddress::Socket(path) => path.display().fmt(f),
        }
    }
}

fn is_ipv6(text: &str) -> bool {
    text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

fn is_host(host: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "[]/@,?#\\\"'".contains(c);
    (1..=LONGEST).contains(&host.len())
        && !host.contains(is_odd)
        && (!host.contains(':') || is_ipv6(host))
}

/// A TCP port in decimal digits.
pub(super) fn parse_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

/// Where the client's certificate and private key are, unless the configuration says: `$GRIDRPC_CREDENTIALS`, else
/// `gridrpc/credentials` in the user's configuration folder. None: this user has no home folder.
#[must_use]
pub fn credentials_folder() -> Option<PathBuf> {
    let named = std::env::var_os("GRIDRPC_CREDENTIALS").filter(|name| !name.is_empty());
    if let Some(folder) = named {
        return Some(folder.into());
    }
    let configuration = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let configuration = configuration
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(safe_path::home()?.join(".config")))?;
    Some(configuration.join(Path::new("gridrpc/credentials")))
}

/// Whether a key has a meaning for a server. The others are about starting agents and being reached by them.
pub(super) fn takes(key: &str) -> bool {
    matches!(
        key,
        "launcher"
            | "server"
            | "credentials"
            | "memory"
            | "resources"
            | "start_timeout"
            | "reconnect_timeout"
            | "heartbeat"
            | "output"
            | "compression"
            | "trusted"
    )
}

/// Reads the address of a server.
pub(super) fn address(text: &str) -> Result<ServerAddress, Fault> {
    ServerAddress::parse(text).ok_or_else(|| Fault::Value {
        key: "server".into(),
        found: shown(text),
        expected: format!(
            "HOST, HOST:PORT or [ADDRESS]:PORT (without a port it is {SERVER_PORT}), or the absolute path \
             of a Unix socket"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(host: &str, port: u16) -> Option<ServerAddress> {
        Some(ServerAddress::Tls { host: host.into(), port })
    }

    #[test]
    fn addresses_are_hosts_with_ports_or_paths() {
        assert_eq!(ServerAddress::parse("lab.example.org"), tls("lab.example.org", SERVER_PORT));
        assert_eq!(ServerAddress::parse("lab:80"), tls("lab", 80));
        assert_eq!(ServerAddress::parse("[fd00::7]:80"), tls("fd00::7", 80));
        assert_eq!(ServerAddress::parse("[fd00::7]"), tls("fd00::7", SERVER_PORT));
        assert_eq!(ServerAddress::parse("fd00::7"), tls("fd00::7", SERVER_PORT));
        let socket = ServerAddress::Socket("/run/server.sock".into());
        assert_eq!(ServerAddress::parse("/run/server.sock"), Some(socket));
        for wrong in [
            "",
            ":80",
            "lab:",
            "lab:0",
            "lab:65536",
            "lab:+1",
            "lab:x",
            "a b",
            "a:1:2",
            "[lab]:80",
            "[fd00::7",
            "[fd00::7]80",
            "[fd00::7]x:80",
            "ann@lab",
            "lab/x",
            "run/server.sock",
            "a?b",
        ] {
            assert_eq!(ServerAddress::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for text in ["lab:7711", "[fd00::7]:80", "/run/server.sock"] {
            let address = ServerAddress::parse(text).expect(text);
            assert_eq!(address.to_string(), text);
        }
        let name = |text| ServerAddress::parse(text).expect(text).name();
        assert_eq!(name("lab:7711"), "lab");
        assert_eq!(name("fd00::7"), "fd00::7");
        assert_eq!(name("lab:7712"), "lab:7712");
        assert_eq!(name("/run/server.sock"), "/run/server.sock");
    }
}
