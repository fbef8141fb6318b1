//! Writes groups as a configuration file, with all defaults filled in.

use std::fmt::Write;
use std::net::Ipv6Addr;
use std::time::Duration;

use super::batch_options::{own_names, request_name};
use super::batch_systems::BatchSystem;
use super::group::{Batch, HostGroup, IDLE, LauncherKind, RECONNECT_TIMEOUT};
use super::host_list::Host;
use super::keys::{compression_name, output_name};
use super::{server, session};

/// A file with these groups. Keys that are absent have the value that [`HostGroup`] uses for none.
#[must_use]
pub fn write(groups: &[HostGroup]) -> String {
    let tables: Vec<String> = groups.iter().map(table).collect();
    tables.join("\n")
}

fn table(group: &HostGroup) -> String {
    let (mut session, mut server) = (None, None);
    let (launcher, words) = match &group.launcher {
        LauncherKind::Local { prefix } if prefix.is_empty() => ("local", None),
        LauncherKind::Local { prefix } => ("local", Some(("prefix", prefix))),
        LauncherKind::Ssh { command } => ("ssh", Some(("command", command))),
        LauncherKind::Program { command } => ("program", Some(("command", command))),
        LauncherKind::Batch(batch) if batch.prefix.is_empty() => (batch.system.name(), None),
        LauncherKind::Batch(batch) => (batch.system.name(), Some(("prefix", &batch.prefix))),
        LauncherKind::Session { name } => {
            session = Some(name);
            ("session", None)
        }
        LauncherKind::Server { address, credentials } => {
            server = Some((address.to_string(), credentials));
            ("server", None)
        }
    };
    let hosts: Vec<String> = group.hosts.iter().map(host).collect();
    let mut lines = vec![format!("launcher = {}", quoted(launcher))];
    let mut line = |key: &str, value: Option<String>| {
        let is_taken = match (&session, &server) {
            (Some(_), _) => session::takes(key),
            (_, Some(_)) => server::takes(key),
            (None, None) => !matches!(key, "session" | "server"),
        };
        let value = value.filter(|_| is_taken);
        lines.extend(value.map(|value| format!("{key} = {value}")));
    };
    line("session", session.map(|name| quoted(name)));
    if let Some((address, credentials)) = &server {
        line("server", Some(quoted(address)));
        line("credentials", credentials.as_deref().map(quoted));
    }
    if let Some((key, words)) = words {
        line(key, Some(list(words)));
    }
    match &group.launcher {
        LauncherKind::Batch(batch) => {
            line("nodes", Some(hosts.len().to_string()));
            self::batch(batch, &mut line);
        }
        _ => line("hosts", Some(list(&hosts))),
    }
    line("workers", (group.workers > 0).then(|| group.workers.to_string()));
    line("python", group.python.as_deref().map(quoted));
    line("program", group.program.as_deref().map(quoted));
    line("directory", group.directory.as_deref().map(quoted));
    line("environment", variables(&group.environment));
    line("preload", (!group.preload.is_empty()).then(|| list(&group.preload)));
    line("memory", group.memory.map(|bytes| quoted(&format!("{bytes} B"))));
    line("resources", resources(&group.resources));
    line("addresses", (!group.addresses.is_empty()).then(|| list(&group.addresses)));
    line("ports", group.ports.map(|(first, last)| quoted(&format!("{first}-{last}"))));
    line("start_timeout", Some(seconds(group.start_timeout)));
    let reconnects = group.reconnect_timeout;
    line("reconnect_timeout", (reconnects != RECONNECT_TIMEOUT).then(|| seconds(reconnects)));
    line("stop_timeout", Some(seconds(group.stop_timeout)));
    line("heartbeat", Some(seconds(group.heartbeat)));
    line("staging", group.staging.as_deref().map(quoted));
    line("output", Some(quoted(output_name(group.output))));
    line("encryption", Some(quoted(if group.encryption { "tls" } else { "none" })));
    line("trusted", (group.trusted == server.is_some()).then(|| group.trusted.to_string()));
    line("min_hosts", group.min_hosts.map(|least| least.to_string()));
    line("idle", (group.idle != IDLE).then(|| seconds(group.idle)));
    line("compression", Some(quoted(compression_name(group.compression))));
    format!("[server.{}]\n{}\n", key(&group.name), lines.join("\n"))
}

/// The keys of batch systems.
fn batch(batch: &Batch, line: &mut impl FnMut(&str, Option<String>)) {
    let has_forms = matches!(batch.system, BatchSystem::Slurm | BatchSystem::GridEngine);
    line("request", has_forms.then(|| quoted(request_name(batch.request))));
    let (queue, account) = own_names(batch.system);
    line(queue, batch.queue.as_deref().map(quoted));
    line(account, batch.account.as_deref().map(quoted));
    line("memory", batch.memory.as_deref().map(quoted));
    line("wall_time", batch.wall_time.map(|time| time.as_secs().to_string()));
    line("cores", (batch.cores > 0).then(|| batch.cores.to_string()));
    line("exclusive", batch.exclusive.then(|| "true".to_owned()));
    line("constraint", batch.constraint.as_deref().map(quoted));
    line("parallel_environment", batch.parallel_environment.as_deref().map(quoted));
    line("options", (!batch.options.is_empty()).then(|| list(&batch.options)));
    line("skip", (!batch.skip.is_empty()).then(|| list(&batch.skip)));
    line("template", batch.template.as_deref().map(quoted));
    let nodes = batch.nodes_per_host;
    line("nodes_per_host", (nodes > 0).then(|| nodes.to_string()));
    line("requeue", batch.requeue.then(|| "true".to_owned()));
}

/// A host with its workers. An IPv6 address contains colons itself.
fn host(Host { name, workers }: &Host) -> String {
    let Some(workers) = workers else { return name.clone() };
    let (user, bare) = match name.rsplit_once('@') {
        Some((user, bare)) => (format!("{user}@"), bare),
        None => (String::new(), name.as_str()),
    };
    let address = bare.split('%').next().unwrap_or(bare);
    if address.parse::<Ipv6Addr>().is_ok() {
        format!("{user}[{bare}]:{workers}")
    } else {
        format!("{name}:{workers}")
    }
}

fn variables(environment: &[(String, String)]) -> Option<String> {
    let pairs: Vec<String> = environment
        .iter()
        .map(|(name, value)| format!("{} = {}", key(name), quoted(value)))
        .collect();
    (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", ")))
}

fn resources(resources: &[(String, u64)]) -> Option<String> {
    let pairs: Vec<String> =
        resources.iter().map(|(name, amount)| format!("{} = {amount}", key(name))).collect();
    (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", ")))
}

fn seconds(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => time.as_secs().to_string(),
        _ => format!("{:?}", time.as_secs_f64()),
    }
}

pub(super) fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A key, quoted if necessary.
pub(super) fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) { name.into() } else { quoted(name) }
}

/// A TOML string on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
