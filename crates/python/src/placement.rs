//! Choice among servers, for `Grid(directory=...)` and for simulations.

use gridrpc_placement::{
    AnnouncedLoad, Average, CallTimes, Candidate, ClientCall, Measurements, Policy, Work,
    candidates, choose,
};
use gridrpc_typed::interface_hash;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A server that could run a call.
#[pyclass(name = "Candidate", module = "gridrpc._native", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub struct ServerCandidate(Candidate);

/// A server of a directory's answer: announced speed, load, cores, and whether it takes no calls; when it was announced;
/// bytes of the arguments that it has already; and what the client has measured.
type AnsweredServer<'py> = (f64, f64, u32, bool, f64, f64, PyRef<'py, ServerMeasurements>);

fn work((bytes_in, bytes_out, operations): (f64, f64, f64)) -> Work {
    Work { bytes_in, bytes_out, operations }
}

/// The candidates for a call of a function, in the order of the servers. `has_cost`: the function has `CalcOrder`.
#[pyfunction]
pub fn server_candidates(
    servers: Vec<AnsweredServer<'_>>,
    function: &str,
    has_cost: bool,
    now: f64,
) -> Vec<ServerCandidate> {
    let known: Vec<_> = servers
        .iter()
        .map(|&(speed, load, cores, is_full, announced, _, ref measured)| {
            let age = now - announced;
            let measured = measured.0.measured(function, announced, now);
            (AnnouncedLoad { speed, load, age, cores, is_full }, measured)
        })
        .collect();
    let mut found = Vec::new();
    candidates(&known, has_cost, &mut found);
    let with_bytes = |(candidate, server): (Candidate, AnsweredServer<'_>)| {
        ServerCandidate(Candidate { bytes_there: server.5, ..candidate })
    };
    found.into_iter().zip(servers).map(with_bytes).collect()
}

/// The index of the server for a call by a policy; None: all are full. `call`: bytes in, bytes out, operations. `draw`:
/// the number of the call for "round-robin", a random number of 64 bits for "least-time", "random" and "two-choices".
#[pyfunction]
pub fn choose_server(
    policy: &str,
    call: (f64, f64, f64),
    servers: Vec<ServerCandidate>,
    draw: u64,
) -> PyResult<Option<usize>> {
    let policy: Policy = policy.parse().map_err(PyValueError::new_err)?;
    let servers: Vec<Candidate> = servers.into_iter().map(|server| server.0).collect();
    Ok(choose(policy, &work(call), &servers, draw))
}

#[pymethods]
impl ServerCandidate {
    /// Operations per second.
    #[getter]
    fn speed(&self) -> f64 {
        self.0.speed
    }

    /// Calls that run or wait, for each core.
    #[getter]
    fn load(&self) -> f64 {
        self.0.load + self.0.own_load
    }

    /// Whether its speed has been measured.
    #[getter]
    fn is_measured(&self) -> bool {
        self.0.is_measured
    }

    /// The predicted time of a call: waiting, sending, running and receiving, in seconds.
    fn predict(&self, call: (f64, f64, f64)) -> (f64, f64, f64, f64) {
        let predicted = self.0.predict(&work(call));
        (predicted.wait, predicted.send, predicted.run, predicted.receive)
    }
}

/// The interface of a module as a server announces it, from its declarations in IDL: its hash and its text.
#[pyfunction]
pub fn announced_interface(declarations: &str) -> PyResult<(String, String)> {
    let module = gridrpc_idl::parse(declarations).module;
    let module = module.ok_or_else(|| PyValueError::new_err("these are no declarations in IDL"))?;
    let text = format!("{}{module}", gridrpc_idl::INTERFACE_HEADER);
    Ok((interface_hash(&text), text))
}

/// Exponentially weighted average of positive numbers.
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

/// Calls and measurements of a client at a server. Times do not decrease.
#[pyclass(name = "Measurements", module = "gridrpc._native")]
#[derive(Default)]
pub struct ServerMeasurements(Measurements<String>);

/// A call that has begun and not ended.
#[pyclass(name = "OwnCall", module = "gridrpc._native", frozen)]
pub struct ClientCallHandle(ClientCall);

/// Times of sending, receipt, start, computation and return of a call; 0: unknown.
type Stamps = (f64, f64, f64, f64, f64);

#[pymethods]
impl ServerMeasurements {
    #[new]
    fn new() -> ServerMeasurements {
        ServerMeasurements::default()
    }

    /// Begins a call at a server with so many cores.
    fn begin(
        &mut self,
        now: f64,
        call: (f64, f64, f64),
        server: &ServerCandidate,
        cores: u32,
    ) -> ClientCallHandle {
        ClientCallHandle(self.0.begin(now, server.0.core_time(&work(call)), cores))
    }

    /// Ends a call.
    fn end(&mut self, now: f64, call: &ClientCallHandle) {
        self.0.end(now, call.0);
    }

    /// Learns from a call that has returned. `moved`: bytes in and out. `operations`: by `CalcOrder` if `has_cost`, or
    /// how often the function ran. `error`: the largest one of the difference of two hosts' times.
    fn learn(
        &mut self,
        function: &str,
        stamps: Stamps,
        moved: (f64, f64),
        operations: f64,
        has_cost: bool,
        error: f64,
    ) {
        let known = |stamp: f64| if stamp > 0.0 { stamp } else { f64::NAN };
        let (sent, received, started, computed, returned) = stamps;
        let (bytes_in, bytes_out) = moved;
        self.0.learn(
            function,
            &CallTimes {
                sent: known(sent),
                received: known(received),
                started: known(started),
                computed: known(computed),
                returned: known(returned),
                error,
                bytes_in,
                bytes_out,
                operations,
                has_cost,
            },
        );
    }
}
