//! Context of handles and sessions: the grid, the log, and the configuration in effect.

pub mod call_grid;
pub mod grids;
mod launch;
pub mod log;
pub mod settings;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gridrpc_core::GroupId;
use gridrpc_sys::host_name;

use crate::call::info::CallInfo;
use crate::call::outcome;
use crate::call::pending::LONG;
use crate::config::{self, ThisMachine, WaitTime, Warning};
use crate::errors::ErrorCode;
use crate::failure::Failure;
use call_grid::CallGrid;
use grids::Grids;
use launch::MOST_WORKERS;
use log::{Level, Log};
use settings::Settings;

/// Grid, log and settings of an initialized library.
#[derive(Debug)]
pub struct Context {
    /// The grids.
    pub grids: Grids,
    /// Name of this host.
    pub host: String,
    /// The log.
    pub log: Log,
    settings: RwLock<Arc<Settings>>,
    last_call: Mutex<Option<LastCall>>,
}

/// The call that ended last.
#[derive(Clone, Copy, Debug)]
pub struct LastCall {
    /// Its times and places.
    pub info: CallInfo,
    /// Its session; -1 if it had none.
    pub session: i32,
    /// Its error code.
    pub code: ErrorCode,
}

impl Context {
    /// Opens the log and the grid.
    pub fn open(settings: Settings) -> Result<Context, Failure> {
        let host = host_name();
        let log = Log::open(&settings.config, &host);
        let (config, started) = launch::config(&settings.config, settings.search())?;
        for warning in settings.config.warnings(&started) {
            log.write(level_of(warning), || warning.to_string());
        }
        let (workers, program) = (config.settings.workers, config.launch.program.clone());
        let main =
            CallGrid::open(config).map_err(|error| outcome::refused("grpc_initialize", &error))?;
        log.write(Level::Information, || {
            format!("{workers} workers of `{}` are starting", program.display())
        });
        Ok(Context {
            grids: Grids::new(main),
            host,
            log,
            settings: RwLock::new(Arc::new(settings)),
            last_call: Mutex::default(),
        })
    }

    /// The settings in effect.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration again. Servers start only with the grid, so servers new in the file do not
    /// start.
    pub fn configure(&self, file: Option<&str>) -> Result<Arc<Settings>, Failure> {
        let settings = Arc::new(Settings::read(file)?);
        let started = match self.grids.main.grid.has_hosts() {
            true => config::servers(&settings.config, &ThisMachine),
            false => Vec::new(),
        };
        for warning in settings.config.warnings(&started) {
            self.log.write(level_of(warning), || warning.to_string());
        }
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&settings);
        Ok(settings)
    }

    /// Waits until a worker of the server is up, any worker if `server` is `None`. Starts as many
    /// workers as there are function handles, up to [`MOST_WORKERS`].
    pub fn provide_workers(
        &self,
        what: &str,
        on: &CallGrid,
        handles: usize,
        server: Option<GroupId>,
        start: WaitTime,
    ) -> Result<(), Failure> {
        let wanted = u32::try_from(handles).unwrap_or(u32::MAX).min(MOST_WORKERS);
        if wanted > on.grid.workers()
            && let Err(error) = on.grid.grow(wanted)
        {
            // Calls then queue for the workers there are.
            self.log.write(Level::Warning, || format!("no more workers: {error}"));
        }
        if on.is_ready(server) {
            return Ok(());
        }
        let timeout = match start {
            WaitTime::Forever => LONG,
            WaitTime::For(time) => time,
        };
        loop {
            let waited = match server {
                None => on.grid.wait_for_workers(1, timeout),
                Some(server) => on.grid.wait_for_group(server, timeout),
            };
            match waited {
                Ok(true) => break,
                Ok(false) if start == WaitTime::Forever => {}
                Ok(false) => {
                    let detail = format!("{what}: no worker has started within {timeout:?}");
                    return Err(Failure::new(ErrorCode::Timeout, detail));
                }
                Err(error) => return Err(outcome::refused(what, &error)),
            }
        }
        on.has_answered(server);
        Ok(())
    }

    /// Records the end of a call.
    pub fn call_ended(&self, info: CallInfo, session: i32, code: ErrorCode) {
        let last = LastCall { info, session, code };
        *self.last_call.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }

    /// The call that ended last.
    pub fn last_call(&self) -> Option<LastCall> {
        *self.last_call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Log level of a configuration warning.
fn level_of(warning: &Warning) -> Level {
    if warning.is_notice { Level::Information } else { Level::Warning }
}
