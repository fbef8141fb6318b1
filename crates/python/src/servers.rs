//! Servers: remote workers, from URLs and configuration files.

use std::path::PathBuf;

use gridrpc_config::LauncherKind;
use gridrpc_sys::memory;
use pyo3::prelude::*;

use crate::errors;

/// A validated server.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Server(pub(crate) gridrpc_config::HostGroup);

#[pymethods]
impl Server {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The names of its hosts.
    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.0.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Whether it is a session, whose workers other programs use too.
    #[getter]
    fn is_session(&self) -> bool {
        matches!(self.0.launcher, LauncherKind::Session { .. })
    }

    /// Whether it is a server of others, which runs only functions that it offers itself.
    #[getter]
    fn only_offers(&self) -> bool {
        matches!(self.0.launcher, LauncherKind::Server { .. }) && !self.0.trusted
    }

    /// Whether it is a server that many clients share.
    #[getter]
    fn is_server(&self) -> bool {
        matches!(self.0.launcher, LauncherKind::Server { .. })
    }

    fn __repr__(&self) -> String {
        format!("Server({:?}, hosts={:?})", self.0.name, self.hosts())
    }
}

/// Memory of this machine that calls may request, bytes.
#[pyfunction]
pub fn memory_of_machine() -> u64 {
    memory::of_machine()
}

/// A memory size such as "4 GB" in bytes; None if it is invalid.
#[pyfunction]
pub fn memory_size(text: &str) -> Option<u64> {
    memory::size(text)
}

/// The servers for these words: URLs such as `ssh://node1?workers=4`, or servers of `file`. Without words, all
/// servers of `file`.
#[pyfunction]
#[pyo3(signature = (words, file=None))]
pub fn chosen_servers(words: Vec<String>, file: Option<PathBuf>) -> PyResult<Vec<Server>> {
    let chosen = gridrpc_config::chosen(&words, file.as_deref());
    let chosen = chosen.map_err(|problems| errors::config(&problems.to_string()))?;
    Ok(chosen.into_iter().map(Server).collect())
}

/// The folder with this user's certificate, unless a URL names another one; None: the user has no home folder.
#[pyfunction]
pub fn credentials_folder() -> Option<PathBuf> {
    gridrpc_config::credentials_folder()
}
