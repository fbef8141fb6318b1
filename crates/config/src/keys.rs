//! The keys of a group. `[defaults]` and the built-in defaults supply missing ones.

use std::collections::HashSet;
use std::time::Duration;

use gridrpc_wire::Compression;
use toml::de::DeTable;

use super::batch_options::{self, listed, request_name};
use super::batch_systems::BatchSystem;
use super::group::{FOREVER, HostGroup, LauncherKind, RequestForm, WorkerOutput};
use super::host_list::{Host, MOST_HOSTS, MOST_WORKERS, patterns};
use super::problems::{Fault, Part, Report};
use super::server::{self, ServerAddress};
use super::session;

pub use super::schema::{kind, names};
use super::values::{Entry, in_order, shown};

/// In seconds.
const LONGEST_WAIT: f64 = FOREVER.as_secs_f64();

/// Error: there is no such key. `launcher`: the one in the table.
fn unknown(key: &str, launcher: Option<&str>) -> Fault {
    let option = match launcher {
        Some("slurm") => Some("--qos=long"),
        Some("gridengine") => Some("-l h_vmem=4G"),
        Some("htcondor") => Some("request_gpus = 1"),
        Some("pbs") => Some("-A ACCOUNT"),
        Some("torque") => Some("-l qos=high"),
        Some("lsf") => Some("-gpu num=1"),
        Some("flux") => Some("--gpus-per-task=1"),
        _ => None,
    };
    Fault::UnknownKey { key: key.into(), near: gridrpc_idl::nearest(key, names()), option }
}

/// A launcher by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launcher {
    Local,
    Ssh,
    Program,
    Batch(BatchSystem),
    Session,
    Server,
}

const LAUNCHERS: [(&str, Launcher); 13] = [
    ("local", Launcher::Local),
    ("ssh", Launcher::Ssh),
    ("program", Launcher::Program),
    ("slurm", Launcher::Batch(BatchSystem::Slurm)),
    ("gridengine", Launcher::Batch(BatchSystem::GridEngine)),
    ("htcondor", Launcher::Batch(BatchSystem::HtCondor)),
    ("pbs", Launcher::Batch(BatchSystem::Pbs)),
    ("torque", Launcher::Batch(BatchSystem::Torque)),
    ("lsf", Launcher::Batch(BatchSystem::Lsf)),
    ("flux", Launcher::Batch(BatchSystem::Flux)),
    ("mpi", Launcher::Batch(BatchSystem::Mpi)),
    ("session", Launcher::Session),
    ("server", Launcher::Server),
];
const OUTPUTS: [(&str, WorkerOutput); 3] = [
    ("labelled", WorkerOutput::Labelled),
    ("plain", WorkerOutput::Plain),
    ("kept", WorkerOutput::Kept),
];
const ENCRYPTIONS: [(&str, bool); 2] = [("tls", true), ("none", false)];
const COMPRESSIONS: [(&str, Compression); 3] =
    [("auto", Compression::Auto), ("zstd", Compression::On), ("none", Compression::Off)];

impl Launcher {
    fn name(self) -> &'static str {
        LAUNCHERS.iter().find(|(_, one)| *one == self).map_or("ssh", |(name, _)| name)
    }
}

/// The value's name in a table.
pub(super) fn output_name(output: WorkerOutput) -> &'static str {
    OUTPUTS.iter().find(|(_, one)| *one == output).map_or("labelled", |(name, _)| name)
}

/// The value's name in a table.
pub(super) fn compression_name(compression: Compression) -> &'static str {
    COMPRESSIONS.iter().find(|(_, one)| *one == compression).map_or("auto", |(name, _)| name)
}

/// The contents of one table: only the keys that are set. Invalid values are absent and have been reported.
#[derive(Debug, Default)]
pub(super) struct Draft {
    launcher: Option<Launcher>,
    /// The launcher is unknown, so its keys cannot be checked.
    launcher_is_wrong: bool,
    /// With its position.
    hosts: Option<(usize, Vec<Host>)>,
    workers: Option<u32>,
    /// With its position.
    command: Option<(usize, Vec<String>)>,
    command_is_wrong: bool,
    prefix: Option<(usize, Vec<String>)>,
    /// With its position.
    session: Option<(usize, String)>,
    session_is_wrong: bool,
    /// With its position.
    server: Option<(usize, ServerAddress)>,
    server_is_wrong: bool,
    /// With its position.
    credentials: Option<(usize, String)>,
    /// The keys that are set, with their positions.
    given: Vec<(usize, &'static str)>,
    python: Option<String>,
    program: Option<String>,
    directory: Option<String>,
    environment: Vec<(String, String)>,
    preload: Option<Vec<String>>,
    /// In bytes.
    memory: Option<u64>,
    resources: Vec<(String, u64)>,
    addresses: Option<Vec<String>>,
    ports: Option<(u16, u16)>,
    start_timeout: Option<Duration>,
    reconnect_timeout: Option<Duration>,
    stop_timeout: Option<Duration>,
    heartbeat: Option<Duration>,
    staging: Option<String>,
    output: Option<WorkerOutput>,
    encryption: Option<bool>,
    compression: Option<Compression>,
    trusted: Option<bool>,
    min_hosts: Option<u32>,
    idle: Option<Duration>,
    batch: batch_options::Draft,
}

impl Draft {
    /// Reads a table. `left` is how many hosts may still be added.
    pub(super) fn read(table: &DeTable<'_>, left: &mut u64, report: &mut Report<'_>) -> Draft {
        let mut draft = Draft::default();
        let launcher = table.get("launcher").and_then(|value| value.get_ref().as_str());
        for (name, value) in in_order(table) {
            let key: &str = name.get_ref();
            let entry = Entry { key, value };
            let known = names().find(|known| *known == key);
            draft.given.extend(known.map(|known| (entry.at(), known)));
            match key {
                "hosts" if report.part == Part::Defaults => {
                    report.add(name.span().start, Fault::DefaultHosts);
                }
                "hosts" => draft.hosts = Some((entry.at(), hosts(&entry, left, report))),
                "addresses" => draft.addresses = Some(entry.addresses(report)),
                "environment" => draft.environment = entry.variables(report),
                "resources" => draft.resources = entry.resources(report),
                _ if kind(key).is_none() => report.add(name.span().start, unknown(key, launcher)),
                _ => {
                    if let Err(fault) = draft.set(&entry) {
                        report.add(entry.at(), fault);
                    }
                }
            }
        }
        draft
    }

    /// Sets a key whose value can have only one error.
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), Fault> {
        match entry.key {
            "launcher" => {
                let launcher = entry.choice(&LAUNCHERS);
                self.launcher_is_wrong = launcher.is_err();
                self.launcher = Some(launcher?);
            }
            "command" => {
                let words = entry.words();
                self.command_is_wrong = words.is_err();
                self.command = Some((entry.at(), words?));
            }
            "prefix" => self.prefix = Some((entry.at(), entry.words()?)),
            "session" => {
                let name = entry.text().and_then(|name| session::check_name(&name).map(|()| name));
                self.session_is_wrong = name.is_err();
                self.session = Some((entry.at(), name?));
            }
            "server" => {
                let address = entry.text().and_then(|text| server::address(&text));
                self.server_is_wrong = address.is_err();
                self.server = Some((entry.at(), address?));
            }
            "credentials" => self.credentials = Some((entry.at(), entry.text()?)),
            "memory" => {
                let (bytes, written) = entry.memory()?;
                (self.memory, self.batch.memory) = (Some(bytes), Some(written));
            }
            "workers" => self.workers = Some(entry.number(MOST_WORKERS)?),
            "min_hosts" => self.min_hosts = Some(entry.least(MOST_HOSTS as u32)?),
            "idle" => self.idle = Some(entry.seconds(0.0, LONGEST_WAIT)?),
            "python" => self.python = Some(entry.text()?),
            "program" => self.program = Some(entry.text()?),
            "directory" => self.directory = Some(entry.text()?),
            "preload" => self.preload = Some(entry.modules()?),
            "ports" => self.ports = Some(entry.ports()?),
            "start_timeout" => self.start_timeout = Some(entry.seconds(0.1, LONGEST_WAIT)?),
            "reconnect_timeout" => {
                self.reconnect_timeout = Some(entry.seconds(0.0, LONGEST_WAIT)?);
            }
            "stop_timeout" => self.stop_timeout = Some(entry.seconds(0.0, LONGEST_WAIT)?),
            "heartbeat" => self.heartbeat = Some(entry.seconds(0.1, LONGEST_WAIT)?),
            "staging" => self.staging = Some(entry.text()?),
            "output" => self.output = Some(entry.choice(&OUTPUTS)?),
            "encryption" => self.encryption = Some(entry.choice(&ENCRYPTIONS)?),
            "trusted" => self.trusted = Some(entry.flag()?),
            "compression" => self.compression = Some(entry.choice(&COMPRESSIONS)?),
            _ => self.batch.set(entry)?,
        }
        Ok(())
    }

    /// Reports keys that the table's launcher does not support, including those in `[defaults]`.
    pub(super) fn check(&self, defaults: Option<&Draft>, report: &mut Report<'_>) {
        if self.launcher_is_wrong || defaults.is_some_and(|defaults| defaults.launcher_is_wrong) {
            return;
        }
        let launcher = self.launcher(defaults);
        let name = launcher.name();
        let has_owner = |key| matches!(key, "session" | "server" | "credentials");
        for (at, key) in &self.given {
            let is_taken = match launcher {
                Launcher::Session => session::takes(key),
                Launcher::Server => server::takes(key),
                Launcher::Local | Launcher::Ssh | Launcher::Program | Launcher::Batch(_) => {
                    !has_owner(*key)
                }
            };
            let fits = match *key {
                "session" => "\"session\"",
                "server" | "credentials" => "\"server\"",
                _ => "those that start agents",
            };
            if !is_taken {
                report.add(*at, Fault::NotForLauncher { key, launcher: name, fits: fits.into() });
            }
        }
        if matches!(launcher, Launcher::Session | Launcher::Server) {
            return;
        }
        let system = match launcher {
            Launcher::Batch(system) => Some(system),
            Launcher::Local
            | Launcher::Ssh
            | Launcher::Program
            | Launcher::Session
            | Launcher::Server => None,
        };
        if let Some((at, _)) = self.hosts.as_ref().filter(|_| system.is_some()) {
            let fits = "launchers with a list of hosts (here `nodes` says how many)";
            report.add(
                *at,
                Fault::NotForLauncher { key: "hosts", launcher: name, fits: fits.into() },
            );
        }
        self.batch.check(name, system, report);
        let takes_command = matches!(launcher, Launcher::Ssh | Launcher::Program);
        if let Some((at, _)) = self.command.as_ref().filter(|_| !takes_command) {
            let fits = "\"ssh\" and \"program\"";
            report.add(
                *at,
                Fault::NotForLauncher { key: "command", launcher: name, fits: fits.into() },
            );
        }
        let takes_prefix = match launcher {
            Launcher::Local => true,
            Launcher::Batch(system) => system.has_queue(),
            Launcher::Ssh | Launcher::Program | Launcher::Session | Launcher::Server => false,
        };
        if let Some((at, _)) = self.prefix.as_ref().filter(|_| !takes_prefix) {
            let systems = BatchSystem::ALL.into_iter().filter(|system| system.has_queue());
            let fits = listed(["local"].into_iter().chain(systems.map(BatchSystem::name)));
            report.add(*at, Fault::NotForLauncher { key: "prefix", launcher: name, fits });
        }
    }

    fn launcher(&self, defaults: Option<&Draft>) -> Launcher {
        let inherited = defaults.and_then(|defaults| defaults.launcher);
        self.launcher.or(inherited).unwrap_or(Launcher::Ssh)
    }

    /// The defaults of sessions: the other keys are for servers whose agents are started.
    fn for_session(&self) -> Draft {
        Draft {
            launcher: self.launcher,
            session: self.session.clone(),
            session_is_wrong: self.session_is_wrong,
            memory: self.memory,
            resources: self.resources.clone(),
            heartbeat: self.heartbeat,
            output: self.output,
            ..Draft::default()
        }
    }

    /// The defaults of servers. Trust in the hosts that agents run on is not trust in a server of others.
    fn for_server(&self) -> Draft {
        let is_theirs = self.launcher == Some(Launcher::Server);
        Draft {
            launcher: self.launcher,
            server: self.server.clone(),
            server_is_wrong: self.server_is_wrong,
            credentials: self.credentials.clone(),
            memory: self.memory,
            resources: self.resources.clone(),
            start_timeout: self.start_timeout,
            reconnect_timeout: self.reconnect_timeout,
            heartbeat: self.heartbeat,
            output: self.output,
            compression: self.compression,
            trusted: self.trusted.filter(|_| is_theirs),
            ..Draft::default()
        }
    }

    /// The group, with `defaults` and then the built-in defaults for missing values. `at` is the start of its
    /// table.
    pub(super) fn group(
        self,
        name: &str,
        at: usize,
        defaults: &Draft,
        left: &mut u64,
        report: &mut Report<'_>,
    ) -> HostGroup {
        self.check(Some(defaults), report);
        let is_known = !self.launcher_is_wrong && !defaults.launcher_is_wrong;
        let launcher = self.launcher(Some(defaults));
        let chosen;
        let defaults = match launcher {
            Launcher::Session => {
                chosen = defaults.for_session();
                &chosen
            }
            Launcher::Server => {
                chosen = defaults.for_server();
                &chosen
            }
            Launcher::Local | Launcher::Ssh | Launcher::Program | Launcher::Batch(_) => defaults,
        };
        // A command belongs to its launcher: ssh's is of no use to another program.
        let is_the_defaults = launcher == defaults.launcher(None);
        let inherited = |words: &Option<(usize, Vec<String>)>| {
            words.as_ref().filter(|_| is_the_defaults).map(|(_, words)| words.clone())
        };
        let command = self.command.map(|(_, words)| words).or_else(|| inherited(&defaults.command));
        let prefix = self.prefix.map(|(_, words)| words).or_else(|| inherited(&defaults.prefix));
        let lacks_command =
            command.is_none() && !self.command_is_wrong && !defaults.command_is_wrong;
        if is_known && launcher == Launcher::Program && lacks_command {
            report.add(at, Fault::NoCommand);
        }
        let session =
            self.session.as_ref().or(defaults.session.as_ref().filter(|_| is_the_defaults));
        let session = session.map(|(_, session)| session.clone());
        let lacks_session =
            session.is_none() && !self.session_is_wrong && !defaults.session_is_wrong;
        if is_known && launcher == Launcher::Session && lacks_session {
            report.add(at, Fault::NoSession);
        }
        let server = self.server.as_ref().or(defaults.server.as_ref().filter(|_| is_the_defaults));
        let server = server.map(|(_, address)| address.clone());
        let lacks_server = server.is_none() && !self.server_is_wrong && !defaults.server_is_wrong;
        if is_known && launcher == Launcher::Server && lacks_server {
            report.add(at, Fault::NoServerAddress);
        }
        let needs_hosts = matches!(launcher, Launcher::Ssh | Launcher::Program);
        if is_known && needs_hosts && self.hosts.is_none() {
            report.add(at, Fault::NoHosts);
        }
        let nodes = self.batch.least_nodes.or_else(|| {
            let other =
                Some(&defaults.batch).filter(|_| is_the_defaults && !self.batch.has_nodes());
            other.and_then(|other| other.least_nodes)
        });
        let least = self.min_hosts.or(nodes).or(defaults.min_hosts);
        let named = self.hosts.map(|(_, hosts)| hosts);
        let hosts = named.unwrap_or_else(|| vec![Host::named("localhost")]);
        let (launcher, hosts) = match launcher {
            Launcher::Local => (LauncherKind::Local { prefix: prefix.unwrap_or_default() }, hosts),
            Launcher::Ssh => {
                let command = command.unwrap_or_else(|| vec!["ssh".into()]);
                (LauncherKind::Ssh { command }, hosts)
            }
            Launcher::Program => {
                (LauncherKind::Program { command: command.unwrap_or_default() }, hosts)
            }
            Launcher::Batch(system) => {
                let other = is_the_defaults.then_some(&defaults.batch);
                let (mut launcher, hosts) =
                    self.batch.launcher(system, name, at, other, left, report);
                if let LauncherKind::Batch(batch) = &mut launcher {
                    batch.prefix = prefix.unwrap_or_default();
                }
                (launcher, hosts)
            }
            Launcher::Session => {
                let name = session.unwrap_or_default();
                let hosts = vec![Host::named(name.clone())];
                (LauncherKind::Session { name }, hosts)
            }
            Launcher::Server => {
                // Without an address the group is not used: there is a problem.
                let address = server.unwrap_or_else(|| ServerAddress::Socket("/".into()));
                let own = self.credentials.or(defaults.credentials.clone());
                let hosts = vec![Host::named(address.name())];
                (
                    LauncherKind::Server { address, credentials: own.map(|(_, folder)| folder) },
                    hosts,
                )
            }
        };
        let mut workers = self.workers.or(defaults.workers);
        if let LauncherKind::Batch(batch) = &launcher
            && batch.nodes_per_host > 1
        {
            if let Some(workers @ 2..) = workers {
                report.add(at, Fault::OneWorker { workers });
            }
            if !matches!(batch.request, RequestForm::Auto | RequestForm::Array) {
                report.add(at, Fault::JobOfItsOwn { request: request_name(batch.request) });
            }
            workers = Some(1);
        }
        let environment = merged(self.environment, &defaults.environment);
        let resources = merged(self.resources, &defaults.resources);
        let is_asked_for = matches!(launcher, LauncherKind::Batch(_));
        let memory = self.memory.or(defaults.memory).filter(|_| !is_asked_for);
        let built_in = HostGroup::new(name, launcher, hosts);
        let or =
            |own: Option<String>, inherited: &Option<String>| own.or_else(|| inherited.clone());
        HostGroup {
            workers: workers.unwrap_or(built_in.workers),
            python: or(self.python, &defaults.python),
            program: or(self.program, &defaults.program),
            directory: or(self.directory, &defaults.directory),
            environment,
            preload: self.preload.or_else(|| defaults.preload.clone()).unwrap_or_default(),
            memory,
            resources,
            addresses: self.addresses.or_else(|| defaults.addresses.clone()).unwrap_or_default(),
            ports: self.ports.or(defaults.ports),
            start_timeout: self
                .start_timeout
                .or(defaults.start_timeout)
                .unwrap_or(built_in.start_timeout),
            reconnect_timeout: self
                .reconnect_timeout
                .or(defaults.reconnect_timeout)
                .unwrap_or(built_in.reconnect_timeout),
            stop_timeout: self
                .stop_timeout
                .or(defaults.stop_timeout)
                .unwrap_or(built_in.stop_timeout),
            heartbeat: self.heartbeat.or(defaults.heartbeat).unwrap_or(built_in.heartbeat),
            staging: or(self.staging, &defaults.staging),
            output: self.output.or(defaults.output).unwrap_or_default(),
            encryption: self.encryption.or(defaults.encryption).unwrap_or(built_in.encryption),
            trusted: self.trusted.or(defaults.trusted).unwrap_or(built_in.trusted),
            compression: self.compression.or(defaults.compression).unwrap_or(built_in.compression),
            min_hosts: least.map(|least| least.min(built_in.hosts.len() as u32)),
            idle: self.idle.or(defaults.idle).unwrap_or(built_in.idle),
            ..built_in
        }
    }
}

/// Entries of a table, with the defaults for those that it does not have.
fn merged<T: Clone>(own: Vec<(String, T)>, defaults: &[(String, T)]) -> Vec<(String, T)> {
    let is_own = |name: &String| own.iter().any(|(own, _)| own == name);
    let inherited = defaults.iter().filter(|(name, _)| !is_own(name)).cloned();
    let mut all: Vec<(String, T)> = inherited.collect();
    all.extend(own);
    all
}

/// The hosts of a group, without duplicates.
fn hosts(entry: &Entry<'_>, left: &mut u64, report: &mut Report<'_>) -> Vec<Host> {
    const EXPECTED: &str = "a list of hosts, such as [\"node1\", \"gpu[01-08]\"]";
    let mut hosts: Vec<Host> = Vec::new();
    let mut seen = HashSet::new();
    let texts = entry.texts(EXPECTED, report);
    let is_empty = entry.value.get_ref().as_array().is_some_and(|list| list.is_empty());
    if is_empty {
        report.add(entry.at(), Fault::EmptyHosts);
    }
    for (at, text) in texts {
        let patterns = match patterns(text) {
            Ok(patterns) => patterns,
            Err(fault) => {
                report.add(at, Fault::Host { text: shown(text), fault });
                continue;
            }
        };
        for pattern in patterns {
            let count = pattern.count();
            if count > *left {
                report.add(at, Fault::TooManyHosts { most: MOST_HOSTS });
                return hosts;
            }
            *left -= count;
            for host in pattern.hosts() {
                if seen.insert(host.name.clone()) {
                    hosts.push(host);
                } else {
                    report.add(at, Fault::HostTwice { host: host.name });
                }
            }
        }
    }
    hosts
}
