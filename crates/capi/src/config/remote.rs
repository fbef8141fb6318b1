//! Servers on other machines, converted into host groups of the runtime.

use std::collections::HashSet;
use std::time::Duration;

use gridrpc_config::{FOREVER, HEARTBEAT, Host, HostGroup, LauncherKind, WorkerOutput};
use gridrpc_wire::Compression;

use super::client::ClientConfig;
use super::error::{Scope, Warning};
use super::location::{Location, Machine, host_of};
use super::server::{RemoteSettings, Server, ServerSettings, WaitTime};

/// Ninf-G's heartbeat defaults, used if only the interval or only the count is configured.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
const HEARTBEAT_COUNT: u32 = 5;
/// Shortest timeout of an agent.
const SHORTEST: Duration = Duration::from_millis(100);

/// The servers on other machines that are started by ssh: those with invoke server `SSH` or none. Skips
/// others, which cannot be started.
///
/// Programs refer to a server by its tag, if it has one, as [`ClientConfig::server`] does. Otherwise each of
/// its hosts that no earlier section has is a server of its own.
pub fn servers(client: &ClientConfig, machine: &dyn Machine) -> Vec<StartedServer> {
    let mut taken: HashSet<String> =
        client.servers.iter().filter_map(|server| server.tag.clone()).collect();
    let mut described = Vec::new();
    for (section, server) in client.servers.iter().enumerate() {
        let own = hosts(server, &taken);
        taken.extend(server.hostnames.iter().map(|name| host_of(name).to_ascii_lowercase()));
        let is_elsewhere =
            |host: &&Host| client.location(&host.name, machine) == Location::Elsewhere;
        let hosts: Vec<Host> = match started_by_ssh(&server.settings.elsewhere) {
            true => own.iter().filter(is_elsewhere).cloned().collect(),
            false => Vec::new(),
        };
        if hosts.is_empty() {
            continue;
        }
        let groups = match &server.tag {
            Some(tag) => vec![(tag.clone(), hosts)],
            None => hosts.into_iter().map(|host| (host.name.clone(), vec![host])).collect(),
        };
        described.extend(groups.into_iter().map(|(name, hosts)| {
            let server = described_as(name, hosts, &server.settings, client);
            StartedServer { section, server }
        }));
    }
    described
}

/// A server on other machines.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedServer {
    /// The number of its section.
    pub section: usize,
    /// Its host group.
    pub server: HostGroup,
}

impl ClientConfig {
    /// Warnings that apply when these servers start on other machines.
    pub fn warnings(&self, started: &[StartedServer]) -> impl Iterator<Item = &Warning> {
        self.warnings.iter().filter(|warning| match warning.scope {
            Scope::Nowhere => true,
            Scope::Server(index) => started.iter().all(|server| server.section != index),
            Scope::Elsewhere => started.is_empty(),
        })
    }
}

fn started_by_ssh(elsewhere: &RemoteSettings) -> bool {
    elsewhere.invoke_server.as_ref().is_none_or(|name| name.eq_ignore_ascii_case("SSH"))
}

/// The hosts of a section, without duplicates. A section without a tag omits names taken by tags or earlier
/// sections.
fn hosts(server: &Server, taken: &HashSet<String>) -> Vec<Host> {
    let mut seen = HashSet::new();
    let names = server.hostnames.iter().map(|name| host_of(name));
    names
        .filter(|name| {
            let name = name.to_ascii_lowercase();
            let is_free = server.tag.is_some() || !taken.contains(&name);
            // ssh would parse it as an option.
            !name.is_empty() && !name.starts_with('-') && is_free && seen.insert(name)
        })
        .map(Host::named)
        .collect()
}

fn described_as(
    name: String,
    hosts: Vec<Host>,
    settings: &ServerSettings,
    client: &ClientConfig,
) -> HostGroup {
    let elsewhere = &settings.elsewhere;
    let directory = settings.work_directory.as_ref();
    let reached_by = elsewhere.client_hostname.as_ref().or(client.hostname.as_ref());
    HostGroup {
        directory: directory.map(|directory| directory.display().to_string()),
        environment: settings.environment.clone(),
        preload: settings.preload.clone(),
        addresses: reached_by.cloned().into_iter().collect(),
        ports: client.listen_port.map(|port| (port, port)),
        start_timeout: time(settings.job_start_timeout).max(SHORTEST),
        stop_timeout: time(settings.job_stop_timeout),
        heartbeat: heartbeat(elsewhere),
        output: if settings.redirect_outerr { WorkerOutput::Labelled } else { WorkerOutput::Kept },
        // `crypt` is ignored: in Ninf-G, plain text was the default rather than a choice.
        encryption: true,
        compression: match elsewhere.compress {
            None => Compression::Auto,
            Some(true) => Compression::On,
            Some(false) => Compression::Off,
        },
        ..HostGroup::new(name, LauncherKind::Ssh { command: vec!["ssh".into()] }, hosts)
    }
}

fn time(wait: WaitTime) -> Duration {
    match wait {
        WaitTime::Forever => FOREVER,
        WaitTime::For(time) => time.min(FOREVER),
    }
}

/// How long a server may be silent; Ninf-G counted missed heartbeats.
fn heartbeat(elsewhere: &RemoteSettings) -> Duration {
    if elsewhere.heartbeat.is_none() && elsewhere.heartbeat_count.is_none() {
        return HEARTBEAT;
    }
    let interval = elsewhere.heartbeat.unwrap_or(HEARTBEAT_INTERVAL);
    match interval.saturating_mul(elsewhere.heartbeat_count.unwrap_or(HEARTBEAT_COUNT)) {
        Duration::ZERO => FOREVER,
        silent => silent.min(FOREVER),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::path::Path;

    use super::super::Disk;
    use super::*;

    /// A machine that queries no name server.
    struct OfflineMachine;

    impl Machine for OfflineMachine {
        fn name(&self) -> String {
            "client.example.org".into()
        }

        fn addresses(&self) -> Vec<IpAddr> {
            Vec::new()
        }

        fn look_up(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    fn described(text: &str) -> Vec<HostGroup> {
        let config = ClientConfig::parse(Path::new("conf"), text.as_bytes(), &Disk);
        let started = servers(&config.unwrap_or_else(|error| panic!("{error}")), &OfflineMachine);
        started.into_iter().map(|started| started.server).collect()
    }

    fn section(lines: &str) -> HostGroup {
        let mut servers = described(&format!("<SERVER>\nhostname node1\n{lines}\n</SERVER>"));
        assert_eq!(servers.len(), 1);
        servers.remove(0)
    }

    fn names(server: &HostGroup) -> Vec<&str> {
        server.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    fn ssh(name: &str, hosts: &[&str]) -> HostGroup {
        let hosts = hosts.iter().map(|host| Host::named(*host)).collect();
        HostGroup::new(name, LauncherKind::Ssh { command: vec!["ssh".into()] }, hosts)
    }

    #[test]
    fn what_is_not_said_is_as_in_other_descriptions() {
        assert_eq!(section(""), ssh("node1", &["node1"]));
    }

    #[test]
    fn everything_that_has_a_meaning_elsewhere() {
        let servers = described(
            "<CLIENT>
                hostname head.example.org
                listen_port 4000
            </CLIENT>
            <SERVER>
                hostname node1:2119/jobmanager
                hostname localhost
                hostname node2
                hostname NODE1
                tag fast
                invoke_server ssh
                job_startTimeout 2 min
                job_stopTimeout 0
                redirect_outerr false
                workDirectory /scratch
                environment B=3
                preload lapack
                heartbeat 10 s
                heartbeat_timeoutCount 3
                compress zlib
            </SERVER>
            <SERVER_DEFAULT>
                environment A=1
                environment B=2
            </SERVER_DEFAULT>",
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = HostGroup {
            directory: Some("/scratch".into()),
            environment: vec![pair("A", "1"), pair("B", "3")],
            preload: vec!["lapack".into()],
            addresses: vec!["head.example.org".into()],
            ports: Some((4000, 4000)),
            start_timeout: Duration::from_secs(120),
            stop_timeout: Duration::ZERO,
            heartbeat: Duration::from_secs(30),
            output: WorkerOutput::Kept,
            compression: Compression::On,
            ..ssh("fast", &["node1", "node2"])
        };
        assert_eq!(servers, [expected]);
    }

    #[test]
    fn this_machine_and_other_invoke_servers_are_left_out() {
        for lines in [
            "hostname localhost",
            "hostname client",
            "hostname 127.0.0.1",
            "hostname node1\ninvoke_server GT4py",
            "hostname node1\ninvoke_server UNICORE",
            "hostname -oProxyCommand=x",
        ] {
            assert_eq!(described(&format!("<SERVER>\n{lines}\n</SERVER>")), [], "{lines}");
        }
    }

    #[test]
    fn the_first_section_with_a_host_counts() {
        let servers = described(
            "<SERVER>
                hostname node1
            </SERVER>
            <SERVER>
                hostname Node1
                hostname node2
                hostname other
            </SERVER>
            <SERVER>
                hostname node1
                tag other
            </SERVER>
            <SERVER>
                hostname node2
            </SERVER>",
        );
        let found: Vec<_> = servers.iter().map(|s| (s.name.as_str(), names(s))).collect();
        let expected =
            [("node1", vec!["node1"]), ("node2", vec!["node2"]), ("other", vec!["node1"])];
        assert_eq!(found, expected);
    }

    #[test]
    fn heartbeats() {
        let silent = |lines| section(lines).heartbeat.as_secs();
        assert_eq!(silent(""), 6);
        assert_eq!(silent("heartbeat 1 min"), 300);
        assert_eq!(silent("heartbeat_timeoutCount 2"), 120);
        assert_eq!(silent("heartbeat 0"), FOREVER.as_secs());
        assert_eq!(silent("heartbeat_timeoutCount 0"), FOREVER.as_secs());
        assert_eq!(
            silent("heartbeat 2 hours\nheartbeat_timeoutCount 4294967295"),
            FOREVER.as_secs()
        );
    }

    #[test]
    fn limits_that_there_are_not() {
        let server = section("job_startTimeout 0\njob_stopTimeout -1");
        assert_eq!((server.start_timeout, server.stop_timeout), (FOREVER, FOREVER));
    }

    #[test]
    fn names_of_the_client() {
        let server = section("client_hostname 10.0.0.1");
        assert_eq!((server.addresses, server.ports), (vec!["10.0.0.1".to_owned()], None));
        assert_eq!(section("compress raw").compression, Compression::Off);
        // `crypt false` does not turn encryption off.
        assert!(section("crypt false").encryption);
    }

    #[test]
    fn values_are_checked_and_the_warning_stays() {
        let parse = |line: &str| {
            let text = format!("<SERVER>\nhostname node1\n{line}\n</SERVER>");
            ClientConfig::parse(Path::new("conf"), text.as_bytes(), &Disk)
        };
        let error = |line| parse(line).unwrap_err().to_string();
        assert!(error("heartbeat often").starts_with("conf:3: `heartbeat` is `often`"));
        assert!(error("compress lzo").contains("write `raw` or `zlib`"));
        assert!(error("heartbeat 1\nheartbeat 2").contains("`heartbeat` has a value already"));
        let warnings = parse("heartbeat 10").unwrap().warnings;
        assert_eq!(
            warnings[0].to_string(),
            "conf:3: `heartbeat` has no meaning here: the end of a worker on this host is noticed \
             at once"
        );
        assert_eq!(parse("compress raw").unwrap().warnings, []);
    }

    #[test]
    fn what_has_its_effect_on_other_machines_is_not_warned_of() {
        let text = "<CLIENT>
                listen_port 4000
            </CLIENT>
            <SERVER>
                hostname localhost
                heartbeat 10
            </SERVER>
            <SERVER>
                hostname node1
                heartbeat 20
                crypt GSI
            </SERVER>";
        let config = ClientConfig::parse(Path::new("conf"), text.as_bytes(), &Disk).unwrap();
        let lines = |started: &[StartedServer]| -> Vec<usize> {
            config.warnings(started).map(|warning| warning.at.line).collect()
        };
        assert_eq!(lines(&[]), [2, 6, 10, 11]);
        let started = servers(&config, &OfflineMachine);
        assert_eq!(started.iter().map(|started| started.section).collect::<Vec<_>>(), [1]);
        assert_eq!(lines(&started), [6, 11]);
    }

    #[test]
    fn hosts_without_a_tag_are_servers_of_their_own() {
        let found = described("<SERVER>\nhostname node1\nhostname node2\n</SERVER>");
        assert_eq!(found, [ssh("node1", &["node1"]), ssh("node2", &["node2"])]);
    }
}
