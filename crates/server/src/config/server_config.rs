//! The configuration of a server, with all defaults filled in.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use gridrpc_config::HostGroup;

use super::call_settings::{CallSettings, RunAs};
use super::directory_config::DirectoryConfig;
use super::grants::Grants;
use super::python_module::PythonModule;
use super::traces_config::TracesConfig;

/// Default of `port`.
pub(super) const PORT: u16 = 7711;
/// Default of `addresses`.
pub(super) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Default of `most_connections`.
pub(super) const MOST_CONNECTIONS: u32 = 4096;
/// Default of `port` in `[http]`.
pub(super) const HTTP_PORT: u16 = 7712;
/// Default of `most_calls` in `[http]`.
pub(super) const HTTP_CALLS: u32 = 256;
/// Default of `most_request_bytes` and `most_result_bytes` in `[http]`.
pub(super) const HTTP_BYTES: u64 = 256 << 20;
/// Default of `request_seconds` in `[http]`.
pub(super) const HTTP_REQUEST: Duration = Duration::from_secs(120);
/// Default of `user` in `[workers]`, if workers of a module run as their caller.
const WORKER_USER: &str = "nobody";
/// Default of `idle`.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// Default of `size` in `[audit]`.
pub(super) const AUDIT_SIZE: u64 = 64 << 20;
/// Default of `keep` in `[audit]`.
pub(super) const AUDIT_KEEP: u32 = 8;
/// Default of `keep_days` in `[results]`.
pub(super) const RESULT_DAYS: u32 = 7;
/// Default of `bytes` in `[results]`.
pub(super) const RESULT_BYTES: u64 = 10 << 30;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Name of the server.
    pub name: String,
    /// Folder of the journal, of results, and of the control socket.
    pub state: PathBuf,
    /// Unix socket for local users.
    pub socket: PathBuf,
    /// Where clients in the network connect; none: local users only.
    pub network: Option<Network>,
    /// Most connections at a time.
    pub most_connections: u32,
    /// The Open Inference Protocol, metrics and the live page; none: no HTTP.
    pub http: Option<HttpConfig>,
    /// Workers.
    pub workers: WorkersConfig,
    /// Files of modules.
    pub files: Vec<PathBuf>,
    /// Watched folders with files of modules.
    pub folders: Vec<PathBuf>,
    /// Settings of compiled modules, by name.
    pub modules: BTreeMap<String, CallSettings>,
    /// Modules of Python functions and classes, by name.
    pub python: BTreeMap<String, PythonModule>,
    /// Permissions of everyone, unless a user or group has another value.
    pub everyone: Grants,
    /// What users may do, by name.
    pub users: BTreeMap<String, Grants>,
    /// What groups may do, by name.
    pub groups: BTreeMap<String, Grants>,
    /// The audit log.
    pub audit: AuditConfig,
    /// Stored results.
    pub results: ResultsConfig,
    /// Format of the server's own log.
    pub log: LogFormat,
    /// Export of traces; none: no traces.
    pub traces: Option<TracesConfig>,
    /// Announcements to directories; none: the server is not announced.
    pub directory: Option<DirectoryConfig>,
}

/// Format of the server's own log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object for each line.
    Json,
}

/// HTTP: the Open Inference Protocol, metrics and the live page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Addresses to listen at.
    pub addresses: Vec<IpAddr>,
    /// Port; 0: any.
    pub port: u16,
    /// File with the hashes of API tokens.
    pub tokens: PathBuf,
    /// The user of requests without credentials; none: they are refused.
    pub anonymous: Option<String>,
    /// Origins of web pages that may send requests; `*`: all.
    pub allowed_origins: Vec<String>,
    /// Most connections at a time.
    pub most_connections: u32,
    /// Most calls that are received, running or answered at a time.
    pub most_calls: u32,
    /// Largest request, bytes.
    pub most_request_bytes: u64,
    /// Most bytes of the results and work arrays of a call.
    pub most_result_bytes: u64,
    /// Time limit for receiving a request, and for sending its response.
    pub request_timeout: Duration,
}

/// Where clients in the network connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Addresses to listen at.
    pub addresses: Vec<IpAddr>,
    /// Port; 0: any.
    pub port: u16,
    /// Certificates.
    pub tls: TlsConfig,
}

/// Files with certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The server's certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authority that signs those of users.
    pub authority: PathBuf,
    /// List of revoked certificates.
    pub revoked: Option<PathBuf>,
}

/// Workers of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkersConfig {
    /// Number of workers on this machine.
    pub count: u32,
    /// The user that workers on this machine run as, unless they run as their caller; none: see
    /// [`ServerConfig::worker_user`].
    pub user: Option<String>,
    /// The Python interpreter of workers; none: no Python functions.
    pub python: Option<String>,
    /// Host groups whose workers it uses as well.
    pub hosts: Vec<HostGroup>,
    /// Time after which an idle worker ends.
    pub idle: Duration,
}

/// The audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file.
    pub file: PathBuf,
    /// Rotation size, bytes.
    pub size: u64,
    /// Number of rotated files.
    pub keep: u32,
}

/// Stored results of detached calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsConfig {
    /// How long a result is kept.
    pub keep: Duration,
    /// Most bytes of all results.
    pub bytes: u64,
}

impl ServerConfig {
    /// Whether workers of a module run as the calling user.
    #[must_use]
    pub fn runs_as_callers(&self) -> bool {
        let python = self.python.values().map(|python| &python.calls);
        self.modules.values().chain(python).any(|calls| calls.run_as == RunAs::Caller)
    }

    /// The user that workers run as, unless they run as their caller; none: the user of the server. A server with
    /// workers of callers runs as root, which no other worker is to be.
    #[must_use]
    pub fn worker_user(&self) -> Option<&str> {
        let default = self.runs_as_callers().then_some(WORKER_USER);
        self.workers.user.as_deref().or(default)
    }

    /// The settings of a module with this name, compiled or in Python.
    #[must_use]
    pub fn calls(&self, module: &str) -> Option<&CallSettings> {
        let python = || self.python.get(module).map(|python| &python.calls);
        self.modules.get(module).or_else(python)
    }
}
