//! Module catalogue of this machine: a folder of links to module files. Each change is one step, and modules are
//! found as in any other folder.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{ModuleError, ModuleFile, read_interface};

/// Reason why the catalogue was not changed.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The file is not a module.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// No module of that name is registered.
    #[error("no module `{0}` is registered; `gridrpc list` shows those that are")]
    NotRegistered(String),
    /// There is no folder for it.
    #[error("there is no home folder: name one for the catalogue in GRIDRPC_CATALOGUE")]
    NoFolder,
    /// The folder cannot be read.
    #[error("could not read the catalogue `{}`: {error}", folder.display())]
    Unreadable {
        /// Its path.
        folder: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The folder cannot be changed.
    #[error("could not change the catalogue `{}`: {error}", folder.display())]
    Folder {
        /// Its path.
        folder: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

/// An entry of the catalogue.
#[derive(Debug)]
pub struct Registered {
    /// The module's name.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
    /// The module, or the reason why it cannot be used.
    pub module: Result<ModuleFile, ModuleError>,
}

/// The catalogue's folder: `GRIDRPC_CATALOGUE`, or else in the user's data folder.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("GRIDRPC_CATALOGUE") {
        return Some(folder.into());
    }
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")))?;
    Some(data.join("gridrpc/modules"))
}

/// The places in `GRIDRPC_MODULE_PATH`, then the catalogue.
#[must_use]
pub fn default_places() -> Vec<PathBuf> {
    let path = std::env::var_os("GRIDRPC_MODULE_PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).filter(|place| !place.as_os_str().is_empty());
    named.chain(folder().filter(|folder| folder.is_dir())).collect()
}

/// Registers a module's file, in place of another with the same name. Returns its name, and the file that was
/// registered before.
///
/// # Errors
/// When it is not a module, or the catalogue cannot be changed.
pub fn register(file: &Path) -> Result<(String, Option<PathBuf>), CatalogueError> {
    let module = read_interface(file)?;
    let name = module.interface.name.clone();
    let folder = folder().ok_or(CatalogueError::NoFolder)?;
    let failed = |error| CatalogueError::Folder { folder: folder.clone(), error };
    let file = fs::canonicalize(file).map_err(failed)?;
    fs::create_dir_all(&folder).map_err(failed)?;
    let entry = folder.join(format!("{name}.so"));
    let before = fs::read_link(&entry).ok().filter(|before| *before != file);
    let new = folder.join(format!(".{name}.{}", std::process::id()));
    symlink(&file, &new).map_err(failed)?;
    fs::rename(&new, &entry).map_err(failed)?;
    Ok((name, before))
}

/// Removes a module from the catalogue; its file stays. Returns the file.
///
/// # Errors
/// When it is not registered.
pub fn unregister(name: &str) -> Result<PathBuf, CatalogueError> {
    let folder = folder().ok_or(CatalogueError::NoFolder)?;
    let not_there = || CatalogueError::NotRegistered(name.to_owned());
    if name.is_empty() || name.contains('/') {
        return Err(not_there());
    }
    let entry = folder.join(format!("{name}.so"));
    let file = fs::read_link(&entry).map_err(|_| not_there())?;
    fs::remove_file(&entry).map_err(|error| CatalogueError::Folder { folder, error })?;
    Ok(file)
}

/// The registered modules, by name.
///
/// # Errors
/// When the catalogue exists but cannot be read.
pub fn list() -> Result<Vec<Registered>, CatalogueError> {
    let Some(folder) = folder() else { return Ok(Vec::new()) };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CatalogueError::Unreadable { folder, error }),
    };
    let mut registered: Vec<Registered> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(".so")?.to_owned();
            let file = fs::read_link(entry.path()).ok()?;
            Some(Registered { name, module: read_interface(&file), file })
        })
        .collect();
    registered.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(registered)
}
