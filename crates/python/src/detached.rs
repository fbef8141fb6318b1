//! Detached calls, which servers keep.

use std::sync::Arc;

use gridrpc_client::{DaemonRequestError, DetachedError, RequestError, ServerCatalogue};
use gridrpc_invoke::DetachError;
use gridrpc_wire::Order;
use pyo3::exceptions::{PyConnectionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::package;

/// The detached call that a call waits for.
pub struct Attachment {
    pub server: Arc<ServerCatalogue>,
    pub id: String,
}

impl Attachment {
    /// Cancels the detached call. Returns whether it had not ended yet.
    pub fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        ask(py, |interrupted| self.server.cancel_detached(&self.id, interrupted))
    }
}

/// Makes a request without the interpreter's lock, until it is answered or a signal raises an exception.
pub fn ask<T: Send, E: Into<DetachError> + Send>(
    py: Python<'_>,
    request: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, E> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        request(&mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        })
    });
    match raised {
        Some(error) => Err(error),
        None => done.map_err(|error| refused(py, error.into())),
    }
}

/// The exception for a call that cannot be detached, or cannot be attached to.
pub fn refused(py: Python<'_>, error: DetachError) -> PyErr {
    let text = error.to_string();
    match error {
        DetachError::NoServer(_) | DetachError::Method(_) | DetachError::Dependent(_) => {
            PyTypeError::new_err(text)
        }
        DetachError::Ended(_) => PyValueError::new_err(text),
        DetachError::Argument(error) => errors::argument(&error),
        DetachError::System { error, .. } => errors::of_system(&error, text),
        DetachError::Grid(error) => errors::grid(&error),
        DetachError::Server(DetachedError::Failed(failed)) => {
            let RequestError { error, message, trace, .. } = failed;
            if error == "ValueError" {
                return PyValueError::new_err(message);
            }
            let (head, order) = (PyBytes::new(py, b"").unbind().into_any(), Order::NATIVE);
            errors::raised::<PyBytes>(py, &error, &message, &trace, head, Vec::new(), order)
        }
        DetachError::Server(DetachedError::NotAnId { .. } | DetachedError::TooLarge { .. }) => {
            PyValueError::new_err(text)
        }
        DetachError::Server(DetachedError::Unreachable(_)) => PyConnectionError::new_err(text),
        DetachError::Server(
            DetachedError::Unanswered { error: DaemonRequestError::Link(_), .. }
            | DetachedError::Malformed { .. },
        ) => errors::new(py, package::protocol_error(py), (text,)),
        DetachError::Server(DetachedError::Unanswered { .. }) => PyConnectionError::new_err(text),
    }
}
