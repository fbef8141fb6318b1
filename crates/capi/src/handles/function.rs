//! Function handles: a function that has been found, and how its calls are to be made.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::GroupId;

use super::attributes::{HandleAttributes, SessionAttributes};
use crate::c_types::Handle;
use crate::call::function::Function;
use crate::call::pending::Requirements;
use crate::config::{ArgumentTransfer, Wait};
use crate::context::Context;
use crate::context::log::Level;
use crate::context::settings::Found;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::sessions::{HandleRecord, Sessions};
use crate::slots::{HandleKind, Slots};

/// No more handles are made at once.
const MOST_AT_ONCE: usize = 1 << 20;

/// How the calls of a handle are to be made unless something else is said.
#[derive(Clone, Debug)]
pub struct Manner {
    /// The server, as it was named.
    pub server: String,
    /// What its calls are bound to, if not to any worker.
    pub bound: Option<GroupId>,
    /// The function or class, as it was named.
    pub name: String,
    /// How long a session may take.
    pub timeout: Option<Duration>,
    /// How long a worker may take to start.
    pub start: Wait,
    /// How long to wait for a worker's end.
    pub stop: Wait,
    /// When calls return that are not waited for.
    pub transfer: ArgumentTransfer,
    /// On how many ranks calls of parallel functions run.
    pub ranks: u32,
    /// What calls require beyond one worker.
    pub requirements: Requirements,
}

impl Manner {
    /// As the attributes say, and what was found where they say nothing.
    pub fn new<T>(
        name: &str,
        found: &Found<T>,
        attributes: &HandleAttributes,
    ) -> Result<Manner, Failure> {
        Ok(Manner {
            server: found.server.clone(),
            bound: found.bound,
            name: name.to_owned(),
            timeout: found.session_timeout,
            start: attributes.start().unwrap_or(found.start),
            stop: attributes.stop().unwrap_or(found.stop),
            transfer: attributes.transfer().unwrap_or(found.transfer),
            ranks: attributes.ranks().or(found.ranks).unwrap_or(1),
            requirements: attributes.requirements()?,
        })
    }

    /// As attributes of handles.
    pub fn attributes(&self) -> HandleAttributes {
        let times = (self.start, self.stop);
        let Manner { server, name, transfer, ranks, requirements, .. } = self;
        HandleAttributes::of(server, name, times, *transfer, *ranks, requirements)
    }

    /// As attributes of sessions.
    pub fn session(&self) -> SessionAttributes {
        SessionAttributes::new(self.transfer, self.timeout)
    }
}

/// What a function handle stands for.
#[derive(Debug)]
pub struct FunctionHandle {
    /// The function.
    pub function: Arc<Function>,
    /// How it is called.
    pub manner: Manner,
    /// Its sessions.
    pub record: Arc<HandleRecord>,
}

impl FunctionHandle {
    /// A handle without sessions.
    pub fn new(function: Arc<Function>, manner: Manner) -> FunctionHandle {
        FunctionHandle { function, manner, record: Arc::default() }
    }
}

/// What handles are to be made of.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The server.
    pub server: Option<String>,
    /// The function or class.
    pub name: Option<String>,
    /// Everything else.
    pub attributes: HandleAttributes,
}

impl Wanted {
    /// What attributes say.
    pub fn of(attributes: HandleAttributes) -> Wanted {
        let server = attributes.server().filter(|server| !server.is_empty());
        Wanted { server, name: attributes.function(), attributes }
    }

    /// The name, which has to be there.
    pub fn name(&self, missing: ErrorCode) -> Result<&str, Failure> {
        self.name
            .as_deref()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| Failure::new(missing, "the name is missing: write `module/name`"))
    }
}

/// Checks how many handles are to be made at once.
pub fn check_count(count: usize) -> Result<(), Failure> {
    if count <= MOST_AT_ONCE {
        return Ok(());
    }
    Err(Failure::other(format!("{count} handles at once: at most {MOST_AT_ONCE} can be made")))
}

/// Function handles by their C handles.
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
    pub fn resolve(&self, wanted: &Wanted) -> Result<FunctionHandle, Failure> {
        let name = wanted.name(ErrorCode::FunctionNotFound)?;
        let settings = self.context.settings();
        let found = settings.function(&self.context.grid, wanted.server.as_deref(), name)?;
        let manner = Manner::new(name, &found, &wanted.attributes)?;
        Ok(FunctionHandle::new(found.what, manner))
    }

    /// Waits until a worker can run the calls of a handle, and starts workers for all handles.
    pub fn provide_workers(&self, manner: &Manner) -> Result<(), Failure> {
        self.context.provide_workers(&manner.name, self.slots.len(), manner.bound, manner.start)
    }

    /// Makes `count` handles of a function: all or none.
    pub fn make(&self, count: usize, wanted: &Wanted) -> Result<Vec<Handle>, Failure> {
        check_count(count)?;
        let FunctionHandle { function, manner, .. } = self.resolve(wanted)?;
        let make = || FunctionHandle::new(Arc::clone(&function), manner.clone());
        let handles: Vec<Handle> =
            (0..count).map(|_| self.slots.insert(Arc::new(make()))).collect();
        if let Err(failure) = self.provide_workers(&manner) {
            for handle in &handles {
                self.slots.remove(handle);
            }
            return Err(failure);
        }
        self.context.log.write(Level::Debug, || format!("{count} handles of {}", manner.name));
        Ok(handles)
    }

    /// Removes a handle and cancels its sessions that still run.
    pub fn destruct(&self, handle: &Handle) -> Result<(), Failure> {
        let removed = self.slots.remove(handle).ok_or_else(invalid)?;
        self.sessions.give_up(&removed.record);
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
