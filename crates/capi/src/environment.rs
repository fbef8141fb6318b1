//! Environment of a process between `grpc_initialize` and `grpc_finalize`.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};

use crate::context::Context;
use crate::context::log::{Level, Log};
use crate::context::settings::Settings;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::handles::attributes::{HandleAttributes, SessionAttributes};
use crate::handles::function::FunctionHandles;
use crate::handles::object::ObjectHandles;
use crate::sessions::Sessions;
use crate::signals::Signals;
use crate::slots::{HandleKind, Slots};

/// Everything that exists while the library is initialized.
#[derive(Debug)]
pub struct Environment {
    /// Grid, log and settings.
    pub context: Arc<Context>,
    /// Asynchronous calls.
    pub sessions: Arc<Sessions>,
    /// Function handles.
    pub functions: FunctionHandles,
    /// Object handles.
    pub objects: ObjectHandles,
    /// Attributes of handles.
    pub handle_attributes: Slots<Mutex<HandleAttributes>>,
    /// Attributes of sessions.
    pub session_attributes: Slots<Mutex<SessionAttributes>>,
    /// Signals taken over from the program.
    pub signals: Arc<Signals>,
}

type Current = RwLock<Option<Arc<Environment>>>;

/// The environment of this process. A forked child gets its own: it can use neither its parent's nor the
/// lock.
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
                // SAFETY: it was created above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: stored values are never freed.
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

/// Writes a line to the log, or to standard error if the library is not initialized.
pub fn log(level: Level, text: impl FnOnce() -> String) {
    match current() {
        Ok(environment) => environment.context.log.write(level, text),
        Err(_) => Log::without_configuration().write(level, text),
    }
}

/// Reads the configuration and opens the grid.
pub fn initialize(file: Option<&str>) -> Result<(), Failure> {
    static NOTICE: Once = Once::new();
    // SAFETY: the handler only does what a child after fork may do.
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

/// The environment, initialized on first use, for the functions of Ninf.
pub fn current_or_initialize() -> Result<Arc<Environment>, Failure> {
    if let Ok(current) = current() {
        return Ok(current);
    }
    match initialize(None) {
        Err(failure) if failure.code != ErrorCode::AlreadyInitialized => Err(failure),
        _ => current(),
    }
}

/// Cancels running calls and stops all workers.
pub fn finalize() -> Result<(), Failure> {
    let taken = place().write().unwrap_or_else(PoisonError::into_inner).take();
    let environment = taken.ok_or_else(not_initialized)?;
    environment.close();
    Ok(())
}

impl Environment {
    fn open(settings: Settings) -> Result<Arc<Environment>, Failure> {
        let stored_sessions = settings.config.save_session_info;
        let signals = settings.config.handling_signals.clone();
        let context = Arc::new(Context::open(settings)?);
        let sessions = Arc::new(Sessions::new(Arc::clone(&context), stored_sessions));
        let environment = Arc::new(Environment {
            functions: FunctionHandles::new(Arc::clone(&context), Arc::clone(&sessions)),
            objects: ObjectHandles::new(Arc::clone(&context), Arc::clone(&sessions)),
            handle_attributes: Slots::new(HandleKind::HandleAttributes),
            session_attributes: Slots::new(HandleKind::SessionAttributes),
            signals: Arc::default(),
            sessions,
            context,
        });
        environment.signals.take_over(&signals)?;
        Ok(environment)
    }

    fn close(&self) {
        self.signals.restore();
        self.sessions.cancel_all();
        self.objects.end_all();
        self.context.grids.close();
        self.sessions.close();
        self.context.log.write(Level::Information, || "finalized".into());
    }

    /// Reads the configuration again.
    pub fn configure(&self, file: Option<&str>) -> Result<(), Failure> {
        let settings = self.context.configure(file)?;
        self.sessions.keep(settings.config.save_session_info);
        Ok(())
    }
}
