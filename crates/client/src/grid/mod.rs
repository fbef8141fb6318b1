//! A grid as its client sees it.

mod binding;
mod detached;
mod limits;
mod offers;
mod parents;
mod sharing;
mod start_progress;
mod statistics;
mod waiter;
mod workers;

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gridrpc_core::{BlobId, Owner, Time};
use gridrpc_link::payload::PayloadBuilder;
use gridrpc_shm::arrays;
use gridrpc_shm::progress::ProgressMemory;
use gridrpc_shm::segment::Pool;
use gridrpc_sys::{depth, forks};
use gridrpc_wire::{FunctionForm, Message};

use crate::call::{Call, trace};
use crate::common::Common;
use crate::common::callbacks::Runner;
use crate::common::request::{Request, SubmitError};
use crate::config::Config;
use crate::detached::DetachedWatcher;
use crate::error::GridError;
use crate::function::FunctionRef;
use crate::grid::limits::check_workers;
use crate::hosts::{plans, states};
use crate::live::About;
use crate::parent::{Parent, Parents};
use crate::reactor::Reactor;
use crate::reactor::spawner::Forked;
use crate::reactor_lock::ReactorLock;
use crate::shared::Owned;
use crate::state::State;
use crate::trust::Trust;
use crate::wakeup::Wakeup;

pub use limits::LimitsInForce;
pub use waiter::Waiter;

/// Counts of workers and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Ready workers.
    pub ready: usize,
    /// Workers of elastic host groups that are not ready, and start while calls wait.
    pub on_demand: usize,
    /// Calls that wait for a worker.
    pub queued: usize,
    /// Calls that have not ended.
    pub live: usize,
}

/// A grid of worker processes. Ends them when dropped.
#[derive(Debug)]
pub struct Grid {
    pub(super) common: Arc<Common>,
    reactor_lock: Arc<ReactorLock<Reactor, Common>>,
    runner: Arc<Runner>,
    thread: Mutex<Option<JoinHandle<()>>>,
    owned: Mutex<HashMap<BlobId, Owned>>,
    /// Waits for detached calls, by the name of the server.
    watchers: Mutex<HashMap<String, Arc<DetachedWatcher>>>,
    /// Number of requested workers, without reserved ones.
    pub(super) workers: AtomicU32,
    /// Whether the grid was opened with workers on this machine.
    pub(super) has_own_workers: bool,
    limits: LimitsInForce,
    generation: u64,
    /// Names of the grid and its hosts.
    about: Arc<About>,
    /// Reports hosts that the program waits for.
    waiting: Mutex<Option<start_progress::ProgressReporter>>,
}

impl Grid {
    /// Requests the workers and returns without waiting for them.
    ///
    /// # Errors
    /// When the configuration is invalid or the system refuses a thread or a descriptor.
    pub fn open(config: Config) -> Result<Grid, GridError> {
        Grid::open_with(config, None)
    }

    /// Opens a grid with a spawner that this process has forked. If it ends, another one is started from `config`.
    ///
    /// # Errors
    /// As [`Grid::open`]; then the forked process ends.
    pub fn open_with(config: Config, forked: Option<Forked>) -> Result<Grid, GridError> {
        Grid::open_for(config, forked, None)
    }

    /// Opens a grid that works for a client from the start, and reports events to it.
    pub fn open_for(
        mut config: Config,
        forked: Option<Forked>,
        parent: Option<Arc<dyn Parent>>,
    ) -> Result<Grid, GridError> {
        if let Some(groups) = &config.groups {
            config.settings.hosts = plans::expected(&groups.list);
        }
        let workers = config.settings.workers;
        config.launch.limits.check()?;
        if forked.is_some() && !config.launch.limits.is_none() {
            let text = "limits of workers need a spawner program, and this grid has a forked one";
            return Err(GridError::Config(text.to_owned()));
        }
        let (worker_groups, limits) = LimitsInForce::of(&config.launch.limits);
        depth::check().map_err(GridError::TooDeep)?;
        gridrpc_sys::open_standard_streams()
            .map_err(|error| GridError::System { what: "opening /dev/null", error })?;
        if config.settings.hosts.is_empty() || workers > 0 {
            check_workers(workers)?;
        }
        forks::notice();
        let system = |what| move |error| GridError::System { what, error };
        if !config.is_of_agent {
            trace::begin().map_err(system("writing to the folder that GRIDRPC_TRACE names"))?;
        }
        let wakeup = Wakeup::new().map_err(system("making an event descriptor"))?;
        let progress = ProgressMemory::new(workers).map_err(system("making shared memory"))?;
        let mut state = State::new(config.settings.clone(), Arc::clone(&progress.mapping))
            .map_err(system("making an event queue"))?;
        if let Some(groups) = &config.groups {
            plans::describe(&mut state.core, workers, &groups.list);
            state.trust = Trust::of(&mut state.core, workers, &groups.list);
        }
        state.drive(|core, out| core.open(Time(gridrpc_sys::monotonic_ns()), out));
        let hosts = states::named(&config);
        let about = Arc::new(About::new(&config, Arc::clone(&hosts)));
        let progress_of = config.progress;
        let parents = Arc::<Parents>::default();
        parent.into_iter().for_each(|parent| parents.add(parent));
        let common = Common::new(&config, state, Arc::new(wakeup), parents);
        let runner = Runner::new(Arc::clone(&common));
        arrays::announce_to(&common.pool);
        let (shared, callbacks, names) =
            (Arc::clone(&common), Arc::clone(&runner), Arc::clone(&about));
        let reactor =
            Reactor::new(shared, callbacks, names, config, progress, forked, worker_groups)
                .map_err(system("starting"))?;
        let reactor_lock = Arc::new(ReactorLock::new(Arc::clone(&common), reactor));
        let group = Arc::clone(&reactor_lock);
        let thread = std::thread::Builder::new()
            .name("gridrpc-reactor".into())
            .spawn(move || group.serve())
            .map_err(system("starting a thread"))?;
        let waiting = start_progress::ProgressReporter::start(progress_of, &common, &hosts);
        Ok(Grid {
            common,
            about,
            waiting: Mutex::new(waiting),
            reactor_lock,
            runner,
            thread: Mutex::new(Some(thread)),
            owned: Mutex::default(),
            watchers: Mutex::default(),
            workers: AtomicU32::new(workers),
            has_own_workers: workers > 0,
            limits,
            generation: forks::generation(),
        })
    }

    /// Imports a Python module once for all workers if none has been started yet. Otherwise each worker would have to
    /// import it.
    pub fn prepare(&self, module: &str) {
        let mut state = self.common.lock();
        if !state.forked && !state.closing {
            state.to_prepare.push(module.to_owned());
        }
        self.common.finish(state);
    }

    /// Memory pool for arguments.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.common.pool
    }

    /// Lets workers drop memory for arguments that is gone, without waiting for the next call.
    pub fn tell_of_dropped_memory(&self) {
        let gone = self.common.pool.gone();
        if !gone.is_empty() {
            let mut state = self.common.lock();
            state.drop_segments(&gone, true);
            self.common.finish(state);
        }
    }

    /// Memory pool for shared data.
    pub fn shared_pool(&self) -> &Arc<Pool> {
        &self.common.shared_pool
    }

    /// Minimum size of sections in shared memory, bytes.
    pub fn shared_threshold(&self) -> usize {
        self.common.shared_threshold
    }

    /// Submits a call regardless of how many wait.
    pub fn submit_at_once(&self, request: Request) -> Result<Arc<Call>, SubmitError> {
        self.common.submit(request, false)
    }

    /// Withdraws a call that no worker has received. Nothing more is reported of it.
    pub fn withdraw(&self, call: &Call) -> bool {
        let Some(id) = call.id() else { return false };
        let mut state = self.common.lock();
        let now = Time(gridrpc_sys::monotonic_ns());
        let withdrawn = state.drive(|core, out| core.withdraw(now, id, out));
        self.common.finish(state);
        withdrawn.is_some()
    }

    /// Which limits of workers hold, and how. Displayed in one line.
    #[must_use]
    pub fn limits(&self) -> &LimitsInForce {
        &self.limits
    }

    /// Current counts of workers and calls.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.common.lock();
        let core = &state.core;
        Counts {
            ready: core.ready(),
            on_demand: core.workers_on_demand(),
            queued: core.queued(),
            live: core.live(),
        }
    }

    /// Registers a function.
    pub fn register(&self, name: &str, form: FunctionForm, body: Vec<u8>) -> Arc<FunctionRef> {
        self.common.register(name, form, body)
    }

    /// A builder for payloads.
    #[must_use]
    pub fn payload(&self) -> PayloadBuilder<'_> {
        self.common.payload()
    }

    /// Submits a call.
    ///
    /// # Errors
    /// When too many calls wait for workers (the error returns the request: wait for room), the grid accepts no
    /// calls, or shared data is missing.
    pub fn submit(&self, request: Request) -> Result<Arc<Call>, SubmitError> {
        self.check_process()?;
        self.common.submit(request, true)
    }

    /// Waits up to `timeout` until a call with this many bytes may be submitted. Returns whether it may. Threads that
    /// submit at the same time may exceed the limit by one call each.
    #[must_use]
    pub fn wait_for_room(&self, bytes: u64, timeout: Duration) -> bool {
        let mut state = self.common.lock();
        let no_room = |state: &State| {
            !state.core.has_room(bytes) && !state.closing && state.core.broken().is_none()
        };
        if !no_room(&state) {
            return true;
        }
        state.waiting_for_room += 1;
        let waited = self.common.changed.wait_timeout_while(state, timeout, |state| no_room(state));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting_for_room -= 1;
        !no_room(&state)
    }

    /// Cancels a call. Returns whether it had not ended yet.
    pub fn cancel(&self, call: &Call) -> bool {
        self.check_process().is_ok() && (self.common.cancel(call) || self.cancel_attached(call))
    }

    /// Cancels the live calls that `is_unwanted` accepts. Returns how many had not ended yet. Detached calls continue.
    pub fn cancel_all(&self, is_unwanted: impl Fn(&Call, Owner) -> bool) -> usize {
        if self.check_process().is_err() { 0 } else { self.common.cancel_all(is_unwanted) }
    }

    /// Ends all live calls and all workers, and waits until they are gone.
    pub fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let teller = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.check_process().is_err() {
            std::mem::forget(teller);
            // The thread lives in the parent; this process has nothing to end.
            std::mem::forget(thread);
            return;
        }
        drop(teller);
        self.stop_watching();
        let mut state = self.common.lock();
        state.drive(|core, out| core.close(Time(gridrpc_sys::monotonic_ns()), out));
        state.closing = true;
        state.push_to_all(&Message::Goodbye);
        self.common.finish(state);
        self.common.changed.notify_all();
        self.reactor_lock.call_back();
        // A reactor that panicked has nothing left to end.
        let _ = thread.join();
        self.runner.close();
        trace::settle();
    }

    pub(super) fn check_process(&self) -> Result<(), GridError> {
        if forks::generation() == self.generation { Ok(()) } else { Err(GridError::Forked) }
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        self.close();
    }
}
