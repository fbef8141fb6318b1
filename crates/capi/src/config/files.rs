//! Source of configuration files.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest file, bytes.
pub const MAX_FILE: u64 = 4 << 20;

/// Files by name. Tests supply their own.
pub trait Files {
    /// The content of a file.
    fn load(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// A key that is equal for all names of the same file.
    fn identity(&self, path: &Path) -> PathBuf;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn load(&self, path: &Path) -> io::Result<Vec<u8>> {
        // A pipe would block, and a device may never end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut content = Vec::new();
        fs::File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
        Ok(content)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
    }
}
