//! Output of calls that is captured in the worker, and comes with the result.

use std::sync::{Mutex, PoisonError};

use gridrpc_sys::CapturedOutput;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// Result of a function, and its standard output and error.
#[pyclass(frozen, get_all, module = "gridrpc._native")]
pub struct CapturedResult {
    pub value: Py<PyAny>,
    stdout: Py<PyString>,
    stderr: Py<PyString>,
}

impl CapturedResult {
    /// The output alone.
    pub fn without_value(&self, py: Python<'_>) -> CapturedResult {
        let (stdout, stderr) = (self.stdout.clone_ref(py), self.stderr.clone_ref(py));
        CapturedResult { value: py.None(), stdout, stderr }
    }
}

#[pymethods]
impl CapturedResult {
    #[new]
    fn new(value: Py<PyAny>, stdout: Py<PyString>, stderr: Py<PyString>) -> CapturedResult {
        CapturedResult { value, stdout, stderr }
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyType>, (Py<PyAny>, Py<PyString>, Py<PyString>)) {
        let (py, this) = (slf.py(), slf.get());
        let (stdout, stderr) = (this.stdout.clone_ref(py), this.stderr.clone_ref(py));
        (slf.get_type(), (this.value.clone_ref(py), stdout, stderr))
    }
}

/// Captures what this process and its children write to standard output and error, until `end`.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct OutputCapture {
    capture: Mutex<Option<gridrpc_sys::OutputCapture>>,
}

#[pymethods]
impl OutputCapture {
    #[new]
    fn new(py: Python<'_>) -> PyResult<OutputCapture> {
        let capture = py.detach(gridrpc_sys::OutputCapture::begin)?;
        Ok(OutputCapture { capture: Mutex::new(Some(capture)) })
    }

    /// Has this process show the end of captured output if a crash, or C's `exit`, ends it in the meantime.
    #[staticmethod]
    fn show_at_a_crash() {
        gridrpc_sys::show_output_at_a_crash();
    }

    /// Ends it. Returns the last MiB written to each.
    fn end(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        let capture = capture.ok_or_else(|| PyRuntimeError::new_err("the capture has ended"))?;
        let [stdout, stderr] = py.detach(|| capture.end())?;
        Ok((text(&stdout), text(&stderr)))
    }
}

/// The output as text, with a line about missing parts.
fn text(output: &CapturedOutput) -> String {
    let CapturedOutput { bytes, dropped } = output;
    if *dropped == 0 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    // A character may be cut in two.
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    let last = String::from_utf8_lossy(&bytes[rest..]);
    format!("[gridrpc: {} bytes before this are dropped]\n{last}", dropped + rest as u64)
}
