//! Errors and warnings of a configuration.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// A line of a configuration file. Line 0 is the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file's name as given.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 { write!(f, ":{}", self.line) } else { Ok(()) }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A file is not there or cannot be read.
    #[error("{}cannot read `{}`: {reason}", included_at(.at), .file.display())]
    NotFound {
        /// The file.
        file: PathBuf,
        /// The file and line that include it, if any.
        at: Option<Position>,
        /// The system's error.
        reason: String,
    },
    /// A file is malformed.
    #[error("{at}: {message}\n  hint: {hint}")]
    Malformed {
        /// The position.
        at: Position,
        /// The error.
        message: String,
        /// The remedy.
        hint: String,
    },
}

fn included_at(at: &Option<Position>) -> String {
    at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default()
}

/// A setting that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The position.
    pub at: Position,
    /// The attribute or section, and the reason.
    pub message: String,
    /// Whether it takes effect on other machines.
    pub scope: Scope,
    /// Whether nothing is lost without it.
    pub is_notice: bool,
}

/// Where a setting without effect on this machine takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nowhere.
    Nowhere,
    /// On the hosts of this server, given by its number in the file, if they are other machines.
    Server(usize),
    /// On all other machines.
    Elsewhere,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}
