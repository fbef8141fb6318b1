//! The file of a worker: written, read, and dropped from the page cache.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::stop;

/// What addresses and sizes are a multiple of where the page cache is passed by.
pub const ALIGNMENT: usize = 4096;

/// An open file of a worker.
pub struct Data<'a> {
    file: File,
    path: &'a Path,
}

impl Data<'_> {
    /// Open it, to be read or as a new one to be written.
    pub fn open(path: &Path, write: bool, direct: bool) -> Result<Data<'_>, Failure> {
        let mut options = OpenOptions::new();
        if write {
            options.write(true).create_new(true);
        } else {
            options.read(true);
        }
        if direct {
            options.custom_flags(libc::O_DIRECT);
        }
        let file = options.open(path).map_err(|error| {
            let folder = path.parent().unwrap_or(path);
            if direct && error.raw_os_error() == Some(libc::EINVAL) {
                if write {
                    // The kernel has made the file before it refuses.
                    let _ = fs::remove_file(path);
                }
                let what = "the file system does not let one pass by the page cache";
                return Failure::at(path, what, &error, "leave out --direct");
            }
            let what = if write { "cannot make the file" } else { "cannot open the file" };
            let remedy = match error.kind() {
                ErrorKind::NotFound if write || !folder.is_dir() => {
                    "make the directory first, or see that it is mounted"
                }
                ErrorKind::NotFound => {
                    "write it first, by the task `write` with the same --directory and --worker"
                }
                _ => "",
            };
            Failure::at(path, what, &error, remedy)
        })?;
        Ok(Data { file, path })
    }

    /// Write all of the block.
    pub fn write(&self, block: &[u8], offset: u64) -> Result<(), Failure> {
        let mut done = 0;
        while done < block.len() {
            let at = offset + done as u64;
            match self.file.write_at(&block[done..], at) {
                Ok(0) => return Err(self.fail("writing at", at, &ErrorKind::WriteZero.into())),
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => stop::look()?,
                Err(error) => return Err(self.fail("writing at", at, &error)),
            }
        }
        Ok(())
    }

    /// Read all of the block.
    pub fn read(&self, block: &mut [u8], offset: u64) -> Result<(), Failure> {
        let mut done = 0;
        while done < block.len() {
            let at = offset + done as u64;
            match self.file.read_at(&mut block[done..], at) {
                Ok(0) => {
                    let what = format!("the file ends at byte {at}, and more was to be read");
                    let remedy = "write it again with the --size that is read";
                    return Err(Failure::Failed(format!(
                        "{}: {what}; {remedy}",
                        self.path.display()
                    )));
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => stop::look()?,
                Err(error) => return Err(self.fail("reading at", at, &error)),
            }
        }
        Ok(())
    }

    /// Bring it to the device.
    pub fn sync(&self) -> Result<(), Failure> {
        self.file.sync_all().map_err(|error| Failure::at(self.path, "fsync", &error, ""))
    }

    /// Drop it from the page cache; what is not on the device yet would stay.
    pub fn drop_from_cache(&self) -> Result<(), Failure> {
        self.sync()?;
        // SAFETY: it only gives the kernel advice about an open file.
        let error =
            unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if error == 0 {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(error);
        Err(Failure::at(
            self.path,
            "cannot drop it from the page cache",
            &error,
            "leave out --drop",
        ))
    }

    /// Close it: some file systems tell only then that something could not be written.
    pub fn close(self) -> Result<(), Failure> {
        let path = self.path;
        // SAFETY: nobody else has the number of this file.
        match unsafe { libc::close(self.file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(Failure::at(path, "closing the file", &io::Error::last_os_error(), "")),
        }
    }

    fn fail(&self, doing: &str, at: u64, error: &io::Error) -> Failure {
        Failure::at(self.path, format!("{doing} byte {at}"), error, "")
    }
}

/// Removes what an earlier call left there, so that each call writes a new file.
pub fn remove_earlier(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        // If there is no such folder, opening the file tells it.
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Failure::at(path, "cannot remove what an earlier call left", &error, ""))
        }
        _ => Ok(()),
    }
}

/// A file that is removed unless it is kept: whatever ends the work, nothing stays behind.
pub struct TemporaryFile(Option<PathBuf>);

impl TemporaryFile {
    /// The file that this call has made.
    pub fn new(path: &Path) -> TemporaryFile {
        TemporaryFile(Some(path.to_owned()))
    }

    /// It stays.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // If it cannot be removed, the report says why the work ended.
            let _ = fs::remove_file(path);
        }
    }
}

/// Memory for a block, at an address that suits O_DIRECT.
pub struct Block {
    memory: Vec<u8>,
    start: usize,
    size: usize,
}

impl Block {
    /// Of so many bytes.
    pub fn new(size: u64) -> Result<Block, Failure> {
        let none = || {
            Failure::Failed(format!(
                "there is no memory for a block of {size} bytes; give a smaller --block"
            ))
        };
        let size = usize::try_from(size).map_err(|_| none())?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(size + ALIGNMENT).map_err(|_| none())?;
        memory.resize(size + ALIGNMENT, 0);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Ok(Block { memory, start, size })
    }

    /// The first bytes of it.
    pub fn first(&mut self, count: u64) -> &mut [u8] {
        let count = self.size.min(count as usize);
        &mut self.memory[self.start..self.start + count]
    }
}
