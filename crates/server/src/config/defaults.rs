//! Defaults that depend on the machine and the environment.

use std::env;
use std::path::{Path, PathBuf};

use gridrpc_sys::{host_name, processors, safe_path};

/// Defaults that depend on the machine and the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Name of the server: that of the machine.
    pub name: String,
    /// Folder of the file: relative paths start there.
    pub folder: PathBuf,
    /// Folder of the state; none: this user has no home folder.
    pub state: Option<PathBuf>,
    /// Number of workers: one for each processor.
    pub workers: u32,
}

impl Defaults {
    /// Those of this process, for the file at `path`.
    #[must_use]
    pub fn of_process(path: &Path) -> Defaults {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        // systemd lists several folders with colons between them, if the unit has several.
        let of_unit = env::var("STATE_DIRECTORY").unwrap_or_default();
        let of_unit = of_unit.split(':').next().filter(|folder| !folder.is_empty());
        let state = of_unit
            .map(PathBuf::from)
            .or_else(|| Some(safe_path::states()?.join("gridrpc/server")));
        let workers = u32::try_from(processors::available()).unwrap_or(u32::MAX);
        Defaults { name: host_name(), folder, state, workers }
    }
}
