//! A call as Python sees it, and waiting for many of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_core::{Cause, End, Loss};
use gridrpc_runtime::client;
use gridrpc_runtime::client::Outcome;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::buffer::split_head;
use crate::values;

/// How long to wait before looking whether Ctrl-C has been pressed.
const SLICE: Duration = Duration::from_millis(50);

/// Waits in slices until `ready` has something, the time is up (`None`), or a signal arrives.
pub fn wait_in_slices<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    ready: impl Fn(Duration) -> Option<T> + Send + Sync,
) -> PyResult<Option<T>> {
    let until = timeout.map(|seconds| {
        let seconds = if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, 1e9) };
        Instant::now() + Duration::from_secs_f64(seconds)
    });
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        if let Some(found) = py.detach(|| ready(slice)) {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
    }
}

/// One call.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Call {
    pub call: Arc<client::Call>,
    pub waiter: client::Waiter,
    /// Whether arguments and results are typed values instead of pickles.
    pub typed: bool,
}

#[pymethods]
impl Call {
    /// Whether it has ended.
    fn done(&self) -> bool {
        self.call.done()
    }

    /// Waits until it has ended, at most `timeout` seconds. Returns whether it has.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if self.call.done() {
            return Ok(true);
        }
        let Call { call, waiter, .. } = self;
        Ok(wait_in_slices(py, timeout, |slice| waiter.wait(call, slice).then_some(()))?.is_some())
    }

    /// What came of it, once: a tuple that starts with `returned`, `raised` or the kind of its end.
    fn take_outcome<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(outcome) = self.call.take_outcome() else { return Ok(None) };
        let tuple = match outcome {
            Outcome::Returned(sections) if self.typed => {
                ("returned", values::to_python(py, sections)?).into_pyobject(py)?
            }
            Outcome::Returned(sections) => {
                let (head, buffers) = split_head(py, sections, false)?;
                ("returned", head, buffers).into_pyobject(py)?
            }
            Outcome::Raised { error, message, trace, sections } => {
                let (head, buffers) = split_head(py, sections, false)?;
                ("raised", error, message, trace, head, buffers).into_pyobject(py)?
            }
            Outcome::Ended(end) => ended(py, &end)?,
        };
        Ok(Some(tuple))
    }

    /// Times in seconds of the monotonic clock (0: not reached), and places.
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let profile = self.call.profile();
        let dict = PyDict::new(py);
        let seconds = |ns: u64| ns as f64 / 1e9;
        dict.set_item("submit", seconds(profile.submit))?;
        dict.set_item("sent", seconds(profile.sent))?;
        dict.set_item("calc_in", seconds(profile.stamps.calc_in))?;
        dict.set_item("calc_out", seconds(profile.stamps.calc_out))?;
        dict.set_item("retrieve", seconds(profile.retrieve))?;
        dict.set_item(
            "worker",
            if profile.worker == u32::MAX { None } else { Some(profile.worker) },
        )?;
        dict.set_item("pid", profile.pid)?;
        dict.set_item("bytes_in", profile.bytes_in)?;
        dict.set_item("bytes_out", profile.bytes_out)?;
        Ok(dict)
    }

    /// Has `token` appear in `watch` when the call ends.
    fn watch(&self, watch: &Watch, token: u64) {
        self.call.watch(&watch.watch, token);
    }
}

fn ended<'py>(py: Python<'py>, end: &End) -> PyResult<Bound<'py, PyTuple>> {
    let lost = |kind: &str, loss: &Loss| {
        let (status, signal, out_of_memory) = match loss.cause {
            Cause::Exit(status) => (Some(status), None, false),
            Cause::Signal { signal, out_of_memory } => (None, Some(signal), out_of_memory),
            Cause::Failed(_) => (None, None, false),
        };
        let Loss { worker, pid, host, cause, stderr } = loss;
        let place = (*worker, *pid, host.as_str());
        (kind, place, cause.to_string(), status, signal, out_of_memory, stderr.as_str())
            .into_pyobject(py)
    };
    match end {
        End::Cancelled => ("cancelled",).into_pyobject(py),
        End::DeadlineExceeded(worker) => ("deadline", *worker).into_pyobject(py),
        End::WorkerLost(loss) => lost("lost", loss),
        End::NoWorkers(loss) => lost("no workers", loss),
        End::Closed => ("closed",).into_pyobject(py),
    }
}

/// Calls that have ended, in the order in which they did, by their tokens.
#[pyclass(frozen, module = "gridrpc._native")]
#[derive(Default)]
pub struct Watch {
    watch: Arc<client::Watch>,
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

    /// The tokens that have come; waits at most `timeout` seconds for the first.
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
