//! Schema: the tables of `server.toml` and their keys.

/// The tables.
pub(super) const TABLES: [&str; 14] = [
    "server",
    "tls",
    "http",
    "workers",
    "modules",
    "python",
    "everyone",
    "users",
    "groups",
    "audit",
    "results",
    "log",
    "traces",
    "directory",
];

/// `[server]`
pub(super) const SERVER: &[&str] =
    &["name", "state", "socket", "addresses", "port", "most_connections"];
/// `[tls]`
pub(super) const TLS: &[&str] = &["certificate", "key", "authority", "revoked"];
/// `[http]`
pub(super) const HTTP: &[&str] = &[
    "addresses",
    "port",
    "tokens",
    "anonymous",
    "allowed_origins",
    "most_connections",
    "most_calls",
    "most_request_bytes",
    "most_result_bytes",
    "request_seconds",
];
/// `[workers]`
pub(super) const WORKERS: &[&str] = &["count", "user", "python", "config", "servers", "idle"];
/// `[modules]`, beside the tables `[modules.NAME]`
pub(super) const MODULES: &[&str] = &["files", "folders"];
/// `[python.NAME]`, beside [`CALLS`]
pub(super) const PYTHON: &[&str] = &["functions", "classes", "path"];
/// `[modules.NAME]` and `[python.NAME]`
pub(super) const CALLS: &[&str] = &[
    "isolation",
    "run_as",
    "policy",
    "most_running",
    "most_queued",
    "cores",
    "memory",
    "cpu_seconds",
    "wall_seconds",
    "open_files",
    "processes",
    "calendar",
    "users",
    "groups",
];
/// An entry of `calendar`.
pub(super) const PERIOD: &[&str] = &["hours", "days", "workers"];
/// `[everyone]`, `[users.NAME]` and `[groups.NAME]`
pub(super) const GRANTS: &[&str] = &[
    "modules",
    "code",
    "monitor",
    "weight",
    "priority",
    "calls",
    "queued",
    "bytes",
    "rate",
    "workers",
    "cpu_seconds_per_day",
    "shared_bytes",
];
/// `[audit]`
pub(super) const AUDIT: &[&str] = &["file", "size", "keep"];
/// `[results]`
pub(super) const RESULTS: &[&str] = &["keep_days", "bytes"];
/// `[log]`
pub(super) const LOG: &[&str] = &["format"];
/// `[traces]`
pub(super) const TRACES: &[&str] = &["endpoint", "authority", "service", "ratio"];
/// `[directory]`
pub(super) const DIRECTORY: &[&str] = &["urls", "address", "credentials", "interval", "speed"];
