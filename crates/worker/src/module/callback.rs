//! Services for a running function: callbacks to the client, and the check for cancellation.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use gridrpc_idl::{Kind, Mode, Parameter, Type, callback_extents};
use gridrpc_link::LinkError;
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_sys::{forks, monotonic_ns};
use gridrpc_typed::{Scalar, Scalars, Shape, callbacks, dtype, encode_texts, gather, scatter};
use gridrpc_wire::{Array, Order, Stamps, Value, decode_values, encode_values};

use crate::link::{Answer, WorkerLink};
use crate::module::chunk::Items;
use crate::module::entry::Entry;
use crate::module::error::CallError;
use crate::module::ranks::is_cancelled;

/// The running call.
struct Running<'a> {
    entry: &'a Entry,
    link: &'a mut WorkerLink,
    scalars: &'a Scalars,
    stamps: &'a Stamps,
    /// The process that runs it, among its forked children.
    process: u64,
    waited: CallbackWait,
}

/// Time spent in callbacks, and their failures.
#[derive(Debug, Default)]
pub(super) struct CallbackWait {
    pub(super) time: u64,
    pub(super) count: u32,
    pub(super) failed: Option<String>,
    pub(super) broken: Option<LinkError>,
}

thread_local! {
    /// Set while a function runs in this thread.
    static RUNNING: Cell<Option<NonNull<c_void>>> = const { Cell::new(None) };
}

/// Runs `call` so that it can call back.
pub(super) fn with(
    entry: &Entry,
    link: &mut WorkerLink,
    scalars: &Scalars,
    stamps: &Stamps,
    call: impl FnOnce() -> Result<(), CallError>,
) -> (CallbackWait, Result<(), CallError>) {
    let process = forks::generation();
    let waited = CallbackWait::default();
    let mut running = Running { entry, link, scalars, stamps, process, waited };
    RUNNING.set(Some(NonNull::from(&mut running).cast()));
    let returned = call();
    RUNNING.set(None);
    (running.waited, returned)
}

/// Answers the call that runs in this thread, if any: its function has called `exit`.
pub(super) fn answer_at_exit(error: CallError) {
    // Not put back: no later handler can reach it.
    let Some(running) = RUNNING.take() else { return };
    // SAFETY: set by `with`, which is still below us on the stack.
    let running = unsafe { running.cast::<Running<'_>>().as_mut() };
    if running.process != forks::generation() {
        // A child of the function ends: the call belongs to the parent.
        return;
    }
    // Makes its output visible now.
    // SAFETY: flushes all of C's output streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let mut stamps = *running.stamps;
    stamps.calc_out = monotonic_ns();
    let text = error.to_string();
    let (kind, message) = (error.kind().to_owned(), text.as_str());
    let answer = match Items::interrupted(error, running.link) {
        Some(Ok(payload)) => Answer::Returned(payload),
        _ => Answer::Raised { error: &kind, message, trace: "", payload: Payload::default() },
    };
    // If that fails, the client detects the loss of the worker.
    let _ = running.link.answer_at_exit(stamps, answer);
}

/// Gives `act` access to the call that runs in this thread.
fn with_running<R>(act: impl FnOnce(&mut Running<'_>) -> R) -> Option<R> {
    // Taken out in the meantime, so that there is never a second reference.
    let pointer = RUNNING.take()?;
    // SAFETY: set by `with`, which is still below us on the stack.
    let result = act(unsafe { pointer.cast::<Running<'_>>().as_mut() });
    RUNNING.set(Some(pointer));
    Some(result)
}

pub(super) extern "C" fn is_canceled() -> c_int {
    with_running(|running| {
        let ended = running.waited.failed.is_some() || running.waited.broken.is_some();
        c_int::from(ended || running.link.is_cancelled())
    })
    .unwrap_or_else(|| c_int::from(is_cancelled()))
}

/// Runs a callback of the call in this thread. Does nothing in other threads, because the call's own thread has the
/// connection.
pub(super) extern "C" fn from_module(index: c_uint, arguments: *mut *mut c_void) {
    with_running(|running| running.call_back(index as usize, arguments));
}

impl Running<'_> {
    fn call_back(&mut self, index: usize, arguments: *mut *mut c_void) {
        if self.waited.failed.is_some() || self.waited.broken.is_some() {
            return;
        }
        let function = self.entry.interface();
        let Some((number, own)) = callbacks(function).nth(index) else { return };
        let parameter = &function.parameters[number];
        let start = monotonic_ns();
        let pointers: &[*mut c_void] = if own.is_empty() {
            &[]
        } else {
            // SAFETY: the stub gives one pointer for each parameter of the callback.
            unsafe { std::slice::from_raw_parts(arguments, own.len()) }
        };
        match self.exchange(index as u16, number, own, pointers) {
            Ok(()) => {}
            Err(CallbackFailure::Failed(why)) => {
                self.waited.failed = Some(format!("`{}`: {why}", parameter.name));
            }
            Err(CallbackFailure::Broken(error)) => self.waited.broken = Some(error),
        }
        self.waited.count += 1;
        self.waited.time += monotonic_ns() - start;
    }

    fn exchange(
        &mut self,
        index: u16,
        number: usize,
        parameters: &[Parameter],
        pointers: &[*mut c_void],
    ) -> Result<(), CallbackFailure> {
        let shapes = shapes(self, number, parameters, pointers)?;
        let payload = arguments(self.link, parameters, pointers, &shapes)?;
        let answer = self.link.call_back(index, &payload)?;
        let results = answer.results.map_err(CallbackFailure::Failed)?;
        store(parameters, pointers, &shapes, &results, answer.order)
    }
}

enum CallbackFailure {
    Failed(String),
    Broken(LinkError),
}

impl From<LinkError> for CallbackFailure {
    fn from(error: LinkError) -> CallbackFailure {
        CallbackFailure::Broken(error)
    }
}

fn failed(error: impl std::fmt::Display) -> CallbackFailure {
    CallbackFailure::Failed(error.to_string())
}

/// The bytes of the scalar at a pointer.
fn scalar_bytes(parameter: &Parameter, pointer: *mut c_void) -> Option<Scalar> {
    let Kind::Scalar(of) = parameter.kind else { return None };
    let size = of.size()?;
    // SAFETY: the stub points to a value of that type.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    Scalar::from_bytes(of, bytes)
}

fn shapes(
    running: &Running<'_>,
    number: usize,
    parameters: &[Parameter],
    pointers: &[*mut c_void],
) -> Result<Vec<Shape>, CallbackFailure> {
    let own = parameters.iter().zip(pointers).map(|(parameter, pointer)| {
        match scalar_bytes(parameter, *pointer) {
            Some(Scalar::Int(value)) => Some(value),
            _ => None,
        }
    });
    let known = running.scalars.behind(own.collect());
    let function = running.entry.interface();
    parameters
        .iter()
        .enumerate()
        .map(|(index, parameter)| match &parameter.kind {
            Kind::Array { element, .. } => {
                let extents = callback_extents(function, number, index, &known).map_err(failed)?;
                Ok(Shape::new(extents, function.fortran(), element.size().unwrap_or(1)))
            }
            _ => Ok(Shape::new(Vec::new(), false, 1)),
        })
        .collect()
}

fn arguments(
    link: &WorkerLink,
    parameters: &[Parameter],
    pointers: &[*mut c_void],
    shapes: &[Shape],
) -> Result<Payload, CallbackFailure> {
    let mut payload = link.payload();
    let mut values = Vec::with_capacity(parameters.len());
    let mut sections = 1_u16;
    for ((parameter, pointer), shape) in parameters.iter().zip(pointers).zip(shapes) {
        values.push(match &parameter.kind {
            Kind::Scalar(of) => match scalar_bytes(parameter, *pointer) {
                Some(Scalar::Int(value)) => Value::Int(value),
                Some(Scalar::Float(value)) => Value::Float(value),
                Some(complex @ Scalar::Complex(..)) => {
                    let size = of.size().unwrap_or(16);
                    payload.add(&complex.to_bytes(*of)[..size]).map_err(failed)?;
                    sections += 1;
                    array(parameter, Vec::new(), sections - 1)
                }
                None => {
                    // SAFETY: the function gives a text, or NULL.
                    let text = unsafe { text(pointer.cast()) };
                    payload.add(&encode_texts(&[text], Order::NATIVE)).map_err(failed)?;
                    sections += 1;
                    Value::Bytes(sections - 1)
                }
            },
            Kind::Array { element: Type::String, .. } => {
                // SAFETY: the function gives as many texts as its interface says.
                let texts = unsafe { texts(pointer.cast(), shape.count()) };
                payload.add(&encode_texts(&texts, Order::NATIVE)).map_err(failed)?;
                sections += 1;
                Value::Bytes(sections - 1)
            }
            Kind::Array { .. } if matches!(parameter.mode, Mode::In | Mode::InOut) => {
                // SAFETY: the function gives arrays of the size that its interface says.
                let bytes = unsafe { memory(*pointer, shape.bytes()) };
                payload
                    .add_with(shape.selected_bytes(), |packed| gather(shape, bytes, packed))
                    .map_err(failed)?;
                sections += 1;
                array(parameter, vec![shape.selected() as u64], sections - 1)
            }
            _ => Value::None,
        });
    }
    let mut bytes = Vec::new();
    encode_values(&values, Order::NATIVE, &mut bytes).map_err(failed)?;
    payload.add_first(&bytes).map_err(failed)?;
    Ok(payload.finish())
}

fn array(parameter: &Parameter, shape: Vec<u64>, section: u16) -> Value {
    let (Kind::Scalar(of) | Kind::Array { element: of, .. }) = parameter.kind else {
        return Value::None;
    };
    match dtype(of) {
        Some(dtype) => Value::Array(Array { dtype, fortran: false, shape, section }),
        None => Value::None,
    }
}

/// # Safety
/// `pointer` is NULL or leads to a text that ends in a 0.
unsafe fn text(pointer: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: as promised.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_bytes().to_vec())
}

/// # Safety
/// `pointers` is NULL or leads to the addresses of `count` texts.
unsafe fn texts(pointers: *const *const c_char, count: usize) -> Vec<Option<Vec<u8>>> {
    if pointers.is_null() {
        return vec![None; count];
    }
    // SAFETY: as promised.
    (0..count).map(|at| unsafe { text(pointers.add(at).read()) }).collect()
}

/// # Safety
/// `pointer` leads to `len` bytes that nobody else uses meanwhile.
unsafe fn memory<'a>(pointer: *mut c_void, len: usize) -> &'a mut [u8] {
    if len == 0 || pointer.is_null() {
        return &mut [];
    }
    // SAFETY: as promised.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), len) }
}

/// Stores the callback's results where the function expects them.
fn store(
    parameters: &[Parameter],
    pointers: &[*mut c_void],
    shapes: &[Shape],
    results: &[Incoming],
    order: Order,
) -> Result<(), CallbackFailure> {
    let values = match results.first() {
        Some(values) => decode_values(values.bytes(), order).map_err(failed)?,
        None => Vec::new(),
    };
    for (index, parameter) in parameters.iter().enumerate() {
        let Kind::Array { element, .. } = parameter.kind else { continue };
        if !matches!(parameter.mode, Mode::Out | Mode::InOut) {
            continue;
        }
        let shape = &shapes[index];
        let content = match values.get(index) {
            Some(Value::Array(array)) if Some(array.dtype) == dtype(element) => {
                results.get(usize::from(array.section)).map(|section| (array, section.bytes()))
            }
            _ => None,
        };
        let Some((array, bytes)) =
            content.filter(|(_, bytes)| bytes.len() == shape.selected_bytes())
        else {
            return Err(failed(format!("it returned nothing that fits `{}`", parameter.name)));
        };
        // SAFETY: the function gives arrays of the size that its interface says.
        let place = unsafe { memory(pointers[index], shape.bytes()) };
        if order == Order::NATIVE {
            scatter(shape, bytes, place);
        } else {
            let mut native = bytes.to_vec();
            array.dtype.make_native(order, &mut native);
            scatter(shape, &native, place);
        }
    }
    Ok(())
}
