//! What lies between `grpc_initialize` and `grpc_finalize`: the grid, the configuration, and all
//! handles and sessions.

mod launch;
pub mod log;
pub mod settings;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};
use std::time::Duration;

use gridrpc_client::{Grid, Waiter};
use gridrpc_core::GroupId;
use gridrpc_sys::host_name;

use crate::call::info::CallInfo;
use crate::call::outcome;
use crate::config::{self, ThisMachine, Wait, Warning};
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::handles::attributes::{HandleAttributes, SessionAttributes};
use crate::handles::function::FunctionHandle;
use crate::handles::object::{self, ObjectHandle};
use crate::sessions::Sessions;
use crate::signals::Signals;
use crate::slots::Slots;
use launch::MOST_WORKERS;
use log::{Level, Log};
use settings::Settings;

/// As long as something takes.
pub const LONG: Duration = Duration::from_secs(3600);

/// Everything that is there while the library is initialized.
#[derive(Debug)]
pub struct Environment {
    /// The workers.
    pub grid: Arc<Grid>,
    /// What waits for calls.
    pub waiter: Waiter,
    /// The name of this host.
    pub host: String,
    /// What the library tells of itself.
    pub log: Log,
    settings: RwLock<Arc<Settings>>,
    /// Function handles.
    pub functions: Slots<FunctionHandle>,
    /// Object handles.
    pub objects: Slots<ObjectHandle>,
    /// Attributes of handles.
    pub handle_attributes: Slots<Mutex<HandleAttributes>>,
    /// Attributes of sessions.
    pub session_attributes: Slots<Mutex<SessionAttributes>>,
    /// Calls that were begun without waiting for them.
    pub sessions: Sessions,
    /// How the call went that ended last, and its session, if it had one.
    pub last: Mutex<Option<(CallInfo, i32, ErrorCode)>>,
    /// Signals that are taken over.
    pub signals: Arc<Signals>,
    /// Servers of which a worker has answered; none: any.
    have_worker: Mutex<HashSet<Option<GroupId>>>,
}

type Current = RwLock<Option<Arc<Environment>>>;

/// The environment of this process. A forked child gets a place of its own: it can use nothing of
/// its parent's, and may not even touch the lock.
static CURRENT: AtomicPtr<Current> = AtomicPtr::new(std::ptr::null_mut());
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn after_in_child() {
    if !CURRENT.swap(std::ptr::null_mut(), Ordering::Relaxed).is_null() {
        FORKED.store(true, Ordering::Relaxed);
    }
}

fn place() -> &'static Current {
    let mut place = CURRENT.load(Ordering::Acquire);
    if place.is_null() {
        let new = Box::into_raw(Box::<Current>::default());
        let (null, order) = (std::ptr::null_mut(), Ordering::AcqRel);
        place = match CURRENT.compare_exchange(null, new, order, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: it was made above, and nobody has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: what is stored here is never freed.
    unsafe { &*place }
}

fn not_initialized() -> Failure {
    let detail = if FORKED.load(Ordering::Relaxed) {
        "this process was forked from one that had initialized the library: it has to call \
         grpc_initialize itself"
    } else {
        ""
    };
    Failure::new(ErrorCode::NotInitialized, detail)
}

/// The environment of this process.
pub fn current() -> Result<Arc<Environment>, Failure> {
    let current = place().read().unwrap_or_else(PoisonError::into_inner);
    current.as_ref().map(Arc::clone).ok_or_else(not_initialized)
}

/// Tells something in the log; on standard error as long as no configuration has been read.
pub fn tell(level: Level, text: impl FnOnce() -> String) {
    match current() {
        Ok(environment) => environment.log.write(level, text),
        Err(_) => Log::without_configuration().write(level, text),
    }
}

/// Reads the configuration and opens the grid.
pub fn initialize(file: Option<&str>) -> Result<(), Failure> {
    static NOTICE: Once = Once::new();
    // SAFETY: the handler only does what is allowed in a child of fork.
    NOTICE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(after_in_child));
    });
    let mut current = place().write().unwrap_or_else(PoisonError::into_inner);
    if current.is_some() {
        return Err(Failure::new(ErrorCode::AlreadyInitialized, ""));
    }
    *current = Some(Environment::open(Settings::read(file)?)?);
    Ok(())
}

/// The environment, made if it is not there. What Ninf's functions do.
pub fn current_or_initialize() -> Result<Arc<Environment>, Failure> {
    if let Ok(current) = current() {
        return Ok(current);
    }
    match initialize(None) {
        Err(failure) if failure.code != ErrorCode::AlreadyInitialized => Err(failure),
        _ => current(),
    }
}

/// Cancels what still runs and ends all workers.
pub fn finalize() -> Result<(), Failure> {
    let taken = place().write().unwrap_or_else(PoisonError::into_inner).take();
    let environment = taken.ok_or_else(not_initialized)?;
    environment.close();
    Ok(())
}

/// How important it is that something in the configuration has no effect.
fn level_of(warning: &Warning) -> Level {
    if warning.is_notice { Level::Information } else { Level::Warning }
}

impl Environment {
    fn open(settings: Settings) -> Result<Arc<Environment>, Failure> {
        let host = host_name();
        let log = Log::open(&settings.config, &host);
        let (config, started) = launch::config(&settings.config, settings.search())?;
        for warning in settings.config.warnings(&started) {
            log.write(level_of(warning), || warning.to_string());
        }
        let (workers, program) = (config.settings.workers, config.launch.program.clone());
        let grid =
            Grid::open(config).map_err(|error| outcome::refused("grpc_initialize", &error))?;
        log.write(Level::Information, || {
            format!("{workers} workers of `{}` are starting", program.display())
        });
        let signals = settings.config.handling_signals.clone();
        let environment = Arc::new(Environment {
            waiter: grid.waiter(),
            grid: Arc::new(grid),
            host,
            log,
            functions: Slots::new(1),
            objects: Slots::new(2),
            handle_attributes: Slots::new(3),
            session_attributes: Slots::new(4),
            sessions: Sessions::new(settings.config.save_session_info),
            settings: RwLock::new(Arc::new(settings)),
            last: Mutex::default(),
            signals: Arc::default(),
            have_worker: Mutex::default(),
        });
        environment.signals.take_over(&signals)?;
        Ok(environment)
    }

    fn close(&self) {
        self.signals.give_back();
        self.sessions.cancel_all(self);
        object::end(self, &self.objects.all());
        self.grid.close();
        self.sessions.close();
        self.log.write(Level::Information, || "finalized".into());
    }

    /// The configuration that holds now.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration anew.
    pub fn configure(&self, file: Option<&str>) -> Result<(), Failure> {
        let settings = Settings::read(file)?;
        // Servers are started once: those that it names anew are not.
        let started = match self.grid.has_hosts() {
            true => config::servers(&settings.config, &ThisMachine),
            false => Vec::new(),
        };
        for warning in settings.config.warnings(&started) {
            self.log.write(level_of(warning), || warning.to_string());
        }
        self.sessions.keep(settings.config.save_session_info);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        Ok(())
    }

    /// Sees to it that there is a worker at all, of the server that is named, and as many as function
    /// handles, within reason.
    pub fn provide_workers(
        &self,
        what: &str,
        bound: Option<GroupId>,
        start: Wait,
    ) -> Result<(), Failure> {
        let wanted = u32::try_from(self.functions.len()).unwrap_or(u32::MAX).min(MOST_WORKERS);
        if wanted > self.grid.workers()
            && let Err(error) = self.grid.grow(wanted)
        {
            // Calls wait for each other then.
            self.log.write(Level::Warning, || format!("no more workers: {error}"));
        }
        if self.have_worker().contains(&bound) {
            return Ok(());
        }
        let timeout = match start {
            Wait::Forever => LONG,
            Wait::For(time) => time,
        };
        loop {
            let waited = match bound {
                None => self.grid.wait_for_workers(1, timeout),
                Some(server) => self.grid.wait_for_server(server, timeout),
            };
            match waited {
                Ok(true) => break,
                Ok(false) if start == Wait::Forever => {}
                Ok(false) => {
                    let detail = format!("{what}: no worker has started within {timeout:?}");
                    return Err(Failure::new(ErrorCode::Timeout, detail));
                }
                Err(error) => return Err(outcome::refused(what, &error)),
            }
        }
        self.have_worker().insert(bound);
        Ok(())
    }

    fn have_worker(&self) -> MutexGuard<'_, HashSet<Option<GroupId>>> {
        self.have_worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers how a call went, for those who ask about the last one.
    pub fn remember(&self, info: CallInfo, session: i32, code: ErrorCode) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((info, session, code));
    }
}
