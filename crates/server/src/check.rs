//! Checks what a configuration names, without starting a server.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gridrpc_typed::read_interface;

use crate::config::ServerConfig;
use crate::python_check;
use crate::server::{ServerError, Tls};
use crate::worker_user::{root_warning, worker_user};
use gridrpc_http::HttpClient;

/// Checks certificates, modules, and what workers run. `program`: the `gridrpc` program. Returns what a server would
/// offer.
///
/// # Errors
/// The problems, all of them.
pub fn check(config: &ServerConfig, program: &Path) -> Result<String, ServerError> {
    let mut problems = Vec::new();
    let mut text = String::new();
    if let Some(network) = &config.network
        && let Err(error) = Tls::read(&network.tls).and_then(|tls| tls.required())
    {
        problems.push(error.to_string());
    }
    if let Some(traces) = &config.traces
        && let Err(error) = HttpClient::new(&traces.url, traces.trust())
    {
        problems.push(format!("cannot export traces to {}: {error}", traces.url));
    }
    if let Some(directory) = &config.directory
        && let Err(error) = directory.clients()
    {
        problems.push(format!("cannot announce the server to directories: {error}"));
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
    match worker_user(config) {
        Ok(None) => {}
        Ok(Some(_)) => {
            let python = config.workers.python.as_deref().map(Path::new);
            problems.extend(unreachable_by_others(&config.state, program, python));
        }
        Err(error) => problems.push(error.to_string()),
    }
    if let Some(warning) = root_warning(config) {
        let _ = writeln!(text, "warning: {warning}");
    }
    for (name, python) in &config.python {
        if let Some(interpreter) = &config.workers.python {
            problems.extend(python_check::import(interpreter, name, python));
        }
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

/// What keeps workers from running as other users than that of the server.
fn unreachable_by_others(state: &Path, program: &Path, python: Option<&Path>) -> Vec<String> {
    let closed = |path: &Path, mode: u32| {
        let path = path.canonicalize().ok()?;
        path.ancestors()
            .find(|part| part.metadata().is_ok_and(|data| data.mode() & mode != mode))
            .map(Path::to_owned)
    };
    let mut problems = Vec::new();
    // The server opens the state folder itself, and may create it first.
    let above = state.ancestors().skip(1).find(|folder| folder.exists());
    let folder = above.and_then(|folder| closed(folder, 0o001));
    for (what, closed) in [
        ("the program `gridrpc`", closed(program, 0o001)),
        ("the interpreter of Python workers", python.and_then(|python| closed(python, 0o001))),
        ("the state folder with the modules", folder),
    ] {
        if let Some(closed) = closed {
            let closed = closed.display();
            problems.push(format!(
                "workers run as other users, who cannot reach {what}: `{closed}` is closed to them; run \
                 `chmod o+x {closed}`, or put it elsewhere"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_other_users_cannot_reach_is_named() {
        let top = std::env::temp_dir().join(format!("gridrpc-check-{}", std::process::id()));
        fs::create_dir_all(top.join("in")).unwrap();
        let program = top.join("in/gridrpc");
        fs::write(&program, "").unwrap();
        let set =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&program, 0o755);
        set(&top.join("in"), 0o711);
        set(&top, 0o711);
        let check = || unreachable_by_others(&top.join("in/state"), &program, Some(&program));
        assert_eq!(check(), Vec::<String>::new());
        set(&program, 0o700);
        assert_eq!(check().len(), 2);
        set(&top, 0o700);
        let problems = check();
        assert_eq!(problems.len(), 3);
        let folder = top.canonicalize().unwrap();
        assert!(problems[2].contains(&format!("chmod o+x {}`", folder.display())), "{problems:?}");
        fs::remove_dir_all(&top).unwrap();
    }
}
