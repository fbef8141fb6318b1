//! Reads `server.toml` and reports all problems at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gridrpc_config::{
    Entry, Fault, Part, Problem, chosen, found, in_order, is_name, parse, read_text, shown,
};
use gridrpc_sys::safe_path::{self, UnsafePath};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::call_settings::CallSettings;
use super::defaults::Defaults;
use super::directory_config::DirectoryConfig;
use super::fault::{ServerFault, ServerProblems, ServerReport};
use super::grants::Grants;
use super::keys::{LONGEST, MOST, distinct, each_key, is_module_name, number, paths, size};
use super::python_module::PythonModule;
use super::schema;
use super::server_config::{
    ADDRESS, AUDIT_KEEP, AUDIT_SIZE, AuditConfig, HTTP_BYTES, HTTP_CALLS, HTTP_PORT, HTTP_REQUEST,
    HttpConfig, IDLE, LogFormat, MOST_CONNECTIONS, Network, PORT, RESULT_BYTES, RESULT_DAYS,
    ResultsConfig, ServerConfig, TlsConfig, WorkersConfig,
};
use super::traces_config::TracesConfig;

/// Longest path of a Unix socket, bytes.
const LONGEST_SOCKET: usize = 107;
/// Smallest rotation size of the audit log, bytes.
const LEAST_AUDIT: u64 = 4096;
const DAY: u64 = 24 * 60 * 60;

/// Reads a file. Relative paths in it start at its folder.
///
/// # Errors
/// All problems of the file, and of the file with host groups that it names; only one if others can change it.
pub fn read_file(path: &Path) -> Result<ServerConfig, ServerProblems> {
    let file = path.display().to_string();
    if let Some(fault) = changeable(path) {
        let fault = Box::new(fault);
        return Err(Problem { place: file, line: 0, part: Part::Whole, fault }.into());
    }
    read(&read_text(path, &file)?, &file, &Defaults::of_process(path))
}

/// The error if others can change a file. One that cannot be read has another error.
fn changeable(path: &Path) -> Option<ServerFault> {
    match safe_path::check(path) {
        Err(error @ (UnsafePath::Owner { .. } | UnsafePath::Writable { .. })) => {
            Some(ServerFault::Unsafe { reason: error.to_string() })
        }
        Err(UnsafePath::Io(_)) | Ok(()) => None,
    }
}

/// Reads the text of a file. `file` is its name in messages.
///
/// # Errors
/// As `read_file`.
pub fn read(text: &str, file: &str, defaults: &Defaults) -> Result<ServerConfig, ServerProblems> {
    parse(text, file, |document, report| {
        let mut draft = Draft::new(defaults);
        draft.read(document, report);
        draft.config(report)
    })
}

/// The contents of a file.
struct Draft<'d> {
    defaults: &'d Defaults,
    name: String,
    state: Option<PathBuf>,
    /// With its position.
    socket: Option<(usize, PathBuf)>,
    addresses: Vec<IpAddr>,
    port: u16,
    /// Keys that need certificates, with their positions.
    network_keys: Vec<(usize, &'static str)>,
    most_connections: u32,
    http: Option<HttpConfig>,
    /// Addresses of `[http]`, with their position.
    http_addresses: Option<(usize, Vec<IpAddr>)>,
    http_tokens: Option<PathBuf>,
    log: LogFormat,
    traces: Option<TracesConfig>,
    /// With its position.
    directory: Option<(usize, DirectoryConfig)>,
    has_tls: bool,
    tls: Option<TlsConfig>,
    workers: WorkersConfig,
    has_python: bool,
    /// Position of `count`.
    count_at: Option<usize>,
    has_hosts: bool,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    modules: BTreeMap<String, CallSettings>,
    python: BTreeMap<String, PythonModule>,
    /// Position of the first table `[python.NAME]`.
    python_at: Option<usize>,
    everyone: Grants,
    users: BTreeMap<String, Grants>,
    groups: BTreeMap<String, Grants>,
    audit_file: Option<PathBuf>,
    audit_size: u64,
    audit_keep: u32,
    results: ResultsConfig,
}

impl<'d> Draft<'d> {
    fn new(defaults: &'d Defaults) -> Draft<'d> {
        Draft {
            defaults,
            name: defaults.name.clone(),
            state: defaults.state.clone(),
            socket: None,
            addresses: vec![ADDRESS],
            port: PORT,
            network_keys: Vec::new(),
            most_connections: MOST_CONNECTIONS,
            http: None,
            http_addresses: None,
            http_tokens: None,
            log: LogFormat::default(),
            traces: None,
            directory: None,
            has_tls: false,
            tls: None,
            workers: WorkersConfig {
                count: defaults.workers,
                python: None,
                user: None,
                hosts: Vec::new(),
                idle: IDLE,
            },
            has_python: false,
            count_at: None,
            has_hosts: false,
            files: Vec::new(),
            folders: Vec::new(),
            modules: BTreeMap::new(),
            python: BTreeMap::new(),
            python_at: None,
            everyone: Grants::default(),
            users: BTreeMap::new(),
            groups: BTreeMap::new(),
            audit_file: None,
            audit_size: AUDIT_SIZE,
            audit_keep: AUDIT_KEEP,
            results: ResultsConfig {
                keep: Duration::from_secs(u64::from(RESULT_DAYS) * DAY),
                bytes: RESULT_BYTES,
            },
        }
    }

    fn read(&mut self, document: &DeTable<'_>, report: &mut ServerReport<'_>) {
        for (name, value) in in_order(document) {
            let at = name.span().start;
            let name: &str = name.get_ref();
            let Some(known) = schema::TABLES.into_iter().find(|known| *known == name) else {
                let near = gridrpc_idl::nearest(name, schema::TABLES);
                let name = name.chars().take(255).collect();
                let known = schema::TABLES.to_vec();
                report.add(at, ServerFault::UnknownTable { name, near, known });
                continue;
            };
            let DeValue::Table(table) = value.get_ref() else {
                let (example, found) = (example(known), found(value.get_ref()));
                report.add(at, Fault::NotATable { name: known.into(), found, example });
                continue;
            };
            report.part = Part::Table(known.into());
            self.table(known, at, table, report);
            report.part = Part::Whole;
        }
    }

    fn table(
        &mut self,
        name: &'static str,
        at: usize,
        table: &DeTable<'_>,
        report: &mut ServerReport<'_>,
    ) {
        match name {
            "server" => self.server(table, report),
            "tls" => self.tls(at, table, report),
            "http" => self.http(table, report),
            "workers" => self.workers(table, report),
            "modules" => self.modules(table, report),
            "python" => self.python(table, report),
            "everyone" => self.everyone = Grants::read(table, report),
            "users" => self.users = grants_by_name(name, table, report),
            "groups" => self.groups = grants_by_name(name, table, report),
            "audit" => self.audit(table, report),
            "log" => self.log(table, report),
            "traces" => {
                let (folder, variables) = (&self.defaults.folder, &self.defaults.opentelemetry);
                self.traces = Some(TracesConfig::read(table, at, folder, variables, report));
            }
            "directory" => {
                let (folder, host) = (&self.defaults.folder, &self.defaults.name);
                let directory = DirectoryConfig::read(table, at, folder, host, report);
                self.directory = Some((at, directory));
            }
            _ => self.results(table, report),
        }
    }

    fn server(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        each_key(table, schema::SERVER, report, |entry, report| {
            match entry.key {
                "name" => self.name = valid_name(entry)?,
                "state" => self.state = Some(self.path(entry)?),
                "socket" => self.socket = Some((entry.at(), self.path(entry)?)),
                "addresses" => {
                    self.network_keys.push((entry.at(), "addresses"));
                    self.addresses = addresses(entry, report);
                }
                "port" => {
                    self.network_keys.push((entry.at(), "port"));
                    self.port = number(entry, 0, i64::from(u16::MAX))? as u16;
                }
                _ => self.most_connections = number(entry, 1, MOST)? as u32,
            }
            Ok(())
        });
    }

    fn tls(&mut self, at: usize, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        self.has_tls = true;
        let (mut certificate, mut key, mut authority, mut revoked) = (None, None, None, None);
        each_key(table, schema::TLS, report, |entry, _| {
            let path = Some(self.path(entry)?);
            match entry.key {
                "certificate" => certificate = path,
                "key" => key = path,
                "authority" => authority = path,
                _ => revoked = path,
            }
            Ok(())
        });
        let needed = [
            ("certificate", "certificate = \"server.crt\""),
            ("key", "key = \"server.key\""),
            ("authority", "authority = \"authority.crt\""),
        ];
        for (key, example) in needed {
            if !table.contains_key(key) {
                report.add(at, ServerFault::Missing { key, example });
            }
        }
        if let (Some(certificate), Some(key), Some(authority)) = (certificate, key, authority) {
            self.tls = Some(TlsConfig { certificate, key, authority, revoked });
        }
    }

    fn http(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        let mut http = HttpConfig {
            addresses: Vec::new(),
            port: HTTP_PORT,
            tokens: PathBuf::new(),
            anonymous: None,
            allowed_origins: Vec::new(),
            most_connections: MOST_CONNECTIONS,
            most_calls: HTTP_CALLS,
            most_request_bytes: HTTP_BYTES,
            most_result_bytes: HTTP_BYTES,
            request_timeout: HTTP_REQUEST,
        };
        const ORIGINS: &str =
            "a list of origins, such as [\"https://portal.example.org\"], or \"*\" for all";
        each_key(table, schema::HTTP, report, |entry, report| {
            match entry.key {
                "addresses" => {
                    self.http_addresses = Some((entry.at(), addresses(entry, report)));
                }
                "port" => http.port = number(entry, 0, i64::from(u16::MAX))? as u16,
                "tokens" => self.http_tokens = Some(self.path(entry)?),
                "anonymous" => http.anonymous = Some(valid_name(entry)?),
                "allowed_origins" => {
                    let is_origin = |text: &str| text == "*" || text.contains("://");
                    http.allowed_origins = distinct(entry, ORIGINS, report, is_origin);
                }
                "most_connections" => http.most_connections = number(entry, 2, MOST)? as u32,
                "most_calls" => http.most_calls = number(entry, 1, MOST)? as u32,
                "most_request_bytes" => http.most_request_bytes = size(entry)?,
                "most_result_bytes" => http.most_result_bytes = size(entry)?,
                _ => http.request_timeout = entry.seconds(0.1, LONGEST)?,
            }
            Ok(())
        });
        self.http = Some(http);
    }

    fn log(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        each_key(table, schema::LOG, report, |entry, _| {
            self.log = match entry.text()?.as_str() {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return Err(entry.wrong("\"text\" or \"json\"").into()),
            };
            Ok(())
        });
    }

    fn workers(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        const NAMES: &str = "a list of host groups of the `config` or URLs, such as [\"lab\"]";
        let (mut file, mut servers) = (None, None);
        each_key(table, schema::WORKERS, report, |entry, report| {
            match entry.key {
                "count" => {
                    self.workers.count = number(entry, 0, MOST)? as u32;
                    self.count_at = Some(entry.at());
                }
                "user" => self.workers.user = Some(entry.text()?),
                "python" => {
                    // A wrong one is not a missing one.
                    self.has_python = true;
                    self.workers.python = Some(entry.text()?);
                }
                "config" => file = Some((entry.at(), self.path(entry)?)),
                "servers" => {
                    let is_name = |text: &str| !text.is_empty();
                    servers = Some((entry.at(), distinct(entry, NAMES, report, is_name)));
                }
                _ => self.workers.idle = entry.seconds(0.0, LONGEST)?,
            }
            Ok(())
        });
        let Some(at) = servers.as_ref().map(|(at, _)| *at).or(file.as_ref().map(|(at, _)| *at))
        else {
            return;
        };
        // An empty list is no host group, and a missing one all of the file.
        let words = match servers {
            Some((_, words)) if words.is_empty() => return,
            Some((_, words)) => words,
            None => Vec::new(),
        };
        // Those with errors are reported for themselves.
        self.has_hosts = true;
        if let Some(fault) = file.as_ref().and_then(|(_, file)| changeable(file)) {
            report.add(at, fault);
            return;
        }
        match chosen(&words, file.as_ref().map(|(_, file)| file.as_path())) {
            Ok(hosts) => self.workers.hosts = hosts,
            Err(problems) => report.add(at, ServerFault::Hosts { problems: Box::new(problems) }),
        }
    }

    fn modules(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        for (name, value) in in_order(table) {
            let entry = Entry { key: name.get_ref(), value };
            match (entry.key, value.get_ref()) {
                ("files", _) => self.files = paths(&entry, &self.defaults.folder, report),
                ("folders", _) => self.folders = paths(&entry, &self.defaults.folder, report),
                (module, DeValue::Table(table)) => {
                    if !named_part("modules", name, is_module_name, report) {
                        continue;
                    }
                    let mut calls = CallSettings::default();
                    each_key(table, schema::CALLS, report, |entry, report| {
                        calls.set(entry, report)
                    });
                    self.modules.insert(module.into(), calls);
                    report.part = Part::Table("modules".into());
                }
                (key, _) => {
                    let near = gridrpc_idl::nearest(key, schema::MODULES.iter().copied());
                    let key = key.chars().take(255).collect();
                    let known = schema::MODULES.to_vec();
                    report.add(name.span().start, ServerFault::UnknownKey { key, near, known });
                }
            }
        }
    }

    fn python(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        for (name, table) in tables_by_name("python", table, report) {
            let at = name.span().start;
            self.python_at.get_or_insert(at);
            if named_part("python", name, is_module_name, report) {
                let module = PythonModule::read(table, at, &self.defaults.folder, report);
                self.python.insert(name.get_ref().to_string(), module);
            }
        }
    }

    fn audit(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        each_key(table, schema::AUDIT, report, |entry, _| {
            match entry.key {
                "file" => self.audit_file = Some(self.path(entry)?),
                "size" => {
                    let size = size(entry)?;
                    if size < LEAST_AUDIT {
                        return Err(entry.wrong("a size from \"4 KiB\" on").into());
                    }
                    self.audit_size = size;
                }
                _ => self.audit_keep = number(entry, 0, 1000)? as u32,
            }
            Ok(())
        });
    }

    fn results(&mut self, table: &DeTable<'_>, report: &mut ServerReport<'_>) {
        each_key(table, schema::RESULTS, report, |entry, _| {
            match entry.key {
                "keep_days" => {
                    let days = number(entry, 1, 3650)?.unsigned_abs();
                    self.results.keep = Duration::from_secs(days * DAY);
                }
                _ => self.results.bytes = size(entry)?,
            }
            Ok(())
        });
    }

    fn path(&self, entry: &Entry<'_>) -> Result<PathBuf, Fault> {
        Ok(self.defaults.folder.join(entry.text()?))
    }

    /// Checks what concerns several tables.
    fn config(self, report: &mut ServerReport<'_>) -> ServerConfig {
        report.part = Part::Table("server".into());
        if !self.has_tls {
            for (at, key) in &self.network_keys {
                report.add(*at, ServerFault::WithoutTls { key });
            }
        }
        report.part = Part::Whole;
        if let Some((at, _)) = self.directory.as_ref().filter(|_| !self.has_tls) {
            report.add(*at, ServerFault::WithoutTls { key: "[directory]" });
        }
        report.part = Part::Table("workers".into());
        if let Some(at) = self.count_at.filter(|_| self.workers.count == 0 && !self.has_hosts) {
            report.add(at, ServerFault::NoWorkers);
        }
        report.part = Part::Whole;
        if let Some(at) = self.python_at.filter(|_| !self.has_python) {
            report.add(at, ServerFault::NoPython);
        }
        for name in self.python.keys().filter(|name| self.modules.contains_key(*name)) {
            let fault = ServerFault::SameName { name: name.clone() };
            report.add(self.python_at.unwrap_or_default(), fault);
        }
        if self.state.is_none() {
            report.add(0, ServerFault::NoState);
        }
        let state = self.state.unwrap_or_default();
        let (at, socket) = self.socket.unwrap_or_else(|| {
            let named = self.defaults.sockets.as_ref().filter(|_| !self.name.contains('/'));
            let named = named.map(|folder| folder.join(format!("{}.sock", self.name)));
            (0, named.unwrap_or_else(|| state.join("socket")))
        });
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let fault = ServerFault::SocketPath { path: socket.clone(), most: LONGEST_SOCKET };
            report.add(at, fault);
        }
        let (at, addresses) = self.http_addresses.unwrap_or_else(|| (0, vec![ADDRESS]));
        report.part = Part::Table("http".into());
        for address in addresses.iter().filter(|one| !self.has_tls && !one.is_loopback()) {
            report.add(at, ServerFault::HttpWithoutTls { address: *address });
        }
        report.part = Part::Whole;
        let tokens = self.http_tokens.unwrap_or_else(|| state.join("tokens.json"));
        let http = self.http.map(|http| HttpConfig { addresses, tokens, ..http });
        let (addresses, port) = (self.addresses, self.port);
        ServerConfig {
            http,
            log: self.log,
            traces: self.traces,
            directory: self.directory.map(|(_, directory)| directory),
            name: self.name,
            socket,
            network: self.tls.map(|tls| Network { addresses, port, tls }),
            most_connections: self.most_connections,
            workers: self.workers,
            files: self.files,
            folders: self.folders,
            modules: self.modules,
            python: self.python,
            everyone: self.everyone,
            users: self.users,
            groups: self.groups,
            audit: AuditConfig {
                file: self.audit_file.unwrap_or_else(|| state.join("audit.jsonl")),
                size: self.audit_size,
                keep: self.audit_keep,
            },
            results: self.results,
            state,
        }
    }
}

/// How a table is written.
fn example(table: &str) -> &'static str {
    match table {
        "server" => "[server]",
        "tls" => "[tls]",
        "http" => "[http]",
        "workers" => "[workers]",
        "modules" => "[modules]",
        "python" => "[python.NAME]",
        "everyone" => "[everyone]",
        "users" => "[users.NAME]",
        "groups" => "[groups.NAME]",
        "audit" => "[audit]",
        "log" => "[log]",
        "traces" => "[traces]",
        "directory" => "[directory]",
        _ => "[results]",
    }
}

type Name<'a> = &'a Spanned<Cow<'a, str>>;

/// The tables in a table, such as those of users.
fn tables_by_name<'a>(
    kind: &'static str,
    table: &'a DeTable<'a>,
    report: &mut ServerReport<'_>,
) -> Vec<(Name<'a>, &'a DeTable<'a>)> {
    let mut tables = Vec::new();
    for (name, value) in in_order(table) {
        match value.get_ref() {
            DeValue::Table(table) => tables.push((name, table)),
            other => {
                let (found, example) = (found(other), example(kind));
                let name_there = name.get_ref().chars().take(255).collect();
                let fault = Fault::NotATable { name: name_there, found, example };
                report.add(name.span().start, fault);
            }
        }
    }
    tables
}

/// Begins the table with this name in another one, unless the name is invalid.
fn named_part(
    kind: &str,
    name: Name<'_>,
    is_valid: impl Fn(&str) -> bool,
    report: &mut ServerReport<'_>,
) -> bool {
    let at = name.span().start;
    let name: &str = name.get_ref();
    if is_valid(name) {
        report.part = Part::Table(format!("{kind}.{name}"));
        return true;
    }
    report.part = Part::Table(kind.into());
    let expected = match kind {
        "users" | "groups" => "1 to 255 bytes without blanks and control characters",
        _ => "1 to 255 letters, digits, `_` and `-`, first a letter or `_`",
    };
    let (key, found) = ("NAME".into(), shown(name));
    report.add(at, Fault::Value { key, found, expected: expected.into() });
    false
}

fn grants_by_name(
    kind: &'static str,
    table: &DeTable<'_>,
    report: &mut ServerReport<'_>,
) -> BTreeMap<String, Grants> {
    let mut all = BTreeMap::new();
    for (name, table) in tables_by_name(kind, table, report) {
        if named_part(kind, name, is_name, report) {
            all.insert(name.get_ref().to_string(), Grants::read(table, report));
        }
    }
    all
}

fn valid_name(entry: &Entry<'_>) -> Result<String, Fault> {
    let name = entry.text()?;
    let is_valid = is_name(&name);
    let expected = "1 to 255 bytes without blanks and control characters";
    is_valid.then_some(name).ok_or_else(|| entry.wrong(expected))
}

fn addresses(entry: &Entry<'_>, report: &mut ServerReport<'_>) -> Vec<IpAddr> {
    const EXPECTED: &str =
        "a list of addresses of this machine, such as [\"10.0.0.1\"], or \"0.0.0.0\" for all";
    if entry.value.get_ref().as_array().is_some_and(|list| list.is_empty()) {
        let (key, found) = (entry.key.into(), "empty".into());
        report.add(entry.at(), Fault::Value { key, found, expected: EXPECTED.into() });
    }
    let read = |text: &str| {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        bare.unwrap_or(text).parse::<IpAddr>().ok()
    };
    let texts = distinct(entry, EXPECTED, report, |text| read(text).is_some());
    texts.iter().filter_map(|text| read(text)).collect()
}
