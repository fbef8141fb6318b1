//! Object handles: an instance of a class, in a worker process of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridrpc_core::{CallOptions, Reservation, ReservationState};
use gridrpc_invoke::Lending;

use super::function::{CallDefaults, HandleRequest, check_count};
use crate::c_types::Handle;
use crate::call::arguments::Arguments;
use crate::call::function::Function;
use crate::call::outcome;
use crate::call::pending::{LONG, Options, Pending};
use crate::config::WaitTime;
use crate::context::Context;
use crate::context::log::Level;
use crate::context::settings::Class;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::sessions::{HandleRecord, Sessions};
use crate::slots::{HandleKind, Slots};

/// An object handle.
#[derive(Debug)]
pub struct ObjectHandle {
    /// Its class.
    pub class: Arc<Class>,
    /// Defaults for its methods' calls.
    pub defaults: CallDefaults,
    /// Its sessions.
    pub record: Arc<HandleRecord>,
    /// Its worker.
    pub worker: Reservation,
    ended: AtomicBool,
}

impl ObjectHandle {
    /// A method.
    pub fn method(&self, name: &str) -> Result<&Arc<Function>, Failure> {
        self.class.methods.get(name).ok_or_else(|| {
            let mut known: Vec<&str> = self.class.methods.keys().map(String::as_str).collect();
            known.sort_unstable();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let class = &self.class.name;
            Failure::new(
                ErrorCode::FunctionNotFound,
                format!("class `{class}` has no method `{name}`; it has {known}"),
            )
        })
    }
}

/// A deadline shared by several steps.
struct Limit(Option<Instant>);

impl Limit {
    fn new(wait: WaitTime) -> Limit {
        Limit(match wait {
            WaitTime::Forever => None,
            WaitTime::For(time) => Instant::now().checked_add(time),
        })
    }

    fn left(&self) -> Duration {
        self.0.map_or(LONG, |end| end.saturating_duration_since(Instant::now()))
    }

    fn is_over(&self) -> bool {
        self.0.is_some() && self.left().is_zero()
    }
}

/// Table of object handles.
#[derive(Debug)]
pub struct ObjectHandles {
    context: Arc<Context>,
    sessions: Arc<Sessions>,
    slots: Slots<ObjectHandle>,
}

impl ObjectHandles {
    /// An empty table.
    pub fn new(context: Arc<Context>, sessions: Arc<Sessions>) -> ObjectHandles {
        ObjectHandles { context, sessions, slots: Slots::new(HandleKind::Object) }
    }

    /// Starts `count` objects of a class: all or none.
    pub fn make(&self, count: usize, request: &HandleRequest) -> Result<Vec<Handle>, Failure> {
        check_count(count)?;
        let log = &self.context.log;
        let name = request.name(ErrorCode::ClassNotFound)?;
        let resolved =
            self.context.settings().class(&self.context.grids, request.server.as_deref(), name)?;
        let grid = &resolved.grid.grid;
        let defaults = CallDefaults::new(name, &resolved, &request.attributes)?;
        if defaults.options.is_multicore() {
            return Err(Failure::other(format!(
                "{name}: an object has one worker of its own: its methods cannot ask for cores, \
                 memory, resources or a time"
            )));
        }
        let count_of_workers = u32::try_from(count).unwrap_or(u32::MAX);
        let workers = grid.reserve(count_of_workers, resolved.bound, resolved.item.code);
        let workers = workers.map_err(|error| outcome::refused(name, &error))?;
        let objects: Vec<Arc<ObjectHandle>> = workers
            .into_iter()
            .map(|worker| {
                Arc::new(ObjectHandle {
                    class: Arc::clone(&resolved.item),
                    defaults: defaults.clone(),
                    record: Arc::default(),
                    worker,
                    ended: AtomicBool::new(false),
                })
            })
            .collect();
        if let Err(failure) = begin(&objects, &Limit::new(defaults.start)) {
            for object in &objects {
                grid.release(object.worker);
            }
            return Err(failure);
        }
        log.write(Level::Debug, || format!("{count} objects of {name}"));
        Ok(objects.into_iter().map(|object| self.slots.insert(object)).collect())
    }

    /// Ends objects: cancels their calls, runs `_finalize`, then ends their workers.
    fn end(&self, objects: &[Arc<ObjectHandle>]) {
        let objects: Vec<_> =
            objects.iter().filter(|object| !object.ended.swap(true, Ordering::AcqRel)).collect();
        let mut finalizing = Vec::new();
        for object in &objects {
            let was_busy = self.sessions.abandon_handle(&object.record);
            let is_up =
                object.defaults.grid.grid.standing(object.worker) == ReservationState::Ready;
            if !is_up {
                continue;
            }
            match run(object, "_finalize") {
                Ok(None) => {}
                Ok(Some(pending)) => {
                    let limit = Limit::new(object.defaults.stop);
                    finalizing.push((pending, limit, object, was_busy));
                }
                Err(failure) => self.context.log.write(Level::Warning, || failure.detail),
            }
        }
        for (pending, limit, object, was_busy) in finalizing {
            let busy = was_busy.then_some(&object.class.name);
            while !object.defaults.grid.waiter.wait(&pending.call, limit.left()) && !limit.is_over()
            {
            }
            if pending.call.done()
                && let Err(failure) = pending.land().result
            {
                self.context.log.write(Level::Warning, || match busy {
                    Some(class) if failure.code == ErrorCode::CommunicationFailed => format!(
                        "{class}: `_finalize` was not run: a method that was cancelled did not return, \
                         and its worker was ended"
                    ),
                    _ => failure.detail,
                });
            }
        }
        for object in objects {
            object.defaults.grid.grid.release(object.worker);
        }
    }

    /// Ends all objects.
    pub fn end_all(&self) {
        self.end(&self.slots.all());
    }

    /// Removes handles and ends their objects.
    pub fn destruct(&self, handles: &[Handle]) -> Result<(), Failure> {
        let removed: Vec<_> = handles.iter().map(|handle| self.slots.remove(handle)).collect();
        let all = removed.iter().all(Option::is_some);
        self.end(&removed.into_iter().flatten().collect::<Vec<_>>());
        if all { Ok(()) } else { Err(invalid()) }
    }

    /// Looks a handle up.
    pub fn get(&self, handle: &Handle) -> Result<Arc<ObjectHandle>, Failure> {
        self.slots.get(handle).ok_or_else(invalid)
    }
}

/// Waits until all workers are up and all objects are initialized.
fn begin(objects: &[Arc<ObjectHandle>], limit: &Limit) -> Result<(), Failure> {
    let late = |object: &ObjectHandle| {
        let class = &object.class.name;
        Failure::new(
            ErrorCode::Timeout,
            format!("{class}: the object's worker has not started in time (job_startTimeout)"),
        )
    };
    let mut running = Vec::new();
    for object in objects {
        running.extend(run(object, "_initialize")?);
    }
    for object in objects {
        loop {
            match object.defaults.grid.grid.wait_for_reserved(object.worker, limit.left()) {
                ReservationState::Ready => break,
                ReservationState::Starting if limit.is_over() => return Err(late(object)),
                ReservationState::Starting => {}
                ReservationState::Lost(loss) => {
                    let lost = outcome::object_lost(&object.class.name, &loss);
                    return Err(Failure::new(ErrorCode::ServerNotFound, lost.detail));
                }
                ReservationState::Released => {
                    return Err(Failure::new(ErrorCode::NotInitialized, "the grid is closed"));
                }
            }
        }
    }
    for (pending, object) in running.into_iter().zip(objects) {
        while !object.defaults.grid.waiter.wait(&pending.call, limit.left()) {
            if limit.is_over() {
                return Err(late(object));
            }
        }
        pending.land().result?;
    }
    Ok(())
}

/// Begins a method without arguments, if the class has it.
fn run(object: &ObjectHandle, method: &str) -> Result<Option<Pending>, Failure> {
    let Some(function) = object.class.methods.get(method) else { return Ok(None) };
    let call = CallOptions { on: Some(object.worker), ..CallOptions::DEFAULT };
    let options = Options { call, ranks: 1, lending: Lending::Copied };
    let none = Arguments::Addresses(&[]);
    // SAFETY: there are no arguments; if the method wants some it is not begun.
    unsafe { Pending::begin(&object.defaults.grid.grid, function, none, options, None) }.map(Some)
}

/// Error: the handle is not valid.
pub fn invalid() -> Failure {
    Failure::new(ErrorCode::InvalidObjectHandle, "")
}
