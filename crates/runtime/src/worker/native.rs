//! The worker that runs native functions: typed values in, typed values out.

use std::io;
use std::os::fd::OwnedFd;

use gridrpc_wire::{
    Array, DType, FunctionForm, Order, RemoteError, Stamps, Value, WireError, decode_values,
    encode_values,
};
use thiserror::Error;

use crate::link::LinkError;
use crate::payload::{Incoming, Payload, PayloadBuilder};
use crate::sys::monotonic_ns;
use crate::worker::builtin::{self, Function};
use crate::worker::link::{Answer, Job, Turn, WorkerLink};
use crate::worker::module::Modules;

pub use builtin::names as builtin_names;

/// Why a native function did not return.
#[derive(Debug, Error)]
pub enum NativeError {
    /// There is no function of that name.
    #[error("there is no native function `{0}`; the built-in ones are {names}", names = builtin::names().join(", "))]
    UnknownFunction(String),
    /// The arguments don't fit the function.
    #[error("{0}")]
    Arguments(String),
    /// The values cannot be decoded.
    #[error("broken values: {0}")]
    Values(#[from] WireError),
    /// There is no memory for the result.
    #[error("no memory for the result: {0}")]
    Memory(#[from] io::Error),
    /// The function panicked.
    #[error("the function panicked: {0}")]
    Panic(String),
}

impl NativeError {
    pub(super) fn remote(&self) -> RemoteError {
        match self {
            NativeError::UnknownFunction(_) => RemoteError::FunctionNotFound,
            NativeError::Arguments(_) => RemoteError::ArgumentError,
            NativeError::Values(_) => RemoteError::ProtocolError,
            NativeError::Memory(_) => RemoteError::OutOfMemory,
            NativeError::Panic(_) => RemoteError::Panic,
        }
    }
}

/// One argument.
#[derive(Debug)]
pub enum Argument {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(String),
    /// A string of bytes.
    Bytes(Incoming),
    /// An array: its type and shape, and its elements in this machine's byte order.
    Array(Array, Incoming),
}

impl Argument {
    /// A number as seconds, say.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, name: &str) -> Result<f64, NativeError> {
        match self {
            Argument::Float(value) => Ok(*value),
            Argument::Int(value) => Ok(*value as f64),
            _ => Err(NativeError::Arguments(format!("`{name}` has to be a number"))),
        }
    }

    /// A count or length.
    ///
    /// # Errors
    /// When it is something else, or negative.
    pub fn count(&self, name: &str) -> Result<usize, NativeError> {
        match self {
            Argument::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
        .ok_or_else(|| NativeError::Arguments(format!("`{name}` has to be an integer from 0")))
    }

    /// The bytes of a byte string or of an array's elements; none of nothing.
    ///
    /// # Errors
    /// When it is a number or a text.
    pub fn bytes(&self, name: &str) -> Result<&[u8], NativeError> {
        match self {
            Argument::Bytes(bytes) | Argument::Array(_, bytes) => Ok(bytes.bytes()),
            Argument::None => Ok(&[]),
            _ => Err(NativeError::Arguments(format!("`{name}` has to be bytes or an array"))),
        }
    }
}

/// The results of a function, put together in the order in which it returns them.
#[derive(Debug)]
pub struct Results<'l> {
    values: Vec<Value>,
    payload: PayloadBuilder<'l>,
    sections: u16,
}

impl<'l> Results<'l> {
    fn new(payload: PayloadBuilder<'l>) -> Self {
        // Section 0 holds the values.
        Results { values: Vec::new(), payload, sections: 1 }
    }

    /// Returns a value without contents of its own.
    pub fn push(&mut self, value: Value) {
        self.values.push(value);
    }

    /// Returns a string of `len` bytes that `fill` writes in place.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn push_bytes(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), NativeError> {
        self.payload.add_with(len, fill)?;
        self.values.push(Value::Bytes(self.sections));
        self.sections += 1;
        Ok(())
    }

    /// Returns an array with a copy of these elements.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn push_array(&mut self, array: &Array, elements: &[u8]) -> Result<(), NativeError> {
        self.payload.add(elements)?;
        self.values.push(Value::Array(Array { section: self.sections, ..array.clone() }));
        self.sections += 1;
        Ok(())
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Puts another value into a place.
    pub(super) fn replace(&mut self, place: usize, value: Value) {
        self.values[place] = value;
    }

    /// Takes values away again, from that place on.
    pub(super) fn cut(&mut self, place: usize) {
        self.values.truncate(place);
    }

    /// How many more sections there may be.
    pub(super) fn room(&self) -> usize {
        self.payload.room()
    }

    fn finish(mut self) -> Result<Payload, NativeError> {
        let mut bytes = Vec::new();
        encode_values(&self.values, Order::NATIVE, &mut bytes)?;
        self.payload.add_first(&bytes)?;
        Ok(self.payload.finish())
    }
}

/// Serves a client over this connection until it is gone.
///
/// # Errors
/// When the client breaks the protocol.
pub fn serve(connection: OwnedFd) -> Result<(), LinkError> {
    let mut link = WorkerLink::open(connection, "native")?;
    let mut modules = Modules::default();
    loop {
        let job = match link.next_turn()? {
            Turn::Run(job) => job,
            // Nothing is made of shared data here.
            Turn::LetGo(_) => continue,
            Turn::End => return Ok(()),
        };
        if job.function.form == FunctionForm::Library {
            if !modules.serve(&mut link, job)? {
                return Ok(());
            }
            continue;
        }
        let Job { call, function, mut sections, order, received } = job;
        let calc_in = monotonic_ns();
        let results = run(&link, &function.name, &sections, order);
        let calc_out = monotonic_ns();
        let stamps = Stamps { received, calc_in, calc_out, ..Stamps::default() };
        match results {
            Ok(payload) => link.answer(call, stamps, sections, Answer::Returned(payload))?,
            Err(error) => {
                let payload = Payload::default();
                let (name, message) = (error.remote().name(), error.to_string());
                let answer = Answer::Raised { error: name, message: &message, trace: "", payload };
                link.answer(call, stamps, std::mem::take(&mut sections), answer)?;
            }
        }
    }
}

fn run(
    link: &WorkerLink,
    name: &str,
    sections: &[Incoming],
    order: Order,
) -> Result<Payload, NativeError> {
    let function =
        builtin::find(name).ok_or_else(|| NativeError::UnknownFunction(name.to_owned()))?;
    let arguments = arguments(sections, order)?;
    let mut results = Results::new(link.payload());
    call(function, &arguments, &mut results)?;
    results.finish()
}

/// Calls a function; a panic is an error of the call.
pub(super) fn call(
    function: Function,
    arguments: &[Argument],
    results: &mut Results<'_>,
) -> Result<(), NativeError> {
    let call = std::panic::AssertUnwindSafe(|| function(arguments, results));
    std::panic::catch_unwind(call).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(NativeError::Panic(text.unwrap_or("without a message").to_owned()))
    })
}

/// The arguments that the first section describes.
fn arguments(sections: &[Incoming], order: Order) -> Result<Vec<Argument>, NativeError> {
    let Some(values) = sections.first() else { return Ok(Vec::new()) };
    let content = |index: u16| {
        sections.get(usize::from(index)).filter(|_| index > 0).cloned().ok_or_else(|| {
            NativeError::Arguments(format!(
                "an argument refers to section {index}, which is not there"
            ))
        })
    };
    let values = decode_values(values.bytes(), order)?;
    values.into_iter().map(|value| argument(value, order, content)).collect()
}

fn argument(
    value: Value,
    order: Order,
    content: impl Fn(u16) -> Result<Incoming, NativeError>,
) -> Result<Argument, NativeError> {
    Ok(match value {
        Value::None => Argument::None,
        Value::Int(value) => Argument::Int(value),
        Value::Float(value) => Argument::Float(value),
        Value::Text(value) => Argument::Text(value),
        Value::Bytes(index) => Argument::Bytes(content(index)?),
        Value::Array(array) => {
            let elements = content(array.section)?;
            if array.byte_len() != Some(elements.bytes().len() as u64) {
                return Err(NativeError::Arguments(format!(
                    "an array of shape {:?} and type {} came with {} bytes",
                    array.shape,
                    array.dtype.name(),
                    elements.bytes().len()
                )));
            }
            let elements = make_native(array.dtype, order, elements);
            Argument::Array(array, elements)
        }
    })
}

fn make_native(dtype: DType, order: Order, elements: Incoming) -> Incoming {
    if order == Order::NATIVE {
        return elements;
    }
    let mut bytes = elements.bytes().to_vec();
    dtype.make_native(order, &mut bytes);
    Incoming::Bytes(bytes)
}
