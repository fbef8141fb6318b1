//! Checks of names that go into certificates.

use std::net::IpAddr;

use rustls_pki_types::DnsName;

use crate::AuthorityError;

/// Longest name of a user, group or server, characters (ub-common-name of RFC 5280).
const LONGEST: usize = 64;

/// Checks the name of a user, group or server. Names appear in tables, logs and paths.
pub(crate) fn check(kind: &'static str, name: &str) -> Result<(), AuthorityError> {
    let allowed = |letter: char| letter.is_alphanumeric() || "._@+-".contains(letter);
    let begins_well = name.chars().next().is_some_and(char::is_alphanumeric);
    if begins_well && name.chars().all(allowed) && name.chars().count() <= LONGEST {
        return Ok(());
    }
    Err(AuthorityError::BadName { kind, name: name.to_owned() })
}

/// A name in a server's certificate.
pub(crate) enum HostName {
    Dns(String),
    Ip(IpAddr),
}

/// Checks the name or address of a host.
pub(crate) fn host(host: &str) -> Result<HostName, AuthorityError> {
    if let Ok(address) = host.parse() {
        return Ok(HostName::Ip(address));
    }
    // A wildcard stands for the first label only.
    let rest = host.strip_prefix("*.").unwrap_or(host);
    match DnsName::try_from(rest) {
        Ok(_) => Ok(HostName::Dns(host.to_ascii_lowercase())),
        Err(_) => Err(AuthorityError::BadHost { host: host.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_no_separators_of_paths_logs_or_options() {
        for good in ["ann", "ann.b@example.org", "Jörg", "a+b_c-9"] {
            check("user", good).unwrap();
        }
        let long = "a".repeat(65);
        for bad in ["", "-rf", "../x", "a/b", "a b", "a\nb", ".a", "a,b", &long] {
            assert!(check("user", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for name in ["gpu", "gpu.example.org", "*.example.org", "GPU.example"] {
            assert!(matches!(host(name), Ok(HostName::Dns(_))), "{name}");
        }
        for address in ["10.0.0.1", "::1"] {
            assert!(matches!(host(address), Ok(HostName::Ip(_))), "{address}");
        }
        for bad in ["", "two words", "a..b", "gpu:4000", "https://gpu", "*", "a.*.b"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }
}
