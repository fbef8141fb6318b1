//! Python exceptions for errors of the crates below. Every exception type is selected here, from the error's own type
//! and fields, never from its text.

use std::fmt::Write;
use std::io;

use gridrpc_client::{FunctionRef, GridError, LostItems};
use gridrpc_core::{Cause, End, Loss, Refusal};
use gridrpc_invoke::{ArgumentError, LandError, PrepareError, SearchError};
use gridrpc_wire::{Order, RemoteError, Value, decode_values};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use pyo3::exceptions::{
    PyBaseException, PyLookupError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError,
    PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use pyo3::{BoundObject, PyTypeInfo};

use crate::buffer::unpickle;
use crate::captured::CapturedResult;
use crate::package;

/// Maximum number of lines of a worker's standard error in a message; the exception contains all known lines.
const MESSAGE_LINES: usize = 20;

/// An invalid configuration.
pub fn config(text: &str) -> PyErr {
    Python::attach(|py| new(py, package::config_error(py), (text,)))
}

/// The exception for an error of the grid.
pub fn grid(error: &GridError) -> PyErr {
    Python::attach(|py| match error {
        GridError::Config(_) | GridError::Limits(_) => {
            new(py, package::config_error(py), (error.to_string(),))
        }
        GridError::System { what, error } => system(what, error),
        GridError::TooFewWorkers(loss) => start_error(py, "too few workers could be started", loss),
        GridError::UnknownServer { .. } => {
            new(py, package::server_not_found(py), (error.to_string(),))
        }
        GridError::NotTrusted { .. } | GridError::OnlyOffered { .. } => {
            new(py, package::not_trusted(py), (error.to_string(),))
        }
        GridError::OfferedElsewhere { .. } => PyValueError::new_err(error.to_string()),
        GridError::TooDeep(text) => new(py, package::nesting_error(py), (text,)),
        GridError::Forked => closed(py, &error.to_string()),
        GridError::Refused(refusal) => match refusal {
            Refusal::Closed => closed(py, &error.to_string()),
            Refusal::NoWorkers(loss) => start_error(py, "no worker could be started", loss),
            Refusal::NoServer(server, loss) => start_error(py, &none_of(server), loss),
            Refusal::TooManyCores(_) => new(py, package::too_wide(py), (error.to_string(),)),
            Refusal::NoFittingHost(_) => new(py, package::unfit(py), (error.to_string(),)),
            Refusal::Quota { .. } => PyRuntimeError::new_err(error.to_string()),
            Refusal::UnknownBlob(_) => PyValueError::new_err(error.to_string()),
            Refusal::ReservedLost(loss) => {
                object_lost(py, "the worker that held the object was lost", loss)
            }
            Refusal::Released => new(py, package::object_lost(py), (error.to_string(),)),
        },
    })
}

/// The message for a call that is bound to an unavailable server.
fn none_of(server: &str) -> String {
    format!("no worker of server {server:?} could be started")
}

/// A function's name is too long for workers.
pub fn long_name(len: usize, most: usize) -> PyErr {
    PyValueError::new_err(format!(
        "a function's name of {len} bytes: workers accept names of at most {most} bytes"
    ))
}

/// The exception for a call of `function` that ended without an answer.
pub fn ended(py: Python<'_>, end: &End, of: &FunctionRef, idempotent: bool) -> PyErr {
    let function = of.name();
    match end {
        End::Cancelled => {
            let text = format!("the call of {function} was cancelled");
            new(py, package::call_cancelled(py), (text,))
        }
        End::DeadlineExceeded(worker) => deadline_exceeded(py, *worker, function),
        End::RunLimit(limit) => {
            let error = new(py, package::deadline_exceeded(py), (format!("{function}: {limit}"),));
            with_worker(py, error, Some(limit.worker))
        }
        End::WorkerLost(loss) => {
            let what = format!("a worker was lost that ran {function}");
            let tried = "The call is idempotent, and has lost as many workers as the grid's `retries` allows";
            let hint = match (crash(of, &loss.cause), idempotent) {
                (Some(crash), true) => format!("{crash}. {tried}"),
                (Some(crash), false) => crash.to_owned(),
                (None, true) => tried.to_owned(),
                (None, false) => how_to_run_again(of).to_owned(),
            };
            lost(py, package::worker_lost(py), &what, Some(&hint), loss)
        }
        End::NoWorkers(loss) => start_error(py, "no worker could be started", loss),
        End::NoServer(server, loss) => start_error(py, &none_of(server), loss),
        End::TooManyCores(why) => new(py, package::too_wide(py), (format!("{function}: {why}"),)),
        End::NoFittingHost(why) => new(py, package::unfit(py), (format!("{function}: {why}"),)),
        End::DependencyFailed(_) => dependency_failed(py, function),
        End::NotGathered(why) => PyMemoryError::new_err(format!(
            "the arguments of the call of {function} cannot be put together: {why}"
        )),
        End::NestedCallLimit(limit) => {
            let text = format!("{function}: {limit}");
            new(py, package::limit_reached(py), (text,))
        }
        End::Closed => closed(py, &format!("the grid was closed before {function} returned")),
    }
}

/// What probably went wrong in a compiled function. Running it again would not help.
fn crash(function: &FunctionRef, cause: &Cause) -> Option<&'static str> {
    cause.crash().filter(|_| function.is_native())
}

/// Hint how to make a call of this function run again when its worker is lost.
fn how_to_run_again(function: &FunctionRef) -> &'static str {
    if function.is_native() {
        "A call that may run twice is run again, as often as the grid's `retries` tells: add \
         `Idempotent` to the function's definition in its IDL file"
    } else {
        "A call that may run twice is run again, as often as the grid's `retries` tells: pass \
         idempotent=True to submit or map"
    }
}

/// The worker of a call with many items was lost. `so_far`: the results of the items that had ended.
pub fn item_lost(
    py: Python<'_>,
    lost_items: &LostItems,
    so_far: Py<PyAny>,
    of: &FunctionRef,
) -> PyErr {
    let what = format!("a worker was lost that ran {}", of.name());
    let kind = package::worker_lost(py);
    let loss = &lost_items.loss;
    let hint = crash(of, &loss.cause).unwrap_or_else(|| how_to_run_again(of));
    let error = lost(py, kind, &what, Some(hint), loss);
    let left = (lost_items.ended, lost_items.running, so_far);
    match error.value(py).setattr("_left", left) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// Start of the message for a call whose dependency has failed.
pub fn not_called(function: &str) -> String {
    format!("{function} was not called, as it needs the result of another call")
}

/// A call of `function` was not made, because it needs the result of a call that has failed.
pub fn dependency_failed(py: Python<'_>, function: &str) -> PyErr {
    new(py, package::dependency_failed(py), (not_called(function),))
}

/// The exception raised by a function, or by the worker on its behalf.
///
/// `head` and `buffers`: the pickled exception, if it could be pickled, and the output of the call, if it is captured.
/// The exception has the output as `_captured`.
pub fn raised<B: PyTypeInfo>(
    py: Python<'_>,
    name: &str,
    message: &str,
    trace: &str,
    head: Py<PyAny>,
    buffers: Vec<Py<B>>,
    order: Order,
) -> PyErr {
    if RemoteError::from_name(name) == Some(RemoteError::RanksLost) {
        return ranks_lost(py, message, head.bind(py), order);
    }
    let mut made = None;
    if head.bind(py).len().is_ok_and(|len| len > 0) {
        // Its own __setstate__ or __init__ may raise anything: then it becomes a RemoteError.
        made = unpickle(py, head, buffers).ok().map(|made| made.into_bound(py));
    }
    let captured = made.as_ref().and_then(|made| made.cast_exact::<CapturedResult>().ok()).cloned();
    if let Some(captured) = &captured {
        made = Some(captured.get().value.bind(py).clone());
    }
    let error = match made.map(Bound::cast_into::<PyBaseException>) {
        Some(Ok(error)) => {
            let error = PyErr::from_value(error.into_any());
            error.set_cause(py, Some(new(py, package::remote_traceback(py), (trace,))));
            error
        }
        _ => not_pickled(py, name, message, trace),
    };
    if let Some(captured) = captured {
        // It may refuse to be changed. The exception itself would be a cycle.
        let output = captured.get().without_value(py);
        let _ = error.value(py).setattr("_captured", output);
    }
    error
}

/// The exception for an error without a pickle.
fn not_pickled(py: Python<'_>, name: &str, message: &str, trace: &str) -> PyErr {
    match RemoteError::from_name(name) {
        Some(RemoteError::FunctionNotFound) => new(py, package::function_not_found(py), (message,)),
        Some(RemoteError::ArgumentError) => PyTypeError::new_err(message.to_owned()),
        Some(RemoteError::InterfaceChanged) => interface_changed(py, message),
        Some(RemoteError::LimitReached) => new(py, package::limit_reached(py), (message,)),
        Some(RemoteError::NotPermitted) => new(py, package::not_permitted(py), (message,)),
        Some(RemoteError::DeadlineExceeded) => new(py, package::deadline_exceeded(py), (message,)),
        Some(RemoteError::CallNotFound | RemoteError::DataNotFound) => {
            PyLookupError::new_err(message.to_owned())
        }
        Some(RemoteError::CallLost) => call_lost(py, message),
        Some(RemoteError::CallCancelled) => new(py, package::call_cancelled(py), (message,)),
        Some(RemoteError::OutOfMemory) => PyMemoryError::new_err(message.to_owned()),
        Some(RemoteError::FunctionExited) => {
            // The end of the process's standard error replaces the trace.
            let text = format!("{name}: {message}{}", last_lines(trace));
            remote(py, text, &[("type_name", name), ("stderr", trace)])
        }
        Some(
            RemoteError::ProtocolError
            | RemoteError::ModuleError
            | RemoteError::CallbackFailed
            | RemoteError::RanksLost
            | RemoteError::ItemLost,
        )
        | None => {
            let text = format!("{name}: {message}");
            let error = remote(py, text, &[("type_name", name), ("traceback", trace)]);
            if !trace.is_empty() {
                error.set_cause(py, Some(new(py, package::remote_traceback(py), (trace,))));
            }
            error
        }
    }
}

/// Whether an exception says that a server has another interface of a function by now.
pub fn is_interface_changed(py: Python<'_>, error: &PyErr) -> bool {
    package::interface_changed(py).is_ok_and(|class| error.get_type(py).is(class))
}

/// A server has another interface of a function by now.
pub fn interface_changed(py: Python<'_>, message: &str) -> PyErr {
    new(py, package::interface_changed(py), (message,))
}

/// An error of a remote function that has no type of its own here.
fn remote(py: Python<'_>, text: String, attributes: &[(&str, &str)]) -> PyErr {
    let error = new(py, package::remote_error(py), (text,));
    let mut attributes = attributes.iter();
    match attributes.try_for_each(|(name, value)| error.value(py).setattr(*name, *value)) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// A detached call was lost with the server, or with its worker there.
fn call_lost(py: Python<'_>, message: &str) -> PyErr {
    let (worker, pid, status, signal) = (None::<u32>, None::<u32>, None::<u32>, None::<u32>);
    new(py, package::worker_lost(py), (message, worker, pid, "", status, signal, false, ""))
}

/// Ranks that ran a module's function are gone. `payload`: the command's process, its host, its status or signal, and
/// its standard error.
fn ranks_lost(py: Python<'_>, message: &str, payload: &Bound<'_, PyAny>, order: Order) -> PyErr {
    let bytes =
        PyBytes::type_object(py).call1((payload,)).and_then(|bytes| bytes.extract::<Vec<u8>>());
    let values = bytes.ok().and_then(|bytes| decode_values(&bytes, order).ok());
    let values = values.unwrap_or_default();
    let number = |at: usize| match values.get(at) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    };
    let text = |at: usize| match values.get(at) {
        Some(Value::Text(text)) => text.as_str(),
        _ => "",
    };
    let (worker, out_of_memory) = (None::<u32>, false);
    let (pid, host, status, signal) = (number(0), text(1), number(2), number(3));
    let fields = (message, worker, pid, host, status, signal, out_of_memory, text(4));
    new(py, package::ranks_lost(py), fields)
}

/// The exception for a function of a module, or a class, that was not found.
pub fn search(error: &SearchError) -> PyErr {
    match error {
        SearchError::Name(_) => PyValueError::new_err(error.to_string()),
        SearchError::Changed { .. } => {
            Python::attach(|py| interface_changed(py, &error.to_string()))
        }
        SearchError::Unanswered { .. } | SearchError::Server(_) => {
            Python::attach(|py| new(py, package::start_error(py), (error.to_string(),)))
        }
        SearchError::Grid(error) => grid(error),
        _ => function_not_found(error.to_string()),
    }
}

/// There is no such function or class.
pub fn function_not_found(text: String) -> PyErr {
    Python::attach(|py| new(py, package::function_not_found(py), (text,)))
}

/// An argument does not match its parameter.
pub fn argument(error: &ArgumentError) -> PyErr {
    let fields = (error.to_string(), &error.function, &error.parameter);
    Python::attach(|py| new(py, package::argument_error(py), fields))
}

/// The exception for a call that cannot be prepared.
pub fn prepare(error: &PrepareError) -> PyErr {
    match error {
        PrepareError::Argument(error) => argument(error),
        PrepareError::Limit(error) => {
            Python::attach(|py| new(py, package::limit_reached(py), (error.to_string(),)))
        }
        PrepareError::Interface(error) => search(error),
        PrepareError::System { error: cause, .. } => of_system(cause, error.to_string()),
    }
}

/// The exception for results that cannot be delivered.
pub fn land(error: &LandError) -> PyErr {
    match error {
        LandError::File { error: cause, .. } => of_system(cause, error.to_string()),
        LandError::Broken(text) => broken(text),
    }
}

/// A malformed answer.
pub fn broken(text: &str) -> PyErr {
    Python::attach(|py| new(py, package::protocol_error(py), (text,)))
}

/// The system has refused memory or another resource.
pub fn system(what: &str, error: &io::Error) -> PyErr {
    of_system(error, format!("{what}: {error}"))
}

/// There is no shared memory for the data to send.
pub fn no_room(error: &io::Error) -> PyErr {
    system("no memory for the data of a call", error)
}

/// A forked child uses the grid of its parent.
pub fn forked(py: Python<'_>) -> PyErr {
    closed(py, &GridError::Forked.to_string())
}

/// The worker of an object was lost.
pub fn object_lost(py: Python<'_>, what: &str, loss: &Loss) -> PyErr {
    lost(py, package::object_lost(py), what, None, loss)
}

/// A wait exceeded its time-out.
pub fn timeout(function: &str, seconds: f64) -> PyErr {
    PyTimeoutError::new_err(format!("the call of {function} takes longer than {seconds} s"))
}

pub fn of_system(error: &io::Error, text: String) -> PyErr {
    match error.raw_os_error() {
        _ if error.kind() == io::ErrorKind::OutOfMemory => PyMemoryError::new_err(text),
        // From the number, Python selects FileNotFoundError, PermissionError and so on.
        Some(number) => {
            let payload = text.replace(&error.to_string(), Errno::from_raw(number).desc());
            PyOSError::new_err((number, payload))
        }
        None => PyOSError::new_err(text),
    }
}

fn closed(py: Python<'_>, text: &str) -> PyErr {
    new(py, package::grid_closed(py), (text,))
}

fn deadline_exceeded(py: Python<'_>, worker: Option<u32>, function: &str) -> PyErr {
    let place = match worker {
        None => "no worker had taken it".to_owned(),
        Some(worker) => format!("worker {worker} ran it"),
    };
    let text = format!("the call of {function} missed its deadline; {place}");
    with_worker(py, new(py, package::deadline_exceeded(py), (text,)), worker)
}

/// Adds the worker that ran the call.
fn with_worker(py: Python<'_>, error: PyErr, worker: Option<u32>) -> PyErr {
    match error.value(py).setattr("worker", worker) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

fn start_error(py: Python<'_>, what: &str, loss: &Loss) -> PyErr {
    lost(py, package::start_error(py), what, None, loss)
}

/// An exception with all details of a lost worker.
fn lost(
    py: Python<'_>,
    kind: PyResult<&Bound<'_, PyAny>>,
    what: &str,
    hint: Option<&str>,
    loss: &Loss,
) -> PyErr {
    let Loss { worker, pid, host, cause, stderr } = loss;
    // A whole host is not a worker, and its agent's process id is useless here.
    let one = *worker != Loss::HOST;
    let (worker, pid) = (one.then_some(*worker), one.then_some(*pid));
    let (status, signal, out_of_memory) = match cause {
        Cause::Exit(status) => (Some(*status), None, false),
        Cause::Signal { signal, out_of_memory } => (None, Some(*signal), *out_of_memory),
        Cause::MemoryLimit(_) => (None, None, true),
        Cause::Failed(_) | Cause::Shortage(_) => (None, None, false),
    };
    let mut text = format!("{what}: {loss}");
    let known = signal.and_then(|number| Signal::try_from(i32::try_from(number).ok()?).ok());
    if let Some(signal) = known {
        let _ = write!(text, " ({signal})");
    }
    text.push('.');
    match cause {
        Cause::MemoryLimit(_) => {
            text +=
                "\nThe owner of the server has set the limit: use smaller data, or ask for more.";
        }
        _ if out_of_memory => {
            text += "\nThe machine ran out of memory: use fewer workers, or smaller data.";
        }
        _ => {}
    }
    text += &last_lines(stderr);
    if let Some(hint) = hint {
        let _ = write!(text, "\nhint: {hint}.");
    }
    new(py, kind, (text, worker, pid, host, status, signal, out_of_memory, stderr))
}

/// The end of a process's standard error, for a message.
fn last_lines(stderr: &str) -> String {
    let mut text = String::new();
    if !stderr.is_empty() {
        text += "\nIts last lines on stderr:";
        let lines: Vec<&str> = stderr.lines().collect();
        for line in &lines[lines.len().saturating_sub(MESSAGE_LINES)..] {
            let _ = write!(text, "\n  {line}");
        }
    }
    text
}

/// A new exception of a type of the package; if it cannot be created, the error that prevented it.
pub fn new<'py>(
    py: Python<'py>,
    kind: PyResult<&Bound<'py, PyAny>>,
    arguments: impl IntoPyObject<'py, Target = PyTuple>,
) -> PyErr {
    let arguments = arguments.into_pyobject(py).map_err(Into::into);
    let made = arguments.and_then(|arguments| kind?.call1(arguments.into_bound()));
    made.map_or_else(|error| error, PyErr::from_value)
}
