//! Event simulation of gridbench's model: converts cases and parameters from dataclasses, and returns stamps.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gridbench_pipeline as pipeline;
use gridrpc_sys::processors;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::buffer::View;

/// Events between two calls of the watch function: a few milliseconds.
const EVENTS_BETWEEN_LOOKS: usize = 50_000;
/// Smallest total number of tasks that is worth several threads.
const TASKS_FOR_THREADS: usize = 2_000;

#[derive(FromPyObject)]
struct Link {
    rate: f64,
    per_message: f64,
    sharing: String,
    each: f64,
}

#[derive(FromPyObject)]
struct Manager {
    inward: Link,
    outward: Link,
}

#[derive(FromPyObject)]
struct CpuCost {
    fixed: f64,
    per_byte: f64,
}

#[derive(FromPyObject)]
struct Start {
    constant: f64,
    prepare: f64,
    serial: f64,
    parallel: f64,
    adopt: f64,
    all_first: bool,
}

/// `gridbench.model.pipeline.Parameters`.
#[derive(FromPyObject)]
pub struct Parameters {
    to_workers: Link,
    from_workers: Link,
    manager: Option<Manager>,
    shared_rate: f64,
    chained_from: f64,
    submit_cost: f64,
    submit_per_byte: f64,
    retrieve_cost: f64,
    start_latency: f64,
    return_latency: f64,
    start: Option<Start>,
    share: CpuCost,
    take_shared: CpuCost,
    take: CpuCost,
    map_input: CpuCost,
    make: CpuCost,
    new_input: CpuCost,
    new_output: CpuCost,
    map_output: CpuCost,
    take_output: CpuCost,
    last_used_first: bool,
    kept_from: f64,
    most_left: f64,
    processors: f64,
    client_lock: bool,
    ahead: usize,
    most_waiting_bytes: f64,
    most_outstanding: f64,
}

/// `gridbench.model.pipeline.Case`.
#[derive(FromPyObject)]
pub struct Case<'py> {
    sleep: Bound<'py, PyAny>,
    ready: Bound<'py, PyAny>,
    host: Option<Bound<'py, PyAny>>,
    bytes_in: f64,
    bytes_out: f64,
    bytes_shared: f64,
}

/// `gridbench.simulate.systems.Throttling`.
#[derive(FromPyObject)]
pub struct Throttling {
    memory: f64,
    disk: f64,
    slower: f64,
    steps: [f64; 4],
    until_done: bool,
}

fn link(of: &Link) -> pipeline::Link {
    let sharing = match of.sharing.as_str() {
        "evenly" => pipeline::Sharing::ProcessorSharing,
        _ => pipeline::Sharing::FirstComeFirstServed,
    };
    pipeline::Link { rate: of.rate, per_message: of.per_message, sharing, each: of.each }
}

fn effort(of: &CpuCost) -> pipeline::CpuCost {
    pipeline::CpuCost { fixed: of.fixed, per_byte: of.per_byte }
}

impl Parameters {
    fn translated(&self) -> pipeline::Parameters {
        pipeline::Parameters {
            to_workers: link(&self.to_workers),
            from_workers: link(&self.from_workers),
            manager: self.manager.as_ref().map(|one| pipeline::Manager {
                inward: link(&one.inward),
                outward: link(&one.outward),
            }),
            shared_rate: self.shared_rate,
            chained_from: self.chained_from,
            submit_cost: self.submit_cost,
            submit_per_byte: self.submit_per_byte,
            retrieve_cost: self.retrieve_cost,
            start_latency: self.start_latency,
            return_latency: self.return_latency,
            start: self.start.as_ref().map(|one| pipeline::Start {
                constant: one.constant,
                prepare: one.prepare,
                serial: one.serial,
                parallel: one.parallel,
                adopt: one.adopt,
                all_first: one.all_first,
            }),
            share: effort(&self.share),
            take_shared: effort(&self.take_shared),
            take: effort(&self.take),
            map_input: effort(&self.map_input),
            make: effort(&self.make),
            new_input: effort(&self.new_input),
            new_output: effort(&self.new_output),
            map_output: effort(&self.map_output),
            take_output: effort(&self.take_output),
            last_used_first: self.last_used_first,
            kept_from: self.kept_from,
            most_left: self.most_left,
            processors: self.processors,
            client_lock: self.client_lock,
            ahead: self.ahead,
            most_waiting_bytes: self.most_waiting_bytes,
            most_outstanding: self.most_outstanding,
        }
    }
}

impl Case<'_> {
    fn translated(&self) -> PyResult<pipeline::Case> {
        let ready = numbers(&self.ready, f64::from_ne_bytes)?;
        let mut case = pipeline::Case::new(numbers(&self.sleep, f64::from_ne_bytes)?, ready)
            .with_bytes(self.bytes_in, self.bytes_out, self.bytes_shared);
        if let Some(host) = &self.host {
            case.host = numbered(&numbers(host, i64::from_ne_bytes)?);
        }
        if case.host.len() != case.ready.len() || u32::try_from(case.sleep.len()).is_err() {
            return Err(PyValueError::new_err(
                "a case has a host for each worker, and < 2**32 tasks",
            ));
        }
        Ok(case)
    }
}

/// The numbers in a contiguous array of eight bytes each.
pub(crate) fn numbers<T>(array: &Bound<'_, PyAny>, number: fn([u8; 8]) -> T) -> PyResult<Vec<T>> {
    let view = View::new(array)?;
    let (each, rest) = view.bytes().as_chunks::<8>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("an array's numbers are of eight bytes each"));
    }
    Ok(each.iter().map(|&bytes| number(bytes)).collect())
}

/// Renumbers hosts from 0.
fn numbered(hosts: &[i64]) -> Vec<u32> {
    let mut known = hosts.to_vec();
    known.sort_unstable();
    known.dedup();
    hosts.iter().map(|host| known.partition_point(|one| one < host) as u32).collect()
}

/// Numbers as bytes, for an array.
pub(crate) fn array<'py, T: Copy>(
    py: Python<'py>,
    of: &[T],
    bytes: fn(T) -> [u8; 8],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, 8 * of.len(), |room| {
        let (each, _) = room.as_chunks_mut::<8>();
        each.iter_mut().zip(of).for_each(|(place, &one)| *place = bytes(one));
        Ok(())
    })
}

type Arrays<'py> = [Bound<'py, PyByteArray>; 6];
type MemoryPressure = (f64, u64, f64, u8);

/// Simulates all tasks of a case. `watch` is called periodically with the number of returned tasks, and may raise.
/// The stamps: submit, sent, calc_in, calc_out, retrieve, and worker as int64; and the pressure of a manager with
/// throttling: most, paged, disk_busy, worst.
#[pyfunction]
#[pyo3(signature = (case, parameters, throttling=None, watch=None))]
pub fn follow_pipeline<'py>(
    py: Python<'py>,
    case: Case<'py>,
    parameters: Parameters,
    throttling: Option<Throttling>,
    watch: Option<Py<PyAny>>,
) -> PyResult<(Arrays<'py>, Option<MemoryPressure>)> {
    let (case, parameters) = (case.translated()?, parameters.translated());
    let throttling = throttling.map(|one| pipeline::Throttling {
        memory: one.memory,
        disk: one.disk,
        slower: one.slower,
        steps: one.steps,
        until_done: one.until_done,
    });
    let (stamps, pressure) = py.detach(|| {
        let mut run = pipeline::Run::new(&case, &parameters, throttling.as_ref());
        loop {
            Python::attach(|py| {
                py.check_signals()?;
                watch.as_ref().map_or(Ok(()), |one| one.call1(py, (run.retrieved(),)).map(|_| ()))
            })?;
            if !run.go_on(EVENTS_BETWEEN_LOOKS) {
                break;
            }
        }
        let pressure = run.pressure();
        Ok::<_, PyErr>((run.stamps(), pressure))
    })?;
    let times = |of: &[f64]| array(py, of, f64::to_ne_bytes);
    let arrays = [
        times(&stamps.submit)?,
        times(&stamps.sent)?,
        times(&stamps.calc_in)?,
        times(&stamps.calc_out)?,
        times(&stamps.retrieve)?,
        array(py, &stamps.worker, i64::to_ne_bytes)?,
    ];
    Ok((arrays, pressure.map(|one| (one.most, one.paged, one.disk_busy, one.worst as u8))))
}

/// Figures for comparing runs of cases, computed on all processors if that pays off. For each: total, first calc_in,
/// last worker's first calc_in, and extra time of tasks.
#[pyfunction]
pub fn pipeline_figures<'py>(
    py: Python<'py>,
    jobs: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<Vec<(f64, f64, f64, f64)>> {
    let (mut cases, mut parameters) = (ConvertedObjects::default(), ConvertedObjects::default());
    let numbers: Vec<_> = jobs
        .iter()
        .map(|(case, with)| {
            let case = cases.number(case, |one| one.extract::<Case>()?.translated())?;
            let with =
                parameters.number(with, |one| Ok(one.extract::<Parameters>()?.translated()))?;
            Ok((case, with))
        })
        .collect::<PyResult<_>>()?;
    let (cases, parameters) = (cases.values, parameters.values);
    let jobs: Vec<_> =
        numbers.into_iter().map(|(case, with)| (&cases[case], &parameters[with])).collect();
    Ok(py.detach(|| all_figures(&jobs)))
}

/// Converted Python objects: each is converted once, however many jobs share it.
struct ConvertedObjects<T> {
    numbers: HashMap<usize, usize>,
    values: Vec<T>,
}

impl<T> Default for ConvertedObjects<T> {
    fn default() -> Self {
        ConvertedObjects { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T> ConvertedObjects<T> {
    /// The index of an object's conversion. The objects have to live as long as this.
    fn number<'py>(
        &mut self,
        object: &Bound<'py, PyAny>,
        translate: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<usize> {
        let key = object.as_ptr() as usize;
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        self.values.push(translate(object)?);
        self.numbers.insert(key, self.values.len() - 1);
        Ok(self.values.len() - 1)
    }
}

fn all_figures(jobs: &[(&pipeline::Case, &pipeline::Parameters)]) -> Vec<(f64, f64, f64, f64)> {
    let tasks: usize = jobs.iter().map(|(case, _)| case.sleep.len()).sum();
    let most = if tasks < TASKS_FOR_THREADS { 1 } else { jobs.len() };
    let threads = processors::available().min(most.max(1));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, parameters)) = jobs.get(number) else { return found };
            found.push((number, figures(case, parameters)));
        }
    };
    let mut all = thread::scope(|scope| {
        // If the system refuses some threads, the others do more.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|&(number, _)| number);
    all.into_iter().map(|(_, figures)| figures).collect()
}

fn figures(case: &pipeline::Case, parameters: &pipeline::Parameters) -> (f64, f64, f64, f64) {
    let mut run = pipeline::Run::new(case, parameters, None);
    while run.go_on(usize::MAX) {}
    let one = run.stamps().figures(case);
    (one.total, one.first_calc_in, one.last_worker_calc_in, one.extra)
}
