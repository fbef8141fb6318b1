//! A grid as its client sees it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gridrpc_core::{BlobId, Loss, Refusal, Time};
use gridrpc_wire::{FunctionForm, MAX_SECTIONS, Message};

use crate::client::alarm::Alarm;
use crate::client::arrays;
use crate::client::call::Call;
use crate::client::common::Common;
use crate::client::common::callbacks::Runner;
use crate::client::common::request::{Request, SubmitError};
use crate::client::config::Config;
use crate::client::error::GridError;
use crate::client::function::FunctionRef;
use crate::client::hosts::launching;
use crate::client::reactor::Reactor;
use crate::client::reactor::spawner::Forked;
use crate::client::seat::Seat;
use crate::client::shared::{SharedData, hash};
use crate::client::state::State;
use crate::client::sync::now;
use crate::client::upstream::Upstream;
use crate::forks;
use crate::nesting;
use crate::patience::Patience;
use crate::payload::PayloadBuilder;
use crate::segment::Pool;
use crate::sys;
use crate::worker::progress::ProgressMemory;

/// How a grid is getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Workers that have answered.
    pub ready: usize,
    /// Calls that wait for a worker.
    pub queued: usize,
    /// Calls that have not ended.
    pub live: usize,
}

/// Shared data as its owners hold it.
#[derive(Debug)]
struct Owned {
    blob: BlobId,
    data: Arc<SharedData>,
    owners: usize,
}

/// A grid of worker processes. Ends them when dropped.
#[derive(Debug)]
pub struct Grid {
    pub(super) common: Arc<Common>,
    seat: Arc<Seat<Reactor, Common>>,
    runner: Arc<Runner>,
    thread: Mutex<Option<JoinHandle<()>>>,
    owned: Mutex<HashMap<BlobId, Owned>>,
    /// Those that it was asked for, reserved ones left out.
    pub(super) workers: AtomicU32,
    generation: u64,
}

const MOST_WORKERS: u32 = 100_000;
/// Descriptors that a worker takes in the client: its connection, standard output and error.
const DESCRIPTORS_PER_WORKER: u64 = 3;
/// Descriptors left for everything else.
const OTHER_DESCRIPTORS: u64 = 64;

impl Grid {
    /// Asks for the workers and returns without waiting for them.
    ///
    /// # Errors
    /// When the configuration makes no sense or the system refuses a thread or a descriptor.
    pub fn open(config: Config) -> Result<Grid, GridError> {
        Grid::open_with(config, None)
    }

    /// The same, with a spawner that this process has forked. If that ends, another one is started as
    /// `config` says.
    ///
    /// # Errors
    /// As [`Grid::open`]; then the forked process ends.
    pub fn open_with(config: Config, forked: Option<Forked>) -> Result<Grid, GridError> {
        Grid::open_for(config, forked, None)
    }

    /// The same for an agent, whose client is told what happens.
    pub(crate) fn open_for(
        mut config: Config,
        forked: Option<Forked>,
        upstream: Option<Arc<dyn Upstream>>,
    ) -> Result<Grid, GridError> {
        if let Some(servers) = &config.servers {
            config.settings.hosts = launching::expected(&servers.list);
        }
        let workers = config.settings.workers;
        nesting::check().map_err(GridError::TooDeep)?;
        sys::open_standard_streams()
            .map_err(|error| GridError::System { what: "opening /dev/null", error })?;
        if config.settings.hosts.is_empty() || workers > 0 {
            check_workers(workers)?;
        }
        forks::notice();
        let system = |what| move |error| GridError::System { what, error };
        let alarm = Alarm::new().map_err(system("making an event descriptor"))?;
        let progress = ProgressMemory::new(workers).map_err(system("making shared memory"))?;
        let mut state = State::new(config.settings.clone(), Arc::clone(&progress.mapping))
            .map_err(system("making an event queue"))?;
        state.drive(|core, out| core.open(Time(sys::monotonic_ns()), out));
        let common = Common::new(&config, state, Arc::new(alarm), upstream);
        let runner = Runner::new(Arc::clone(&common));
        arrays::tell(&common.pool);
        let reactor =
            Reactor::new(Arc::clone(&common), Arc::clone(&runner), config, progress, forked)
                .map_err(system("starting"))?;
        let seat = Arc::new(Seat::new(Arc::clone(&common), reactor));
        let server = Arc::clone(&seat);
        let thread = std::thread::Builder::new()
            .name("gridrpc-reactor".into())
            .spawn(move || server.serve())
            .map_err(system("starting a thread"))?;
        Ok(Grid {
            common,
            seat,
            runner,
            thread: Mutex::new(Some(thread)),
            owned: Mutex::default(),
            workers: AtomicU32::new(workers),
            generation: forks::generation(),
        })
    }

    /// Has a Python module imported once for all workers, if none has been started yet. They would
    /// have to import it one by one.
    pub fn prepare(&self, module: &str) {
        let mut state = self.common.lock();
        if !state.forked && !state.closing {
            state.to_prepare.push(module.to_owned());
        }
        self.common.finish(state);
    }

    /// How many workers it is to have, those of hosts as far as they have told.
    #[must_use]
    pub fn workers(&self) -> u32 {
        let here = self.workers.load(Ordering::Relaxed);
        here + self.common.lock().core.places_on_hosts() as u32
    }

    /// The host of a worker, as the configuration names it; none: this machine.
    #[must_use]
    pub fn host_of(&self, worker: u32) -> Option<Arc<str>> {
        self.common.lock().hosts.host_of(worker)
    }

    /// Why there are no workers at all, if none can be started.
    #[must_use]
    pub(crate) fn broken(&self) -> Option<Arc<Loss>> {
        self.common.lock().core.broken().cloned()
    }

    /// Where memory for arguments comes from.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.common.pool
    }

    /// Where memory for shared data comes from.
    pub(crate) fn shared_pool(&self) -> &Arc<Pool> {
        &self.common.shared_pool
    }

    /// From how many bytes on sections lie in shared memory.
    pub(crate) fn shared_threshold(&self) -> usize {
        self.common.shared_threshold
    }

    /// Shares data under a number of the caller's.
    pub(crate) fn share_as(&self, blob: BlobId, data: Arc<SharedData>) {
        let mut state = self.common.lock();
        state.shared.insert(blob, data);
        state.core.share(blob);
    }

    /// Shares such data no more.
    pub(crate) fn unshare_named(&self, blob: BlobId) {
        let mut state = self.common.lock();
        state.drive(|core, out| core.unshare(blob, out));
        self.common.finish(state);
    }

    /// Submits a call however many wait.
    pub(crate) fn submit_at_once(&self, request: Request) -> Result<Arc<Call>, SubmitError> {
        self.common.submit(request, false)
    }

    /// Takes a call back that no worker has been given. Nothing is told of it any more.
    pub(crate) fn withdraw(&self, call: &Call) -> bool {
        let Some(id) = call.id() else { return false };
        let mut state = self.common.lock();
        let withdrawn = state.drive(|core, out| core.withdraw(id, out));
        self.common.finish(state);
        withdrawn.is_some()
    }

    /// How it is getting on.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.common.lock();
        let core = &state.core;
        Counts { ready: core.ready(), queued: core.queued(), live: core.live() }
    }

    /// Makes a function known.
    pub fn register(&self, name: &str, form: FunctionForm, body: Vec<u8>) -> Arc<FunctionRef> {
        self.common.register(name, form, body)
    }

    /// Something to put a payload together with.
    #[must_use]
    pub fn payload(&self) -> PayloadBuilder<'_> {
        self.common.payload()
    }

    /// Waits, at most so long, until a call with so many bytes may be submitted. Returns
    /// whether it may. Threads that submit at once may go over the bound by a call each.
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

    /// Waits, at most so long, until all workers have answered. Returns whether they have.
    ///
    /// # Errors
    /// When not all can be started, or the grid has been closed.
    pub fn wait_until_ready(&self, timeout: Duration) -> Result<bool, GridError> {
        self.wait_for(None, timeout)
    }

    /// Waits, at most so long, until so many workers have answered. Returns whether they have.
    ///
    /// # Errors
    /// When so many cannot be started, or the grid has been closed.
    pub fn wait_for_workers(&self, wanted: usize, timeout: Duration) -> Result<bool, GridError> {
        self.wait_for(Some(wanted), timeout)
    }

    /// Waits for so many workers, or for all.
    fn wait_for(&self, wanted: Option<usize>, timeout: Duration) -> Result<bool, GridError> {
        self.check_process()?;
        let state = self.common.lock();
        let wanted = |state: &State| wanted.unwrap_or_else(|| state.core.places());
        let unknown = |state: &State| !state.core.knows_places();
        let hopeless = |state: &State| {
            state.core.broken().is_some() || state.core.too_few(wanted(state)).is_some()
        };
        let waiting = |state: &mut State| {
            (state.core.ready() < wanted(state) || unknown(state))
                && !hopeless(state)
                && !state.closing
        };
        let waited = self.common.changed.wait_timeout_while(state, timeout, waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(loss) = state.core.broken() {
            return Err(Refusal::NoWorkers(Arc::clone(loss)).into());
        }
        if state.closing {
            return Err(Refusal::Closed.into());
        }
        let wanted = wanted(&state);
        match state.core.too_few(wanted) {
            Some(loss) => Err(GridError::TooFewWorkers(loss)),
            None => Ok(state.core.ready() >= wanted && !unknown(&state)),
        }
    }

    /// Hosts without a worker that has answered: each with what is known of it, for people.
    #[must_use]
    pub fn absent_hosts(&self) -> Vec<String> {
        let state = self.common.lock();
        let told = |(id, loss): (gridrpc_core::WorkerId, Option<&Arc<Loss>>)| match loss {
            Some(loss) => loss.to_string(),
            None => state.hosts.how_far(id),
        };
        state.core.absent_hosts().map(told).collect()
    }

    /// Submits a call.
    ///
    /// # Errors
    /// When too many calls wait for workers (the request comes back: wait for room), the grid takes
    /// no calls, or shared data is not there.
    pub fn submit(&self, request: Request) -> Result<Arc<Call>, SubmitError> {
        self.check_process()?;
        self.common.submit(request, true)
    }

    /// What to wait for calls with.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter { seat: Arc::clone(&self.seat), generation: self.generation }
    }

    /// Gives up a call. Returns whether it had not ended yet.
    pub fn cancel(&self, call: &Call) -> bool {
        self.check_process().is_ok() && self.common.cancel(call)
    }

    /// Shares data, in parts. Equal data that is shared already is shared once.
    ///
    /// # Errors
    /// When there are too many parts or no memory for them.
    pub fn share(&self, parts: &[&[u8]]) -> Result<BlobId, GridError> {
        self.check_process()?;
        if parts.len() > MAX_SECTIONS {
            let most = MAX_SECTIONS;
            return Err(GridError::Config(format!("shared data of more than {most} parts")));
        }
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = owned.values().filter(|owned| owned.data.has_lengths(parts)).count();
        if alike > 0 {
            let name = hash(parts);
            let same =
                |owned: &&mut Owned| owned.data.has_lengths(parts) && owned.data.hash() == name;
            if let Some(owned) = owned.values_mut().find(same) {
                owned.owners += 1;
                return Ok(owned.blob);
            }
        }
        let what = "making shared memory";
        let data = SharedData::new(parts, &self.common.shared_pool)
            .map_err(|error| GridError::System { what, error })?;
        let data = Arc::new(data);
        let mut state = self.common.lock();
        let blob = state.next_blob();
        owned.insert(blob, Owned { blob, data: Arc::clone(&data), owners: 1 });
        state.shared.insert(blob, data);
        state.core.share(blob);
        Ok(blob)
    }

    /// One of the owners of shared data has given it up.
    pub fn unshare(&self, blob: BlobId) {
        if self.check_process().is_err() {
            return;
        }
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(one) = owned.get_mut(&blob) else { return };
        one.owners -= 1;
        if one.owners > 0 {
            return;
        }
        owned.remove(&blob);
        drop(owned);
        let mut state = self.common.lock();
        state.drive(|core, out| core.unshare(blob, out));
        self.common.finish(state);
    }

    /// Ends all calls that are alive, and all workers, and waits until they are gone.
    pub fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        if self.check_process().is_err() {
            // The thread lives in the parent; there is nothing of ours to end.
            std::mem::forget(thread);
            return;
        }
        let mut state = self.common.lock();
        state.drive(|core, out| core.close(Time(sys::monotonic_ns()), out));
        state.closing = true;
        state.push_to_all(&Message::Goodbye);
        self.common.finish(state);
        self.common.changed.notify_all();
        self.seat.call_back();
        // A reactor that panicked has nothing left to end.
        let _ = thread.join();
        self.runner.close();
    }

    pub(super) fn check_process(&self) -> Result<(), GridError> {
        if forks::generation() == self.generation { Ok(()) } else { Err(GridError::Forked) }
    }
}

/// Waits for calls of one grid, and reads answers meanwhile.
#[derive(Clone, Debug)]
pub struct Waiter {
    seat: Arc<Seat<Reactor, Common>>,
    generation: u64,
}

impl Waiter {
    /// Whether this process may wait: not if it is a forked child of the one that opened the grid.
    /// Ask before anything else; a thread of the parent may have held any lock at the fork.
    ///
    /// # Errors
    /// `GridError::Forked` if it may not.
    pub fn check(&self) -> Result<(), GridError> {
        if forks::generation() == self.generation { Ok(()) } else { Err(GridError::Forked) }
    }

    /// Waits until the call has ended, at most so long. Returns whether it has.
    #[must_use]
    pub fn wait(&self, call: &Call, timeout: Duration) -> bool {
        self.wait_until(timeout, || call.done(), |left| call.wait(left))
    }

    /// Reads answers for a moment, as long as the call has not ended, if that has been of use lately, and does
    /// not sleep.
    pub(crate) fn look(&self, call: &Call, patience: &mut Patience) {
        if patience.makes_sense() {
            let _ = self.seat.look(|step| patience.look_now(step), || call.done());
        }
    }

    /// Has a thread that waits by [`Waiter::wait_until`] and reads answers meanwhile look again
    /// whether it is ready. Needed when something else than an answer makes it so.
    pub fn nudge(&self) {
        self.seat.nudge();
    }

    /// Waits until `ready`, at most so long, and reads answers meanwhile; if another thread does,
    /// by `sleep`, which has to return as soon as it is ready. Returns whether it is.
    #[must_use]
    pub fn wait_until(
        &self,
        timeout: Duration,
        ready: impl Fn() -> bool,
        sleep: impl FnOnce(Duration) -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        // What is waited for may be a call that still waits for others to be sent with.
        let alarm = self.seat.alarm();
        let mut state = alarm.lock();
        let unsent = state.take_all_unsent();
        drop(state);
        unsent.flush();
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.seat.wait(now() + timeout, ready, sleep)
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        self.close();
    }
}

pub(super) fn check_workers(workers: u32) -> Result<(), GridError> {
    if workers == 0 || workers > MOST_WORKERS {
        return Err(GridError::Config(format!(
            "{workers} workers: choose from 1 to {MOST_WORKERS}"
        )));
    }
    let limit = sys::raise_file_limit();
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let need = open + OTHER_DESCRIPTORS + DESCRIPTORS_PER_WORKER * u64::from(workers);
    if need > limit {
        return Err(GridError::Config(format!(
            "{workers} workers need {need} open files, but the limit is {limit}: raise it with \
             `ulimit -n {need}`, or use fewer workers"
        )));
    }
    Ok(())
}
