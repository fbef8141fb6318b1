//! Servers: places with workers elsewhere, from URLs and configuration files.

use gridrpc_runtime::servers;
use pyo3::prelude::*;

use crate::errors;

/// A server, checked.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Server(pub(crate) servers::Server);

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

    fn __repr__(&self) -> String {
        format!("Server({:?}, hosts={:?})", self.0.name, self.hosts())
    }
}

/// The servers of a configuration file, from its text; `file` names it in errors.
#[pyfunction]
pub fn read_servers(text: &str, file: &str) -> PyResult<Vec<Server>> {
    let read =
        servers::read(text, file).map_err(|problems| errors::config(&problems.to_string()))?;
    Ok(read.into_iter().map(Server).collect())
}

/// The server that a URL names, such as `ssh://node1?workers=4`.
#[pyfunction]
pub fn server_from_url(url: &str) -> PyResult<Server> {
    servers::from_url(url).map(Server).map_err(|problem| errors::config(&problem.to_string()))
}
