//! Daemons for Python: serving programs on a grid of this process, and requests to such a daemon.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_agent::{Proof, Rights, Service, User};
use gridrpc_client::{DaemonRequestError, MAX_ANSWER, RequestError, RequestSections};
use gridrpc_core::{Owner, Quota};
use gridrpc_transport::{dial_local, may_connect};
use gridrpc_wire::Order;
use pyo3::exceptions::{
    PyBaseException, PyConnectionAbortedError, PyConnectionResetError, PyRuntimeError,
    PyTimeoutError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::unpickle;
use crate::errors;
use crate::grid::Grid;
use crate::package;

/// Serves programs of this user on a grid of this process.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Daemon(Mutex<Option<gridrpc_agent::Daemon>>);

/// What programs of this user may do: everything. A Python function answers their requests.
struct Programs {
    grid: Arc<gridrpc_client::Grid>,
    answer: Py<PyAny>,
}

impl Service for Programs {
    fn admit(&self, user: &User) -> Result<(), String> {
        match user.proof {
            Proof::Local { uid } if may_connect(uid) => Ok(()),
            _ => Err(format!("serves its own user, not {user}")),
        }
    }

    fn may_send_code(&self, _user: &User) -> bool {
        true
    }

    fn open(&self, _user: &User) -> Result<Rights, String> {
        Ok(Rights { owner: self.grid.add_owner(Quota::NONE), access: None })
    }

    fn close(&self, _user: &User, owner: Owner) {
        self.grid.remove_owner(owner);
    }

    fn answer(
        &self,
        _user: &User,
        name: &str,
        sections: RequestSections,
    ) -> Result<RequestSections, RequestError> {
        Python::attach(|py| {
            let sections: Vec<_> =
                sections.sections.iter().map(|section| PyBytes::new(py, section)).collect();
            let answered = self.answer.bind(py).call1((name, sections));
            let answered = answered.and_then(|parts| parts.extract::<Vec<Vec<u8>>>());
            answered.map(RequestSections::from).map_err(|error| described(py, error))
        })
    }
}

/// An exception as it is sent.
fn described(py: Python<'_>, error: PyErr) -> RequestError {
    type Description = (String, String, String, Vec<u8>, Vec<Vec<u8>>);
    let text = error.to_string();
    let described = package::describe_error(py)
        .and_then(|describe| describe.call1((error.into_value(py),))?.extract::<Description>());
    match described {
        Ok((error, message, trace, head, buffers)) => {
            let sections = std::iter::once(head).chain(buffers).collect();
            RequestError { error, message, trace, sections }
        }
        Err(_) => RequestError { message: text, ..RequestError::default() },
    }
}

#[pymethods]
impl Daemon {
    /// Listens at a Unix socket and replaces an old file there. `answer` gets the name and the sections of each
    /// request, in a thread of its own, and returns the sections of the answer. At most `most` connections.
    #[new]
    fn new(
        py: Python<'_>,
        grid: &Grid,
        socket: PathBuf,
        answer: Py<PyAny>,
        most: usize,
    ) -> PyResult<Daemon> {
        let grid = grid.shared();
        let programs = Arc::new(Programs { grid: Arc::clone(&grid), answer });
        let opened = py.detach(|| {
            let mut daemon = gridrpc_agent::Daemon::new(grid, programs, most)?;
            daemon.listen_at(&socket)?;
            Ok::<_, io::Error>(daemon)
        })?;
        Ok(Daemon(Mutex::new(Some(opened))))
    }

    /// Number of connections.
    #[getter]
    fn attached(&self) -> usize {
        let daemon = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        daemon.as_ref().map_or(0, gridrpc_agent::Daemon::attached)
    }

    /// Ends all connections.
    fn close(&self, py: Python<'_>) {
        let daemon = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(daemon));
    }
}

/// A program's connection to a daemon, for requests.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct DaemonConnection(Mutex<Option<gridrpc_client::DaemonConnection>>);

#[pymethods]
impl DaemonConnection {
    /// Connects to the daemon at a Unix socket. `timeout`: how long it may take to answer, s.
    #[new]
    fn new(py: Python<'_>, socket: PathBuf, timeout: f64) -> PyResult<DaemonConnection> {
        let timeout = Duration::from_secs_f64(timeout.clamp(0.001, 1e9));
        let until = Some(Instant::now() + timeout);
        let dialled =
            py.detach(|| dial_local(&socket, timeout)).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => silent(),
                _ => error.into(),
            })?;
        let opened = interruptible(py, |interrupted| {
            gridrpc_client::DaemonConnection::open(
                Arc::new(dialled),
                MAX_ANSWER,
                until,
                interrupted,
            )
        })?;
        Ok(DaemonConnection(Mutex::new(Some(opened))))
    }

    /// Makes a request and returns the sections of the answer. `timeout`: how long that may take, s. After an error
    /// that the daemon has not raised itself, the connection is closed.
    fn request(
        &self,
        py: Python<'_>,
        name: &str,
        sections: Vec<Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Py<PyBytes>>> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut connection) = taken else {
            return Err(PyConnectionResetError::new_err("the connection is closed, or in use"));
        };
        let copied = |section: &Bound<'_, PyAny>| -> PyResult<Vec<u8>> {
            let view = crate::buffer::View::new(section)?;
            Ok(view.bytes().to_vec())
        };
        let sections = sections.iter().map(copied).collect::<PyResult<Vec<_>>>();
        let until = timeout
            .map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
        let mut failed = None;
        let answered = sections.and_then(|sections| {
            interruptible(py, |interrupted| {
                match connection.request(name, sections, until, interrupted) {
                    Err(DaemonRequestError::Failed(error)) => {
                        failed = Some(error);
                        Ok(Vec::new())
                    }
                    other => other.map(|answer| answer.sections),
                }
            })
        });
        if answered.is_ok() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        }
        if let Some(error) = failed {
            return Err(raised(py, error));
        }
        Ok(answered?.iter().map(|part| PyBytes::new(py, part).unbind()).collect())
    }

    /// Closes the connection.
    fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Runs something without the interpreter's lock until it ends or a signal raises an exception.
fn interruptible<T: Send>(
    py: Python<'_>,
    run: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, DaemonRequestError> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        run(&mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    done.map_err(|error| match error {
        DaemonRequestError::Refused(why) => PyConnectionAbortedError::new_err(why),
        DaemonRequestError::Silent => silent(),
        DaemonRequestError::Gone => PyConnectionResetError::new_err(error.to_string()),
        DaemonRequestError::Failed(_)
        | DaemonRequestError::Interrupted
        | DaemonRequestError::Link(_) => PyRuntimeError::new_err(error.to_string()),
    })
}

fn silent() -> PyErr {
    PyTimeoutError::new_err("the daemon does not answer")
}

/// The exception that the daemon has raised: its own class, without a trace of the daemon, where it can be read.
fn raised(py: Python<'_>, error: RequestError) -> PyErr {
    let RequestError { error: name, message, trace, sections } = error;
    let mut parts = sections.iter().map(|part| PyBytes::new(py, part).unbind());
    let head = parts.next().unwrap_or_else(|| PyBytes::new(py, b"").unbind());
    let buffers: Vec<_> = parts.collect();
    if !head.as_bytes(py).is_empty() {
        let copies = buffers.iter().map(|buffer| buffer.clone_ref(py)).collect();
        let made = unpickle(py, head.clone_ref(py).into_any(), copies);
        if let Ok(Ok(error)) = made.map(|made| made.into_bound(py).cast_into::<PyBaseException>()) {
            return PyErr::from_value(error.into_any());
        }
    }
    errors::raised(py, &name, &message, &trace, head.into_any(), buffers, Order::NATIVE)
}
