//! A Python worker's side: its connection, and the prepared process that starts workers.

use std::collections::HashMap;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_runtime::link::LinkError;
use gridrpc_runtime::payload::Incoming;
use gridrpc_runtime::worker::{Answer, Job, KnownFunction, Modules, Role, Spawner, WorkerLink};
use gridrpc_wire::{FunctionForm, MAX_SECTIONS, Prepare, Stamps};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::buffer::{Buffer, View, split_head};
use crate::results::Results;

/// An error of the link or of Python code that it called.
enum Failure {
    Link(LinkError),
    Python(PyErr),
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Failure {
        Failure::Link(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Link(error) => PyConnectionError::new_err(error.to_string()),
            Failure::Python(error) => error,
        }
    }
}

/// Serves a client as the process that starts its workers; standard input is the connection.
/// `prepare(directory, path, modules)` is called first; `fork()` as `os.fork`. Returns in each
/// new worker, with its connection's descriptor; returns None when the client is gone.
#[pyfunction]
pub fn run_spawner(
    py: Python<'_>,
    prepare: Bound<'_, PyAny>,
    fork: Bound<'_, PyAny>,
) -> PyResult<Option<i32>> {
    let spawner = Spawner::new()?;
    let prepare = |wanted: &Prepare<'_>| -> Result<(), Failure> {
        prepare.call1((wanted.directory, wanted.path.clone(), wanted.modules.clone()))?;
        Ok(())
    };
    let fork = || -> Result<Option<i32>, Failure> {
        match fork.call0()?.extract()? {
            0 => Ok(None),
            pid => Ok(Some(pid)),
        }
    };
    // The lock stays with this thread: there is no other, and forking without it is forbidden.
    let _ = py;
    Ok(match spawner.run(prepare, fork)? {
        Role::Worker(connection) => Some(connection.into_raw_fd()),
        Role::Done => None,
    })
}

struct Inner {
    link: WorkerLink,
    modules: Modules,
    /// The call being run, and its arguments as far as Python has not let go of them.
    running: Option<(u64, Vec<Incoming>)>,
    /// When it had come, ns.
    received: u64,
    function: Option<Arc<KnownFunction>>,
    /// Shared data that has been unpickled, by number.
    values: HashMap<u64, Py<PyAny>>,
}

/// A worker's connection to its client.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Worker {
    inner: Mutex<Inner>,
}

impl Worker {
    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What Python is given to run: number of the function, pickled arguments and their buffers.
type Work = (u64, Py<PyAny>, Vec<Py<Buffer>>);

#[pymethods]
impl Worker {
    /// Takes over a connection and greets the client.
    #[new]
    fn new(py: Python<'_>, descriptor: i32) -> PyResult<Worker> {
        // SAFETY: the caller hands over a descriptor of its own.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let link = py.detach(|| WorkerLink::open(socket, "python")).map_err(Failure::from)?;
        let modules = Modules::default();
        let inner = Inner {
            link,
            modules,
            running: None,
            received: 0,
            function: None,
            values: HashMap::new(),
        };
        Ok(Worker { inner: Mutex::new(inner) })
    }

    /// The worker's number within the grid.
    #[getter]
    fn number(&self) -> u32 {
        self.with(|inner| inner.link.worker())
    }

    /// Waits for the next call of a Python function; runs those of modules meanwhile. None: the
    /// client is gone.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Work>> {
        let next = |inner: &mut Inner| loop {
            match inner.link.next_job()? {
                Some(job) if job.function.form == FunctionForm::Library => {
                    if !inner.modules.serve(&mut inner.link, job)? {
                        return Ok(None);
                    }
                }
                other => return Ok::<_, LinkError>(other),
            }
        };
        let job = py.detach(|| self.with(next)).map_err(Failure::from)?;
        let Some(Job { call, function, sections, received, .. }) = job else { return Ok(None) };
        // Only what is lent has to be given back.
        let lent = sections.iter().filter(|part| matches!(part, Incoming::Shared(_)));
        let lent = lent.cloned().collect();
        let serial = function.serial;
        self.with(|inner| {
            inner.running = Some((call, lent));
            inner.received = received;
            inner.function = Some(function);
            for blob in inner.link.dropped() {
                inner.values.remove(blob);
            }
        });
        let (head, buffers) = split_head(py, sections, true)?;
        Ok(Some((serial, head, buffers)))
    }

    /// The function of the call: whether it is pickled, its name, and its pickle.
    fn function<'py>(&self, py: Python<'py>) -> PyResult<(bool, String, Bound<'py, PyBytes>)> {
        let function = self.with(|inner| inner.function.clone()).ok_or_else(no_call)?;
        let pickled = function.form == FunctionForm::Pickled;
        Ok((pickled, function.name.clone(), PyBytes::new(py, &function.body)))
    }

    /// Answers the call with a pickled result; empties the list of its buffers. Times are ns of the monotonic clock.
    fn returned(
        &self,
        calc_in: u64,
        calc_out: u64,
        head: &Bound<'_, PyAny>,
        buffers: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let all = buffers.iter().collect();
        // Nobody but the result may hold on to the arguments that it consists of.
        buffers.del_slice(0, buffers.len())?;
        self.answer((calc_in, calc_out), head, all, None)
    }

    /// Answers the call with an error: its type, message and trace, and its pickle.
    #[allow(clippy::too_many_arguments)] // the fields of one message
    fn raised(
        &self,
        calc_in: u64,
        calc_out: u64,
        error: &str,
        message: &str,
        trace: &str,
        head: &Bound<'_, PyAny>,
        buffers: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.answer((calc_in, calc_out), head, buffers, Some((error, message, trace)))
    }

    /// The parts of shared data, read-only.
    fn shared(&self, py: Python<'_>, blob: u64) -> PyResult<Vec<Py<Buffer>>> {
        let parts = self.with(|inner| inner.link.blob(blob));
        let parts = parts.ok_or_else(|| {
            PyValueError::new_err("this shared data does not belong to the call that asks for it")
        })?;
        parts.into_iter().map(|part| Py::new(py, Buffer::new(part, true))).collect()
    }

    /// The value that was kept for shared data.
    fn kept(&self, py: Python<'_>, blob: u64) -> Option<Py<PyAny>> {
        self.with(|inner| inner.values.get(&blob).map(|value| value.clone_ref(py)))
    }

    /// Keeps the value of shared data until the client drops it.
    fn keep(&self, blob: u64, value: Py<PyAny>) {
        self.with(|inner| inner.values.insert(blob, value));
    }
}

fn no_call() -> PyErr {
    PyRuntimeError::new_err("no call is being run")
}

impl Worker {
    fn answer(
        &self,
        (calc_in, calc_out): (u64, u64),
        head: &Bound<'_, PyAny>,
        buffers: Vec<Bound<'_, PyAny>>,
        error: Option<(&str, &str, &str)>,
    ) -> PyResult<()> {
        if buffers.len() >= MAX_SECTIONS {
            return Err(PyValueError::new_err("more than 1,023 buffers in one result"));
        }
        let (call, lent) = self.with(|inner| inner.running.take()).ok_or_else(no_call)?;
        // Without our lock: what goes with the buffers may be code that asks for it.
        let results = match error {
            None => Results::new(buffers, &lent),
            Some(_) => Results::copied(buffers),
        };
        let put_together = |results: &Results| {
            self.with(|inner| {
                let mut payload = inner.link.payload();
                // The interpreter's lock is kept: a thread that got it could wait for our lock.
                match head.cast::<PyBytes>() {
                    Ok(bytes) => payload.add(bytes.as_bytes())?,
                    Err(_) => payload.add(View::new(head)?.bytes())?,
                }
                results.add(&lent, &mut payload)?;
                Ok(payload.finish())
            })
        };
        let payload = match results.as_ref().map_err(|error| error.clone_ref(head.py())) {
            Ok(results) => put_together(results),
            Err(error) => Err(error),
        };
        self.with(|inner| {
            let payload = match payload {
                Ok(payload) => payload,
                Err(error) => {
                    // An error can still be told.
                    inner.running = Some((call, lent));
                    return Err(error);
                }
            };
            let received = inner.received;
            let stamps = Stamps { received, calc_in, calc_out, ..Stamps::default() };
            let answer = match error {
                None => Answer::Returned(payload),
                Some((error, message, trace)) => Answer::Raised { error, message, trace, payload },
            };
            inner.link.answer(call, stamps, lent, answer).map_err(Failure::from)?;
            Ok(())
        })
    }
}
