//! What can go wrong until a process waits.

use std::io;

/// Why a process does not wait for its instant.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be executed.
    #[error("cannot execute it: {0}")]
    Start(#[source] io::Error),
    /// It can be, but not be held at its entry.
    #[error("cannot be held at the entry of its program: {0}")]
    Entry(String),
    /// The system has no more memory, processes or descriptors for it.
    #[error("cannot prepare it: {0}")]
    System(#[source] io::Error),
}

impl From<nix::Error> for Error {
    fn from(error: nix::Error) -> Self {
        Error::System(error.into())
    }
}
