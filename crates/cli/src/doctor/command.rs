//! `gridrpc doctor`: examines hosts and prints a report.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use gridrpc_config::{HostGroup, Problem, Problems, from_url, read_file};
use serde_json::json;
use thiserror::Error;

use super::progress::Progress;
use super::text;
use crate::doctor::{self, ExaminedHosts, HostReport};

/// The default configuration file.
const USUAL: &str = "grid.toml";
/// Full details are printed for up to this many hosts.
const FEW: usize = 8;

/// The servers to examine.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is an option of the program
pub struct Options {
    /// The file that describes the grid [default, without any URL: grid.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check only this server of the file; may be given several times
    #[arg(long, value_name = "NAME")]
    server: Vec<String>,
    /// Servers as URLs, such as ssh://node1
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Check native workers only, and no Python
    #[arg(long)]
    native: bool,
    /// Print all that was found, even for more than 8 hosts
    #[arg(long)]
    details: bool,
    /// Print all values as JSON
    #[arg(long, conflicts_with = "details")]
    json: bool,
    /// Print problems only, without progress
    #[arg(short, long)]
    quiet: bool,
}

/// Errors of `gridrpc doctor`.
#[derive(Debug, Error)]
pub enum DoctorError {
    /// The file is invalid.
    #[error("{0}")]
    File(#[from] Problems),
    /// A URL is invalid.
    #[error("{0}")]
    Url(#[from] Problem),
    /// No host group is selected.
    #[error(
        "there is nothing to look at: name servers as URLs (ssh://node1), or a file by --config"
    )]
    Nothing,
    /// The file has no such host group.
    #[error("{file} has no server `{name}`; it has {known}")]
    NoServer {
        /// The file.
        file: String,
        /// The requested name.
        name: String,
        /// The available names.
        known: String,
    },
    /// A URL where a name belongs.
    #[error("`--server` names a server of {USUAL}, and `{0}` is a URL: give it without `--server`")]
    UrlAsName(String),
    /// Two host groups have the same name.
    #[error("the server `{0}` is named twice")]
    Twice(String),
    /// This program, which is copied to hosts, cannot be located.
    #[error("this program cannot be found: {0}")]
    Program(io::Error),
    /// The report cannot be printed.
    #[error("could not write to standard output: {0}")]
    Output(io::Error),
}

/// Examines the hosts and prints a report.
///
/// # Errors
/// When there is nothing to examine, or the report cannot be printed.
pub fn run(options: &Options) -> Result<ExitCode, DoctorError> {
    let servers = servers(options)?;
    let program = std::env::current_exe().map_err(DoctorError::Program)?;
    let wanted = ExaminedHosts { servers, program, python: !options.native };
    let count = doctor::count(&wanted);
    let details = options.details || count <= FEW;
    let progress = Progress::new(count, options.quiet, options.json, details);
    let reports = doctor::examine(&wanted, &progress);
    progress.end();
    let text = if options.json { json(&reports) } else { text::summary(&reports) };
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(DoctorError::Output)?;
    let well = reports.iter().all(HostReport::is_well);
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json(reports: &[HostReport]) -> String {
    let well = reports.iter().all(HostReport::is_well);
    let value = json!({ "well": well, "hosts": reports });
    format!("{value:#}\n")
}

fn servers(options: &Options) -> Result<Vec<HostGroup>, DoctorError> {
    let mut servers = Vec::new();
    if let Some(url) = options.server.iter().find(|name| name.contains(':')) {
        return Err(DoctorError::UrlAsName(url.clone()));
    }
    let usual = Path::new(USUAL);
    let file = match &options.config {
        Some(file) => Some(file.as_path()),
        None if !options.server.is_empty() => Some(usual),
        None => (options.urls.is_empty() && usual.exists()).then_some(usual),
    };
    if let Some(file) = file {
        let all = read_file(file)?;
        for name in &options.server {
            if !all.iter().any(|server| server.name == *name) {
                let known: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                let file = file.display().to_string();
                return Err(DoctorError::NoServer { file, name: name.clone(), known });
            }
        }
        let chosen =
            |server: &HostGroup| options.server.is_empty() || options.server.contains(&server.name);
        servers.extend(all.into_iter().filter(chosen));
    }
    for url in &options.urls {
        servers.push(from_url(url)?);
    }
    if servers.is_empty() {
        return Err(DoctorError::Nothing);
    }
    for (at, server) in servers.iter().enumerate() {
        if servers[..at].iter().any(|before| before.name == server.name) {
            return Err(DoctorError::Twice(server.name.clone()));
        }
    }
    Ok(servers)
}
