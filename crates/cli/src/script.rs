//! `gridrpc script`: prints a job script.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use gridrpc_config::{Problems, chosen, listed};
use thiserror::Error;

/// The default configuration file.
const USUAL: &str = "grid.toml";

/// Whose script is wanted.
#[derive(Debug, Args)]
pub struct Options {
    /// The file that describes the grid [default: grid.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server: its name in the file, or a URL; required if the file has several
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
}

/// Errors of `gridrpc script`.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// The file is invalid or has no such host group.
    #[error("{0}")]
    File(#[from] Problems),
    /// There is no file, and no host group is named.
    #[error(
        "there is no grid.toml in this folder: name the file by --config, or a server by --server, as in \
         --server 'slurm:?nodes=4'"
    )]
    NoFile,
    /// The file has no host group.
    #[error("the file has no servers: write a table [server.NAME], or name a server by --server")]
    NoServers,
    /// The file has several host groups.
    #[error("the file has {} servers: name one of {} by --server", .0.len(), listed(.0))]
    NotOne(Vec<String>),
    /// The host group does not use a batch system.
    #[error("the server `{0}` has a launcher that submits no jobs: only those of batch systems do")]
    NoJobs(String),
    /// The script cannot be made.
    #[error("{0}")]
    Script(String),
    /// This program cannot be located.
    #[error("this program cannot be found: {0}")]
    Program(io::Error),
}

/// The job script.
///
/// # Errors
/// When the host group has none.
pub fn print(options: &Options) -> Result<String, ScriptError> {
    let usual = Path::new(USUAL);
    let file = match &options.config {
        Some(file) => Some(file.as_path()),
        None if usual.exists() => Some(usual),
        None if options.server.is_none() => return Err(ScriptError::NoFile),
        None => None,
    };
    let words: Vec<String> = options.server.iter().cloned().collect();
    let servers = chosen(&words, file)?;
    let [server] = &servers[..] else {
        if servers.is_empty() {
            return Err(ScriptError::NoServers);
        }
        return Err(ScriptError::NotOne(servers.into_iter().map(|server| server.name).collect()));
    };
    let program = std::env::current_exe().map_err(ScriptError::Program)?;
    let script = gridrpc_launch::script(server, &program);
    let script = script.ok_or_else(|| ScriptError::NoJobs(server.name.clone()))?;
    script.map_err(ScriptError::Script)
}
