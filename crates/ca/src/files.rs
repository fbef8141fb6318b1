//! Files that are written as a whole, and the lock of the authority's folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::AuthorityError;
use crate::error::file_error;

/// Permissions of private files, and of files that others may read.
pub(crate) const PRIVATE: u32 = 0o600;
pub(crate) const PUBLIC: u32 = 0o644;

/// How long a command waits for another one.
const WAIT: Duration = Duration::from_secs(10);
/// Time between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// Replaces a file, so that readers see the old or the new contents, also after a crash.
pub(crate) fn write(file: &Path, contents: &str, mode: u32) -> Result<(), AuthorityError> {
    let temporary = temporary(file);
    let result = (|| -> io::Result<()> {
        // Of a command that was killed.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut new =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        new.write_all(contents.as_bytes())?;
        new.sync_all()?;
        fs::rename(&temporary, file)?;
        sync_folder(file)
    })();
    result.inspect_err(|_| drop(fs::remove_file(&temporary))).map_err(file_error("write", file))
}

/// Creates a private file that must not exist.
pub(crate) fn create(file: &Path, contents: &str) -> Result<(), AuthorityError> {
    let result = (|| -> io::Result<()> {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(file)?;
        new.write_all(contents.as_bytes())?;
        new.sync_all()?;
        sync_folder(file)
    })();
    result.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => AuthorityError::KeyExists { file: file.to_owned() },
        _ => file_error("create", file)(error),
    })
}

/// The contents of a file.
pub(crate) fn read(file: &Path) -> Result<String, AuthorityError> {
    fs::read_to_string(file).map_err(file_error("read", file))
}

/// The contents of a file, or nothing if there is no such file.
pub(crate) fn read_if_exists(file: &Path) -> Result<String, AuthorityError> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        result => result.map_err(file_error("read", file)),
    }
}

/// A lock on a folder, until it is dropped.
pub(crate) struct FolderLock(#[expect(dead_code, reason = "dropping it unlocks")] Flock<File>);

impl FolderLock {
    /// Waits until no other command has the lock.
    pub(crate) fn acquire(folder: &Path) -> Result<FolderLock, AuthorityError> {
        let file = folder.join("lock");
        let until = Instant::now() + WAIT;
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).mode(PRIVATE).open(&file);
        let mut lock = opened.map_err(file_error("open", &file))?;
        loop {
            match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(FolderLock(locked)),
                Err((_, Errno::EWOULDBLOCK)) if Instant::now() >= until => {
                    let (folder, seconds) = (folder.to_owned(), WAIT.as_secs());
                    return Err(AuthorityError::Locked { folder, seconds });
                }
                Err((unlocked, Errno::EWOULDBLOCK | Errno::EINTR)) => lock = unlocked,
                Err((_, errno)) => return Err(file_error("lock", file)(errno.into())),
            }
            thread::sleep(RETRY);
        }
    }
}

fn temporary(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    file.with_file_name(name)
}

/// Makes a new name in a folder survive a crash.
fn sync_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if folder != Path::new("") => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}
