//! Files whose content is transferred: the function gets a path on this machine.
//!
//! They have no name, so that they disappear with the worker however it ends. The function opens them through
//! `/proc`.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd};

/// A file for the length of one call.
#[derive(Debug)]
pub(super) struct CallFile {
    /// `None` for an empty name.
    file: Option<File>,
    /// The path that the function opens.
    pub(super) path: CString,
}

impl CallFile {
    /// A file with this content.
    pub(super) fn new(content: &[u8]) -> io::Result<CallFile> {
        let mut file = unnamed_file()?;
        file.write_all(content)?;
        file.seek(SeekFrom::Start(0))?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(CallFile { file: Some(file), path })
    }

    /// An empty name, which refers to no file.
    pub(super) fn unnamed() -> CallFile {
        CallFile { file: None, path: CString::default() }
    }

    /// The path for other processes of the same user.
    pub(super) fn path_for_others(&self) -> Vec<u8> {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        self.file.as_ref().map(path).unwrap_or_default().into_bytes()
    }

    /// Its current content.
    pub(super) fn content(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let Some(file) = &mut self.file else { return Ok(content) };
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut content)?;
        Ok(content)
    }
}

/// A file on disk if the file system supports unnamed files, otherwise in memory. Programs that the function starts
/// inherit it.
fn unnamed_file() -> io::Result<File> {
    let folder = CString::new(std::env::temp_dir().into_os_string().into_encoded_bytes())?;
    // SAFETY: system calls with C strings; the descriptor returned is new and ours.
    unsafe {
        let mut fd = libc::open(folder.as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o600);
        if fd < 0 {
            fd = libc::memfd_create(c"gridrpc-file".as_ptr(), 0);
        }
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_through_the_path_is_read_back() {
        let mut file = CallFile::new(b"before").unwrap();
        let path = file.path.to_str().unwrap().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        std::fs::write(&path, b"a").unwrap();
        assert_eq!(file.content().unwrap(), b"a");
    }
}
