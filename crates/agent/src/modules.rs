//! Module files from the client, stored by content.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use gridrpc_sys::safe_path::{self, UnsafePath};
use nix::unistd::mkdtemp;

/// The folder for them, and its known contents.
#[derive(Debug)]
pub(super) struct ModuleFiles {
    /// None while there is no place for it.
    folder: Option<PathBuf>,
    /// A temporary folder, removed on drop.
    temporary: Option<PathBuf>,
    /// By hash: the file, or why there is none.
    known: HashMap<String, Result<PathBuf, String>>,
}

impl ModuleFiles {
    /// Stores files in `staging`, or in the user's cache if that is empty.
    pub(super) fn new(staging: &str) -> ModuleFiles {
        let folder = folder(staging).map(|folder| folder.join("modules"));
        ModuleFiles { folder, temporary: None, known: HashMap::new() }
    }

    /// Stores a file unless it exists.
    pub(super) fn keep(&mut self, hash: &str, name: &str, content: &[u8]) {
        let stored = self.folder().and_then(|folder| {
            write(&folder, hash, name, content).map_err(|error| {
                format!(
                    "the module `{name}` cannot be kept on this host, in `{}`: {error}; name another folder by \
                     `staging` in grid.toml: it and all above it belong to you or root, and nobody else can write to \
                     them",
                    folder.display()
                )
            })
        });
        self.known.insert(hash.to_owned(), stored);
    }

    /// The file with this content.
    ///
    /// # Errors
    /// When there is none, with the reason.
    pub(super) fn find(&self, hash: &str) -> Result<PathBuf, String> {
        let unknown = || Err("a module that was never sent".to_owned());
        self.known.get(hash).cloned().unwrap_or_else(unknown)
    }

    /// The folder; a temporary one where the user has none.
    fn folder(&mut self) -> Result<PathBuf, String> {
        if let Some(folder) = &self.folder {
            return Ok(folder.clone());
        }
        let new = mkdtemp(&std::env::temp_dir().join("gridrpc-modules-XXXXXX"));
        let new = new.map_err(|error| {
            format!(
                "there is no home folder on this host, and no temporary folder can be made: {error}; name a folder by \
                 `staging` in grid.toml"
            )
        })?;
        self.temporary = Some(new.clone());
        self.folder = Some(new.clone());
        Ok(new)
    }
}

impl Drop for ModuleFiles {
    fn drop(&mut self) {
        if let Some(folder) = &self.temporary {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn write(all: &Path, hash: &str, name: &str, content: &[u8]) -> Result<PathBuf, UnsafePath> {
    let plain = |text: &str| !text.is_empty() && !text.contains('/') && !text.starts_with('.');
    if !plain(hash) || !plain(name) {
        return Err(io::Error::other("its name is not the name of a file").into());
    }
    let folder = all.join(hash);
    let file = folder.join(name);
    if safe_path::holds(&file, &mut &*content) {
        return Ok(file);
    }
    safe_path::make_folder(&folder)?;
    // Several agents may share the folder. The first one creates the file; later ones leave it alone, since
    // the first one's workers may have loaded it.
    let random = gridrpc_sys::random::<8>()?.map(|byte| format!("{byte:02x}")).concat();
    let new = folder.join(format!(".{name}.{random}"));
    let written = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o700)
        .open(&new)
        .and_then(|mut opened| opened.write_all(content))
        .and_then(|()| put(&new, &file, content));
    // A no-op after the rename; otherwise removes a partial or redundant file.
    let _ = fs::remove_file(&new);
    Ok(written.map(|()| file)?)
}

/// Gives a file its name, unless another agent has stored the same content there meanwhile.
fn put(new: &Path, file: &Path, mut content: &[u8]) -> io::Result<()> {
    match fs::hard_link(new, file) {
        Err(_) if safe_path::holds(file, &mut content) => Ok(()),
        // Something else is there, or the file system has no hard links.
        Err(_) => fs::rename(new, file),
        linked => linked,
    }
}

/// The folder for programs and modules on this host; the ssh launcher uses the same rule. None if it is not
/// set and the user has neither a home folder nor a runtime folder.
pub(super) fn folder(staging: &str) -> Option<PathBuf> {
    if let Some(rest) = staging.strip_prefix("~/") {
        return Some(safe_path::home()?.join(rest));
    }
    if !staging.is_empty() {
        return Some(staging.into());
    }
    let of_session = || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = safe_path::caches().or_else(of_session).filter(|path| path.is_absolute())?;
    Some(folder.join("gridrpc"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_of_the_same_length_is_not_taken_for_the_module() {
        let all = std::env::temp_dir().join(format!("gridrpc-modules-{}", std::process::id()));
        let mut modules = ModuleFiles::new(&all.display().to_string());
        modules.keep("hash", "a.so", b"content");
        let file = modules.find("hash").expect("it is kept");
        fs::write(&file, b"foreign").expect("it is ours");
        modules.keep("hash", "a.so", b"content");
        assert_eq!(fs::read(&file).expect("it is there"), b"content");
        fs::set_permissions(&all, fs::Permissions::from_mode(0o777)).expect("it is ours");
        modules.keep("hash", "a.so", b"content");
        let why = modules.find("hash").expect_err("others can put another folder there");
        assert!(why.contains("others can write to") && why.contains("mode 0777"), "{why}");
        fs::remove_dir_all(&all).expect("it is ours");
    }

    #[test]
    fn without_a_place_files_are_in_a_private_folder_that_ends_with_the_agent() {
        let mut modules = ModuleFiles { folder: None, temporary: None, known: HashMap::new() };
        modules.keep("hash", "a.so", b"content");
        let file = modules.find("hash").expect("it is kept");
        let folder = file.parent().and_then(Path::parent).expect("it is in one").to_owned();
        let mode = fs::metadata(&folder).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        drop(modules);
        assert!(!folder.exists());
    }
}
