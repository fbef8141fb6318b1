//! Simulation of calls on many servers: converts a network and the calls, and returns stamps.

use gridbench_pipeline as pipeline;
use gridrpc_placement::Work;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::pipeline::{array, numbers};

/// Events between two calls of the watch function.
const EVENTS_BETWEEN_LOOKS: usize = 20_000;

/// `gridbench.placement.simulation.NetworkFigures`.
#[derive(FromPyObject)]
pub struct Network<'py> {
    /// Calls at a time, speed of a call, cores, announced speed, phase of announcements.
    servers: Vec<(u32, f64, u32, f64, f64)>,
    clients: Bound<'py, PyAny>,
    /// Bandwidth and latency.
    links: Vec<(f64, f64)>,
    /// Bytes in, bytes out, operations.
    functions: Vec<(f64, f64, f64)>,
    interval: f64,
}

/// `gridbench.placement.simulation.PlannedCalls`.
#[derive(FromPyObject)]
pub struct Plan<'py> {
    at: Bound<'py, PyAny>,
    client: Bound<'py, PyAny>,
    function: Bound<'py, PyAny>,
    skips_busy: bool,
}

/// A policy with its seed, or the server of each call.
#[derive(FromPyObject)]
pub enum Assignment<'py> {
    #[pyo3(transparent)]
    Policy((String, u64)),
    #[pyo3(transparent)]
    Given(Bound<'py, PyAny>),
}

/// Whole numbers from 0.
fn whole(array: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let found = numbers(array, i64::from_ne_bytes)?.into_iter().map(u32::try_from);
    found.collect::<Result<_, _>>().map_err(|_| PyValueError::new_err("a number is below 0"))
}

impl Network<'_> {
    fn translated(&self) -> PyResult<pipeline::Network> {
        let server = |&(slots, speed, cores, announced_speed, phase): &_| {
            pipeline::SimulatedServer { slots, speed, cores, announced_speed, phase }
        };
        let link = |&(bandwidth, latency): &_| pipeline::ClientLink { bandwidth, latency };
        let function =
            |&(bytes_in, bytes_out, operations): &_| Work { bytes_in, bytes_out, operations };
        Ok(pipeline::Network {
            servers: self.servers.iter().map(server).collect(),
            clients: whole(&self.clients)?,
            links: self.links.iter().map(link).collect(),
            functions: self.functions.iter().map(function).collect(),
            interval: self.interval,
        })
    }
}

/// Simulates all calls of a plan. `watch` is called periodically with the number of calls that have ended, and may
/// raise. Returns the server of each call as int64, -1 if it was left out; and started, computed, ended in seconds.
#[pyfunction]
#[pyo3(signature = (network, plan, assignment, watch=None))]
pub fn follow_calls<'py>(
    py: Python<'py>,
    network: Network<'py>,
    plan: Plan<'py>,
    assignment: Assignment<'py>,
    watch: Option<Py<PyAny>>,
) -> PyResult<[Bound<'py, PyByteArray>; 4]> {
    let network = network.translated()?;
    let plan = pipeline::CallPlan {
        at: numbers(&plan.at, f64::from_ne_bytes)?,
        client: whole(&plan.client)?,
        function: whole(&plan.function)?,
        skips_busy: plan.skips_busy,
    };
    let assignment = match assignment {
        Assignment::Policy((name, seed)) => {
            pipeline::Assignment::Policy(name.parse().map_err(PyValueError::new_err)?, seed)
        }
        Assignment::Given(servers) => pipeline::Assignment::Given(whole(&servers)?),
    };
    let stamps = py.detach(|| {
        let mut run = pipeline::ServersRun::new(&network, &plan, &assignment)
            .map_err(|wrong| PyValueError::new_err(wrong.0))?;
        loop {
            Python::attach(|py| {
                py.check_signals()?;
                watch.as_ref().map_or(Ok(()), |one| one.call1(py, (run.ended(),)).map(|_| ()))
            })?;
            if !run.go_on(EVENTS_BETWEEN_LOOKS) {
                break;
            }
        }
        Ok::<_, PyErr>(run.stamps())
    })?;
    let server = |one| if one == pipeline::NO_SERVER { -1 } else { i64::from(one) };
    let servers: Vec<i64> = stamps.server.iter().map(|&one| server(one)).collect();
    let times = |of: &[f64]| array(py, of, f64::to_ne_bytes);
    Ok([
        array(py, &servers, i64::to_ne_bytes)?,
        times(&stamps.started)?,
        times(&stamps.computed)?,
        times(&stamps.ended)?,
    ])
}
