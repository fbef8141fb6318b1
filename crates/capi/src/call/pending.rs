//! One call, from its start until its results are in the caller's memory.

use std::ffi::{CStr, c_char};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gridrpc_client::{Call, Callbacks as RuntimeCallbacks, Grid, Outcome, SubmitError};
use gridrpc_core::CallOptions;
use gridrpc_idl::Mode;
use gridrpc_invoke::{
    CallbackFrame, Landed, Landing, Lending, Target, attach_prepared, detach, prepare,
};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::Ranks;

use super::arguments::{Arguments, CallInput, TextPlace, take};
use super::callback::{CallCounters, Callbacks, runs_here};
use super::counted::CountedCall;
use super::function::Function;
use super::info::{CallInfo, CallbackInfo};
use super::outcome;
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// Options of a call, including those specific to this library.
#[derive(Clone, Debug)]
pub struct Options {
    /// The runtime's options. `cores`: per process.
    pub call: CallOptions,
    /// Number of ranks of a parallel function.
    pub ranks: u32,
    /// Whether the call may use the caller's memory after it has begun.
    pub lending: Lending,
}

/// A call that has begun.
#[derive(Debug)]
pub struct Pending {
    /// The call.
    pub call: Arc<Call>,
    function: Arc<Function>,
    landing: Landing,
    texts: Vec<(usize, TextPlace)>,
    counters: Option<Arc<CallCounters>>,
    counted: Option<Box<CountedCall>>,
}

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    /// Why it failed, if it did.
    pub result: Result<(), Failure>,
    /// Its times and places.
    pub info: CallInfo,
}

impl Ended {
    /// Its error code.
    pub fn code(&self) -> ErrorCode {
        self.result.as_ref().map_or_else(|failure| failure.code, |()| ErrorCode::NoError)
    }
}

/// Longest single wait. Waits without a limit repeat it.
pub const LONG: Duration = Duration::from_secs(3600);

impl Pending {
    /// Begins a call. Blocks while too many other calls wait for workers.
    ///
    /// # Safety
    /// The arguments match the interface in type and length, and stay valid until the results have landed or
    /// the pending call is dropped.
    pub unsafe fn begin(
        grid: &Arc<Grid>,
        function: &Arc<Function>,
        arguments: Arguments<'_>,
        options: Options,
        counted: Option<Box<CountedCall>>,
    ) -> Result<Pending, Failure> {
        let target = &function.target;
        // SAFETY: guaranteed by the caller.
        let CallInput { given, callbacks, texts } = unsafe { take(function, arguments)? };
        let ranks = ranks(target, options.ranks, options.call.cores)?;
        // SAFETY: as above.
        let prepared = unsafe { prepare(grid, target, &given, options.lending, ranks.as_ref())? };
        let mut counters = None;
        let callbacks = (!callbacks.is_empty()).then(|| {
            let counters = counters.insert(Arc::new(CallCounters::default()));
            RuntimeCallbacks(Arc::new(Callbacks {
                grid: Arc::downgrade(grid),
                frame: CallbackFrame::new(Arc::clone(target), prepared.scalars.clone()),
                functions: callbacks,
                by_address: function.by_address,
                counters: Arc::clone(counters),
            }))
        });
        let mut options = options.call;
        // A retry would lack the original value of an argument that the function changes.
        let changes = |index: usize| target.interface().parameters[index].mode == Mode::InOut;
        options.idempotent &= !(0..function.parameters().len()).any(changes);
        let deadline = options.deadline;
        let (mut request, landing) = prepared.request(target, options, callbacks);
        let begun = Instant::now();
        let call = loop {
            match grid.submit(request) {
                Ok(call) => break call,
                Err(SubmitError::Failed(error)) => {
                    return Err(outcome::refused(&target.name, &error));
                }
                Err(SubmitError::Full(full)) => {
                    let left = deadline.map_or(LONG, |time| time.saturating_sub(begun.elapsed()));
                    if left.is_zero() {
                        let detail = format!(
                            "{}: its time limit was reached while too many calls waited for workers",
                            target.name
                        );
                        return Err(Failure::new(ErrorCode::Timeout, detail));
                    }
                    let _ = grid.wait_for_room(full.payload.bytes, left);
                    request = *full;
                    request.options.deadline =
                        deadline.map(|time| time.saturating_sub(begun.elapsed()));
                }
            }
        };
        Ok(Pending { call, function: Arc::clone(function), landing, texts, counters, counted })
    }

    /// Detaches a call. Returns its id.
    ///
    /// # Safety
    /// The arguments match the interface in type and length.
    pub unsafe fn detach(
        grid: &Arc<Grid>,
        function: &Function,
        arguments: Arguments<'_>,
        options: Options,
    ) -> Result<String, Failure> {
        let target = &function.target;
        // SAFETY: guaranteed by the caller.
        let CallInput { given, .. } = unsafe { take(function, arguments)? };
        let ranks = ranks(target, options.ranks, options.call.cores)?;
        // SAFETY: as above; the arguments are not used after this.
        let prepared = unsafe { prepare(grid, target, &given, options.lending, ranks.as_ref())? };
        let (request, _landing) = prepared.request(target, options.call, None);
        Ok(detach(grid, target, &request, &mut || false)?)
    }

    /// Attaches to a detached call.
    ///
    /// # Safety
    /// As for `begin`.
    pub unsafe fn attach(
        grid: &Arc<Grid>,
        function: &Arc<Function>,
        arguments: Arguments<'_>,
        options: Options,
        id: &str,
    ) -> Result<Pending, Failure> {
        let target = &function.target;
        // SAFETY: guaranteed by the caller.
        let CallInput { given, texts, .. } = unsafe { take(function, arguments)? };
        let ranks = ranks(target, options.ranks, options.call.cores)?;
        // SAFETY: as above.
        let prepared = unsafe { prepare(grid, target, &given, options.lending, ranks.as_ref())? };
        let (call, landing) = attach_prepared(grid, target, prepared, id)?;
        let function = Arc::clone(function);
        Ok(Pending { call, function, landing, texts, counters: None, counted: None })
    }

    /// Whether this thread runs a callback of the call.
    pub fn calls_back_here(&self) -> bool {
        self.counters.as_ref().is_some_and(runs_here)
    }

    /// Stores the results of the ended call at their destinations.
    pub fn land(self) -> Ended {
        let Pending { call, function, landing, texts, counters, mut counted } = self;
        let name = &function.target.name;
        let begin = monotonic_ns();
        let result = match call.take_outcome() {
            Some(Outcome::Returned(sections, order)) => match landing.land(sections, order) {
                // SAFETY: the caller keeps the destinations valid until the results have landed.
                Ok(landed) => unsafe { store(&texts, landed) },
                Err(error) => Err(error.into()),
            },
            other => {
                drop(landing);
                Err(failed(name, other))
            }
        };
        if let Some(counted) = counted.as_mut().filter(|_| result.is_ok()) {
            counted.returned(&call.profile());
        }
        let landing = monotonic_ns().saturating_sub(begin);
        Ended { result, info: info(&call, landing, counters.as_deref()) }
    }

    /// Releases the caller's memory, which is not written to any more. Returns the call.
    pub fn abandon(self) -> Arc<Call> {
        self.call
    }
}

/// The ranks that a call runs on, if there are several, with equally many cores each.
fn ranks(target: &Target, ranks: u32, cores: u32) -> Result<Option<Ranks>, Failure> {
    if target.interface().is_parallel() {
        return Ok(Some(Ranks { ranks, threads: cores, command: String::new() }));
    }
    if ranks == 1 {
        return Ok(None);
    }
    Err(Failure::other(format!(
        "{}: it is to run on {ranks} ranks, but is not declared with Backend \"MPI\"",
        target.name
    )))
}

/// The result of a call that nobody collects.
pub fn abandoned(call: &Call, function: &Function) -> Ended {
    let result = match call.take_outcome() {
        Some(Outcome::Returned(..)) => Err(Failure::new(
            ErrorCode::Canceled,
            format!("{}: its handle was destructed", function.target.name),
        )),
        other => Err(failed(&function.target.name, other)),
    };
    Ended { result, info: info(call, 0, None) }
}

fn failed(function: &str, outcome: Option<Outcome>) -> Failure {
    match outcome {
        Some(Outcome::Raised { error, message, trace, .. }) => {
            outcome::raised(function, &error, &message, &trace)
        }
        Some(Outcome::Ended(end)) => outcome::ended(function, &end),
        Some(Outcome::Returned(..)) | None => {
            Failure::other(format!("{function}: its outcome was taken before"))
        }
    }
}

fn info(call: &Call, landing: u64, counters: Option<&CallCounters>) -> CallInfo {
    let callbacks = counters.map_or(CallbackInfo::default(), |counters| CallbackInfo {
        count: counters.count.load(Ordering::Relaxed),
        run: counters.run.load(Ordering::Relaxed),
        transfer: counters.transfer.load(Ordering::Relaxed),
        bytes_in: counters.bytes_in.load(Ordering::Relaxed),
        bytes_out: counters.bytes_out.load(Ordering::Relaxed),
    });
    CallInfo { profile: call.profile(), landing, callbacks }
}

/// Stores output strings, for the caller to free.
///
/// # Safety
/// The destinations belong to the caller and are large enough for the addresses.
unsafe fn store(
    places: &[(usize, TextPlace)],
    landed: Vec<(usize, Landed)>,
) -> Result<(), Failure> {
    for (parameter, landed) in landed {
        let Landed::Texts(texts) = landed else { continue };
        let found = places.iter().find(|(index, _)| *index == parameter);
        let Some((_, TextPlace { place, has_text })) = found else { continue };
        for (at, text) in texts.into_iter().enumerate() {
            // SAFETY: an input string is still there.
            let is_there = *has_text && unsafe { is_text(place.add(at).read(), text.as_deref()) };
            if is_there {
                continue;
            }
            let copy = match text {
                Some(text) => copy(&text)?,
                None => std::ptr::null_mut(),
            };
            // SAFETY: the caller guarantees the room.
            unsafe { place.add(at).write(copy) };
        }
    }
    Ok(())
}

/// # Safety
/// `there` is NULL or the address of a NUL-terminated string.
unsafe fn is_text(there: *const c_char, text: Option<&[u8]>) -> bool {
    // SAFETY: guaranteed by the caller.
    let there = (!there.is_null()).then(|| unsafe { CStr::from_ptr(there) }.to_bytes());
    there == text
}

/// Copies a text into memory that C's `free` releases.
pub fn copy(text: &[u8]) -> Result<*mut c_char, Failure> {
    // SAFETY: plain allocation.
    let memory = unsafe { libc::malloc(text.len() + 1) }.cast::<u8>();
    if memory.is_null() {
        return Err(Failure::other("out of memory for a string"));
    }
    // SAFETY: there is room for the text and its terminator.
    unsafe {
        memory.copy_from_nonoverlapping(text.as_ptr(), text.len());
        memory.add(text.len()).write(0);
    }
    Ok(memory.cast())
}
