//! Checks what a configuration names, without starting a server.

use std::fmt::Write as _;

use gridrpc_typed::read_interface;

use crate::config::ServerConfig;
use crate::server::{ServerError, Tls};

/// Checks certificates and modules. Returns what a server would offer.
///
/// # Errors
/// The problems, all of them.
pub fn check(config: &ServerConfig) -> Result<String, ServerError> {
    let mut problems = Vec::new();
    let mut text = String::new();
    if let Some(network) = &config.network
        && let Err(error) = Tls::read(&network.tls).and_then(|tls| tls.required())
    {
        problems.push(error.to_string());
    }
    let in_folders = config.folders.iter().flat_map(|folder| match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => {
            problems.push(format!("could not read the folder `{}`: {error}", folder.display()));
            Vec::new()
        }
    });
    let is_library =
        |file: &std::path::PathBuf| file.extension().is_some_and(|extension| extension == "so");
    let in_folders: Vec<_> = in_folders.filter(is_library).collect();
    for file in config.files.iter().chain(&in_folders) {
        match read_interface(file) {
            Ok(module) => {
                let functions = module.interface.functions.len();
                let name = &module.interface.name;
                let _ =
                    writeln!(text, "module {name}: {functions} functions, `{}`", file.display());
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    for (name, python) in &config.python {
        let names = python.functions.len() + python.classes.len();
        let _ = writeln!(text, "module {name}: {names} Python functions and classes");
    }
    if !problems.is_empty() {
        return Err(ServerError::Problems(problems));
    }
    let place = match &config.network {
        None => "local users only".to_owned(),
        Some(network) => format!("port {}", network.port),
    };
    if let Some(http) = &config.http {
        let _ = writeln!(text, "HTTP at port {}", http.port);
    }
    let _ = writeln!(text, "server {}: {} workers, {place}", config.name, config.workers.count);
    Ok(text)
}
