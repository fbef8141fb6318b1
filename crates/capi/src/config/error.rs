//! What is wrong with a configuration, and what is merely without effect.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// A line of a configuration file. Line 0 is the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file, as it was named.
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
        /// Where it is included, if it is.
        at: Option<Position>,
        /// What the system says.
        reason: String,
    },
    /// A file says something malformed.
    #[error("{at}: {message}\n  hint: {hint}")]
    Malformed {
        /// Where.
        at: Position,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
}

fn included_at(at: &Option<Position>) -> String {
    at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default()
}

/// Something in a configuration that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub at: Position,
    /// Which attribute or section, and why.
    pub message: String,
    /// Whether it has its effect on other machines.
    pub scope: Scope,
    /// Whether nothing is missing without it.
    pub is_notice: bool,
}

/// Where something that has no effect on this machine has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nowhere.
    Nowhere,
    /// On the hosts of this server, by its number in the file, if these are other machines.
    Server(usize),
    /// On all that are.
    Elsewhere,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}
