//! The user that workers run as, unless they run as their caller.

use std::io;

use gridrpc_client::{LimitError, RunAs, WorkerLimits};
use nix::unistd::geteuid;
use thiserror::Error;

use crate::config::ServerConfig;

/// Why workers cannot run as another user.
#[derive(Debug, Error)]
pub enum WorkerUserError {
    /// This machine has no such user.
    #[error(
        "workers run as user `{user}`, whom this machine does not have{}: name another `user` in [workers]",
        error.as_ref().map_or_else(String::new, |error| format!(" ({error})"))
    )]
    Unknown {
        /// The user.
        user: String,
        /// The system's error, if it could not tell.
        error: Option<io::Error>,
    },
    /// The server may not switch to it.
    #[error("{0}; `user` in [workers] and `run_as = \"caller\"` need a server that runs as root")]
    Refused(#[from] LimitError),
}

/// The user of workers; none: that of the server.
///
/// # Errors
/// When the user does not exist, or the server may not switch to it.
pub(crate) fn worker_user(config: &ServerConfig) -> Result<Option<RunAs>, WorkerUserError> {
    let Some(name) = config.worker_user() else { return Ok(None) };
    let unknown = |error| WorkerUserError::Unknown { user: name.to_owned(), error };
    let user = RunAs::named(name).map_err(|error| unknown(Some(error)))?;
    let user = Some(user.ok_or_else(|| unknown(None))?);
    let limits = WorkerLimits { user, ..WorkerLimits::default() };
    limits.check()?;
    Ok(limits.user)
}

/// A warning, if workers run as root.
pub(crate) fn root_warning(config: &ServerConfig) -> Option<&'static str> {
    let runs_as_root = geteuid().is_root() && config.worker_user().is_none();
    runs_as_root.then_some(
        "the workers run as root, and so does what users and authors of modules have them run: name an account without \
         privileges by `user` in [workers]",
    )
}
