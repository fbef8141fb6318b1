//! Native module of the Python package: `gridrpc._native`.
//!
//! It only converts: Python's buffers to sections and back, and waits without the interpreter's lock. The crates
//! below decide what happens; the package above decides what it means to a Python programmer.
#![allow(clippy::needless_pass_by_value)] // what the interpreter hands over is owned

mod arrays;
mod buffer;
mod call;
mod calls;
mod captured;
mod daemon;
mod detached;
mod errors;
mod forking;
mod grid;
mod held;
mod items;
mod modules;
mod named_data;
mod options;
mod package;
mod pipeline;
mod placement;
mod plain;
mod references;
mod results;
mod sections;
mod servers;
mod waiting;
mod worker;

use pyo3::prelude::*;

/// The native module behind the Python API.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::buffer::{Buffer, large_bytearray, large_bytes};
    #[pymodule_export]
    use crate::call::{Call, Dependency, Watch};
    #[pymodule_export]
    use crate::calls::follow_calls;
    #[pymodule_export]
    use crate::captured::{CapturedResult, OutputCapture};
    #[pymodule_export]
    use crate::daemon::{Daemon, DaemonConnection};
    #[pymodule_export]
    use crate::forking::{ForkedSpawner, fork_spawner, threads_are_known};
    #[pymodule_export]
    use crate::grid::{Function, Grid};
    #[pymodule_export]
    use crate::held::{EndedTask, HeldTask, wait_for_held};
    #[pymodule_export]
    use crate::items::Items;
    #[pymodule_export]
    use crate::modules::{Modules, Passed, Reserved, Target, shared_memory};
    #[pymodule_export]
    use crate::named_data::NamedData;
    #[pymodule_export]
    use crate::options::CallOptions;
    #[pymodule_export]
    use crate::pipeline::{follow_pipeline, pipeline_figures};
    #[pymodule_export]
    use crate::placement::{
        ClientCallHandle, MeasuredAverage, ServerCandidate, ServerMeasurements,
        announced_interface, choose_server, server_candidates,
    };
    #[pymodule_export]
    use crate::plain::plain_bytes;
    #[pymodule_export]
    use crate::references::References;
    #[pymodule_export]
    use crate::servers::{
        Server, chosen_servers, credentials_folder, memory_of_machine, memory_size,
    };
    #[pymodule_export]
    use crate::worker::{Worker, run_spawner};

    use std::ffi::OsString;

    use super::pyfunction;
    use pyo3::prelude::*;

    /// Version of the wire format.
    #[pymodule_export]
    const WIRE_VERSION: u8 = gridrpc_wire::VERSION;

    /// Bandwidth of a server until it has been measured, bytes per second.
    #[pymodule_export]
    const ASSUMED_BANDWIDTH: f64 = gridrpc_placement::ASSUMED_BANDWIDTH;

    /// Age up to which the answer of a directory is used, s; and up to which it is used while the next one is fetched.
    #[pymodule_export]
    const ANSWER_VALID: f64 = gridrpc_placement::ANSWER_VALID;
    #[pymodule_export]
    const ANSWER_STALE: f64 = gridrpc_placement::ANSWER_STALE;

    /// Environment of MPI ranks and of the command that starts them.
    #[pyfunction]
    fn ranks_environment() -> Vec<(OsString, OsString)> {
        gridrpc_worker::ranks_environment()
    }

    /// Options of `mpirun` for this many ranks, with so many threads each, and where they reach this process; `None`:
    /// all are on this node.
    #[pyfunction]
    fn nodes_for_ranks(ranks: u32, threads: u32) -> Option<([String; 2], Vec<String>)> {
        let options = gridrpc_worker::options_for_nodes(ranks, threads)?;
        Some((options, gridrpc_worker::hosts_for_ranks()))
    }

    /// Sets the name of this process in `gridrpc top`, which replaces its command line.
    #[pyfunction]
    fn name_program(name: String) {
        gridrpc_client::name_program(name);
    }

    /// The exception for an error of a remote function: its type's name, message and remote traceback, and the
    /// pickled exception with its buffers, if there is one.
    #[pyfunction]
    fn raised(
        py: Python<'_>,
        type_name: &str,
        message: &str,
        trace: &str,
        head: Py<PyAny>,
        buffers: Vec<Py<PyAny>>,
    ) -> Py<PyAny> {
        let order = gridrpc_wire::Order::NATIVE;
        let error = crate::errors::raised(py, type_name, message, trace, head, buffers, order);
        error.into_value(py).into_any()
    }

    /// Environment variables with the number of threads of numerical libraries.
    #[pymodule_export]
    const THREAD_VARIABLES: [&str; 7] = gridrpc_sys::thread_limits::THREADS;

    /// Those of them that are not set, with each worker's share of the processors.
    #[pyfunction]
    fn thread_environment(workers: u32) -> Vec<(OsString, OsString)> {
        let processors = gridrpc_sys::processors::available();
        gridrpc_sys::thread_limits::environment(processors, workers)
    }

    /// The number of processors that this process may use: by its affinity, or by the quota of its control groups,
    /// rounded up.
    #[pyfunction]
    fn processors() -> usize {
        gridrpc_sys::processors::available()
    }

    /// Seconds on the clock of all stamps.
    #[pyfunction]
    fn monotonic() -> f64 {
        gridrpc_sys::monotonic_ns() as f64 / 1e9
    }
}
