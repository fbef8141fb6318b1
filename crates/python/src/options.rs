//! Options of calls for Python.

use std::time::Duration;

use gridrpc_core::{GroupId, Resources};
use gridrpc_wire::TraceContext;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::modules::Reserved;

/// Options of calls: those of [`gridrpc_core::CallOptions`] that callers choose.
#[pyclass(frozen, eq, hash, module = "gridrpc._native")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallOptions {
    pub options: gridrpc_core::CallOptions,
    /// Span of the program that the call belongs to.
    pub trace: Option<TraceContext>,
}

impl CallOptions {
    /// Adds a reserved worker, if one is given.
    pub fn on(&self, reserved: Option<&Reserved>) -> gridrpc_core::CallOptions {
        let on = reserved.map(|reserved| reserved.reservation);
        gridrpc_core::CallOptions { on, ..self.options.clone() }
    }
}

#[pymethods]
impl CallOptions {
    /// `deadline`, `expected`: seconds. `server`: the number of a server. `resources`: amounts by name.
    #[new]
    #[pyo3(signature = (*, deadline=None, idempotent=false, priority=0, server=None, cores=1,
                        resources=Vec::new(), expected=None))]
    fn new(
        deadline: Option<f64>,
        idempotent: bool,
        priority: i32,
        server: Option<u32>,
        cores: u32,
        resources: Vec<(String, u64)>,
        expected: Option<f64>,
    ) -> PyResult<CallOptions> {
        let options = gridrpc_core::CallOptions {
            deadline: duration(deadline)?,
            idempotent,
            priority,
            cores,
            resources: named(resources),
            expected: duration(expected)?,
            group: server.map(GroupId),
            ..gridrpc_core::CallOptions::DEFAULT
        };
        Ok(CallOptions { options, trace: None })
    }

    /// Seconds from now after which the call fails.
    #[getter]
    fn deadline(&self) -> Option<f64> {
        self.options.deadline.map(|time| time.as_secs_f64())
    }

    /// Whether the call may run again when its worker is lost.
    #[getter]
    fn idempotent(&self) -> bool {
        self.options.idempotent
    }

    /// Number of processors.
    #[getter]
    fn cores(&self) -> u32 {
        self.options.cores
    }

    /// The number of the server.
    #[getter]
    fn server(&self) -> Option<u32> {
        self.options.group.map(|group| group.0)
    }

    /// Whether it requests cores, memory, resources or time: such calls take one item each.
    #[getter]
    fn asks(&self) -> bool {
        self.options.cores != 1
            || !self.options.resources.is_empty()
            || self.options.expected.is_some()
    }

    /// These options with this number of cores.
    fn with_cores(&self, cores: u32) -> CallOptions {
        CallOptions {
            options: gridrpc_core::CallOptions { cores, ..self.options.clone() },
            trace: self.trace,
        }
    }

    /// These options with a span of the program that the call belongs to, in the words of OpenTelemetry.
    fn with_trace(&self, trace_id: u128, span_id: u64, trace_flags: u8) -> CallOptions {
        let trace = TraceContext::new(trace_id.to_be_bytes(), span_id.to_be_bytes(), trace_flags);
        CallOptions { options: self.options.clone(), trace }
    }

    /// These options, completed by those of `base`. Resources of the same name add up.
    fn over(&self, base: &CallOptions) -> CallOptions {
        let trace = self.trace.or(base.trace);
        let (these, base) = (&self.options, &base.options);
        let own = |name: &str| these.resources.iter().any(|(known, _)| **known == *name);
        let of_base = base.resources.iter().filter(|(name, _)| !own(name));
        let resources = these.resources.iter().chain(of_base);
        // All fields are named, so that no option can be forgotten here.
        let options = gridrpc_core::CallOptions {
            deadline: these.deadline.or(base.deadline),
            run_limit: these.run_limit.or(base.run_limit),
            cpu_limit: these.cpu_limit.or(base.cpu_limit),
            idempotent: these.idempotent || base.idempotent,
            priority: if these.priority == 0 { base.priority } else { these.priority },
            cores: if these.cores == 1 { base.cores } else { these.cores },
            threads: if these.threads == 0 { base.threads } else { these.threads },
            resources: Resources::new(resources.map(|(name, amount)| (name.clone(), amount))),
            expected: these.expected.or(base.expected),
            group: these.group.or(base.group),
            on: these.on.or(base.on),
        };
        CallOptions { options, trace }
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        // Python sets no threads, limits of the run time or reserved worker, and a span is of one process.
        let gridrpc_core::CallOptions {
            deadline,
            idempotent,
            priority,
            cores,
            threads: _,
            run_limit: _,
            cpu_limit: _,
            resources,
            expected,
            group,
            on: _,
        } = &self.options;
        let seconds = |time: &Option<Duration>| time.map(|time| time.as_secs_f64());
        let resources: Vec<_> = resources.iter().map(|(name, amount)| (&**name, amount)).collect();
        let arguments = PyDict::new(py);
        arguments.set_item("deadline", seconds(deadline))?;
        arguments.set_item("idempotent", idempotent)?;
        arguments.set_item("priority", priority)?;
        arguments.set_item("server", group.map(|group| group.0))?;
        arguments.set_item("cores", cores)?;
        arguments.set_item("resources", resources)?;
        arguments.set_item("expected", seconds(expected))?;
        Ok(((), arguments))
    }
}

/// Resources by name.
pub fn named(resources: Vec<(String, u64)>) -> Resources {
    Resources::new(resources.into_iter().map(|(name, amount)| (name.into(), amount)))
}

fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "a deadline of {seconds} s: give a finite number of seconds from 0 on"
        ))
    })?;
    Ok(Some(duration))
}
