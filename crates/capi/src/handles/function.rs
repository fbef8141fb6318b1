//! Function handles: a resolved function, defaults for its calls, and its sessions.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::CallOptions;
use gridrpc_lookup::Directories;

use super::attributes::{HandleAttributes, SessionAttributes};
use crate::c_types::Handle;
use crate::call::function::Function;
use crate::config::{ArgumentTransfer, WaitTime};
use crate::context::Context;
use crate::context::call_grid::CallGrid;
use crate::context::log::Level;
use crate::context::settings::Resolved;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::sessions::{HandleRecord, Sessions};
use crate::slots::{HandleKind, Slots};

/// Most handles that one function of the API makes.
const MOST_AT_ONCE: usize = 1 << 20;

/// Defaults for the calls of a handle.
#[derive(Clone, Debug)]
pub struct CallDefaults {
    /// The server's name as the program gives it.
    pub server: String,
    /// The name of the function or class as the program gives it.
    pub name: String,
    /// Time limit of a session.
    pub timeout: Option<Duration>,
    /// How long a worker may take to start.
    pub start: WaitTime,
    /// How long to wait for a worker to exit.
    pub stop: WaitTime,
    /// When an asynchronous call returns.
    pub transfer: ArgumentTransfer,
    /// Number of ranks for parallel functions.
    pub ranks: u32,
    /// Options of its calls.
    pub options: CallOptions,
    /// The grid that runs them.
    pub grid: Arc<CallGrid>,
    /// The directories that place them; none: they run on the grid.
    pub directory: Option<Arc<Directories>>,
}

impl CallDefaults {
    /// Values of the attributes, and of the configuration where an attribute is not set.
    pub fn new<T>(
        name: &str,
        resolved: &Resolved<T>,
        attributes: &HandleAttributes,
    ) -> Result<CallDefaults, Failure> {
        Ok(CallDefaults {
            server: resolved.server.clone(),
            name: name.to_owned(),
            timeout: resolved.session_timeout,
            start: attributes.start().unwrap_or(resolved.start),
            stop: attributes.stop().unwrap_or(resolved.stop),
            transfer: attributes.transfer().unwrap_or(resolved.transfer),
            ranks: attributes.ranks().or(resolved.ranks).unwrap_or(1),
            options: CallOptions { group: resolved.bound, ..attributes.options()? },
            grid: Arc::clone(&resolved.grid),
            directory: resolved.directory.clone(),
        })
    }

    /// Attributes of the handle.
    pub fn handle_attributes(&self) -> HandleAttributes {
        let times = (self.start, self.stop);
        let CallDefaults { server, name, transfer, ranks, options, .. } = self;
        HandleAttributes::of(server, name, times, *transfer, *ranks, options)
    }

    /// Attributes of its sessions.
    pub fn session_attributes(&self) -> SessionAttributes {
        SessionAttributes::new(self.transfer, self.timeout)
    }
}

/// A function handle.
#[derive(Debug)]
pub struct FunctionHandle {
    /// The function.
    pub function: Arc<Function>,
    /// Defaults for its calls.
    pub defaults: CallDefaults,
    /// Its sessions.
    pub record: Arc<HandleRecord>,
}

impl FunctionHandle {
    /// A handle without sessions.
    pub fn new(function: Arc<Function>, defaults: CallDefaults) -> FunctionHandle {
        FunctionHandle { function, defaults, record: Arc::default() }
    }
}

/// Request for a handle: server, name and attributes.
#[derive(Debug, Default)]
pub struct HandleRequest {
    /// The server.
    pub server: Option<String>,
    /// The function or class.
    pub name: Option<String>,
    /// Attributes of the handle.
    pub attributes: HandleAttributes,
}

impl HandleRequest {
    /// A request from attributes.
    pub fn of(attributes: HandleAttributes) -> HandleRequest {
        let server = attributes.server().filter(|server| !server.is_empty());
        HandleRequest { server, name: attributes.function(), attributes }
    }

    /// The name, or the error `missing` if there is none.
    pub fn name(&self, missing: ErrorCode) -> Result<&str, Failure> {
        self.name
            .as_deref()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| Failure::new(missing, "the name is missing: write `module/name`"))
    }
}

/// Checks the number of handles to make.
pub fn check_count(count: usize) -> Result<(), Failure> {
    if count <= MOST_AT_ONCE {
        return Ok(());
    }
    Err(Failure::other(format!("{count} handles at once: at most {MOST_AT_ONCE} can be made")))
}

/// Table of function handles.
#[derive(Debug)]
pub struct FunctionHandles {
    context: Arc<Context>,
    sessions: Arc<Sessions>,
    slots: Slots<FunctionHandle>,
}

impl FunctionHandles {
    /// An empty table.
    pub fn new(context: Arc<Context>, sessions: Arc<Sessions>) -> FunctionHandles {
        FunctionHandles { context, sessions, slots: Slots::new(HandleKind::Function) }
    }

    /// Finds a function.
    pub fn resolve(&self, request: &HandleRequest) -> Result<FunctionHandle, Failure> {
        let name = request.name(ErrorCode::FunctionNotFound)?;
        let settings = self.context.settings();
        let resolved = settings.function(&self.context.grids, request.server.as_deref(), name)?;
        let defaults = CallDefaults::new(name, &resolved, &request.attributes)?;
        Ok(FunctionHandle::new(resolved.item, defaults))
    }

    /// Waits until a worker can run the calls of a handle, and starts workers for all handles.
    pub fn provide_workers(&self, defaults: &CallDefaults) -> Result<(), Failure> {
        self.context.provide_workers(
            &defaults.name,
            &defaults.grid,
            self.slots.len(),
            defaults.options.group,
            defaults.start,
        )
    }

    /// Makes `count` handles of a function: all or none.
    pub fn make(&self, count: usize, request: &HandleRequest) -> Result<Vec<Handle>, Failure> {
        check_count(count)?;
        let FunctionHandle { function, defaults, .. } = self.resolve(request)?;
        let make = || FunctionHandle::new(Arc::clone(&function), defaults.clone());
        let handles: Vec<Handle> =
            (0..count).map(|_| self.slots.insert(Arc::new(make()))).collect();
        if let Err(failure) = self.provide_workers(&defaults) {
            for handle in &handles {
                self.slots.remove(handle);
            }
            return Err(failure);
        }
        self.context.log.write(Level::Debug, || format!("{count} handles of {}", defaults.name));
        Ok(handles)
    }

    /// Removes a handle and cancels its sessions that still run.
    pub fn destruct(&self, handle: &Handle) -> Result<(), Failure> {
        let removed = self.slots.remove(handle).ok_or_else(invalid)?;
        self.sessions.abandon_handle(&removed.record);
        Ok(())
    }

    /// Looks a handle up.
    pub fn get(&self, handle: &Handle) -> Result<Arc<FunctionHandle>, Failure> {
        self.slots.get(handle).ok_or_else(invalid)
    }
}

/// Error: the handle is not valid.
pub fn invalid() -> Failure {
    Failure::new(ErrorCode::InvalidFunctionHandle, "")
}
