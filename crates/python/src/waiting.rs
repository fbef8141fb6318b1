//! Waiting without the interpreter's lock.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Interval of checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

/// Waits in slices until `ready` returns a value, the time is up (`None`), or a signal arrives.
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
