//! Spawners that are forked from the client, with all that it has imported.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_client::Forked;
use gridrpc_sys::thread_limits::Libraries;
use pyo3::prelude::*;

/// How long threads of libraries may take to end.
const ENDING: Duration = Duration::from_millis(20);

/// A forked spawner that waits for its grid.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct ForkedSpawner {
    forked: Mutex<Option<Forked>>,
    safe: bool,
}

impl ForkedSpawner {
    pub(crate) fn take(&self) -> Option<Forked> {
        self.forked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl ForkedSpawner {
    /// Whether nothing can have been lost by the fork: this process had no thread beside this one that
    /// did not know of it.
    #[getter]
    fn safe(&self) -> bool {
        self.safe
    }

    /// Ends it, if no grid has taken it.
    fn give_up(&self) {
        drop(self.take());
    }
}

/// Forks this process by `fork`, as `os.fork`. None: this is the child, whose standard input and error
/// lead to the parent. `threads`: how many the numerical libraries may use there; 0: as many as here.
#[pyfunction]
pub fn fork_spawner(fork: Bound<'_, PyAny>, threads: u32) -> PyResult<Option<ForkedSpawner>> {
    let libraries = if threads == 0 { Libraries::default() } else { Libraries::loaded() };
    let undo = libraries.limit_blas(threads);
    let forked = Forked::fork(|| -> PyResult<i32> { fork.call0()?.extract() });
    match forked {
        Ok(None) => {
            libraries.limit_openmp(threads);
            Ok(None)
        }
        other => {
            // Libraries that know of forks end their threads before, and start them again when they need
            // them.
            let safe = is_alone();
            undo();
            Ok(other?.map(|forked| ForkedSpawner { forked: Mutex::new(Some(forked)), safe }))
        }
    }
}

/// Whether this thread is the only one. One that has just ended may be seen for a moment.
fn is_alone() -> bool {
    let until = Instant::now() + ENDING;
    loop {
        match std::fs::read_dir("/proc/self/task").map(Iterator::count) {
            Ok(1) => return true,
            Ok(_) if Instant::now() < until => std::thread::sleep(Duration::from_micros(200)),
            _ => return false,
        }
    }
}

/// Whether all numerical libraries that are loaded can be told how many threads to use.
#[pyfunction]
pub fn threads_are_known() -> bool {
    Libraries::loaded().all_known()
}
