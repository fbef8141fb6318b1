//! Publishes modules from files, and from folders whose files come and go.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalogue::{CatalogueError, Code};
use crate::log;
use crate::shared::Shared;

/// Identifies the content of a file: inode, size, and time of its last change, ns.
type Stamp = (u64, u64, i64, i64);

/// Publishes the modules of a server.
#[derive(Debug)]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    /// Folder with modules that administrators have added.
    added: PathBuf,
    seen: Mutex<HashMap<PathBuf, FolderEntry>>,
}

/// A file in a folder, as it was seen last.
#[derive(Debug)]
struct FolderEntry {
    stamp: Stamp,
    /// Whether it has been published, or reported, in this state.
    is_done: bool,
    /// The module that it publishes.
    module: Option<String>,
}

impl Publisher {
    pub(crate) fn new(shared: Arc<Shared>, added: PathBuf) -> Publisher {
        Publisher { shared, added, seen: Mutex::default() }
    }

    /// Publishes the module in a file, in place of an older version.
    pub(crate) fn publish(&self, file: &Path) -> Result<(String, bool), CatalogueError> {
        let settings =
            |name: &str| self.shared.config.modules.get(name).cloned().unwrap_or_default();
        self.shared.catalogue.publish(file, settings)
    }

    /// Checks all folders: publishes new and changed files, and withdraws the modules of those that are gone. A file
    /// that changes is left alone until it is the same in two checks. `is_first`: publishes all at once.
    pub(crate) fn check(&self, is_first: bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut present = HashMap::new();
        for folder in self.shared.config.folders.iter().chain([&self.added]) {
            present.extend(libraries(folder));
        }
        seen.retain(|file, known| {
            let is_there = present.contains_key(file);
            if !is_there && let Some(module) = &known.module {
                let _ = self.shared.catalogue.withdraw(module);
                let reason = "the file is gone";
                let fields: log::Fields<'_> =
                    &[("module", module), ("file", &file.display()), ("reason", &reason)];
                log::info("module is withdrawn", fields);
            }
            is_there
        });
        for (file, stamp) in present {
            let known = seen.entry(file.clone()).or_insert(FolderEntry {
                stamp,
                is_done: false,
                module: None,
            });
            if known.stamp != stamp {
                (known.stamp, known.is_done) = (stamp, false);
                continue;
            }
            if known.is_done || !is_first && is_fresh(&file) {
                continue;
            }
            known.is_done = true;
            match self.publish(&file) {
                Ok((name, is_new)) => {
                    if is_new {
                        let fields: log::Fields<'_> =
                            &[("module", &name), ("file", &file.display())];
                        log::info("module is published", fields);
                    }
                    known.module = Some(name);
                }
                Err(error) => log::warning(
                    "module is not published",
                    &[("file", &file.display()), ("reason", &error)],
                ),
            }
        }
    }

    /// Adds a module: keeps a copy of the file in the server's state, and publishes it.
    pub(crate) fn add(&self, file: &Path) -> Result<(String, bool), CatalogueError> {
        let module = gridrpc_typed::read_interface(file)?;
        let name = module.interface.name.clone();
        let place = self.added.join(format!("{name}.so"));
        if let Some(other) = self.shared.catalogue.module(&name) {
            let source = source_of(&other.code);
            if source != place {
                return Err(CatalogueError::SameName {
                    name,
                    file: file.to_owned(),
                    other: source,
                });
            }
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let new = self.added.join(format!(".{name}.{}", std::process::id()));
        let copied = fs::copy(file, &new).and_then(|_| fs::rename(&new, &place));
        copied.map_err(|error| CatalogueError::Copy {
            file: file.to_owned(),
            folder: self.added.clone(),
            error,
        })?;
        let published = self.publish(&place)?;
        if let Ok(stamp) = stamp_of(&place) {
            let module = Some(published.0.clone());
            seen.insert(place, FolderEntry { stamp, is_done: true, module });
        }
        Ok(published)
    }

    /// Removes a module that was added.
    ///
    /// # Errors
    /// Why it cannot be removed, and what to do.
    pub(crate) fn remove(&self, name: &str) -> Result<(), String> {
        let module = self.shared.catalogue.module(name);
        let source = match &module {
            None => {
                let error = self.shared.catalogue.withdraw(name).err();
                return Err(error.map_or_else(String::new, |error| error.to_string()));
            }
            Some(module) => source_of(&module.code),
        };
        if source.parent() != Some(&self.added) {
            let folders = &self.shared.config.folders;
            let how =
                if source.parent().is_some_and(|folder| folders.iter().any(|one| one == folder)) {
                    "remove the file"
                } else {
                    "take it out of server.toml and restart the server"
                };
            return Err(format!("module `{name}` comes from `{}`: {how}", source.display()));
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        fs::remove_file(&source)
            .map_err(|error| format!("could not remove `{}`: {error}", source.display()))?;
        seen.remove(&source);
        self.shared.catalogue.withdraw(name).map(drop).map_err(|error| error.to_string())
    }
}

/// Where a module comes from.
pub(crate) fn source_of(code: &Code) -> PathBuf {
    match code {
        Code::Library { source, .. } => source.clone(),
        Code::Python(_) => PathBuf::from("server.toml"),
    }
}

fn libraries(folder: &Path) -> Vec<(PathBuf, Stamp)> {
    // A folder that is missing may come later.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let libraries = files.filter(|file| {
        let is_hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes()[0] == b'.');
        !is_hidden && file.extension().is_some_and(|extension| extension == "so")
    });
    libraries.filter_map(|file| Some((file.clone(), stamp_of(&file).ok()?))).collect()
}

fn stamp_of(file: &Path) -> io::Result<Stamp> {
    let metadata = fs::metadata(file)?;
    Ok((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Whether a file was written a moment ago: more may come.
fn is_fresh(file: &Path) -> bool {
    let modified = fs::metadata(file).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age.as_millis() < 200)
}
