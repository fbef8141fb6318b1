//! Spawners forked from the client, with everything that it has imported.

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
    /// Whether the fork was safe: this process had no other thread that is unaware of forks.
    #[getter]
    fn safe(&self) -> bool {
        self.safe
    }

    /// Ends it, if no grid has taken it.
    fn give_up(&self) {
        drop(self.take());
    }
}

/// Forks this process by `fork`, which works like `os.fork`. None: this is the child, whose standard input and error
/// lead to the parent. `threads`: number of threads of numerical libraries in the child; 0: as many as here.
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
            // Libraries that support forks end their threads first, and start them again when needed.
            let safe = is_alone();
            undo();
            Ok(other?.map(|forked| ForkedSpawner { forked: Mutex::new(Some(forked)), safe }))
        }
    }
}

/// Whether this thread is the only one. A thread that has just ended may be counted for a moment.
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

/// Whether the number of threads can be set for all loaded numerical libraries.
#[pyfunction]
pub fn threads_are_known() -> bool {
    Libraries::loaded().all_known()
}
