//! Module functions: native code from shared libraries, called with the memory that its arguments
//! came in.

mod arguments;
mod callback;
mod files;
mod library;
mod results;
mod texts;

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gridrpc_wire::{RemoteError, Stamps};
use thiserror::Error;

use crate::forks;
use crate::link::LinkError;
use crate::payload::Payload;
use crate::sys::{monotonic_ns, processor_ns};
use crate::worker::link::{Answer, Job, KnownFunction, WorkerLink};

use arguments::Arguments;
use library::{Entry, Library};

/// Why a module function was not run, or its result could not be taken.
#[derive(Debug, Error)]
pub(super) enum CallError {
    /// The module cannot be loaded.
    #[error("{0}")]
    Module(String),
    /// The module has no such function.
    #[error("{0}")]
    NotFound(String),
    /// The arguments don't fit.
    #[error("{0}")]
    Arguments(String),
    /// There is no memory.
    #[error("no memory for {0}")]
    Memory(String),
    /// A callback has failed.
    #[error("a callback failed: {0}")]
    Callback(String),
    /// The connection is of no use any more.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl CallError {
    fn remote(&self) -> RemoteError {
        match self {
            CallError::Module(_) => RemoteError::ModuleError,
            CallError::NotFound(_) => RemoteError::FunctionNotFound,
            CallError::Arguments(_) => RemoteError::ArgumentError,
            CallError::Memory(_) => RemoteError::OutOfMemory,
            CallError::Callback(_) => RemoteError::CallbackFailed,
            CallError::Link(_) => RemoteError::ProtocolError,
        }
    }
}

/// The modules that this worker has loaded.
#[derive(Debug, Default)]
pub struct Modules {
    libraries: HashMap<PathBuf, Arc<Library>>,
    /// By the functions' serial numbers.
    known: HashMap<u64, Known>,
}

/// A function that has been called.
#[derive(Debug)]
struct Known {
    entry: Entry,
    /// Whether its last call took so little time that reading the processor's clock is much of it.
    quick: bool,
}

/// Calls shorter than this are not measured in processor time: it is taken for the time that
/// passed, ns.
const QUICK: u64 = 20_000;

impl Modules {
    /// Runs a call of a module function and answers it. `false`: the client went meanwhile.
    ///
    /// # Errors
    /// When the client breaks the protocol or the connection fails.
    pub fn serve(&mut self, link: &mut WorkerLink, job: Job) -> Result<bool, LinkError> {
        let Job { call, function, mut sections, order, received } = job;
        let calc_in = monotonic_ns();
        let mut stamps = Stamps { received, calc_in, calc_out: calc_in, ..Stamps::default() };
        let result = self.known(&function).and_then(|known| {
            let entry = &known.entry;
            let mut arguments = Arguments::take(entry, link, &mut sections, order)?;
            let ran = run(entry, link, &mut arguments, &mut stamps, !known.quick);
            known.quick = stamps.calc_out - stamps.calc_in < QUICK;
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
                let payload = Payload::default();
                let (name, message) = (error.remote().name(), error.to_string());
                let answer = Answer::Raised { error: name, message: &message, trace: "", payload };
                link.answer(call, stamps, sections, answer)?;
            }
        }
        Ok(true)
    }

    fn known(&mut self, function: &KnownFunction) -> Result<&mut Known, CallError> {
        let Modules { libraries, known } = self;
        match known.entry(function.serial) {
            Occupied(known) => Ok(known.into_mut()),
            Vacant(place) => {
                Ok(place.insert(Known { entry: find(libraries, function)?, quick: false }))
            }
        }
    }
}

fn find(
    libraries: &mut HashMap<PathBuf, Arc<Library>>,
    function: &KnownFunction,
) -> Result<Entry, CallError> {
    let path = String::from_utf8(function.body.clone())
        .map_err(|_| CallError::Module("the name of the module's file is no text".into()))?;
    let path = PathBuf::from(path);
    let library = match libraries.get(&path) {
        Some(library) => Arc::clone(library),
        None => {
            let library = Arc::new(Library::load(&path).map_err(CallError::Module)?);
            libraries.insert(path, Arc::clone(&library));
            library
        }
    };
    let (_, name) = function.name.split_once('/').unwrap_or(("", &function.name));
    library.entry(name).map_err(CallError::NotFound)
}

/// Calls the function itself.
fn run(
    entry: &Entry,
    link: &mut WorkerLink,
    arguments: &mut Arguments,
    stamps: &mut Stamps,
    measured: bool,
) -> Result<(), CallError> {
    let process = forks::generation();
    let processor = if measured { processor_ns() } else { 0 };
    stamps.calc_in = monotonic_ns();
    let waited = callback::with(entry, link, &arguments.scalars, || {
        entry.run(&mut arguments.pointers);
        if forks::generation() != process {
            // The function has forked, and this is the child: the call is the parent's.
            // SAFETY: ends this process without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
    });
    stamps.calc_out = monotonic_ns();
    let passed = stamps.calc_out - stamps.calc_in;
    stamps.cpu = match measured {
        true => processor_ns().saturating_sub(processor),
        // One that took long against expectation was not measured.
        false => {
            if passed < QUICK {
                passed
            } else {
                0
            }
        }
    };
    stamps.callback_time = waited.time;
    stamps.callbacks = waited.count;
    // What it has printed is to be seen now.
    // SAFETY: flushes all of C's output streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    match (waited.broken, waited.failed) {
        (Some(error), _) => Err(CallError::Link(error)),
        (None, Some(message)) => Err(CallError::Callback(message)),
        (None, None) => Ok(()),
    }
}
