//! Function handles: a function that has been found, and how its calls are to be made.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::GroupId;

use super::attributes::{HandleAttributes, SessionAttributes};
use crate::c_types::Handle;
use crate::call::function::Function;
use crate::call::pending::Requirements;
use crate::config::{ArgumentTransfer, Wait};
use crate::environment::Environment;
use crate::environment::log::Level;
use crate::environment::settings::Found;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::sessions::HandleRecord;

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

/// Makes so many handles of a function: all or none.
pub fn make(
    environment: &Arc<Environment>,
    count: usize,
    wanted: &Wanted,
) -> Result<Vec<Handle>, Failure> {
    check_count(count)?;
    let name = wanted.name(ErrorCode::FunctionNotFound)?;
    let settings = environment.settings();
    let found = settings.function(&environment.grid, wanted.server.as_deref(), name)?;
    let manner = Manner::new(name, &found, &wanted.attributes)?;
    let handles: Vec<Handle> = (0..count)
        .map(|_| {
            environment.functions.insert(Arc::new(FunctionHandle {
                function: Arc::clone(&found.what),
                manner: manner.clone(),
                record: Arc::default(),
            }))
        })
        .collect();
    if let Err(failure) = environment.provide_workers(name, manner.bound, manner.start) {
        for handle in &handles {
            environment.functions.remove(handle);
        }
        return Err(failure);
    }
    environment.log.write(Level::Debug, || format!("{count} handles of {name}"));
    Ok(handles)
}

/// Gives a handle up, and cancels its sessions that still run.
pub fn destruct(environment: &Environment, handle: &Handle) -> Result<(), Failure> {
    let gone = environment.functions.remove(handle).ok_or_else(invalid)?;
    environment.sessions.give_up(environment, &gone.record);
    Ok(())
}

/// What a handle stands for.
pub fn find(environment: &Environment, handle: &Handle) -> Result<Arc<FunctionHandle>, Failure> {
    environment.functions.get(handle).ok_or_else(invalid)
}

/// The handle is none.
pub fn invalid() -> Failure {
    Failure::new(ErrorCode::InvalidFunctionHandle, "")
}
