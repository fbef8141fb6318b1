//! Choice among servers, for `Grid(directory=...)` and for simulations.

use gridrpc_placement::{
    Announced, Average, Candidate, Measured, OwnCall, OwnCalls, Policy, Work, candidates, choose,
};
use gridrpc_typed::interface_hash;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A candidate: operations per second, calls of others for each core, bytes per second to and from it, bytes that it has
/// already, whether it takes no calls, whether its speed has been measured; the client's own calls for each core, the
/// time until one is free of them, and the time that they have waited at the server.
type Server = (f64, f64, f64, f64, f64, bool, bool, f64, f64, f64);
/// A server: announced speed, load, cores, and whether it takes no calls; measured speed and bandwidths to and from it;
/// calls of the client when it was announced and now, the time until a core is free of them, and the time that they have
/// waited at the server.
type KnownServer =
    (f64, f64, u32, bool, Option<f64>, Option<f64>, Option<f64>, u32, u32, f64, Option<f64>);

fn candidate(server: Server) -> Candidate {
    let (
        speed,
        load,
        bandwidth_in,
        bandwidth_out,
        bytes_there,
        is_full,
        is_measured,
        own_load,
        wait,
        queue,
    ) = server;
    Candidate {
        speed,
        load,
        own_load,
        wait,
        queue,
        bandwidth_in,
        bandwidth_out,
        bytes_there,
        is_full,
        is_measured,
    }
}

fn work((bytes_in, bytes_out, operations): (f64, f64, f64)) -> Work {
    Work { bytes_in, bytes_out, operations }
}

/// The candidates for a call of a function. `has_cost`: the function has `CalcOrder`.
#[pyfunction]
pub fn server_candidates(servers: Vec<KnownServer>, has_cost: bool) -> Vec<Server> {
    let known: Vec<_> = servers
        .into_iter()
        .map(|server| {
            let (speed, load, cores, is_full, measured, bandwidth_in, bandwidth_out, ..) = server;
            let (.., announced_calls, calls, wait, queue) = server;
            let measured = Measured {
                speed: measured,
                bandwidth_in,
                bandwidth_out,
                announced_calls,
                calls,
                wait,
                queue,
            };
            (Announced { speed, load, cores, is_full }, measured)
        })
        .collect();
    let mut found = Vec::new();
    candidates(&known, has_cost, &mut found);
    let figures = |one: Candidate| {
        (
            one.speed,
            one.load,
            one.bandwidth_in,
            one.bandwidth_out,
            one.bytes_there,
            one.is_full,
            one.is_measured,
            one.own_load,
            one.wait,
            one.queue,
        )
    };
    found.into_iter().map(figures).collect()
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

/// The predicted time of a call on a server: waiting, sending, running and receiving, in seconds.
#[pyfunction]
pub fn predicted_time(call: (f64, f64, f64), server: Server) -> (f64, f64, f64, f64) {
    let predicted = candidate(server).predict(&work(call));
    (predicted.wait, predicted.send, predicted.run, predicted.receive)
}

/// How long a call keeps a core from other calls of the client, in seconds.
#[pyfunction]
pub fn core_time(call: (f64, f64, f64), server: Server) -> f64 {
    candidate(server).core_time(&work(call))
}

/// The interface of a module as a server announces it, from its declarations in IDL: its hash and its text.
#[pyfunction]
pub fn announced_interface(declarations: &str) -> PyResult<(String, String)> {
    let module = gridrpc_idl::parse(declarations).module;
    let module = module.ok_or_else(|| PyValueError::new_err("these are no declarations in IDL"))?;
    let text = format!("{}{module}", gridrpc_idl::INTERFACE_HEADER);
    Ok((interface_hash(&text), text))
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

    /// Adds the speed of a run. Short ones do not count if the speed is in operations.
    fn add_run(&mut self, operations: f64, seconds: f64, has_cost: bool) {
        self.0.add_run(operations, seconds, has_cost);
    }

    /// Adds the time that a call has waited at its server, if it did at all.
    fn add_queue(&mut self, seconds: f64) {
        self.0.add_queue(seconds);
    }

    /// Adds the bandwidth of a transfer, unless it is small, or shorter than the possible error of its time.
    fn add_transfer(&mut self, bytes: f64, seconds: f64, error: f64) {
        self.0.add_transfer(bytes, seconds, error);
    }

    /// The average; None: there is no value yet.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.0.get()
    }
}

/// The calls of a client at a server. Times do not decrease.
#[pyclass(name = "OwnCalls", module = "gridrpc._native")]
#[derive(Default)]
pub struct OwnServerCalls(OwnCalls);

/// A call that has begun and not ended.
#[pyclass(name = "OwnCall", module = "gridrpc._native", frozen)]
pub struct OwnServerCall(OwnCall);

#[pymethods]
impl OwnServerCalls {
    #[new]
    fn new() -> OwnServerCalls {
        OwnServerCalls::default()
    }

    /// Number of calls.
    #[getter]
    fn count(&self) -> u32 {
        self.0.count()
    }

    /// Number of calls at an earlier time.
    fn before(&self, at: f64) -> u32 {
        self.0.before(at)
    }

    /// How long a call that begins now waits for a core.
    fn wait(&self, now: f64) -> f64 {
        self.0.wait(now)
    }

    /// Begins a call that is expected to keep one of the cores for some seconds.
    fn begin(&mut self, now: f64, seconds: f64, cores: u32) -> OwnServerCall {
        OwnServerCall(self.0.begin(now, seconds, cores))
    }

    /// Ends a call.
    fn end(&mut self, now: f64, call: &OwnServerCall) {
        self.0.end(now, call.0);
    }
}
