//! Module functions: native code from shared libraries, called on the memory in which its arguments were received.

mod abnormal_exit;
mod arguments;
mod callback;
mod chunk;
mod entry;
mod error;
mod files;
mod library;
pub(crate) mod preload;
mod raised;
mod ranks;
mod results;
mod strings;

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridrpc_link::LinkError;
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_sys::{monotonic_ns, processor_ns};
use gridrpc_typed::Scalars;
use gridrpc_wire::{Chunk, Ranks, Stamps};

use crate::link::{Answer, Job, KnownFunction, WorkerLink};
use arguments::Arguments;
use chunk::Items;
use entry::Entry;
use error::{CallError, LostRanks};
use library::Library;
use ranks::Group;

pub use ranks::{Program, environment, hosts, options_for_nodes, run_rank};

/// The modules that this worker has loaded.
pub struct Modules {
    libraries: HashMap<PathBuf, Arc<Library>>,
    /// By the functions' serial numbers.
    known: HashMap<u64, LoadedFunction>,
    /// Program that ranks run.
    program: Program,
    /// The ranks of the last parallel call, if they are still running.
    group: Option<Group>,
}

/// A function that has been called.
#[derive(Debug)]
struct LoadedFunction {
    entry: Entry,
    /// The file of its module.
    module: PathBuf,
    /// Whether its last call was so short that reading the processor clock takes much of its time.
    quick: bool,
}

/// For calls shorter than this, wall-clock time replaces processor time, ns.
const QUICK: u64 = 20_000;

impl Modules {
    /// The modules loaded by the spawner. `program` locates the program `gridrpc` when ranks have to be started.
    #[must_use]
    pub fn new(program: Program) -> Modules {
        Modules { libraries: preload::loaded(), known: HashMap::new(), program, group: None }
    }

    /// Runs a call of a module function and answers it. Returns `false` if the client has gone in the meantime.
    ///
    /// # Errors
    /// When the client breaks the protocol or the connection fails.
    pub fn serve(&mut self, link: &mut WorkerLink, job: Job) -> Result<bool, LinkError> {
        let Job { call, function, mut sections, order, received, .. } = job;
        let calc_in = monotonic_ns();
        let mut stamps = Stamps { received, calc_in, calc_out: calc_in, ..Stamps::default() };
        let Modules { libraries, known, program, group } = self;
        let result = find_known(libraries, known, &function).and_then(|known| {
            let LoadedFunction { entry, module, quick } = known;
            let head = sections.first().map(Incoming::bytes).unwrap_or_default();
            if Chunk::is_one(head) && !entry.interface().is_parallel() {
                let so_far = link.items();
                let mut items = Items::take(entry, &mut sections, &order, so_far)?;
                // Without callbacks no sizes are needed for them.
                run(entry, link, &Scalars::default(), &mut stamps, quick, || {
                    items.run();
                    Ok(())
                })?;
                return items.into_results(link);
            }
            let mut arguments = Arguments::take(entry, link, &mut sections, &order)?;
            // From here on the call may have run.
            link.enter();
            if entry.interface().is_parallel() {
                let group = group_for(group, module, &arguments.ranks, program)?;
                run_on_ranks(group, &function.name, link, &mut arguments, &mut stamps)?;
                return arguments.into_results(link);
            }
            let Arguments { scalars, pointers, .. } = &mut arguments;
            let ran = run(entry, link, scalars, &mut stamps, quick, || entry.run(pointers));
            if let Err(error @ CallError::Raised(_)) = ran {
                arguments.leave_texts();
                return Err(error);
            }
            ran?;
            arguments.into_results(link)
        });
        match result {
            Ok(payload) => link.answer(call, stamps, sections, Answer::Returned(payload))?,
            Err(CallError::Link(LinkError::Io(error)))
                if error.kind() == io::ErrorKind::UnexpectedEof =>
            {
                return Ok(false);
            }
            Err(CallError::Link(error)) => return Err(error),
            Err(error) => {
                let payload = match &error {
                    CallError::Lost(lost) => payload_of(lost, link),
                    _ => Payload::default(),
                };
                let message = error.to_string();
                let answer =
                    Answer::Raised { error: error.kind(), message: &message, trace: "", payload };
                link.answer(call, stamps, sections, answer)?;
            }
        }
        Ok(true)
    }
}

fn find_known<'k>(
    libraries: &mut HashMap<PathBuf, Arc<Library>>,
    known: &'k mut HashMap<u64, LoadedFunction>,
    function: &KnownFunction,
) -> Result<&'k mut LoadedFunction, CallError> {
    match known.entry(function.serial) {
        Occupied(known) => Ok(known.into_mut()),
        Vacant(place) => {
            let (entry, module) = find(libraries, function)?;
            Ok(place.insert(LoadedFunction { entry, module, quick: false }))
        }
    }
}

/// The requested ranks: the existing ones if they fit, otherwise new ones.
fn group_for<'g>(
    group: &'g mut Option<Group>,
    module: &Path,
    requested: &Ranks,
    program: &Program,
) -> Result<&'g mut Option<Group>, CallError> {
    if !group.as_mut().is_some_and(|group| group.serves(module, requested)) {
        // The old ranks end first.
        *group = None;
        *group = Some(Group::start(module, requested, program)?);
    }
    Ok(group)
}

/// Runs the function on ranks, between two stamps.
fn run_on_ranks(
    group: &mut Option<Group>,
    function: &str,
    link: &mut WorkerLink,
    arguments: &mut Arguments,
    stamps: &mut Stamps,
) -> Result<(), CallError> {
    let Some(ranks) = group else { return Ok(()) };
    stamps.calc_in = monotonic_ns();
    let called = ranks.call(link, function, arguments);
    stamps.calc_out = monotonic_ns();
    match called {
        Ok(processor) => stamps.cpu = processor,
        Err(error) => {
            *group = None;
            return Err(error);
        }
    }
    Ok(())
}

/// The payload with the details of the failure.
fn payload_of(lost: &LostRanks, link: &WorkerLink) -> Payload {
    let mut payload = link.payload();
    match lost.encode().map(|bytes| payload.add(&bytes)) {
        Ok(Ok(())) => payload.finish(),
        // The text is sufficient.
        _ => Payload::default(),
    }
}

fn find(
    libraries: &mut HashMap<PathBuf, Arc<Library>>,
    function: &KnownFunction,
) -> Result<(Entry, PathBuf), CallError> {
    let path = String::from_utf8(function.body.clone())
        .map_err(|_| CallError::Module("the name of the module's file is not text".into()))?;
    let path = PathBuf::from(path);
    let library = match libraries.get(&path) {
        Some(library) => Arc::clone(library),
        None => {
            let library = Arc::new(Library::load(&path).map_err(CallError::Module)?);
            libraries.insert(path.clone(), Arc::clone(&library));
            library
        }
    };
    let (_, name) = function.name.split_once('/').unwrap_or(("", &function.name));
    Ok((library.entry(name).map_err(CallError::NotFound)?, path))
}

/// Runs the function by `call`, between two stamps. `quick`: whether its last call was short.
fn run(
    entry: &Entry,
    link: &mut WorkerLink,
    scalars: &Scalars,
    stamps: &mut Stamps,
    quick: &mut bool,
    call: impl FnOnce() -> Result<(), CallError>,
) -> Result<(), CallError> {
    let measured = !*quick;
    let processor = if measured { processor_ns() } else { 0 };
    stamps.calc_in = monotonic_ns();
    let (waited, returned) = callback::with(entry, link, scalars, stamps, call);
    stamps.calc_out = monotonic_ns();
    let passed = stamps.calc_out - stamps.calc_in;
    *quick = passed < QUICK;
    stamps.cpu = match measured {
        true => processor_ns().saturating_sub(processor),
        // An unexpectedly long call was not measured.
        false if *quick => passed,
        false => 0,
    };
    stamps.callback_time = waited.time;
    stamps.callbacks = waited.count;
    // Makes its output visible now.
    // SAFETY: flushes all of C's output streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    match (waited.broken, waited.failed) {
        (Some(error), _) => Err(CallError::Link(error)),
        (None, Some(message)) => Err(CallError::Callback(message)),
        (None, None) => returned,
    }
}
