//! The standard error of a process: passed on, and its last lines kept.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What is kept, bytes.
const KEEP: usize = 4096;

/// Our end of a process's standard error.
#[derive(Debug)]
pub(crate) struct Tail {
    pipe: std::fs::File,
    kept: Vec<u8>,
}

impl Tail {
    pub(crate) fn new(pipe: OwnedFd) -> Tail {
        Tail { pipe: pipe.into(), kept: Vec::new() }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads what is there. `false`: nothing more will come.
    pub(crate) fn read(&mut self) -> bool {
        let mut buffer = [0; 8192];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    // Nobody may be there to read our own standard error.
                    let _ = io::stderr().write_all(&buffer[..count]);
                    self.kept.extend_from_slice(&buffer[..count]);
                    let excess = self.kept.len().saturating_sub(KEEP);
                    self.kept.drain(..excess);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// The last lines.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).trim_end().to_owned()
    }
}
