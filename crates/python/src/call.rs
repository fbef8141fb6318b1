//! Calls for Python, and waiting for many of them.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gridrpc_client::{Hold, LostItems, Outcome};
use gridrpc_core::End;
use gridrpc_link::payload::Incoming;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyType};

use crate::buffer::{Buffer, split_head, unpickle};
use crate::captured::CapturedResult;
use crate::detached::{Attachment, ask};
use crate::errors;
use crate::modules::{Passed, PassedArray, Pending, PendingChunk, returned_array};
use crate::waiting::wait_in_slices;
use crate::{package, plain};

/// The only section; an empty one if there is none.
fn all(sections: Vec<Incoming>) -> Incoming {
    sections.into_iter().next().unwrap_or_else(|| Incoming::Bytes(Vec::new()))
}

/// Outcome of a call in Python's terms.
enum Settled {
    Value(Py<PyAny>),
    Error(Py<PyAny>),
}

/// Form of a call's result.
pub enum Form {
    /// A pickle.
    Pickled,
    /// As the interface of a module's function declares.
    Module { target: Arc<gridrpc_invoke::Target>, pending: Box<Mutex<Option<Pending>>> },
    /// As the interface declares, for many items.
    Chunk(Box<Mutex<Option<PendingChunk>>>),
}

impl Form {
    /// The form of a call of a module's function.
    pub fn module(pending: Pending) -> Form {
        let target = Arc::clone(pending.target());
        Form::Module { target, pending: Box::new(Mutex::new(Some(pending))) }
    }
}

/// A remote call, returned by `Grid.submit`. Supports `await`.
#[pyclass(frozen, weakref, module = "gridrpc")]
pub struct Call {
    pub call: Arc<gridrpc_client::Call>,
    waiter: gridrpc_client::Waiter,
    form: Form,
    /// Its Python grid.
    grid: Py<PyAny>,
    settled: OnceLock<Settled>,
    /// The detached call whose result it gives.
    attachment: OnceLock<Attachment>,
    /// The result as the worker sent it, with the output of the call.
    captured: OnceLock<Py<CapturedResult>>,
}

impl Call {
    pub fn new(
        call: Arc<gridrpc_client::Call>,
        waiter: gridrpc_client::Waiter,
        form: Form,
        grid: Py<PyAny>,
    ) -> Call {
        let (settled, attachment, captured) = Default::default();
        Call { call, waiter, form, grid, settled, attachment, captured }
    }

    /// A call that gives the result of a detached one.
    pub fn attached(self, attachment: Attachment) -> Call {
        Call { attachment: attachment.into(), ..self }
    }

    /// Has its server run the call even if this program ends: `Call.detach`. `grid`: its grid.
    pub fn detach_from(&self, py: Python<'_>, grid: &Arc<gridrpc_client::Grid>) -> PyResult<&str> {
        if let Some(attachment) = self.attachment.get() {
            return Ok(&attachment.id);
        }
        let target = match &self.form {
            Form::Module { pending, .. } => {
                let pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
                pending.as_ref().map(|pending| Arc::clone(pending.target()))
            }
            Form::Pickled | Form::Chunk(_) => {
                let name = self.call.function().name();
                return Err(PyTypeError::new_err(format!(
                    "the call of {name} cannot be detached: only single calls of compiled modules that a server offers \
                     can"
                )));
            }
        };
        let Some(target) = target else {
            let name = self.call.function().name();
            return Err(PyValueError::new_err(format!(
                "the call of {name} has ended: take its result"
            )));
        };
        let (id, server) = ask(py, |interrupted| {
            gridrpc_invoke::detach_call(grid, &target, &self.call, interrupted)
        })?;
        Ok(&self.attachment.get_or_init(|| Attachment { server, id }).id)
    }

    /// The function of a module that it runs.
    fn target(&self) -> PyResult<&gridrpc_invoke::Target> {
        match &self.form {
            Form::Module { target, .. } => Ok(target),
            Form::Pickled | Form::Chunk(_) => Err(PyTypeError::new_err(format!(
                "{} is a Python function, whose results have no declared type: wait for the call, and give its result",
                self.call.function().name()
            ))),
        }
    }

    /// The array that this parameter returns, if the result has not been taken, and comes to no array of the program.
    fn pending_array(&self, parameter: usize) -> Option<PassedArray> {
        let Form::Module { pending, .. } = &self.form else { return None };
        pending.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.array(parameter)
    }

    /// The Python object.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<Call>> {
        let call = Py::new(py, self)?;
        // The garbage collector cannot see a call's contents, so it need not track the call.
        // SAFETY: an object of ours, whose type takes part in collection.
        unsafe { pyo3::ffi::PyObject_GC_UnTrack(call.as_ptr().cast()) };
        Ok(call)
    }

    /// Waits for the call, and decodes the outcome once.
    fn settle(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<&Settled> {
        if let Some(settled) = self.settled.get() {
            return Ok(settled);
        }
        if !self.wait(py, timeout)? {
            return Err(errors::timeout(self.call.function().name(), timeout.unwrap_or(0.0)));
        }
        let pickled = matches!(self.form, Form::Pickled);
        let outcome =
            if pickled { self.call.take_outcome_to_hold() } else { self.call.take_outcome() };
        if let Some(outcome) = outcome {
            let settled = match self.decode(py, outcome) {
                Ok(settled) => settled,
                Err(error) => Settled::Error(error.into_value(py).into_any()),
            };
            // Only the thread that took the outcome sets it.
            return Ok(self.settled.get_or_init(|| settled));
        }
        // Another thread is decoding it, perhaps in Python code.
        loop {
            py.detach(|| std::thread::sleep(Duration::from_micros(50)));
            if let Some(settled) = self.settled.get() {
                return Ok(settled);
            }
        }
    }

    fn decode(&self, py: Python<'_>, outcome: Outcome) -> PyResult<Settled> {
        // If the call has failed, this releases the caller's arrays.
        let pending = match &self.form {
            Form::Module { pending, .. } => {
                pending.lock().unwrap_or_else(PoisonError::into_inner).take()
            }
            _ => None,
        };
        let chunk = match &self.form {
            Form::Chunk(pending) => pending.lock().unwrap_or_else(PoisonError::into_inner).take(),
            _ => None,
        };
        if let Some(error) = pending.as_ref().and_then(Pending::raised) {
            return Err(error);
        }
        let error = match outcome {
            Outcome::Returned(sections, order) if pending.is_some() => {
                let landed =
                    pending.map(|pending| pending.take(py, sections, order)).transpose()?;
                return Ok(Settled::Value(landed.unwrap_or_else(|| py.None())));
            }
            Outcome::Returned(sections, order) if chunk.is_some() => {
                let landed = chunk.map(|chunk| chunk.take(py, sections, order)).transpose()?;
                return Ok(Settled::Value(landed.unwrap_or_else(|| py.None())));
            }
            Outcome::Returned(sections, _) => {
                if let [Incoming::Bytes(head)] = &sections[..]
                    && let Some(value) = plain::loads(py, head)
                {
                    return Ok(Settled::Value(value.unbind()));
                }
                let (head, buffers) = split_head(py, sections, false)?;
                let value = unpickle(py, head, buffers)?;
                if let Ok(captured) = value.bind(py).cast_exact::<CapturedResult>() {
                    let captured = self.captured.get_or_init(|| captured.clone().unbind());
                    return Ok(Settled::Value(captured.get().value.clone_ref(py)));
                }
                return Ok(Settled::Value(value));
            }
            Outcome::Raised { error, sections, order, .. } if LostItems::are_told(&error) => {
                let Some(mut lost) = LostItems::decode(sections, order) else {
                    return Err(errors::broken("a lost worker that makes no sense"));
                };
                let results = std::mem::take(&mut lost.results);
                let so_far = match chunk {
                    Some(chunk) => chunk.take_partial(py, lost.ended, results, lost.order)?,
                    None => Py::new(py, Buffer::new(all(results), true))?.into_any(),
                };
                errors::item_lost(py, &lost, so_far, self.call.function())
            }
            Outcome::Raised { error, message, trace, sections, order } => {
                let (head, buffers) = split_head(py, sections, false)?;
                errors::raised(py, &error, &message, &trace, head, buffers, order)
            }
            Outcome::Ended(End::DependencyFailed(_)) => {
                let failed = self.call.with_failed_dependency(|owner| {
                    owner.downcast_ref::<Py<Call>>().map(|call| call.clone_ref(py))
                });
                dependency_failed(py, failed.flatten(), self.call.function().name())
            }
            Outcome::Ended(end) => {
                errors::ended(py, &end, self.call.function(), self.call.is_idempotent())
            }
        };
        Ok(Settled::Error(error.into_value(py).into_any()))
    }
}

#[pymethods]
impl Call {
    /// Return the result of the call. Waits for it, at most `timeout` seconds.
    ///
    /// Raises the error that the function raised (its traceback in the worker is the cause), TimeoutError if it takes
    /// longer, WorkerLost, DeadlineExceeded, CallCancelled or GridClosed.
    #[pyo3(signature = (timeout=None))]
    pub fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        match self.settle(py, timeout)? {
            Settled::Value(value) => Ok(value.clone_ref(py)),
            Settled::Error(error) => Err(PyErr::from_value(error.bind(py).clone())),
        }
    }

    /// Return the error that `result` would raise, or None. Raises TimeoutError as `result` does.
    #[pyo3(signature = (timeout=None))]
    pub fn exception(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        match self.settle(py, timeout)? {
            Settled::Value(_) => Ok(None),
            Settled::Error(error) => Ok(Some(error.clone_ref(py))),
        }
    }

    /// Return whether the call has ended, with a result or an error.
    fn done(&self) -> bool {
        self.call.done()
    }

    /// Wait until the call has ended, at most `timeout` seconds. Returns whether it has.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if self.waiter.check().is_err() {
            return Err(errors::forked(py));
        }
        if self.call.done() {
            return Ok(true);
        }
        let Call { call, waiter, .. } = self;
        Ok(wait_in_slices(py, timeout, |slice| waiter.wait(call, slice).then_some(()))?.is_some())
    }

    /// Cancel the call, even while it runs. Returns False if it had already ended.
    ///
    /// A worker that still runs the call after a grace period (Config.grace) is ended and replaced.
    fn cancel<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(attachment) = slf.get().attachment.get() {
            let cancelled = !slf.get().call.done() && attachment.cancel(slf.py())?;
            return Ok(PyBool::new(slf.py(), cancelled).to_owned().into_any());
        }
        package::cancel(slf.py())?.call1((slf,))
    }

    /// Have the call's server run it even if this program ends. Returns its id, for `gridrpc.attach`.
    ///
    /// It becomes a detached call, and this object one that is attached to it. A call that its server has got continues
    /// there. Raises TypeError for a call of a Python function or method, and for one that needs the result of another
    /// call, or whose result another call needs; ValueError if it has ended; and what `Grid.detach` raises. If the
    /// server refuses a call that waits in this program, the call ends with WorkerLost.
    fn detach<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().grid.bind(slf.py()).getattr("_native")?.call_method1("detach_call", (slf,))
    }

    /// Return whether the call was cancelled.
    fn cancelled<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::cancelled(slf.py())?.call1((slf,))
    }

    /// What the function wrote to standard output, in a grid with `output="captured"`. Waits until the call has ended.
    ///
    /// Of more than 1 MiB the last MiB is kept. Empty if the call ended without an answer of the function, for example
    /// with its worker. Raises ValueError if the output is not captured.
    #[getter]
    fn stdout<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::output_of(slf.py())?.call1((slf, "stdout"))
    }

    /// What the function wrote to standard error, as `stdout`.
    #[getter]
    fn stderr<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::output_of(slf.py())?.call1((slf, "stderr"))
    }

    /// The result with the output of the call, if it has ended and came with it.
    #[getter]
    fn _captured(&self, py: Python<'_>) -> Option<Py<CapturedResult>> {
        self.captured.get().map(|captured| captured.clone_ref(py))
    }

    /// Return when and where the call ran.
    #[getter]
    fn profile<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::profile_of(slf.py())?.call1((slf,))
    }

    /// The name of the function that the call runs.
    #[getter]
    fn function_name(&self) -> &str {
        self.call.function().name()
    }

    /// As an argument of another call of the grid: passes its result on to that call.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::reduce(slf.py())?.call1((slf,))
    }

    /// Keeps the unmodified result for a call that needs it. None if that is impossible because it has been taken, or
    /// is not a pickle.
    fn _hold(slf: &Bound<'_, Self>) -> Option<Dependency> {
        let this = slf.get();
        let hold = matches!(this.form, Form::Pickled).then(|| Hold::new(&this.call)).flatten()?;
        Some(Dependency { hold: Arc::new(hold), call: slf.clone().unbind() })
    }

    /// One of several results, as an argument of another call: an OUT array of a function of a compiled module.
    ///
    /// The other call is one of such a function, too. A function with one result needs no `output`: pass its call.
    /// Raises TypeError for Python functions and for results that are no arrays of numbers; ValueError if the function
    /// has no result of this name.
    fn output<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        returned_array(slf.get().target()?, Some(name))?;
        package::call_output(slf.py())?.call1((slf, name))
    }

    /// An array of the result as an argument of a call of a module's function on the grid `native`: a `Passed`, or the
    /// array itself if it has been taken. `name`: the result, if there are several.
    #[pyo3(signature = (native, name=None))]
    fn _passed<'py>(
        slf: &Bound<'py, Self>,
        native: &Bound<'py, PyAny>,
        name: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let function = this.call.function().name();
        if !this.grid.bind(py).getattr(intern!(py, "_native"))?.is(native) {
            return Err(PyValueError::new_err(format!(
                "the call of {function} belongs to another grid: give its result"
            )));
        }
        let (place, count, parameter) = returned_array(this.target()?, name)?;
        let is_attached = this.attachment.get().is_some();
        let passed = |hold: Hold, array| {
            let owner: Arc<dyn Any + Send + Sync> = Arc::new(slf.clone().unbind());
            Ok(Bound::new(py, Passed { call: Arc::new(hold), owner, array })?.into_any())
        };
        if !is_attached
            && let Some(array) = this.pending_array(parameter)
            && let Some(hold) = Hold::new(&this.call)
        {
            return passed(hold, Some(array));
        }
        if !this.call.done() {
            return Err(PyTypeError::new_err(format!(
                "the result of the call of {function} is put together in this program: wait for the call, and give the array"
            )));
        }
        match this.settle(py, None)? {
            Settled::Value(value) if count == 1 => Ok(value.bind(py).clone()),
            Settled::Value(value) => value.bind(py).get_item(place),
            Settled::Error(error) => match Hold::new(&this.call).filter(|_| !is_attached) {
                Some(hold) => passed(hold, None),
                None => Err(PyErr::from_value(error.bind(py).clone())),
            },
        }
    }

    /// Call `callback(call)` in a thread of the grid when the call has ended. Raises RuntimeError, and does not call
    /// it, if the system refuses this thread for a second.
    fn add_done_callback(slf: &Bound<'_, Self>, callback: Bound<'_, PyAny>) -> PyResult<()> {
        package::add_done_callback(slf.py())?.call1((slf, callback))?;
        Ok(())
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::wait_async(slf.py())?.call1((slf,))?.call_method0("__await__")
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::describe(slf.py())?.call1((slf,))
    }

    /// For notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::call_html(slf.py())?.call1((slf,))
    }

    #[classmethod]
    #[pyo3(signature = (item, /))]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        cls.py().import("types")?.getattr("GenericAlias")?.call1((cls, item))
    }

    // `concurrent.futures.wait` and `as_completed` use these attributes of a future.
    #[getter]
    fn _condition<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::follower(slf.py())?.call1((slf,))?.getattr("condition")
    }

    #[getter]
    fn _state<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::follower(slf.py())?.call1((slf,))?.getattr("state")
    }

    #[getter]
    fn _waiters<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package::follower(slf.py())?.call1((slf,))?.getattr("waiters")
    }

    /// Makes `isinstance` report a future of `concurrent.futures`, for callers such as `asyncio.wrap_future`.
    #[getter(__class__)]
    fn class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        // A caller that has not loaded the module cannot check for it.
        let modules = py.import("sys")?.getattr("modules")?;
        match modules.get_item("concurrent.futures._base") {
            Ok(module) => module.getattr("Future"),
            Err(_) => Ok(py.get_type::<Call>().into_any()),
        }
    }

    /// Its grid.
    #[getter]
    fn _grid(&self, py: Python<'_>) -> Py<PyAny> {
        self.grid.clone_ref(py)
    }

    /// Times in seconds of the monotonic clock (0: not reached), and places.
    fn _profile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let profile = self.call.profile();
        let dict = PyDict::new(py);
        let seconds = |ns: u64| ns as f64 / 1e9;
        dict.set_item("submit", seconds(profile.submit))?;
        dict.set_item("sent", seconds(profile.sent))?;
        dict.set_item("received", seconds(profile.stamps.received))?;
        dict.set_item("calc_in", seconds(profile.stamps.calc_in))?;
        dict.set_item("calc_out", seconds(profile.stamps.calc_out))?;
        dict.set_item("cpu", seconds(profile.stamps.cpu))?;
        dict.set_item("callback_time", seconds(profile.stamps.callback_time))?;
        dict.set_item("callbacks", profile.stamps.callbacks)?;
        dict.set_item("retrieve", seconds(profile.retrieve))?;
        let worker = (profile.worker != u32::MAX).then_some(profile.worker);
        dict.set_item("worker", worker)?;
        dict.set_item("pid", profile.pid)?;
        dict.set_item("bytes_in", profile.bytes_in)?;
        dict.set_item("bytes_out", profile.bytes_out)?;
        dict.set_item("clock_error", seconds(profile.clock_error))?;
        Ok(dict)
    }

    /// Cost of the call: worker, when it was submitted, when the function started and returned (ns), and bytes moved.
    fn _cost(&self) -> (u32, u64, u64, u64, u64) {
        let profile = self.call.profile();
        let stamps = profile.stamps;
        let bytes = profile.bytes_in + profile.bytes_out;
        (profile.worker, profile.submit, stamps.calc_in, stamps.calc_out, bytes)
    }

    /// Number of calls of its function to keep under way so that no host runs out of them; 0 if none has run it.
    fn _window(&self) -> usize {
        self.waiter.window(&self.call)
    }

    /// Pushes `token` to `watch` when the call ends.
    fn _watch(&self, watch: &Watch, token: u64) {
        self.call.watch(&watch.watch, token);
    }
}

/// A call whose result another call needs.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Dependency {
    hold: Arc<Hold>,
    call: Py<Call>,
}

impl Dependency {
    pub fn to_client(&self, py: Python<'_>) -> gridrpc_client::Dependency {
        let owner = Arc::new(self.call.clone_ref(py));
        gridrpc_client::Dependency { call: Arc::clone(&self.hold), array: None, owner }
    }
}

/// Calls that have ended, in order, by their tokens.
#[pyclass(frozen, module = "gridrpc._native")]
#[derive(Default)]
pub struct Watch {
    watch: Arc<gridrpc_client::Watch>,
}

#[pymethods]
impl Watch {
    #[new]
    fn new() -> Watch {
        Watch::default()
    }

    /// Appends a token.
    fn push(&self, token: u64) {
        self.watch.push(token);
    }

    /// Takes the tokens that have arrived. Waits at most `timeout` seconds for the first.
    #[pyo3(signature = (timeout=None))]
    fn take(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<u64>> {
        let watch = &self.watch;
        let taken = wait_in_slices(py, timeout, |slice| {
            let tokens = watch.take(slice);
            (!tokens.is_empty()).then_some(tokens)
        })?;
        Ok(taken.unwrap_or_default().into())
    }
}

/// The error of a call of `function` that was not made because the call `needed` has not returned.
fn dependency_failed(py: Python<'_>, needed: Option<Py<Call>>, function: &str) -> PyErr {
    let Some(needed) = needed else { return errors::dependency_failed(py, function) };
    let text = errors::not_called(function);
    let name = needed.get().call.function().name();
    let failure = needed.get().exception(py, None).and_then(|cause| {
        let cause = cause.map(|cause| PyErr::from_value(cause.into_bound(py)));
        let cause =
            cause.unwrap_or_else(|| errors::new(py, package::dependency_failed(py), (name,)));
        let text = format!("{text}, of {name}, which ended in {cause}");
        let error = errors::new(py, package::dependency_failed(py), (text,));
        error.value(py).setattr("call", &needed)?;
        error.set_cause(py, Some(cause));
        Ok(error)
    });
    failure.unwrap_or_else(|failed| failed)
}
