//! Why a task ends before its work is done.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// Why a task ends before its work is done.
#[derive(Debug)]
pub enum Failure {
    /// The user asks what it can do.
    Help,
    /// The options are wrong: which, how, and what to give.
    Usage(String),
    /// The work cannot be done: what, where, and what to do.
    Failed(String),
    /// A signal asked it to end.
    Stopped(i32),
}

impl Failure {
    /// Something failed on a file or folder. `remedy` may be empty.
    pub fn at(path: &Path, what: impl Display, error: &io::Error, remedy: &str) -> Failure {
        let usual = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room there, or ask for less"
            }
            io::ErrorKind::FileTooLarge => "ask for less, or see `ulimit -f`",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose another --directory, one that can be written"
            }
            _ => "",
        };
        let hint = if remedy.is_empty() { usual } else { remedy };
        let colon = if hint.is_empty() { "" } else { "; " };
        Failure::Failed(format!("{}: {what}: {error}{colon}{hint}", path.display()))
    }
}
