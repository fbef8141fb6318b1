//! Choice among servers, for `Grid(directory=...)` and for simulations.

use gridrpc_placement::{Average, Candidate, Policy, Work, choose};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A server: operations per second, calls for each core, bytes per second to and from it, bytes that it has already, and
/// whether it takes no calls.
type Server = (f64, f64, f64, f64, f64, bool);

fn candidate(
    (speed, load, bandwidth_in, bandwidth_out, bytes_there, is_full): Server,
) -> Candidate {
    Candidate { speed, load, bandwidth_in, bandwidth_out, bytes_there, is_full }
}

fn work((bytes_in, bytes_out, operations): (f64, f64, f64)) -> Work {
    Work { bytes_in, bytes_out, operations }
}

/// The index of the server for a call by a policy; None: all are full. `call`: bytes in, bytes out, operations. `draw`:
/// the number of the call for "round-robin", a random number for "random".
#[pyfunction]
pub fn choose_server(
    policy: &str,
    call: (f64, f64, f64),
    servers: Vec<Server>,
    draw: u64,
) -> PyResult<Option<usize>> {
    let policy: Policy = policy.parse().map_err(PyValueError::new_err)?;
    let servers: Vec<Candidate> = servers.into_iter().map(candidate).collect();
    Ok(choose(policy, &work(call), &servers, draw))
}

/// The predicted time of a call on a server: sending, running and receiving, in seconds.
#[pyfunction]
pub fn predicted_time(call: (f64, f64, f64), server: Server) -> (f64, f64, f64) {
    let predicted = candidate(server).predict(&work(call));
    (predicted.send, predicted.run, predicted.receive)
}

/// Exponentially weighted average of a measured speed or bandwidth.
#[pyclass(name = "Average", module = "gridrpc._native")]
#[derive(Default)]
pub struct MeasuredAverage(Average);

#[pymethods]
impl MeasuredAverage {
    #[new]
    fn new() -> MeasuredAverage {
        MeasuredAverage::default()
    }

    /// Adds a value; those that are not positive and finite do not count.
    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    /// The average; None: there is no value yet.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.0.get()
    }
}
