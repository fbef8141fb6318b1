//! Why a grid cannot do what it was asked.

use std::io;
use std::sync::Arc;

use gridrpc_core::{Loss, Refusal};
use thiserror::Error;

use crate::names;

/// Why a grid cannot do what it was asked.
#[derive(Debug, Error)]
pub enum GridError {
    /// The call was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The system refused something.
    #[error("{what}: {error}{}", gridrpc_sys::limit_of(.error))]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The process was forked: the grid belongs to its parent.
    #[error("this grid belongs to the process that opened it; open another one after a fork")]
    Forked,
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// Nothing is called so that calls could be bound to.
    #[error("there is no server {name:?}: the names that this grid knows are {}", names::listed(.known))]
    UnknownServer {
        /// What it was called.
        name: String,
        /// What groups and hosts are called.
        known: Vec<String>,
    },
    /// It cannot run on any host that is trusted.
    #[error("{what} needs a trusted host, and {} has none: servers with `trusted = false` run only functions of \
             compiled modules", whose(.group.as_deref()))]
    NotTrusted {
        /// What needs one.
        what: String,
        /// The group that it is bound to, if it is.
        group: Option<String>,
    },
    /// Too many grids lie in each other.
    #[error("{0}")]
    TooDeep(String),
    /// Workers are given up that could not be started, and those left are fewer than were wanted.
    #[error("too few workers could be started: {0}")]
    TooFewWorkers(Arc<Loss>),
}

fn whose(group: Option<&str>) -> String {
    group.map_or_else(|| "this grid".to_owned(), |group| format!("server {group:?}"))
}
