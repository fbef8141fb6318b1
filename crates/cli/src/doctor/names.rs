//! Name lookup of hosts on this machine.

use std::net::ToSocketAddrs as _;
use std::process::{Command, Stdio};

use gridrpc_config::{LauncherKind, ServerAddress};

use super::report::{Finding, Name, Point};

/// Looks a host up as its launcher does. None if only the launcher can resolve the name.
///
/// # Errors
/// When the launcher cannot resolve it either.
pub(super) fn look_up(launcher: &LauncherKind, host: &str) -> Result<Option<Name>, Finding> {
    match launcher {
        // Names are only labels here.
        LauncherKind::Local { .. }
        | LauncherKind::Batch(_)
        | LauncherKind::Session { .. }
        | LauncherKind::Server { address: ServerAddress::Socket(_), .. } => Ok(None),
        LauncherKind::Server { address: ServerAddress::Tls { host: name, .. }, .. } => {
            match addresses(name) {
                Ok(addresses) => {
                    Ok(Some(Name { host: name.clone(), addresses, through: String::new() }))
                }
                Err(why) => Err(Finding::fault(
                    Point::Name,
                    format!("no address is known here for `{name}`: {why}"),
                    "see how it is written in `server` or in the URL".to_owned(),
                )),
            }
        }
        // The launcher program defines the meaning of its names.
        LauncherKind::Program { .. } => {
            let addresses = addresses(host).unwrap_or_default();
            Ok(Some(Name { host: host.to_owned(), addresses, through: String::new() }))
        }
        LauncherKind::Ssh { command } => match configuration(command, host) {
            // Starting the agent will report the error.
            None => Ok(None),
            Some(name) if !name.through.is_empty() => Ok(Some(name)),
            Some(name) => match addresses(&name.host) {
                Ok(addresses) => Ok(Some(Name { addresses, ..name })),
                Err(why) => Err(unknown(host, &name.host, &why)),
            },
        },
    }
}

fn unknown(host: &str, name: &str, why: &str) -> Finding {
    let called = match host.rsplit_once('@').map_or(host, |(_, host)| host) == name {
        true => String::new(),
        false => format!(", which ssh's configuration calls `{name}`,"),
    };
    Finding::fault(
        Point::Name,
        format!("no address is known here for `{host}`{called}: {why}"),
        format!(
            "see how it is written, or give it a `HostName` in ssh's configuration; `ssh -G {host}` tells \
             what ssh makes of it"
        ),
    )
}

/// Addresses of a name, without duplicates.
fn addresses(host: &str) -> Result<Vec<String>, String> {
    let found = (host, 0_u16).to_socket_addrs().map_err(|error| {
        // "failed to lookup address information: Name or service not known"
        let text = error.to_string();
        text.rsplit_once(": ").map_or(text.clone(), |(_, why)| why.to_owned())
    })?;
    let mut addresses = Vec::new();
    for address in found.map(|found| found.ip().to_string()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// The host's settings in ssh's configuration.
fn configuration(command: &[String], host: &str) -> Option<Name> {
    let (program, options) = command.split_first()?;
    let mut ssh = Command::new(program);
    ssh.args(options).args(["-G", host]).stdin(Stdio::null());
    let ran = ssh.output().ok().filter(|ran| ran.status.success())?;
    parse_name(&String::from_utf8_lossy(&ran.stdout))
}

/// Parses the output of `ssh -G`.
fn parse_name(text: &str) -> Option<Name> {
    let value = |key: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        found.filter(|value| *value != "none").map(str::to_owned)
    };
    let through = value("proxyjump").or_else(|| value("proxycommand"));
    Some(Name {
        host: value("hostname")?,
        addresses: Vec::new(),
        through: through.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_makes_of_a_name() {
        let name = parse_name("user ann\nhostname 10.0.0.7\nport 22\nproxyjump none\n").unwrap();
        assert_eq!((name.host.as_str(), name.through.as_str()), ("10.0.0.7", ""));
        let name = parse_name("hostname gpu\nproxyjump ann@gate\n").unwrap();
        assert_eq!((name.host.as_str(), name.through.as_str()), ("gpu", "ann@gate"));
        assert_eq!(parse_name("usage: something else"), None);
    }

    #[test]
    fn names_of_this_machine_have_addresses() {
        assert_eq!(addresses("127.0.0.1"), Ok(vec!["127.0.0.1".to_owned()]));
        let launcher = LauncherKind::Local { prefix: Vec::new() };
        assert_eq!(look_up(&launcher, "whatever"), Ok(None));
    }

    #[test]
    fn a_name_that_nobody_knows_is_reported_as_it_is_written() {
        let finding = unknown("ann@node1", "node1", "Name or service not known");
        assert_eq!(
            finding.what,
            "no address is known here for `ann@node1`: Name or service not known"
        );
        let finding = unknown("n1", "node1.hpc", "x");
        assert!(
            finding.what.contains("which ssh's configuration calls `node1.hpc`"),
            "{}",
            finding.what
        );
    }
}
