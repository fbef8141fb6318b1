//! Configuration of a server, from `server.toml` (reference: docs/server-toml.md).

mod calendar;
mod call_settings;
mod defaults;
mod directory_config;
mod fault;
mod grants;
mod keys;
mod python_module;
mod read;
mod schema;
mod server_config;
#[cfg(test)]
mod tests;
mod traces_config;

pub use calendar::{Period, workers_at};
pub use call_settings::{CallSettings, Cores, Isolation, Policy, RunAs};
pub use defaults::Defaults;
pub use directory_config::DirectoryConfig;
pub use fault::{ServerFault, ServerProblems};
pub use grants::{Grants, Modules};
pub use python_module::{PythonModule, PythonName};
pub use read::{read, read_file};
pub use server_config::{
    AuditConfig, HttpConfig, LogFormat, Network, ResultsConfig, ServerConfig, TlsConfig,
    WorkersConfig,
};
pub use traces_config::{Sampler, TracesConfig};
