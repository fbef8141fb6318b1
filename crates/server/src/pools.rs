//! Pools of workers. The common pool is always there. A module with limits or isolation of its own has pools that start
//! with the first call and end when they are idle.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_client::{
    Call, Config, FunctionRef, Grid, GridError, HostGroups, Launch, Output, Preparation,
    PythonWorkers, RemoteWorkers, RunAs, WorkerLimits,
};
use gridrpc_config::HostGroup;
use gridrpc_core::{Owner, Quota, Settings};
use gridrpc_sys::{processors, thread_limits};
use gridrpc_wire::FunctionForm;
use thiserror::Error;
use time::Weekday;

use crate::catalogue::{Code, OfferedModule};
use crate::config::{
    self, CallSettings, Isolation, Period, Policy, PythonModule, PythonName, ServerConfig,
    workers_at,
};
use crate::log;

/// Runs `main` of a Python worker with the gridrpc of an interpreter. Folders in front of its `sys.path` follow.
const PYTHON: [&str; 3] = [
    "-P",
    "-c",
    "import sys; sys.path[:0] = sys.argv[1:]; del sys.argv[1:]; from gridrpc._worker import main; main()",
];

/// What starts the workers of all pools.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    /// The `gridrpc` program.
    program: PathBuf,
    /// The interpreter, if workers run Python.
    python: Option<String>,
    /// Folders in front of Python's `sys.path`.
    path: Vec<String>,
    hosts: Vec<HostGroup>,
    count: u32,
    /// The user of workers on this machine, unless they run as their caller; none: the user of the server.
    user: Option<RunAs>,
}

impl Workers {
    pub(crate) fn new(config: &ServerConfig, program: PathBuf, user: Option<RunAs>) -> Workers {
        let paths = config.python.values().flat_map(|python| &python.path);
        Workers {
            program,
            python: config.workers.python.clone(),
            path: paths.map(|path| path.display().to_string()).collect(),
            hosts: config.workers.hosts.clone(),
            count: config.workers.count,
            user,
        }
    }

    /// Arguments of the interpreter.
    fn python_arguments(&self) -> Vec<String> {
        PYTHON.into_iter().map(str::to_owned).chain(self.path.iter().cloned()).collect()
    }

    /// Opens a grid with this many workers on this machine.
    fn open(
        &self,
        workers: u32,
        calls_per_process: u64,
        limits: WorkerLimits,
    ) -> Result<Grid, GridError> {
        let processors = processors::available();
        let mut environment = thread_limits::environment(processors, workers);
        let (program, arguments) = match &self.python {
            None => (self.program.clone(), vec!["spawner".into()]),
            Some(python) => {
                environment.push(("GRIDRPC_SPAWNER".into(), "1".into()));
                (python.into(), self.python_arguments().into_iter().map(Into::into).collect())
            }
        };
        let advice = match &self.python {
            None => String::new(),
            Some(_) => "`python` in [workers] names an interpreter that can import gridrpc".into(),
        };
        let preparation = Preparation::default();
        let launch = Launch { program, arguments, environment, advice, preparation, limits };
        let settings =
            Settings { workers, cores: processors, calls_per_process, ..Settings::default() };
        let mut config = Config { output: Output::Plain, ..Config::here(launch, settings) };
        if !self.hosts.is_empty() {
            let python = self.python.as_ref().map(|python| PythonWorkers {
                here: python.clone(),
                arguments: self.python_arguments(),
                arguments_here: self.python_arguments(),
                ..PythonWorkers::default()
            });
            config.groups = Some(HostGroups {
                list: self.hosts.clone(),
                program: self.program.clone(),
                workers: RemoteWorkers { python, ..RemoteWorkers::default() },
            });
        }
        Grid::open(config)
    }
}

/// Why a pool cannot run a call.
#[derive(Debug, Error)]
pub(crate) enum PoolError {
    /// The workers cannot start.
    #[error("its workers cannot start: {0}")]
    Workers(#[from] GridError),
    /// There is no user to run as.
    #[error(
        "its workers run as the calling user, and this machine has no user `{user}`{}",
        error.as_ref().map_or_else(String::new, |error| format!(": {error}"))
    )]
    User {
        /// The user.
        user: String,
        /// The system's error, if it could not tell.
        error: Option<io::Error>,
    },
}

/// A pool: a grid, once it has been needed.
#[derive(Debug)]
pub(crate) struct Pool {
    workers: Workers,
    /// Number of workers on this machine.
    count: u32,
    calls_per_process: u64,
    limits: WorkerLimits,
    calendar: Vec<Period>,
    /// Whether it never ends.
    is_common: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    grid: Option<Arc<Grid>>,
    /// Owners of calls there, by user.
    owners: HashMap<Arc<str>, Owner>,
    /// Functions registered there, by name; each with the file or Python function that runs.
    functions: HashMap<String, (Vec<u8>, Arc<FunctionRef>)>,
    /// When it was last needed.
    used: Instant,
}

/// A function in a pool that runs.
#[derive(Debug)]
pub(crate) struct PoolFunction {
    pub(crate) grid: Arc<Grid>,
    pub(crate) function: Arc<FunctionRef>,
    pub(crate) owner: Owner,
}

impl Pool {
    fn common(workers: Workers) -> Pool {
        let count = workers.count;
        let limits = WorkerLimits { user: workers.user.clone(), ..WorkerLimits::default() };
        Pool::new(workers, count, u64::MAX, limits, Vec::new(), true)
    }

    /// A pool for a module. `user`: the only one who uses it.
    ///
    /// # Errors
    /// When its workers are to run as a user that does not exist here.
    fn of_module(
        mut workers: Workers,
        settings: &CallSettings,
        user: Option<&str>,
    ) -> Result<Pool, PoolError> {
        let count = settings.most_running.unwrap_or(workers.count).max(1);
        let per_process = if settings.isolation == Isolation::Call { 1 } else { u64::MAX };
        let run_as = match (settings.run_as, user) {
            (config::RunAs::Caller, Some(user)) => {
                let unknown = |error| PoolError::User { user: user.to_owned(), error };
                let found = RunAs::named(user).map_err(|error| unknown(Some(error)))?;
                // Agents on hosts run as the user who started them, and their workers as well.
                workers.hosts.clear();
                Some(found.ok_or_else(|| unknown(None))?)
            }
            _ => workers.user.clone(),
        };
        let limits = WorkerLimits {
            memory: settings.memory,
            open_files: settings.open_files.map(u64::from),
            processes: settings.processes.map(u64::from),
            user: run_as,
        };
        let calendar = settings.calendar.clone();
        Ok(Pool::new(workers, count, per_process, limits, calendar, false))
    }

    fn new(
        workers: Workers,
        count: u32,
        calls_per_process: u64,
        limits: WorkerLimits,
        calendar: Vec<Period>,
        is_common: bool,
    ) -> Pool {
        let state = State {
            grid: None,
            owners: HashMap::new(),
            functions: HashMap::new(),
            used: Instant::now(),
        };
        let state = Mutex::new(state);
        Pool { workers, count, calls_per_process, limits, calendar, is_common, state }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its grid. Starts it if necessary.
    pub(crate) fn grid(&self) -> Result<Arc<Grid>, GridError> {
        self.started(&mut self.lock())
    }

    fn started(&self, state: &mut State) -> Result<Arc<Grid>, GridError> {
        state.used = Instant::now();
        if let Some(grid) = &state.grid {
            return Ok(Arc::clone(grid));
        }
        let limits = self.limits.clone();
        let grid = self.workers.open(self.wanted_now(), self.calls_per_process, limits)?;
        let grid = Arc::new(grid);
        state.grid = Some(Arc::clone(&grid));
        Ok(grid)
    }

    /// Number of workers that it has now, by its calendar.
    fn wanted_now(&self) -> u32 {
        if self.calendar.is_empty() {
            return self.count;
        }
        let (day, minute) = gridrpc_sys::local_time::weekday_and_minute();
        let day = Weekday::Monday.nth_next(day);
        workers_at(&self.calendar, day, minute).unwrap_or(self.count)
    }

    /// Follows the calendar.
    fn resize(&self) {
        let grid = self.lock().grid.clone();
        if let Some(grid) = grid.filter(|_| !self.calendar.is_empty()) {
            let wanted = self.wanted_now();
            if grid.workers() != wanted
                && let Err(error) = grid.set_workers(wanted)
            {
                let what = "a pool cannot have as many workers as its calendar says";
                log::warning(what, &[("workers", &wanted), ("reason", &error)]);
            }
        }
    }

    /// Whether its workers have been started. Does not wait: false while they start.
    fn is_started(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.grid.is_some())
    }

    /// The place of a user's calls of a function.
    pub(crate) fn place(
        &self,
        module: &OfferedModule,
        function: &str,
        user: &Arc<str>,
        weight: u32,
    ) -> Result<PoolFunction, GridError> {
        let mut state = self.lock();
        let grid = self.started(&mut state)?;
        let owner = match module.settings.policy {
            Policy::Fair => *state
                .owners
                .entry(Arc::clone(user))
                .or_insert_with(|| grid.add_owner(Quota { weight, ..Quota::NONE })),
            // One line for all users.
            Policy::Fifo | Policy::Priority => Owner::SELF,
        };
        let name = format!("{}/{function}", module.name);
        let code = code_of(module, function);
        let function = match state.functions.get(&name) {
            Some((known, registered)) if *known == code => Arc::clone(registered),
            _ => {
                let registered = match &module.code {
                    Code::Library { .. } => {
                        grid.register(&name, FunctionForm::Library, code.clone())
                    }
                    Code::Python(_) => {
                        let named = String::from_utf8_lossy(&code);
                        grid.register(&named, FunctionForm::Named, Vec::new())
                    }
                };
                state.functions.insert(name, (code, Arc::clone(&registered)));
                registered
            }
        };
        Ok(PoolFunction { grid, function, owner })
    }

    /// The owner of a user's calls of functions that the server does not offer.
    pub(crate) fn owner(&self, user: &Arc<str>, weight: u32) -> Result<Owner, GridError> {
        let mut state = self.lock();
        let grid = self.started(&mut state)?;
        let add = || grid.add_owner(Quota { weight, ..Quota::NONE });
        Ok(*state.owners.entry(Arc::clone(user)).or_insert_with(add))
    }

    /// Removes a user who is gone. Cancels its remaining calls.
    fn forget(&self, user: &str) {
        let mut state = self.lock();
        let owner = state.owners.remove(user);
        if let Some((owner, grid)) = owner.zip(state.grid.clone()) {
            drop(state);
            grid.remove_owner(owner);
        }
    }

    /// Cancels the calls of a user, or of all, and of a function, or of all. Returns how many had not ended yet, and
    /// how many such calls are left since one line has the calls of all users.
    fn cancel_all(&self, user: Option<&str>, function: Option<&str>) -> (usize, usize) {
        let state = self.lock();
        let Some(grid) = state.grid.clone() else { return (0, 0) };
        let owner = user.map(|user| state.owners.get(user).copied());
        let offered = function.and_then(|name| state.functions.get(name));
        let offered = offered.map(|(_, registered)| registered.name().to_owned());
        drop(state);
        let is_meant = |call: &Call| {
            let name = call.function().name();
            function.is_none_or(|function| name == function || offered.as_deref() == Some(name))
        };
        let left = Cell::new(0);
        let cancelled = grid.cancel_all(|call, of| match owner {
            _ if !is_meant(call) => false,
            None => true,
            Some(owner) if owner == Some(of) => true,
            Some(_) => {
                left.set(left.get() + usize::from(of == Owner::SELF));
                false
            }
        });
        (cancelled, left.get())
    }

    /// Ends its workers if nobody has needed them for `idle`.
    fn end_if_idle(&self, idle: Duration) {
        let mut state = self.lock();
        let is_idle = |grid: &Arc<Grid>| {
            // Calls and clients with objects there hold the grid too.
            Arc::strong_count(grid) == 1 && grid.counts().live == 0
        };
        if !self.is_common
            && state.used.elapsed() >= idle
            && state.grid.as_ref().is_some_and(is_idle)
        {
            state.owners.clear();
            state.functions.clear();
            let ended = state.grid.take();
            drop(state);
            drop(ended);
        }
    }

    /// Number of its workers that are ready, and of its calls that wait and that are alive.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let grid = self.lock().grid.clone();
        grid.map_or((0, 0, 0), |grid| {
            let counts = grid.counts();
            (counts.ready, counts.queued, counts.live)
        })
    }
}

/// Where workers find what makes objects and calls their methods.
const INSTANCES: &str = "gridrpc._instances";

/// What runs: the file of a shared library, or the name of a Python function.
fn code_of(module: &OfferedModule, function: &str) -> Vec<u8> {
    match &module.code {
        Code::Library { file, .. } => file.clone().into_os_string().into_encoded_bytes(),
        Code::Python(python) => {
            let (name, method) = match function.split_once('.') {
                Some((class, method)) => (class, Some(method)),
                None => (function, None),
            };
            let mut names = python.functions.iter().chain(&python.classes);
            let named = names.find(|known| known.name == name).map(|known| {
                let PythonName { module, name } = known;
                match method {
                    None => format!("{module}/{name}"),
                    Some(PythonModule::MAKE) => {
                        format!("{INSTANCES}/MAKE.{}:{name}", module.replace('.', ":"))
                    }
                    Some(method) => format!("{INSTANCES}/METHOD.{method}"),
                }
            });
            named.map(String::into_bytes).unwrap_or_default()
        }
    }
}

/// Whose calls a pool runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    /// The module; none: those without a pool of their own.
    pub(crate) module: Option<String>,
    /// The user; none: all.
    pub(crate) user: Option<Arc<str>>,
}

impl PoolKey {
    /// That of a user's calls of a module; none: the common pool runs them.
    fn of(module: &OfferedModule, user: &Arc<str>) -> Option<PoolKey> {
        let settings = &module.settings;
        let is_of_user =
            settings.isolation == Isolation::User || settings.run_as == config::RunAs::Caller;
        has_own_pool(settings).then(|| PoolKey {
            module: Some(module.name.clone()),
            user: is_of_user.then(|| Arc::clone(user)),
        })
    }
}

/// All pools.
#[derive(Debug)]
pub(crate) struct Pools {
    workers: Workers,
    pub(crate) common: Arc<Pool>,
    others: Mutex<HashMap<PoolKey, Arc<Pool>>>,
}

impl Pools {
    pub(crate) fn new(workers: Workers) -> Pools {
        let common = Arc::new(Pool::common(workers.clone()));
        Pools { workers, common, others: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PoolKey, Arc<Pool>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of workers of the common pool.
    pub(crate) fn common_workers(&self) -> u32 {
        self.workers.count
    }

    /// The pool of a user's calls of a module.
    ///
    /// # Errors
    /// When its workers are to run as a user that does not exist here.
    pub(crate) fn of(
        &self,
        module: &OfferedModule,
        user: &Arc<str>,
    ) -> Result<Arc<Pool>, PoolError> {
        let settings = &module.settings;
        let Some(key) = PoolKey::of(module, user) else { return Ok(Arc::clone(&self.common)) };
        let mut others = self.lock();
        if let Some(pool) = others.get(&key) {
            return Ok(Arc::clone(pool));
        }
        let pool = Arc::new(Pool::of_module(self.workers.clone(), settings, key.user.as_deref())?);
        others.insert(key, Arc::clone(&pool));
        Ok(pool)
    }

    /// Whether the workers for a user's calls of a module have been started. Does not wait.
    pub(crate) fn are_started(&self, module: &OfferedModule, user: &Arc<str>) -> bool {
        match PoolKey::of(module, user) {
            None => self.common.is_started(),
            Some(key) => self.lock().get(&key).is_some_and(|pool| pool.is_started()),
        }
    }

    /// Those that exist.
    pub(crate) fn all(&self) -> Vec<(PoolKey, Arc<Pool>)> {
        let others = self.lock();
        let others = others.iter().map(|(key, pool)| (key.clone(), Arc::clone(pool)));
        std::iter::once((PoolKey::default(), Arc::clone(&self.common))).chain(others).collect()
    }

    /// Removes a user whose last connection has ended.
    pub(crate) fn forget(&self, user: &str) {
        self.all().iter().for_each(|(_, pool)| pool.forget(user));
    }

    /// Cancels the calls of a user, or of all, and of a function, or of all. Returns how many had not ended yet, and
    /// how many such calls are left since one line has the calls of all users.
    pub(crate) fn cancel_all(&self, user: Option<&str>, function: Option<&str>) -> (usize, usize) {
        self.all().iter().fold((0, 0), |(cancelled, left), (key, pool)| {
            let is_of_user = key.user.is_some();
            if is_of_user && user.is_some_and(|user| key.user.as_deref() != Some(user)) {
                return (cancelled, left);
            }
            let (more, left_here) = pool.cancel_all(user.filter(|_| !is_of_user), function);
            (cancelled + more, left + left_here)
        })
    }

    /// Ends the workers of pools that nobody has needed for `idle`, forgets pools of users without workers, and follows
    /// calendars.
    pub(crate) fn check(&self, idle: Duration) {
        for (_, pool) in self.all() {
            pool.end_if_idle(idle);
            pool.resize();
        }
        self.lock().retain(|key, pool| key.user.is_none() || pool.lock().grid.is_some());
    }

    /// Ends all workers.
    pub(crate) fn close(&self) {
        for (_, pool) in self.all() {
            let grid = pool.lock().grid.clone();
            if let Some(grid) = grid {
                grid.close();
            }
        }
    }
}

/// Whether the workers of a module run nothing else.
pub(crate) fn has_own_pool(settings: &CallSettings) -> bool {
    let CallSettings { most_running, memory, open_files, processes, calendar, .. } = settings;
    settings.is_isolated()
        || most_running.is_some()
        || memory.is_some()
        || open_files.is_some()
        || processes.is_some()
        || !calendar.is_empty()
}
