//! Grids for Python.

use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_client::{
    Code, Config, FunctionRef, GridError, HostGroups, Launch, Output, Preload, Preparation,
    Progress, PythonWorkers, RemoteWorkers, Request, SubmitError, WorkerLimits,
};
use gridrpc_core::{BlobId, GroupId, Refusal, ReservationState, Settings};
use gridrpc_link::payload::Payload;
use gridrpc_wire::{FunctionForm, MAX_SECTIONS, MAX_TEXT, Ranks};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBytes, PyDict, PyList, PyString, PyTuple, PyWeakrefMethods, PyWeakrefReference,
};

use crate::buffer::View;
use crate::call::{Call, Dependency, Form};
use crate::detached::{self, Attachment};
use crate::errors;
use crate::forking::ForkedSpawner;
use crate::modules::{self, Bounds, Modules, Reserved, Target};
use crate::options::{self, CallOptions};
use crate::plain;
use crate::references::References;
use crate::sections;
use crate::servers::Server;
use crate::waiting::wait_in_slices;

/// A pickle, its buffers, and the shared data and calls that it refers to.
type Pickled<'py> =
    (Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>, Vec<u64>, Vec<PyRef<'py, Dependency>>);

/// A registered function.
#[pyclass(frozen, weakref, module = "gridrpc._native")]
pub struct Function {
    function: Arc<FunctionRef>,
    /// Shared data that its pickle refers to.
    blobs: Vec<u64>,
    /// Hold that data.
    _leases: Vec<Py<PyAny>>,
    /// Length of its pickle.
    bytes: usize,
}

#[pymethods]
impl Function {
    /// Numbers of the shared data that its pickle refers to.
    #[getter]
    fn blobs(&self) -> Vec<u64> {
        self.blobs.clone()
    }

    /// Length of its pickle; 0 for a function that is referred to by name.
    #[getter]
    fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.function.name()
    }
}

/// A grid of worker processes.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Grid {
    grid: Arc<gridrpc_client::Grid>,
    /// Recently called functions, newest first: most calls are of one of them. Only used with the interpreter's lock
    /// held.
    recent: Mutex<Vec<Recent>>,
}

/// A called function, as the caller named it and as it is registered.
struct Recent {
    /// Address of the object, which may be gone.
    address: usize,
    /// A string is held; any other object is weakly referenced.
    object: Py<PyAny>,
    references: Option<Py<References>>,
    function: Arc<FunctionRef>,
}

/// Number of remembered functions.
const MOST_RECENT: usize = 8;

/// Pickles below this size are copied under the interpreter's lock, bytes.
const SMALL: usize = 4096;

#[pymethods]
impl Grid {
    /// Opens a grid: requests its workers and returns at once.
    #[new]
    #[pyo3(signature = (*, workers, resources, cores, program, arguments, environment, directory, path, modules,
                         compiled, max_queued, max_queued_bytes, shared_threshold, keep_free, grace,
                         retries, calls_per_process, labelled, servers=Vec::new(), agent="", here="",
                         elsewhere=Vec::new(), remote_environment=Vec::new(), python_environment=Vec::new(),
                         progress="auto", forked=None, preload=Vec::new(), runs_python=true,
                         advice=String::new()))]
    #[allow(clippy::too_many_arguments)] // the package names them all
    fn new(
        py: Python<'_>,
        workers: u32,
        resources: Vec<(String, u64)>,
        cores: usize,
        program: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
        directory: String,
        path: Vec<String>,
        modules: Vec<String>,
        compiled: &Modules,
        max_queued: usize,
        max_queued_bytes: u64,
        shared_threshold: usize,
        keep_free: u64,
        grace: f64,
        retries: u32,
        calls_per_process: u64,
        labelled: bool,
        servers: Vec<PyRef<'_, Server>>,
        agent: &str,
        here: &str,
        elsewhere: Vec<String>,
        remote_environment: Vec<(String, String)>,
        python_environment: Vec<(String, String)>,
        progress: &str,
        forked: Option<&ForkedSpawner>,
        preload: Vec<String>,
        runs_python: bool,
        advice: String,
    ) -> PyResult<Grid> {
        let servers = (!servers.is_empty()).then(|| HostGroups {
            list: servers.iter().map(|server| server.0.with_preload(&preload)).collect(),
            program: agent.into(),
            workers: RemoteWorkers {
                python: (!here.is_empty()).then(|| PythonWorkers {
                    here: here.to_owned(),
                    arguments: elsewhere,
                    arguments_here: arguments.clone(),
                    path: path.clone(),
                    modules: modules.clone(),
                    environment: python_environment,
                }),
                environment: remote_environment,
                directory: directory.clone(),
                preload: Vec::new(),
            },
        });
        let environment =
            environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let launch = Launch {
            limits: WorkerLimits::NONE,
            advice,
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment,
            preparation: Preparation {
                directory,
                path,
                preload: Preload { modules, libraries: Vec::new() },
            },
        };
        let settings = Settings {
            workers,
            resources: options::named(resources),
            cores,
            max_queued,
            max_queued_bytes,
            grace: (grace * 1e9) as u64,
            retries,
            calls_per_process,
            ..Settings::default()
        };
        let mut config = Config {
            shared_threshold,
            keep_free,
            output: if labelled { Output::Labelled } else { Output::Plain },
            groups: servers,
            progress: Progress::named(progress).unwrap_or_default(),
            ..Config::here(launch, settings)
        };
        gridrpc_invoke::preload(&mut config, &preload, runs_python, compiled.search())
            .map_err(|error| errors::grid(&error))?;
        let forked = forked.and_then(ForkedSpawner::take);
        let grid = Arc::new(
            py.detach(|| gridrpc_client::Grid::open_with(config, forked))
                .map_err(|error| errors::grid(&error))?,
        );
        Ok(Grid { grid, recent: Mutex::default() })
    }

    /// Numbers of ready workers, of calls that wait for a worker, and of calls that have not ended.
    fn counts(&self) -> (usize, usize, usize) {
        let counts = self.grid.counts();
        (counts.ready, counts.queued, counts.live)
    }

    /// Hosts without a ready worker, each with its details.
    fn absent_hosts(&self) -> Vec<String> {
        self.grid.absent_hosts()
    }

    /// State of each host: its server, its name, its state in one word, its numbers of ready and of wanted workers,
    /// and details.
    fn hosts(&self) -> Vec<(String, String, &'static str, usize, usize, String)> {
        let as_tuple = |host: gridrpc_client::HostState| {
            let (server, name) = (host.group.to_string(), host.host.to_string());
            (server, name, host.state, host.ready, host.workers, host.detail)
        };
        self.grid.hosts().into_iter().map(as_tuple).collect()
    }

    /// Counters and current activity, as a JSON document.
    fn stats(&self, py: Python<'_>) -> String {
        py.detach(|| self.grid.stats().json())
    }

    /// Number of workers that the grid is to have. Hosts count once they have reported theirs.
    fn workers(&self) -> u32 {
        self.grid.workers()
    }

    /// The host of a worker, as the configuration names it; None: this machine.
    fn host_of(&self, worker: u32) -> Option<String> {
        self.grid.host_of(worker).map(|host| host.to_string())
    }

    /// Imports a module once for all workers, if none has been started yet.
    fn prepare(&self, module: &str) {
        self.grid.prepare(module);
    }

    /// Waits until all workers are ready, at most `timeout` seconds. Returns whether they are.
    #[pyo3(signature = (timeout=None))]
    fn wait_until_ready(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let grid = &self.grid;
        let ready = wait_in_slices(py, timeout, |slice| match grid.wait_until_ready(slice) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })?;
        match ready {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(errors::grid(&error)),
        }
    }

    /// Registers a function: by name, or pickled if `body` is given, which may refer to shared data.
    #[pyo3(signature = (name, body=None, *, blobs=Vec::new()))]
    fn register(
        &self,
        py: Python<'_>,
        name: &str,
        body: Option<Vec<u8>>,
        blobs: Vec<Py<PyAny>>,
    ) -> PyResult<Function> {
        let form = if body.is_some() { FunctionForm::Pickled } else { FunctionForm::Named };
        if form == FunctionForm::Named && name.len() > MAX_TEXT {
            return Err(errors::long_name(name.len(), MAX_TEXT));
        }
        let body = body.unwrap_or_default();
        let bytes = body.len();
        let function = self.grid.register(name, form, body);
        let numbers = blobs.iter().map(|blob| blob.extract(py)).collect::<PyResult<_>>()?;
        Ok(Function { function, blobs: numbers, _leases: blobs, bytes })
    }

    /// Remembers the registered function for a name, or for a callable while its `references` are current.
    #[pyo3(signature = (callable, function, references=None))]
    fn remember(
        &self,
        callable: &Bound<'_, PyAny>,
        function: &Function,
        references: Option<Py<References>>,
    ) -> PyResult<()> {
        if !function.blobs.is_empty() {
            return Ok(());
        }
        let object = if callable.is_instance_of::<PyString>() {
            callable.clone()
        } else {
            PyWeakrefReference::new(callable)?.into_any()
        };
        let function = Arc::clone(&function.function);
        let address = callable.as_ptr() as usize;
        let newest = Recent { address, object: object.unbind(), references, function };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let old = recent.iter().position(|recent| recent.address == address);
        let last = (recent.len() >= MOST_RECENT).then(|| recent.len() - 1);
        let gone = old.or(last).map(|place| recent.remove(place));
        recent.insert(0, newest);
        drop(recent);
        // Dropping it may run arbitrary code, which must not happen under the lock.
        drop(gone);
        Ok(())
    }

    /// Forgets all remembered callables.
    fn forget(&self) {
        let gone = {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *recent)
        };
        // Dropping them may run arbitrary code, which must not happen under the lock.
        drop(gone);
    }

    /// Submits a call, to a reserved worker if `on` is given. Waits while too many calls wait for workers. `owner`:
    /// its method `_find` finds the function of a callable that is not remembered, and `_pickled` pickles arguments
    /// that are not plain.
    #[pyo3(signature = (owner, callable, args, kwargs, options, on=None, /))]
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn submit(
        &self,
        py: Python<'_>,
        owner: Py<PyAny>,
        callable: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        options: &CallOptions,
        on: Option<&Reserved>,
    ) -> PyResult<Py<Call>> {
        // Its shared data may be replaced before the call has been submitted.
        let holder;
        let (function, mut blobs) = match self.remembered(callable) {
            Some(remembered) => remembered,
            None => {
                holder = owner.call_method1(py, intern!(py, "_find"), (callable,))?;
                let found = holder.bind(py).cast::<Function>()?.get();
                (Arc::clone(&found.function), found.blobs.clone())
            }
        };
        let (options, trace) = (options.on(on), options.trace);
        let mut head = Vec::with_capacity(64);
        if plain::dumps_call(args, kwargs, &mut head) {
            let mut payload = self.grid.payload();
            payload.add_owned(head).map_err(|error| errors::no_room(&error))?;
            let blobs = blobs.into_iter().map(BlobId).collect();
            let request = Request::new(function, payload.finish(), options);
            return self.send(py, owner, Request { blobs, trace, ..request });
        }
        let pickled = owner.call_method1(py, intern!(py, "_pickled"), ((args, kwargs),))?;
        let pickled: Pickled<'_> = pickled.extract(py)?;
        let (head, buffers, more, after) = pickled;
        let payload = self.pickled_payload(py, &head, &buffers)?;
        blobs.extend(more);
        let request = Request {
            blobs: unique(blobs),
            after: after.iter().map(|one| one.to_client(py)).collect(),
            trace,
            ..Request::new(function, payload, options)
        };
        self.send(py, owner, request)
    }

    /// Submits a call with pickled arguments, which refer to these shared data. Waits while too many calls wait for
    /// workers.
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn submit_pickled(
        &self,
        py: Python<'_>,
        owner: Py<PyAny>,
        function: &Function,
        head: &Bound<'_, PyAny>,
        buffers: Vec<Bound<'_, PyAny>>,
        blobs: Vec<u64>,
        options: &CallOptions,
    ) -> PyResult<Py<Call>> {
        let payload = self.pickled_payload(py, head, &buffers)?;
        let blobs = unique(function.blobs.iter().copied().chain(blobs));
        let CallOptions { options, trace } = options.clone();
        let request = Request::new(Arc::clone(&function.function), payload, options);
        self.send(py, owner, Request { blobs, trace, ..request })
    }

    /// Finds a function of a module: `module/function`, `module/Class.method`, or a bare name.
    #[pyo3(signature = (modules, name, server=None))]
    fn target(
        &self,
        py: Python<'_>,
        modules: &Modules,
        name: &str,
        server: Option<&str>,
    ) -> PyResult<Target> {
        Target::find(py, &self.grid, modules, name, server)
    }

    /// The methods of a class `module/Class`, by name, and the server that offers it, if one does. `server`: where
    /// its object has to live.
    #[pyo3(signature = (modules, name, server=None))]
    fn methods(
        &self,
        py: Python<'_>,
        modules: &Modules,
        name: &str,
        server: Option<&str>,
    ) -> PyResult<(Vec<String>, Option<String>)> {
        modules::methods(py, &self.grid, modules, name, server)
    }

    /// Has the server of a call run it even if this program ends. Returns the id of the detached call.
    fn detach_call(&self, py: Python<'_>, call: &Bound<'_, Call>) -> PyResult<String> {
        call.get().detach_from(py, &self.grid).map(str::to_owned)
    }

    /// The server that offers a Python function or class, `module/name`. `server`: the only one that counts.
    #[pyo3(signature = (name, server=None))]
    fn python_server(&self, py: Python<'_>, name: &str, server: Option<&str>) -> Option<String> {
        let servers = self.grid.server_catalogues().iter();
        for one in servers.filter(|one| server.is_none_or(|server| one.is_called(server))) {
            // Whoever looks for a compiled class next reports that the server is away.
            let Ok(list) = py.detach(|| one.list()) else { continue };
            if list.iter().any(|known| known.name == name && known.signature.is_none()) {
                return Some(one.name.clone());
            }
        }
        None
    }

    /// Bytes of the arguments, bytes of the results, and operations of a call of a module's function; None: the
    /// interface does not say how many.
    fn call_size(
        slf: &Bound<'_, Self>,
        target: &Target,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(u64, u64, Option<f64>)> {
        let size = modules::call_size(target, slf.as_any(), (args, kwargs))?;
        Ok((size.bytes_in, size.bytes_out, size.operations))
    }

    /// Submits a call of a module's function. Waits while too many calls wait for workers. `ranks`: ranks of a
    /// parallel function, with `cores` each; `mpirun`: the command that starts them.
    #[pyo3(signature = (owner, target, args, kwargs, out, options, on, ranks=1, mpirun=""))]
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn submit_target(
        slf: &Bound<'_, Self>,
        owner: Py<PyAny>,
        target: &Target,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        out: Option<&Bound<'_, PyAny>>,
        options: &CallOptions,
        on: Option<&Reserved>,
        ranks: u32,
        mpirun: &str,
    ) -> PyResult<Call> {
        let (py, this) = (slf.py(), slf.get());
        let (options, trace) = (options.on(on), options.trace);
        let (native, arguments) = (slf.as_any(), (args, kwargs));
        let ranks = Ranks { ranks, threads: options.cores, command: mpirun.to_owned() };
        let ranks = target.target.interface().is_parallel().then_some(&ranks);
        let made = modules::make(py, &this.grid, target, native, arguments, out, options, ranks)?;
        let call = this.send_request(py, Request { trace, ..made.request })?;
        let form = Form::module(made.pending);
        Ok(Call::new(call, this.grid.waiter(), form, owner))
    }

    /// Detaches a call of a module's function, and returns its id.
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn detach_target(
        slf: &Bound<'_, Self>,
        target: &Target,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        options: &CallOptions,
        ranks: u32,
        mpirun: &str,
    ) -> PyResult<String> {
        let (py, this) = (slf.py(), slf.get());
        let options = options.on(None);
        let (native, arguments) = (slf.as_any(), (args, kwargs));
        let ranks = Ranks { ranks, threads: options.cores, command: mpirun.to_owned() };
        let ranks = target.target.interface().is_parallel().then_some(&ranks);
        let made = modules::make(py, &this.grid, target, native, arguments, None, options, ranks)?;
        let modules::PreparedCall { request, pending, leases } = made;
        let detached = detached::ask(py, |interrupted| {
            gridrpc_invoke::detach(&this.grid, &target.target, &request, interrupted)
        });
        // The arrays and shared data stay in place until here.
        drop((pending, leases));
        detached
    }

    /// Attaches to a detached call.
    fn attach(
        &self,
        py: Python<'_>,
        owner: Py<PyAny>,
        modules: &Modules,
        id: String,
    ) -> PyResult<Call> {
        let server = gridrpc_invoke::server_of(&self.grid, &id)
            .map_err(|error| detached::refused(py, error))?;
        let described = detached::ask(py, |interrupted| server.detached(&id, interrupted))?;
        let name = &described.function;
        let target = Target::find(py, &self.grid, modules, name, Some(&server.name))?.target;
        let attached = gridrpc_invoke::attach(&self.grid, &server, &target, &described);
        let (call, landing) = attached.map_err(|error| detached::refused(py, error))?;
        let pending = modules::Pending::attached(target, landing);
        let form = Form::module(pending);
        let call = Call::new(call, self.grid.waiter(), form, owner);
        Ok(call.attached(Attachment { server, id }))
    }

    /// The detached calls of this user at all servers: id, function, state, and seconds since 1970.
    fn detached_calls(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String, u64)>> {
        let mut all = Vec::new();
        for server in self.grid.server_catalogues() {
            let calls = detached::ask(py, |interrupted| server.detached_calls(interrupted))?;
            all.extend(
                calls.into_iter().map(|call| (call.id, call.function, call.state, call.submitted)),
            );
        }
        Ok(all)
    }

    /// Calls a module's function and returns its result.
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn call_target(
        slf: &Bound<'_, Self>,
        owner: Py<PyAny>,
        target: &Target,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        out: Option<&Bound<'_, PyAny>>,
        options: &CallOptions,
        on: Option<&Reserved>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let call = || {
            let owner = owner.clone_ref(py);
            Grid::submit_target(slf, owner, target, args, kwargs, out, options, on, 1, "")?
                .result(py, None)
        };
        match call() {
            // The server has run nothing.
            Err(error) if target.target.has_changed() => {
                if !errors::is_interface_changed(py, &error) {
                    return Err(error);
                }
                call()
            }
            ended => ended,
        }
    }

    /// Submits one call of a module's function for the first of these items, up to one that has to go alone. Each
    /// item is a tuple or dict of arguments, or with `single` the only argument. Returns the number of items; None:
    /// the first one has to go alone. `limit`: no further item starts after this many ns; 0: no limit. `budget`:
    /// maximum size of arguments and results, bytes.
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn submit_chunk(
        slf: &Bound<'_, Self>,
        owner: Py<PyAny>,
        target: &Target,
        items: &Bound<'_, PyList>,
        single: bool,
        limit: u64,
        budget: usize,
        options: &CallOptions,
        on: Option<&Reserved>,
    ) -> PyResult<Option<(Call, usize)>> {
        let (py, this) = (slf.py(), slf.get());
        let (options, trace) = (options.on(on), options.trace);
        let bounds = Bounds { single, limit, budget };
        let native = slf.as_any();
        let made = modules::make_chunk(&this.grid, target, native, items, bounds, options)?;
        let Some(made) = made else { return Ok(None) };
        let call = this.send_request(py, Request { trace, ..made.request })?;
        let form = Form::Chunk(Box::new(Mutex::new(Some(made.pending))));
        Ok(Some((Call::new(call, this.grid.waiter(), form, owner), made.items)))
    }

    /// The number of a server, or of a host, with this name.
    fn server(&self, name: &str) -> PyResult<u32> {
        self.grid.group(name).map(|id| id.0).map_err(|error| errors::grid(&error))
    }

    /// Reserves a worker for one object, on a server if one is given. `python`: it is an object of a Python class;
    /// `offered`: of a class that the server offers.
    #[pyo3(signature = (server=None, python=true, offered=false))]
    fn reserve(&self, server: Option<u32>, python: bool, offered: bool) -> PyResult<Reserved> {
        let code = match (python, offered) {
            (_, true) => Code::Offered,
            (true, false) => Code::Python,
            (false, false) => Code::Module,
        };
        let reserved = self.grid.reserve(1, server.map(GroupId), code);
        let reserved = reserved.map_err(|error| errors::grid(&error))?;
        let reservation = reserved.first().copied();
        let reservation =
            reservation.ok_or_else(|| errors::grid(&GridError::Refused(Refusal::Closed)))?;
        Ok(Reserved { reservation })
    }

    /// State of a reserved worker, once it is no longer starting; waits at most `timeout` seconds. Also the exception
    /// for its loss, for the object `name`.
    fn standing(
        &self,
        py: Python<'_>,
        reserved: &Reserved,
        timeout: Option<f64>,
        name: &str,
    ) -> PyResult<(&'static str, Option<Py<PyAny>>)> {
        let (grid, of) = (&self.grid, reserved.reservation);
        let known = wait_in_slices(py, timeout, |slice| {
            Some(grid.wait_for_reserved(of, slice)).filter(|now| *now != ReservationState::Starting)
        })?;
        Ok(match known.unwrap_or(ReservationState::Starting) {
            ReservationState::Starting => ("starting", None),
            ReservationState::Ready => ("ready", None),
            ReservationState::Lost(loss) => {
                let error = errors::object_lost(py, &format!("the worker of {name}"), &loss);
                ("lost", Some(error.into_value(py).into_any()))
            }
            ReservationState::Released => {
                let error = errors::grid(&GridError::Refused(Refusal::Released));
                ("released", Some(error.into_value(py).into_any()))
            }
        })
    }

    /// Releases a reserved worker.
    fn release(&self, reserved: &Reserved) {
        self.grid.release(reserved.reservation);
    }

    /// Cancels a call. Returns whether it had not ended yet.
    fn cancel(&self, call: &Call) -> bool {
        self.grid.cancel(&call.call)
    }

    /// Cancels all calls. Returns how many had not ended yet.
    fn cancel_all(&self, py: Python<'_>) -> usize {
        py.detach(|| self.grid.cancel_all(|_, _| true))
    }

    /// Shares data, in parts; returns its number.
    fn share(&self, py: Python<'_>, parts: Vec<Bound<'_, PyAny>>) -> PyResult<u64> {
        let views = parts.iter().map(View::new).collect::<PyResult<Vec<_>>>()?;
        let slices: Vec<&[u8]> = views.iter().map(View::bytes).collect();
        let blob = py.detach(|| self.grid.share(&slices)).map_err(|error| errors::grid(&error))?;
        Ok(blob.0)
    }

    /// Drops one owner of shared data.
    fn unshare(&self, blob: u64) {
        self.grid.unshare(BlobId(blob));
    }

    /// Ends all calls and workers, and waits until they are gone.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.grid.close());
    }
}

impl Grid {
    /// The grid, for other native objects that use it.
    pub fn shared(&self) -> Arc<gridrpc_client::Grid> {
        Arc::clone(&self.grid)
    }

    fn send(&self, py: Python<'_>, owner: Py<PyAny>, request: Request) -> PyResult<Py<Call>> {
        let call = self.send_request(py, request)?;
        Call::new(call, self.grid.waiter(), Form::Pickled, owner).into_python(py)
    }

    /// The registered function for a remembered callable, or for a registered function itself.
    fn remembered(&self, callable: &Bound<'_, PyAny>) -> Option<(Arc<FunctionRef>, Vec<u64>)> {
        if let Ok(function) = callable.cast_exact::<Function>() {
            let function = function.get();
            let blobs = function.blobs.clone();
            return Some((Arc::clone(&function.function), blobs));
        }
        let py = callable.py();
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let address = callable.as_ptr() as usize;
        let found = recent.iter().find(|recent| recent.address == address)?;
        // Another object may have the same address by now.
        let object = found.object.bind(py);
        let same = match object.cast_exact::<PyWeakrefReference>() {
            Ok(reference) => reference.upgrade().is_some_and(|object| object.is(callable)),
            Err(_) => true,
        };
        if !same {
            return None;
        }
        let references = found.references.as_ref().map(|references| references.clone_ref(py));
        let function = Arc::clone(&found.function);
        // Comparing values may run other code, which may call functions.
        drop(recent);
        let current = |references: Py<References>| references.get().are_current(callable);
        references.is_none_or(current).then(|| (function, Vec::new()))
    }

    /// A pickle and its buffers, as the payload of a call.
    fn pickled_payload(
        &self,
        py: Python<'_>,
        head: &Bound<'_, PyAny>,
        buffers: &[Bound<'_, PyAny>],
    ) -> PyResult<Payload> {
        let mut payload = self.grid.payload();
        if buffers.len() >= MAX_SECTIONS {
            return Err(PyValueError::new_err("more than 1,023 buffers in one call"));
        }
        match head.cast::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().len() < SMALL => {
                payload.add(bytes.as_bytes()).map_err(|error| errors::no_room(&error))?;
            }
            _ => sections::add_view(py, &View::new(head)?, &mut payload)?,
        }
        for buffer in buffers {
            sections::refer_to_view(py, &View::new(buffer)?, &mut payload)?;
        }
        Ok(payload.finish())
    }

    fn send_request(
        &self,
        py: Python<'_>,
        mut request: Request,
    ) -> PyResult<Arc<gridrpc_client::Call>> {
        let grid = &self.grid;
        loop {
            match grid.submit(request) {
                Ok(call) => return Ok(call),
                Err(SubmitError::Failed(error)) => return Err(errors::grid(&error)),
                Err(SubmitError::Full(back)) => request = *back,
            }
            let bytes = request.payload.bytes;
            wait_in_slices(py, None, |slice| grid.wait_for_room(bytes, slice).then_some(()))?;
        }
    }
}

/// These shared data without duplicates.
fn unique(blobs: impl IntoIterator<Item = u64>) -> Vec<BlobId> {
    let mut unique = Vec::new();
    for blob in blobs.into_iter().map(BlobId) {
        if !unique.contains(&blob) {
            unique.push(blob);
        }
    }
    unique
}
