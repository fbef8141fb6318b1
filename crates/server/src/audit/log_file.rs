//! Log file: lines appended to a file that is rotated by size and opened again when it was moved away.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::AuditConfig;

/// Only the server's user reads the log.
const MODE: u32 = 0o600;

/// A file of lines.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    /// Rotation size, bytes.
    size: u64,
    /// Number of rotated files.
    keep: u32,
    /// None: it could not be opened.
    file: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    device: u64,
    inode: u64,
    /// Its length, bytes; none: it is no regular file.
    length: Option<u64>,
}

impl LogFile {
    /// Opens the file, or creates it.
    pub(super) fn open(config: &AuditConfig) -> io::Result<LogFile> {
        let file = Some(OpenFile::open(&config.file)?);
        let (path, size, keep) = (config.file.clone(), config.size, config.keep);
        Ok(LogFile { path, size, keep, file })
    }

    /// Appends lines. After an error nothing of them is in the file.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.refresh();
        let length = self.file.as_ref().and_then(|open| open.length).unwrap_or(0);
        if length > 0 && length + lines.len() as u64 > self.size {
            // An error is not worth a record: the file grows on, and the next append tries again.
            let _ = self.rotate();
        }
        match &mut self.file {
            Some(open) => open.append(lines),
            None => self.file.insert(OpenFile::open(&self.path)?).append(lines),
        }
    }

    /// Looks whether the file was moved or truncated by others, such as logrotate.
    fn refresh(&mut self) {
        let there = fs::metadata(&self.path).ok();
        self.file = self.file.take().and_then(|mut open| {
            let there =
                there.filter(|data| (data.dev(), data.ino()) == (open.device, open.inode))?;
            open.length = open.length.map(|_| there.len());
            Some(open)
        });
    }

    /// Renames the file to `FILE.1`, that to `FILE.2` and so on.
    fn rotate(&mut self) -> io::Result<()> {
        // The file is renamed last: if anything fails before, it stays the current one.
        for number in (1..self.keep).rev() {
            match fs::rename(self.rotated(number), self.rotated(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.keep > 0 {
            fs::rename(&self.path, self.rotated(1))?;
        } else {
            fs::remove_file(&self.path)?;
        }
        self.file = None;
        Ok(())
    }

    fn rotated(&self, number: u32) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(format!(".{number}"));
        path.into()
    }
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<OpenFile> {
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(path)?;
        let data = file.metadata()?;
        let (device, inode) = (data.dev(), data.ino());
        if !data.is_file() {
            return Ok(OpenFile { file, device, inode, length: None });
        }
        if data.permissions().mode() & 0o777 != MODE {
            file.set_permissions(Permissions::from_mode(MODE))?;
        }
        let mut length = data.len();
        if length > 0 {
            // A crash may have left half a line.
            let mut last = [0];
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                length += 1;
            }
        }
        Ok(OpenFile { file, device, inode, length: Some(length) })
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(lines);
        if let Some(length) = &mut self.length {
            match written {
                Ok(()) => *length += lines.len() as u64,
                // The file may have half a line now.
                Err(_) => self.file.set_len(*length)?,
            }
        }
        written
    }
}
