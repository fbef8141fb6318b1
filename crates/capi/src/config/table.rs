//! All sections and attributes of Ninf-G, and their treatment here.
//!
//! Existing configurations must work unchanged, so nothing that Ninf-G accepts is an error. Settings without
//! effect produce a warning with name and line. A name that Ninf-G does not have is treated as a typing
//! error.

/// A kind of section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Other files.
    Include,
    /// The client itself; at most once.
    Client,
    /// A function: the location of its module, and its time limit.
    FunctionInfo,
    /// One server, or several with the same settings.
    Server,
    /// Defaults for servers; at most once.
    ServerDefault,
    /// Files that list modules.
    InformationSource,
    /// A section without a meaning here.
    Foreign {
        /// The reason.
        reason: &'static str,
        /// Whether its purpose is served without it.
        is_replaced: bool,
    },
}

/// Treatment of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Effective, at most once per section.
    Used,
    /// Effective, may be repeated.
    Repeated,
    /// Without effect on this machine; the value is kept for servers on other machines.
    Kept {
        /// The reason.
        reason: &'static str,
        /// The value that matches the actual behaviour, if there is one.
        fitting: Option<&'static str>,
    },
    /// Without effect.
    Ignored {
        /// The reason.
        reason: &'static str,
        /// The value that matches the actual behaviour, if there is one.
        fitting: Option<&'static str>,
    },
}

type Row = (&'static str, Role);

const fn no(name: &'static str, reason: &'static str) -> Row {
    (name, Role::Ignored { reason, fitting: None })
}

const fn unless(name: &'static str, fitting: &'static str, reason: &'static str) -> Row {
    (name, Role::Ignored { reason, fitting: Some(fitting) })
}

const fn stored_only(
    name: &'static str,
    fitting: Option<&'static str>,
    reason: &'static str,
) -> Row {
    (name, Role::Kept { reason, fitting })
}

const NO_JOBS: &str = "workers are processes that the client starts itself, not jobs of a server";
const NO_GLOBUS: &str = "there is no Globus";
const NO_PROXY: &str = "there are no communication proxies: workers have a connection of their own";
const NO_INVOKE: &str = "there are no invoke servers: the client starts the workers itself";
const NO_LISTENING: &str = "workers on this host are connected without a port";
const ONE_LEVEL: &str = "there is one level for everything: `loglevel`";
const ONE_LOG: &str = "there is one log file, which is appended to";
const NO_CONNECTION_LOG: &str = "single messages are not logged";
const NO_HEARTBEAT: &str = "the end of a worker on this host is noticed at once";
const NO_COMPRESSION: &str = "data on one host goes through shared memory, uncompressed";
const INTERFACE_TELLS: &str = "a function runs on ranks of MPI if its interface says so";
const NO_MPIRUN: &str =
    "GRIDRPC_MPIRUN in the environment of workers names the command that starts ranks";
const NO_MDS: &str = "nothing is looked up in MDS: interfaces are read from the modules themselves";
const BY_SESSION: &str = "transfers have no limit of their own; `session_timeout` is one for all";
const SENT_ONCE: &str =
    "the connection to a worker on this host is made once and cannot be refused";

const INCLUDE: &[Row] = &[("filename", Role::Repeated)];

const CLIENT: &[Row] = &[
    ("save_sessionInfo", Role::Used),
    ("loglevel", Role::Used),
    ("log_filePath", Role::Used),
    ("tmp_dir", Role::Used),
    ("fortran_compatible", Role::Used),
    ("handling_signals", Role::Used),
    stored_only("hostname", None, NO_LISTENING),
    no("loglevel_ninfgProtocol", ONE_LEVEL),
    no("loglevel_ninfgInternal", ONE_LEVEL),
    no("loglevel_ninfgGrpc", ONE_LEVEL),
    no("loglevel_globusToolkit", NO_GLOBUS),
    no("log_suffix", ONE_LOG),
    unless("log_nFiles", "1", ONE_LOG),
    no("log_maxFileSize", ONE_LOG),
    unless("log_overwriteDirectory", "false", ONE_LOG),
    unless("refresh_credential", "0", "there are no credentials that could expire"),
    no("invoke_server_log", NO_INVOKE),
    no("client_communication_proxy_log", NO_PROXY),
    no("information_service_log", "there are no information services that could write one"),
    stored_only("listen_port", Some("0"), NO_LISTENING),
    unless("listen_port_authonly", "0", NO_LISTENING),
    unless("listen_port_GSI", "0", NO_LISTENING),
    unless("listen_port_SSL", "0", NO_LISTENING),
    unless("tcp_nodelay", "true", "small messages are never held back"),
    no("use_vfork", "workers come from a process of their own, however large the client is"),
];

const FUNCTION_INFO: &[Row] = &[
    ("hostname", Role::Used),
    ("funcname", Role::Used),
    ("path", Role::Used),
    ("session_timeout", Role::Used),
    unless("staging", "false", "a module on this host need not be copied"),
    unless("backend", "normal", INTERFACE_TELLS),
    unless("transferTimeout_argument", "0", BY_SESSION),
    unless("transferTimeout_result", "0", BY_SESSION),
    unless("transferTimeout_callbackArgument", "0", BY_SESSION),
    unless("transferTimeout_callbackResult", "0", BY_SESSION),
];

/// Attributes of SERVER only.
const SERVER: &[Row] = &[("hostname", Role::Repeated), ("tag", Role::Used)];

/// Attributes of both SERVER and SERVER_DEFAULT.
const ANY_SERVER: &[Row] = &[
    ("job_startTimeout", Role::Used),
    ("job_stopTimeout", Role::Used),
    ("redirect_outerr", Role::Used),
    ("argument_transfer", Role::Used),
    ("workDirectory", Role::Used),
    ("environment", Role::Repeated),
    ("preload", Role::Repeated),
    ("information_source_tag", Role::Used),
    ("debug", Role::Used),
    ("debug_display", Role::Used),
    ("debug_terminal", Role::Used),
    ("debug_debugger", Role::Used),
    ("debug_busyLoop", Role::Used),
    no("port", NO_LISTENING),
    stored_only("invoke_server", None, NO_INVOKE),
    no("invoke_server_option", NO_INVOKE),
    no("communication_proxy", NO_PROXY),
    no("communication_proxy_staging", NO_PROXY),
    no("communication_proxy_path", NO_PROXY),
    no("communication_proxy_buffer_size", NO_PROXY),
    no("communication_proxy_option", NO_PROXY),
    no("mds_hostname", NO_MDS),
    no("mds_tag", NO_MDS),
    unless("keep_connection", "true", "a worker's connection lasts as long as the worker"),
    unless("keepConnection", "true", "a worker's connection lasts as long as the worker"),
    ("mpi_runNoOfCPUs", Role::Repeated),
    no("mpi_runCommand", NO_MPIRUN),
    no("gass_scheme", NO_GLOBUS),
    unless("crypt", "false", "data does not leave this host"),
    unless("protocol", "binary", "there is one protocol"),
    unless("force_xdr", "false", "data on one host needs no conversion"),
    no("jobmanager", NO_JOBS),
    no("subject", NO_GLOBUS),
    stored_only("client_hostname", None, NO_LISTENING),
    no("job_maxTime", NO_JOBS),
    no("job_maxWallTime", NO_JOBS),
    no("job_maxCpuTime", NO_JOBS),
    no("job_queue", NO_JOBS),
    no("job_project", NO_JOBS),
    no("job_hostCount", NO_JOBS),
    no("job_minMemory", NO_JOBS),
    no("job_maxMemory", NO_JOBS),
    no("job_rslExtensions", NO_JOBS),
    stored_only("heartbeat", None, NO_HEARTBEAT),
    stored_only("heartbeat_timeoutCount", None, NO_HEARTBEAT),
    no("heartbeat_timeoutCountOnTransfer", NO_HEARTBEAT),
    unless("tcp_nodelay", "true", "small messages are never held back"),
    no("tcp_connect_retryCount", SENT_ONCE),
    no("tcp_connect_retryBaseInterval", SENT_ONCE),
    no("tcp_connect_retryIncreaseRatio", SENT_ONCE),
    no("tcp_connect_retryRandom", SENT_ONCE),
    stored_only("compress", Some("raw"), NO_COMPRESSION),
    no("compress_threshold", NO_COMPRESSION),
    no("argument_blockSize", "arguments on one host are not sent in blocks"),
    no("coreDumpSize", "workers have the limits of the client"),
    unless("commLog_enable", "false", NO_CONNECTION_LOG),
    no("commLog_filePath", NO_CONNECTION_LOG),
    no("commLog_suffix", NO_CONNECTION_LOG),
    no("commLog_nFiles", NO_CONNECTION_LOG),
    no("commLog_maxFileSize", NO_CONNECTION_LOG),
    no("commLog_overwriteDirectory", NO_CONNECTION_LOG),
];

const INFORMATION_SOURCE: &[Row] = &[
    ("tag", Role::Used),
    ("type", Role::Used),
    ("source", Role::Repeated),
    no("path", "there are no programs that serve information"),
    no("log_filePath", "there are no programs that serve information"),
    no("timeout", "files are read at once"),
    no("option", "there are no programs that serve information"),
];

const SECTIONS: &[(&str, Section)] = &[
    ("INCLUDE", Section::Include),
    ("CLIENT", Section::Client),
    ("FUNCTION_INFO", Section::FunctionInfo),
    ("SERVER", Section::Server),
    ("SERVER_DEFAULT", Section::ServerDefault),
    ("INFORMATION_SOURCE", Section::InformationSource),
    ("INVOKE_SERVER", Section::Foreign { reason: NO_INVOKE, is_replaced: false }),
    ("CLIENT_COMMUNICATION_PROXY", Section::Foreign { reason: NO_PROXY, is_replaced: false }),
    ("MDS_SERVER", Section::Foreign { reason: NO_MDS, is_replaced: true }),
    (
        "LOCAL_LDIF",
        Section::Foreign {
            reason: "interfaces are read from the modules themselves",
            is_replaced: true,
        },
    ),
];

impl Section {
    /// The section with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Section> {
        SECTIONS.iter().find(|(known, _)| *known == name).map(|(_, section)| *section)
    }

    /// The most similar known section name, if there is one.
    #[must_use]
    pub fn similar(name: &str) -> Option<&'static str> {
        similar(name, SECTIONS.iter().map(|(known, _)| *known))
    }

    fn rows(self) -> impl Iterator<Item = &'static Row> {
        let (own, shared): (&[Row], &[Row]) = match self {
            Section::Include => (INCLUDE, &[]),
            Section::Client => (CLIENT, &[]),
            Section::FunctionInfo => (FUNCTION_INFO, &[]),
            Section::Server => (SERVER, ANY_SERVER),
            Section::ServerDefault => (&[], ANY_SERVER),
            Section::InformationSource => (INFORMATION_SOURCE, &[]),
            Section::Foreign { .. } => (&[], &[]),
        };
        own.iter().chain(shared)
    }

    /// The treatment of an attribute. `None`: sections of this kind do not have it.
    #[must_use]
    pub fn role(self, attribute: &str) -> Option<Role> {
        self.rows().find(|(known, _)| *known == attribute).map(|(_, role)| *role)
    }

    /// The most similar attribute of this section, if there is one.
    #[must_use]
    pub fn similar_attribute(self, name: &str) -> Option<&'static str> {
        similar(name, self.rows().map(|(known, _)| *known))
    }
}

/// The candidate closest to `name`: differing only in case, or by at most two letters.
fn similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer names resemble none of the known ones, and the comparison takes quadratic time.
    if name.len() > 64 {
        return None;
    }
    candidates
        .map(|known| (distance(&name.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= 2 && *distance * 2 < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The number of letters to change, insert or delete.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_attribute_is_listed_twice() {
        for (name, section) in SECTIONS {
            let mut seen = HashSet::new();
            for (attribute, _) in section.rows() {
                assert!(seen.insert(attribute), "{name}.{attribute}");
            }
        }
    }

    #[test]
    fn the_guide_tells_of_every_attribute() {
        let guide = include_str!("../../../../docs/coming-from-ninf-g.md");
        for (name, section) in SECTIONS {
            assert!(guide.contains(name), "{name}");
            for (attribute, role) in section.rows() {
                let (with, without) = guide.split_once("### What has no effect").unwrap();
                let ignored = matches!(role, Role::Ignored { .. } | Role::Kept { .. });
                let part = if ignored { without } else { with };
                assert!(part.contains(&format!("`{attribute}`")), "{name}.{attribute}");
            }
        }
    }

    #[test]
    fn similar_names_are_found() {
        assert_eq!(Section::similar("SEVER"), Some("SERVER"));
        assert_eq!(Section::similar("client"), Some("CLIENT"));
        assert_eq!(Section::similar("WHATEVER"), None);
        assert_eq!(Section::Client.similar_attribute("logLevel"), Some("loglevel"));
        assert_eq!(Section::Server.similar_attribute("enviroment"), Some("environment"));
        assert_eq!(Section::ServerDefault.similar_attribute("hostname"), None);
        assert_eq!(Section::Client.similar_attribute(&"x".repeat(100_000)), None);
    }

    #[test]
    fn only_what_differs_from_here_is_worth_a_word() {
        let role = Section::Server.role("crypt");
        assert!(matches!(role, Some(Role::Ignored { fitting: Some("false"), .. })));
        assert_eq!(Section::Server.role("hostname"), Some(Role::Repeated));
        assert_eq!(Section::ServerDefault.role("hostname"), None);
    }
}
