//! Files of modules that the client has sent, kept by their content.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder that they are kept in, and what is there.
#[derive(Debug)]
pub(super) struct ModuleFiles {
    folder: PathBuf,
    /// By hash: the file, or why there is none.
    known: HashMap<String, Result<PathBuf, String>>,
}

impl ModuleFiles {
    /// Keeps files in `staging`; if that is empty, where the user's caches are.
    pub(super) fn new(staging: &str) -> ModuleFiles {
        ModuleFiles { folder: folder(staging).join("modules"), known: HashMap::new() }
    }

    /// Keeps a file, unless it is there.
    pub(super) fn keep(&mut self, hash: &str, name: &str, content: &[u8]) {
        let kept = self.write(hash, name, content).map_err(|error| {
            format!(
                "the module `{name}` cannot be kept on this host, in {}: {error}; see `staging` in \
                 the configuration of the server",
                self.folder.display()
            )
        });
        self.known.insert(hash.to_owned(), kept);
    }

    /// The file of that content.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn find(&self, hash: &str) -> Result<PathBuf, String> {
        let unknown = || Err("a module that was never sent".to_owned());
        self.known.get(hash).cloned().unwrap_or_else(unknown)
    }

    fn write(&self, hash: &str, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let plain = |text: &str| !text.is_empty() && !text.contains('/') && !text.starts_with('.');
        if !plain(hash) || !plain(name) {
            return Err(io::Error::other("its name is not the name of a file"));
        }
        let folder = self.folder.join(hash);
        let file = folder.join(name);
        if fs::metadata(&file).is_ok_and(|data| data.len() == content.len() as u64) {
            return Ok(file);
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        // Several agents may share the folder, and their numbers: whoever comes first makes the file, and whoever comes
        // later leaves it alone, as workers of the first may have it loaded.
        let random = crate::sys::random::<8>()?.map(|byte| format!("{byte:02x}")).concat();
        let new = folder.join(format!(".{name}.{random}"));
        let written = fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&new)
            .and_then(|mut opened| opened.write_all(content))
            .and_then(|()| put(&new, &file, content.len() as u64));
        // Gone if it has been renamed; else half a file, or one too many.
        let _ = fs::remove_file(&new);
        written.map(|()| file)
    }
}

/// Gives a file its name, unless another agent has put all of the same there meanwhile.
fn put(new: &Path, file: &Path, len: u64) -> io::Result<()> {
    match fs::hard_link(new, file) {
        Err(_) if fs::metadata(file).is_ok_and(|data| data.len() == len) => Ok(()),
        // Half a file is there, or this file system has no links.
        Err(_) => fs::rename(new, file),
        linked => linked,
    }
}

/// Where programs and modules are kept on this host, as the launcher by ssh understands it.
pub(super) fn folder(staging: &str) -> PathBuf {
    if let Some(rest) = staging.strip_prefix("~/") {
        return PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(rest);
    }
    if !staging.is_empty() {
        return staging.into();
    }
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let caches = set("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
    caches.or_else(home).unwrap_or_else(std::env::temp_dir).join("gridrpc")
}
