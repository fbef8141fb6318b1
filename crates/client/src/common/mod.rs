//! State that the threads of a client share, and work to do after its lock is released.

pub(crate) mod callbacks;
mod gather;
mod nested;
pub(crate) mod request;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gridrpc_core::{CallId, FunctionId, GroupId, Loss, Owner, Time};
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::PayloadBuilder;
use gridrpc_shm::arrays;
use gridrpc_shm::segment::{FIRST_OF_SHARED_DATA, Pool};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::FunctionForm;

use crate::call::{Call, RemoteResultRequests};
use crate::config::Config;
use crate::error::GridError;
use crate::function::{Function, FunctionRef, Staged, StagedFiles, Unused};
use crate::names::Names;
use crate::parent::Parents;
use crate::reactor_lock::Wake;
use crate::server_catalogue::ServerCatalogue;
use crate::server_module::Offer;
use crate::state::State;
use crate::wakeup::Wakeup;

/// State shared by the client's threads.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) state: Mutex<State>,
    /// Signalled when there may be room for calls or the number of ready workers has changed.
    pub(crate) changed: Condvar,
    pub(crate) wakeup: Arc<Wakeup>,
    pub(crate) pool: Arc<Pool>,
    /// Memory pool for shared data.
    pub(crate) shared_pool: Arc<Pool>,
    unused: Unused,
    /// Whether there are workers on this machine.
    has_own_workers: bool,
    /// Whether all hosts use memory of this client. If they do not, and all workers are on hosts, these are sent data
    /// straight from the caller's memory.
    hosts_use_memory: AtomicBool,
    /// Minimum size of sections in shared memory, bytes.
    pub(crate) shared_threshold: usize,
    /// Module files for hosts, if there are any hosts.
    staged: Option<StagedFiles>,
    /// Requests about results that hosts keep.
    pub(crate) kept_requests: Arc<RemoteResultRequests>,
    /// Names that calls can be bound to.
    pub(crate) names: Names,
    /// Those of the servers.
    pub(crate) catalogues: Vec<Arc<ServerCatalogue>>,
    /// Clients that the grid works for, other than this process.
    pub(crate) parents: Arc<Parents>,
}

impl Common {
    /// Creates the shared state for a configuration.
    pub(crate) fn new(
        config: &Config,
        state: State,
        wakeup: Arc<Wakeup>,
        parents: Arc<Parents>,
    ) -> Arc<Common> {
        let workers = config.settings.workers;
        let kept_requests = RemoteResultRequests::new(Arc::clone(&wakeup));
        let groups = config.groups.as_ref().map_or(&[][..], |all| &all.list);
        Arc::new(Common {
            state: Mutex::new(state),
            changed: Condvar::new(),
            wakeup,
            pool: Pool::new(config.keep_free),
            shared_pool: Pool::numbered_from(FIRST_OF_SHARED_DATA, config.keep_free),
            unused: Unused::default(),
            has_own_workers: workers > 0,
            hosts_use_memory: AtomicBool::new(false),
            shared_threshold: config.shared_threshold,
            staged: config.groups.as_ref().map(|_| StagedFiles::default()),
            kept_requests,
            names: Names::new(workers, groups),
            catalogues: ServerCatalogue::among(groups),
            parents,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds what calls can be bound to by this name.
    pub(crate) fn group(&self, name: &str) -> Result<GroupId, GridError> {
        let found = self.names.find(name, |hosts| self.lock().add_group(name, hosts));
        found.map_err(|known| GridError::UnknownServer { name: name.to_owned(), known })
    }

    /// A builder for payloads.
    pub(crate) fn payload(&self) -> PayloadBuilder<'_> {
        let shares = self.has_own_workers || self.hosts_use_memory.load(Ordering::Relaxed);
        PayloadBuilder::new(&self.pool, shares, self.shared_threshold)
    }

    /// Records whether all hosts use memory of this client.
    pub(crate) fn let_hosts_use_memory(&self, use_it: bool) {
        self.hosts_use_memory.store(use_it, Ordering::Relaxed);
    }

    /// Releases the lock, sends the pushed messages and notifies waiters.
    pub(crate) fn finish(&self, mut state: MutexGuard<'_, State>) {
        let unsent = state.take_unsent();
        // The thread that holds the reactor lock may be waiting for the calls that end here.
        let ends = state.reactor_sleeps_until.is_some() && state.has_ended();
        let wake = state.needs_reactor() || ends;
        if wake {
            // One signal is enough until the reactor has checked.
            state.reactor_sleeps_until = None;
        }
        let to_run = std::mem::take(&mut state.to_run);
        let aftermath = state.aftermath();
        drop(state);
        unsent.flush();
        let (freed, unwanted) = aftermath.settle();
        if !to_run.is_empty() {
            self.send_to_run(to_run);
        }
        for call in unwanted {
            self.cancel(&call);
        }
        if freed {
            let gone = self.shared_pool.gone();
            if !gone.is_empty() {
                // Let workers drop memory that nobody will use.
                let mut state = self.lock();
                state.drop_segments(&gone, true);
                let unsent = state.take_unsent();
                drop(state);
                unsent.flush();
            }
        }
        if wake {
            self.wake();
        }
    }

    /// Cancels a call. Returns whether it had not ended yet.
    pub(crate) fn cancel(&self, call: &Call) -> bool {
        let Some(id) = call.id() else { return false };
        let mut state = self.lock();
        let now = Time(monotonic_ns());
        let cancelled = state.drive(|core, out| core.cancel(now, id, out));
        self.finish(state);
        cancelled
    }

    /// Cancels the live calls that `is_unwanted` accepts. Returns how many had not ended yet.
    pub(crate) fn cancel_all(&self, is_unwanted: impl Fn(&Call, Owner) -> bool) -> usize {
        let mut state = self.lock();
        let tasks = state.core.tasks();
        let unwanted = tasks.filter(|(_, task)| is_unwanted(&task.payload, task.owner));
        let unwanted: Vec<CallId> = unwanted.map(|(id, _)| id).collect();
        let now = Time(monotonic_ns());
        // The end of one call may end others, which wait for its result.
        let cancel = |id: &&CallId| state.drive(|core, out| core.cancel(now, **id, out));
        let cancelled = unwanted.iter().filter(cancel).count();
        self.finish(state);
        cancelled
    }

    /// Notifies everybody who waits for workers that some have started or ended. `broken`: none can start any more.
    pub(crate) fn workers_changed(&self, broken: Option<&Loss>) {
        self.changed.notify_all();
        self.parents.each(|parent| match broken {
            None => parent.changed(),
            Some(loss) => parent.has_no_workers(loss),
        });
    }

    /// Whether there is memory that is, or was, used for sharing.
    pub(crate) fn has_memory(&self) -> bool {
        self.pool.has_any() || self.shared_pool.has_any() || arrays::have_memory()
    }

    /// Frees memory that has been unused for some time. `maps_results`: workers have memory mapped here too.
    pub(crate) fn give_up_old(&self, maps_results: bool) {
        if !maps_results && !self.has_memory() {
            return;
        }
        self.pool.give_up_old();
        self.shared_pool.give_up_old();
        arrays::give_up_old();
        let mut gone = self.pool.gone();
        gone.extend(self.shared_pool.gone());
        if maps_results || !gone.is_empty() {
            let mut state = self.lock();
            state.drop_segments(&gone, true);
            state.release_all();
            self.finish(state);
        }
    }

    /// The file of a module, for hosts.
    pub(crate) fn staged(&self, path: &str) -> io::Result<Staged> {
        let files = self.staged.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Staged::read(files, path.as_bytes())
    }

    /// Registers a function.
    pub(crate) fn register(
        &self,
        name: &str,
        form: FunctionForm,
        body: Vec<u8>,
    ) -> Arc<FunctionRef> {
        self.register_as(name, None, form, body, None)
    }

    /// Registers a function. `remote_name`: its name for executors, if that is another one. `offer`: the server that
    /// runs it.
    pub(crate) fn register_as(
        &self,
        name: &str,
        remote_name: Option<String>,
        form: FunctionForm,
        body: Vec<u8>,
        offer: Option<Offer>,
    ) -> Arc<FunctionRef> {
        let staged = match &self.staged {
            // An unreadable file is reported by the worker or host that has to load it.
            Some(files) if form == FunctionForm::Library => Staged::read(files, &body).ok(),
            _ => None,
        };
        let mut state = self.lock();
        let body = Arc::new(Source::owned(body));
        let function = Function { name: name.to_owned(), remote_name, form, body, staged };
        let free = self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let id = if let Some(id) = free {
            let counters = state.core.replace_function(id);
            let old = std::mem::replace(&mut state.functions[id.0 as usize], function);
            state.past.note(old.name, &counters);
            id
        } else {
            state.functions.push(function);
            FunctionId((state.functions.len() - 1) as u32)
        };
        FunctionRef::new(id, name.to_owned(), form, offer, Arc::clone(&self.unused))
    }
}

impl Wake for Common {
    fn wake(&self) {
        self.wakeup.wake();
    }
}
