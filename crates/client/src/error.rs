//! Errors of a grid.

use std::io;
use std::sync::Arc;

use gridrpc_core::{Loss, Refusal};
use gridrpc_sys::worker_limits::LimitError;
use thiserror::Error;

use crate::names;

/// Error of a grid.
#[derive(Debug, Error)]
pub enum GridError {
    /// The call was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The system refused something.
    #[error("{what}: {error}{}", gridrpc_sys::limit_of(.error))]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The process was forked: the grid belongs to the parent process.
    #[error("this grid belongs to the process that opened it; open another one after a fork")]
    Forked,
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// There is no host group, host or machine with this name.
    #[error("there is no server {name:?}: the names that this grid knows are {}", names::listed(.known))]
    UnknownServer {
        /// The unknown name.
        name: String,
        /// Valid names of host groups and hosts.
        known: Vec<String>,
    },
    /// No trusted host can run it.
    #[error("{what} needs a trusted host, and {} has none: servers with `trusted = false` run only functions of \
             compiled modules", whose(.group.as_deref()))]
    NotTrusted {
        /// The object that needs a trusted host.
        what: String,
        /// The host group that it is bound to, if any.
        group: Option<String>,
    },
    /// Only servers are there, which run functions of their own.
    #[error("{what} can run nowhere: {} has only servers with `trusted = false`, which run functions that \
             they offer, and no modules of their clients", whose(.group.as_deref()))]
    OnlyOffered {
        /// The call's function.
        what: String,
        /// The host group that it is bound to, if any.
        group: Option<String>,
    },
    /// A call is bound to another server than the one that offers its function.
    #[error(
        "`{function}` is a function of server {server:?}, and its call is bound to another server or host"
    )]
    OfferedElsewhere {
        /// The function.
        function: String,
        /// The server that offers it.
        server: String,
    },
    /// The limits of workers cannot be applied.
    #[error(transparent)]
    Limits(#[from] LimitError),
    /// Grids are nested too deeply.
    #[error("{0}")]
    TooDeep(String),
    /// Workers that could not be started have been given up, and fewer are left than requested.
    #[error("too few workers could be started: {0}")]
    TooFewWorkers(Arc<Loss>),
}

fn whose(group: Option<&str>) -> String {
    group.map_or_else(|| "this grid".to_owned(), |group| format!("server {group:?}"))
}
