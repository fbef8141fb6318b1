//! Defaults that depend on the machine and the environment.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use gridrpc_sys::{host_name, processors, safe_path};
use nix::unistd::{AccessFlags, access};

/// Defaults that depend on the machine and the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Name of the server: that of the machine.
    pub name: String,
    /// Folder of the file: relative paths start there.
    pub folder: PathBuf,
    /// Folder of the state; none: this user has no home folder.
    pub state: Option<PathBuf>,
    /// Folder for the sockets of servers, which other users can enter; none: there is none that this user can write.
    pub sockets: Option<PathBuf>,
    /// Number of workers: one for each processor.
    pub workers: u32,
    /// The environment variables of OpenTelemetry, `OTEL_*`.
    pub opentelemetry: BTreeMap<String, String>,
}

/// Where packages and administrators let servers put their sockets.
const SOCKETS: &str = "/run/gridrpc";

impl Defaults {
    /// Those of this process, for the file at `path`.
    #[must_use]
    pub fn of_process(path: &Path) -> Defaults {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let of_unit = env::var("STATE_DIRECTORY").ok();
        let state = state(of_unit.as_deref(), safe_path::states());
        let workers = u32::try_from(processors::available()).unwrap_or(u32::MAX);
        let sockets = Path::new(SOCKETS);
        let is_usable = sockets.is_dir() && access(sockets, AccessFlags::W_OK).is_ok();
        let sockets = is_usable.then(|| sockets.to_owned());
        let opentelemetry = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("OTEL_"))
            .collect();
        Defaults { name: host_name(), folder, state, sockets, workers, opentelemetry }
    }
}

/// The folder of the state: the first that systemd gives the unit, else one of the user's.
fn state(of_unit: Option<&str>, states: Option<PathBuf>) -> Option<PathBuf> {
    // A unit with several has colons between them.
    let of_unit = of_unit.and_then(|folders| folders.split(':').find(|folder| !folder.is_empty()));
    of_unit.map(PathBuf::from).or_else(|| Some(states?.join("gridrpc/server")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_unit_is_first() {
        let states = || Some(PathBuf::from("/home/ann/.local/state"));
        let of = |of_unit| state(of_unit, states());
        assert_eq!(of(Some("/var/lib/a:/var/lib/b")), Some(PathBuf::from("/var/lib/a")));
        let of_user = Some(PathBuf::from("/home/ann/.local/state/gridrpc/server"));
        assert_eq!(of(Some("")), of_user);
        assert_eq!(of(None), of_user);
        assert_eq!(state(None, None), None);
        assert_eq!(state(Some("/a"), None), Some(PathBuf::from("/a")));
    }

    #[test]
    fn the_folder_of_the_file_is_absolute() {
        let defaults = Defaults::of_process(Path::new("server.toml"));
        assert_eq!(defaults.folder, env::current_dir().unwrap());
        assert!(defaults.workers > 0 && !defaults.name.is_empty());
    }
}
