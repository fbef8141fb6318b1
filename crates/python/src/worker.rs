//! Python workers: their connection, and the spawner that starts them.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gridrpc_link::LinkError;
use gridrpc_link::payload::Incoming;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::dependency_table::{ResultPart, find};
use gridrpc_wire::{FunctionForm, MAX_SECTIONS, Prepare, Stamps, nested_call};
use gridrpc_worker::{
    Answer, EntryMark, Job, KnownFunction, Modules, NextStep, Role, Spawner, WorkerLink,
};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PySystemExit, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::buffer::{Buffer, View, split_head, unpickle};
use crate::errors;
use crate::items::Items;
use crate::results::Results;
use crate::{package, plain};

/// An error of the link, or of Python code that was called.
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

/// Serves a client as the process that starts its workers; standard input is the connection. `prepare(directory,
/// path, modules)` is called first; `fork()` works like `os.fork`. Returns in each new worker, with its connection's
/// descriptor; returns None when the client is gone.
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
    // This thread keeps the interpreter's lock: there is no other thread, and forking without the lock is forbidden.
    let _ = py;
    Ok(match spawner.run(prepare, fork)? {
        Role::Worker(connection) => Some(connection.into_raw_fd()),
        Role::Done => None,
    })
}

struct Inner {
    link: WorkerLink,
    modules: Modules,
    /// The running call, and those of its arguments that Python has not released.
    running: Option<(u64, Vec<Incoming>)>,
    /// When it had arrived, ns.
    received: u64,
    /// The sections beside the pickle of the arguments, while they are unpickled.
    beside: Vec<Py<Buffer>>,
    /// Unpickled shared data, by number.
    values: HashMap<u64, Py<PyAny>>,
    /// Number of requests for shared data.
    lookups: u64,
    /// The call whose items are counted.
    counted: Option<u64>,
}

/// A worker's connection to its client.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Worker {
    inner: Mutex<Inner>,
    entrance: EntryMark,
}

impl Worker {
    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Worker {
    /// Takes over a connection and performs the handshake with the client. `program` locates the program `gridrpc`.
    #[new]
    fn new(py: Python<'_>, descriptor: i32, program: Py<PyAny>) -> PyResult<Worker> {
        // SAFETY: the caller hands over a descriptor of its own.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let link = py.detach(|| WorkerLink::open(socket, "python")).map_err(Failure::from)?;
        let program = move || {
            Python::attach(|py| program.call0(py)?.extract::<PathBuf>(py))
                .map_err(|error| error.to_string())
        };
        let modules = Modules::new(Box::new(program));
        let (beside, values) = (Vec::new(), HashMap::new());
        let entrance = link.entrance();
        let inner = Inner {
            link,
            modules,
            running: None,
            received: 0,
            beside,
            values,
            lookups: 0,
            counted: None,
        };
        Ok(Worker { inner: Mutex::new(inner), entrance })
    }

    /// The worker's number within the grid.
    #[getter]
    fn number(&self) -> u32 {
        self.with(|inner| inner.link.worker())
    }

    /// Runs calls until the client is gone. `resolve(pickled, name, body)` returns the function with that name or
    /// pickle, `dumps(result)` a pickle and its buffers; `fail(worker, started, ended, error)` answers with an error.
    /// Times are ns of the monotonic clock.
    fn serve(
        slf: &Bound<'_, Self>,
        resolve: Bound<'_, PyAny>,
        dumps: Bound<'_, PyAny>,
        fail: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut functions = Functions { resolve, cached: VecDeque::new() };
        let mut head = Vec::new();
        while let Some(job) = this.take_up(py, &mut functions)? {
            let Job { function, sections, .. } = job;
            let mut times = (monotonic_ns(), 0);
            // Arguments must be released by the time of the answer: those in shared memory belong to the client again
            // unless the function has kept them.
            let answered =
                this.run(py, &mut functions, &function, sections, &mut times).and_then(|result| {
                    head.clear();
                    if plain::dumps(&result, &mut head) {
                        return this.answer(py, times, &head, Vec::new(), None);
                    }
                    // From here on only the buffers hold the arguments that they lie in.
                    let (head, buffers): (Bound<'_, PyAny>, Vec<Bound<'_, PyAny>>) =
                        dumps.call1((result,))?.extract()?;
                    this.answer_pickled(py, times, &head, buffers, None)
                });
            let Err(error) = answered else { continue };
            if error.is_instance_of::<PySystemExit>(py)
                || error.is_instance_of::<PyConnectionError>(py) && this.has_answered()
            {
                return Err(error);
            }
            if times.1 == 0 {
                times.1 = monotonic_ns();
            }
            fail.call1((slf, times.0, times.1, error.into_value(py)))?;
        }
        Ok(())
    }

    /// Answers the call with an error: its type, message and trace, and its pickle.
    #[allow(clippy::too_many_arguments)] // the fields of one message
    fn raised(
        &self,
        py: Python<'_>,
        calc_in: u64,
        calc_out: u64,
        error: &str,
        message: &str,
        trace: &str,
        head: &Bound<'_, PyAny>,
        buffers: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let error = Some((error, message, trace));
        self.answer_pickled(py, (calc_in, calc_out), head, buffers, error)
    }

    /// The parts of shared data, read-only.
    fn shared(&self, py: Python<'_>, blob: u64) -> PyResult<Vec<Py<Buffer>>> {
        let parts = self.with(|inner| inner.link.blob(blob));
        let parts = parts.ok_or_else(|| {
            PyValueError::new_err("this shared data does not belong to the call that asks for it")
        })?;
        parts.into_iter().map(|part| Py::new(py, Buffer::new(part, true))).collect()
    }

    /// The result of another call, number `index` among the arguments being unpickled: its pickle and its buffers,
    /// each as memory, start and end.
    fn passed_on(&self, py: Python<'_>, index: usize) -> PyResult<Vec<(Py<Buffer>, usize, usize)>> {
        let beside: Vec<_> =
            self.with(|inner| inner.beside.iter().map(|buffer| buffer.clone_ref(py)).collect());
        let find = || {
            let table = beside.last()?;
            let place = |place| match place {
                ResultPart::Packed(range) => Some((table.clone_ref(py), range.start, range.end)),
                // The pickle itself is section 0.
                ResultPart::Section(number) => {
                    let buffer = beside.get(number.checked_sub(1)?)?;
                    Some((buffer.clone_ref(py), 0, buffer.get().bytes().len()))
                }
            };
            find(table.get().bytes(), index)?.into_iter().map(place).collect::<Option<Vec<_>>>()
        };
        find().ok_or_else(|| PyValueError::new_err("this result is no argument of the call"))
    }

    /// The items of the running call, which has many.
    fn items(&self, py: Python<'_>) -> PyResult<Items> {
        let items = self.with(|inner| match &inner.running {
            Some((call, _)) if inner.counted != Some(*call) => {
                inner.counted = Some(*call);
                inner.link.items()
            }
            // Their items run within an item of the call.
            _ => gridrpc_shm::Items::inner(),
        });
        Items::new(py, items)
    }

    /// The number of the running call.
    fn current(&self) -> Option<u64> {
        self.with(|inner| inner.running.as_ref().map(|(call, _)| *call))
    }

    /// Requests something from the client for the function of the running call, and waits for the answer: a list of
    /// texts, and the sections after it. Raises RuntimeError with the client's message.
    fn ask(
        &self,
        py: Python<'_>,
        request: u16,
        texts: Vec<String>,
        sections: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<String>, Vec<Py<Buffer>>)> {
        if sections.len() >= MAX_SECTIONS {
            return Err(PyValueError::new_err("more than 1,021 buffers in one call"));
        }
        let views = sections.iter().map(View::new).collect::<PyResult<Vec<_>>>()?;
        let payload = self.with(|inner| -> PyResult<_> {
            let mut payload = inner.link.payload();
            payload.add_owned(nested_call::encode(&texts))?;
            views.iter().try_for_each(|view| payload.add(view.bytes()))?;
            Ok(payload.finish())
        })?;
        let ask = || self.with(|inner| inner.link.call_back(request, &payload));
        let answer = py.detach(ask).map_err(Failure::from)?;
        let mut sections = answer.results.map_err(PyRuntimeError::new_err)?.into_iter();
        let texts = sections.next().and_then(|first| {
            let texts = nested_call::decode(first.bytes())?;
            Some(texts.into_iter().map(str::to_owned).collect())
        });
        let texts = texts.ok_or_else(|| PyRuntimeError::new_err("an answer without texts"))?;
        let buffers = sections.map(|section| Py::new(py, Buffer::new(section, false)));
        Ok((texts, buffers.collect::<PyResult<_>>()?))
    }

    /// The value kept for shared data.
    fn cached(&self, py: Python<'_>, blob: u64) -> Option<Py<PyAny>> {
        self.with(|inner| {
            inner.lookups += 1;
            inner.values.get(&blob).map(|value| value.clone_ref(py))
        })
    }

    /// Keeps the value of shared data until the client drops it.
    fn cache(&self, blob: u64, value: Py<PyAny>) {
        self.with(|inner| inner.values.insert(blob, value));
    }
}

fn no_call() -> PyErr {
    PyRuntimeError::new_err("no call is being run")
}

impl Worker {
    /// Waits for the next call of a Python function; runs those of modules in the meantime. None: the client is gone.
    fn take_up(&self, py: Python<'_>, functions: &mut Functions<'_>) -> PyResult<Option<Job>> {
        loop {
            // The interpreter's lock need not be released if a call is already available: other threads get it while
            // Python code runs.
            let mut next = self.with(|inner| inner.link.job_at_hand()).map_err(Failure::from)?;
            if next.is_none() {
                let turn = py.detach(|| self.with(|inner| inner.link.next_turn()));
                py.check_signals()?;
                next = match turn.map_err(Failure::from)? {
                    NextStep::Run(job) => Some(job),
                    NextStep::LetGo(dropped) => {
                        self.let_go(&dropped, functions);
                        None
                    }
                    NextStep::End => return Ok(None),
                };
            }
            let Some(job) = next else { continue };
            if job.function.form == FunctionForm::Library {
                let serve = |inner: &mut Inner| inner.modules.serve(&mut inner.link, job);
                if !py.detach(|| self.with(serve)).map_err(Failure::from)? {
                    return Ok(None);
                }
                continue;
            }
            // Only lent arguments have to be returned.
            let lent = job.sections.iter().filter(|part| matches!(part, Incoming::Shared(_)));
            let lent = lent.cloned().collect();
            let dropped = self.with(|inner| {
                inner.running = Some((job.call, lent));
                inner.received = job.received;
                inner.link.take_dropped()
            });
            self.let_go(&dropped, functions);
            return Ok(Some(job));
        }
    }

    /// Releases the values of dropped shared data.
    fn let_go(&self, dropped: &[u64], functions: &mut Functions<'_>) {
        if !dropped.is_empty() {
            // Functions that are still called are unpickled again.
            functions.cached.retain(|cached| !cached.refers);
        }
        let remove = |inner: &mut Inner| -> Vec<Py<PyAny>> {
            dropped.iter().filter_map(|blob| inner.values.remove(blob)).collect()
        };
        // Dropping them may run code that takes our lock: drop them without it.
        drop(self.with(remove));
    }

    /// Calls a function, and records its start and end.
    fn run<'py>(
        &self,
        py: Python<'py>,
        functions: &mut Functions<'py>,
        function: &KnownFunction,
        sections: Vec<Incoming>,
        times: &mut (u64, u64),
    ) -> PyResult<Bound<'py, PyAny>> {
        let (function, counts) = functions.find(function, || self.with(|inner| inner.lookups))?;
        let arguments = match &sections[..] {
            [Incoming::Bytes(head)] => plain::loads(py, head),
            _ => None,
        };
        let arguments = match arguments {
            Some(arguments) => arguments,
            None => {
                let (head, buffers) = split_head(py, sections, true)?;
                self.unpickle_arguments(py, head, buffers)?.into_bound(py)
            }
        };
        let (args, kwargs): (Bound<'py, PyTuple>, Bound<'py, PyDict>) = arguments.extract()?;
        drop(arguments);
        // A function that counts items marks its entry with the first item.
        if !counts {
            self.entrance.enter();
        }
        times.0 = monotonic_ns();
        let result = function.call(args, Some(&kwargs).filter(|kwargs| !kwargs.is_empty()));
        times.1 = monotonic_ns();
        result
    }

    /// [`Worker::passed_on`] finds results of other calls among the arguments in the meantime.
    fn unpickle_arguments(
        &self,
        py: Python<'_>,
        head: Py<PyAny>,
        buffers: Vec<Py<Buffer>>,
    ) -> PyResult<Py<PyAny>> {
        if buffers.is_empty() {
            return unpickle(py, head, buffers);
        }
        let beside = buffers.iter().map(|buffer| buffer.clone_ref(py)).collect();
        self.with(|inner| inner.beside = beside);
        let arguments = unpickle(py, head, buffers);
        // Dropping them may run code that takes our lock: drop them without it.
        drop(self.with(|inner| std::mem::take(&mut inner.beside)));
        arguments
    }

    /// Whether the current call has been answered, or can no longer be answered.
    fn has_answered(&self) -> bool {
        self.with(|inner| inner.running.is_none())
    }

    fn answer_pickled(
        &self,
        py: Python<'_>,
        times: (u64, u64),
        head: &Bound<'_, PyAny>,
        buffers: Vec<Bound<'_, PyAny>>,
        error: Option<(&str, &str, &str)>,
    ) -> PyResult<()> {
        match head.cast::<PyBytes>() {
            Ok(bytes) => self.answer(py, times, bytes.as_bytes(), buffers, error),
            Err(_) => self.answer(py, times, View::new(head)?.bytes(), buffers, error),
        }
    }

    /// Answers the current call. The interpreter's lock is kept: another thread that got it could wait for our lock.
    fn answer(
        &self,
        py: Python<'_>,
        (calc_in, calc_out): (u64, u64),
        head: &[u8],
        buffers: Vec<Bound<'_, PyAny>>,
        error: Option<(&str, &str, &str)>,
    ) -> PyResult<()> {
        if buffers.len() >= MAX_SECTIONS {
            return Err(PyValueError::new_err("more than 1,023 buffers in one result"));
        }
        let (call, lent) = self.with(|inner| inner.running.take()).ok_or_else(no_call)?;
        // Without our lock: dropping the buffers may run code that takes it.
        let results = match error {
            None => Results::new(buffers, &lent),
            Some(_) => Results::copied(buffers),
        };
        self.with(|inner| {
            let put_together = |link: &mut WorkerLink| -> PyResult<_> {
                let results = results.as_ref().map_err(|error| error.clone_ref(py))?;
                let mut payload = link.payload();
                payload.add(head).map_err(|error| errors::no_room(&error))?;
                results.add(&lent, &mut payload)?;
                Ok(payload.finish())
            };
            let payload = match put_together(&mut inner.link) {
                Ok(payload) => payload,
                Err(error) => {
                    // An error can still be reported.
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

/// The functions that were called, the most recent first.
struct Functions<'py> {
    resolve: Bound<'py, PyAny>,
    cached: VecDeque<CachedFunction<'py>>,
}

/// A function that was called.
struct CachedFunction<'py> {
    serial: u64,
    function: Bound<'py, PyAny>,
    /// Whether it refers to shared data.
    refers: bool,
    /// Whether it calls another function with many items, and counts them.
    counts: bool,
}

/// Maximum number of functions kept unpickled.
const MAX_FUNCTIONS: usize = 256;

impl<'py> Functions<'py> {
    /// The function, and whether it counts items. `lookups`: number of requests for shared data so far.
    fn find(
        &mut self,
        function: &KnownFunction,
        lookups: impl Fn() -> u64,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let place = self.cached.iter().position(|cached| cached.serial == function.serial);
        if let Some(known) = place.and_then(|place| self.cached.remove(place)) {
            let found = (known.function.clone(), known.counts);
            self.cached.push_front(known);
            return Ok(found);
        }
        let pickled = function.form == FunctionForm::Pickled;
        let body = PyBytes::new(self.resolve.py(), &function.body);
        let before = lookups();
        let found = self.resolve.call1((pickled, &function.name, body))?;
        let refers = lookups() != before;
        let counts = found.get_type().is(package::chunked(self.resolve.py())?);
        let cached =
            CachedFunction { serial: function.serial, function: found.clone(), refers, counts };
        self.cached.push_front(cached);
        self.cached.truncate(MAX_FUNCTIONS);
        Ok((found, counts))
    }
}
