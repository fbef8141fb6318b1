//! Object handles: an instance of a class, in a worker process of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridrpc_core::{Reservation, Standing};
use gridrpc_invoke::Lending;

use super::function::{Manner, Wanted, check_count};
use crate::c_types::Handle;
use crate::call::arguments::Arguments;
use crate::call::function::Function;
use crate::call::outcome;
use crate::call::pending::{Options, Pending, Requirements};
use crate::config::Wait;
use crate::environment::log::Level;
use crate::environment::settings::Class;
use crate::environment::{Environment, LONG};
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::sessions::HandleRecord;

/// What an object handle stands for.
#[derive(Debug)]
pub struct ObjectHandle {
    /// Its class.
    pub class: Arc<Class>,
    /// How its methods are called.
    pub manner: Manner,
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

/// A time limit for several steps.
struct Limit(Option<Instant>);

impl Limit {
    fn new(wait: Wait) -> Limit {
        Limit(match wait {
            Wait::Forever => None,
            Wait::For(time) => Instant::now().checked_add(time),
        })
    }

    fn left(&self) -> Duration {
        self.0.map_or(LONG, |end| end.saturating_duration_since(Instant::now()))
    }

    fn is_over(&self) -> bool {
        self.0.is_some() && self.left().is_zero()
    }
}

/// Starts so many objects of a class: all or none.
pub fn make(
    environment: &Arc<Environment>,
    count: usize,
    wanted: &Wanted,
) -> Result<Vec<Handle>, Failure> {
    check_count(count)?;
    let name = wanted.name(ErrorCode::ClassNotFound)?;
    let settings = environment.settings();
    let found = settings.class(&environment.grid, wanted.server.as_deref(), name)?;
    let manner = Manner::new(name, &found, &wanted.attributes)?;
    if manner.requirements != Requirements::NONE {
        return Err(Failure::other(format!(
            "{name}: an object has one worker of its own: its methods cannot ask for cores, memory, \
             resources or a time"
        )));
    }
    let count_of_workers = u32::try_from(count).unwrap_or(u32::MAX);
    let workers = environment.grid.reserve(count_of_workers, found.bound, false);
    let workers = workers.map_err(|error| outcome::refused(name, &error))?;
    let objects: Vec<Arc<ObjectHandle>> = workers
        .into_iter()
        .map(|worker| {
            Arc::new(ObjectHandle {
                class: Arc::clone(&found.what),
                manner: manner.clone(),
                record: Arc::default(),
                worker,
                ended: AtomicBool::new(false),
            })
        })
        .collect();
    if let Err(failure) = begin(environment, &objects, &Limit::new(manner.start)) {
        for object in &objects {
            environment.grid.release(object.worker);
        }
        return Err(failure);
    }
    environment.log.write(Level::Debug, || format!("{count} objects of {name}"));
    Ok(objects.into_iter().map(|object| environment.objects.insert(object)).collect())
}

/// Waits until all workers are up, and all objects initialized.
fn begin(
    environment: &Environment,
    objects: &[Arc<ObjectHandle>],
    limit: &Limit,
) -> Result<(), Failure> {
    let late = |object: &ObjectHandle| {
        let class = &object.class.name;
        Failure::new(
            ErrorCode::Timeout,
            format!("{class}: the object's worker has not started in time (job_startTimeout)"),
        )
    };
    let mut running = Vec::new();
    for object in objects {
        running.extend(run(environment, object, "_initialize")?);
    }
    for object in objects {
        loop {
            match environment.grid.wait_for_reserved(object.worker, limit.left()) {
                Standing::Ready => break,
                Standing::Starting if limit.is_over() => return Err(late(object)),
                Standing::Starting => {}
                Standing::Lost(loss) => {
                    let lost = outcome::object_lost(&object.class.name, &loss);
                    return Err(Failure::new(ErrorCode::ServerNotFound, lost.detail));
                }
                Standing::Released => {
                    return Err(Failure::new(ErrorCode::NotInitialized, "the grid is closed"));
                }
            }
        }
    }
    for (pending, object) in running.into_iter().zip(objects) {
        while !environment.waiter.wait(&pending.call, limit.left()) {
            if limit.is_over() {
                return Err(late(object));
            }
        }
        pending.land().result?;
    }
    Ok(())
}

/// Begins a method without arguments that the class may have.
fn run(
    environment: &Environment,
    object: &ObjectHandle,
    method: &str,
) -> Result<Option<Pending>, Failure> {
    let Some(function) = object.class.methods.get(method) else { return Ok(None) };
    let options = Options {
        deadline: None,
        server: None,
        on: Some(object.worker),
        ranks: 1,
        runs_again: false,
        requirements: Requirements::NONE,
        lending: Lending::Copied,
    };
    let none = Arguments::Addresses(&[]);
    // SAFETY: there are no arguments; if the method wants some it is not begun.
    unsafe { Pending::begin(&environment.grid, function, none, options) }.map(Some)
}

/// Ends objects: what they run is cancelled, then they finalize, then their workers end.
pub fn end(environment: &Environment, objects: &[Arc<ObjectHandle>]) {
    let objects: Vec<_> =
        objects.iter().filter(|object| !object.ended.swap(true, Ordering::AcqRel)).collect();
    let mut finalizing = Vec::new();
    for object in &objects {
        let was_busy = environment.sessions.give_up(environment, &object.record);
        let is_up = environment.grid.standing(object.worker) == Standing::Ready;
        if !is_up {
            continue;
        }
        match run(environment, object, "_finalize") {
            Ok(None) => {}
            Ok(Some(pending)) => {
                let limit = Limit::new(object.manner.stop);
                finalizing.push((pending, limit, was_busy.then_some(&object.class.name)));
            }
            Err(failure) => environment.log.write(Level::Warning, || failure.detail),
        }
    }
    for (pending, limit, busy) in finalizing {
        while !environment.waiter.wait(&pending.call, limit.left()) && !limit.is_over() {}
        if pending.call.done()
            && let Err(failure) = pending.land().result
        {
            environment.log.write(Level::Warning, || match busy {
                Some(class) if failure.code == ErrorCode::CommunicationFailed => format!(
                    "{class}: `_finalize` was not run: a method that was cancelled did not return, \
                     and its worker was ended"
                ),
                _ => failure.detail,
            });
        }
    }
    for object in objects {
        environment.grid.release(object.worker);
    }
}

/// Gives a handle up, and ends its object.
pub fn destruct(environment: &Environment, handles: &[Handle]) -> Result<(), Failure> {
    let gone: Vec<_> = handles.iter().map(|handle| environment.objects.remove(handle)).collect();
    let all = gone.iter().all(Option::is_some);
    let gone: Vec<_> = gone.into_iter().flatten().collect();
    end(environment, &gone);
    if all { Ok(()) } else { Err(invalid()) }
}

/// What a handle stands for.
pub fn find(environment: &Environment, handle: &Handle) -> Result<Arc<ObjectHandle>, Failure> {
    environment.objects.get(handle).ok_or_else(invalid)
}

/// The handle is none.
pub fn invalid() -> Failure {
    Failure::new(ErrorCode::InvalidObjectHandle, "")
}
