//! Tasks of `gridbench sync`: processes held at the start of their program.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use gridbench_held as held;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Interval of checks for signals of the interpreter, ns.
const LOOK: i64 = 100_000_000;

/// Result of a task. Times are nanoseconds of this host's monotonic clock.
#[pyclass(frozen, get_all)]
pub struct EndedTask {
    /// The exit status, or minus the number of the signal that ended it.
    status: i32,
    /// Start of its program; None: it never started.
    began: Option<i64>,
    ended: i64,
    /// Processor time in its program, seconds.
    user: f64,
    /// Processor time in the kernel, seconds.
    system: f64,
    /// Maximum resident memory, bytes.
    memory: u64,
}

/// A process that is held, runs, or has ended. Times are nanoseconds of this host's monotonic clock.
#[pyclass(frozen)]
pub struct HeldTask {
    task: Mutex<held::Task>,
}

impl HeldTask {
    fn task(&self) -> MutexGuard<'_, held::Task> {
        self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[pymethods]
impl HeldTask {
    /// Starts it. `at_entry`: it is held at the entry of its program, otherwise before it executes the program.
    /// ValueError: it cannot be held there; OSError: it cannot run at all.
    #[new]
    #[expect(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        directory: PathBuf,
        output: PathBuf,
        errors: PathBuf,
        at_entry: bool,
    ) -> PyResult<HeldTask> {
        let hold = if at_entry { held::Hold::Entry } else { held::Hold::Exec };
        let (output, errors) = (File::create(output)?, File::create(errors)?);
        let program = held::Program { path, arguments, environment, directory, output, errors };
        py.detach(|| held::Task::prepare(program, hold))
            .map(|task| HeldTask { task: Mutex::new(task) })
            .map_err(|error| match error {
                held::Error::Start(error) | held::Error::System(error) => os_error(&error),
                held::Error::Entry(_) => PyValueError::new_err(error.to_string()),
            })
    }

    /// Releases it at this time, or at once if the time has passed.
    fn release(&self, at: i64) {
        self.task().release(at);
    }

    /// Its result, once `wait_for_held` has detected its end. OSError: it could not execute its program.
    #[getter]
    fn ended(&self) -> PyResult<Option<EndedTask>> {
        match self.task().ended() {
            None => Ok(None),
            Some(Ok(held::Ended { status, began, ended, user, system, memory })) => {
                Ok(Some(EndedTask { status, began, ended, user, system, memory }))
            }
            Some(Err(error)) => Err(os_error(error)),
        }
    }

    /// Ends its processes.
    fn kill(&self) {
        self.task().kill();
    }

    /// Its process id.
    #[getter]
    fn pid(&self) -> i32 {
        self.task().id()
    }
}

/// An OSError with the error number, from which Python selects the exception type.
fn os_error(error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => {
            let whole = error.to_string();
            let text = whole.rsplit_once(" (os error").map_or(whole.as_str(), |(text, _)| text);
            PyOSError::new_err((code, text.to_owned()))
        }
        None => PyOSError::new_err(error.to_string()),
    }
}

/// Waits for tasks to end, until this time at the latest. Returns whether all have ended.
#[pyfunction]
pub fn wait_for_held(py: Python<'_>, tasks: Vec<Py<HeldTask>>, until: i64) -> PyResult<bool> {
    loop {
        let look = until.min(held::now().saturating_add(LOOK));
        let all = py.detach(|| {
            let mut guards: Vec<_> = tasks.iter().map(|task| task.get().task()).collect();
            let mut each: Vec<_> = guards.iter_mut().map(|guard| &mut **guard).collect();
            held::wait_for(&mut each, look)
        })?;
        if all || look == until {
            return Ok(all);
        }
        py.check_signals()?;
    }
}
