//! Arguments of a function from the tensors of a request.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;

use bytes::Bytes;
use gridrpc_idl::{Dimension, Function, Kind, Mode, Parameter, Type};
use gridrpc_invoke::{ArgumentError, ArgumentValue, Memory};
use gridrpc_shm::arrays::SharedArray;
use gridrpc_typed::{Scalar, dtype};
use gridrpc_wire::{DType, Order};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::datatype::DataType;
use crate::error::{DataError, InferenceError};
use crate::tensor::{ElementOrder, InputTensor, strings};
use crate::transpose::transposed;

/// An argument, and the memory of it that the call uses.
#[derive(Debug)]
pub(crate) enum Argument {
    Absent,
    Scalar(Scalar),
    /// Elements of an array that the function does not change.
    Input {
        data: Bytes,
        shape: Vec<u64>,
    },
    /// Elements of an array that the function changes.
    InOut {
        data: Writable,
        shape: Vec<u64>,
    },
    Texts {
        texts: Vec<Option<Vec<u8>>>,
        shape: Vec<u64>,
    },
    /// Contents of files, which have no names.
    Files {
        files: Vec<File>,
        shape: Vec<u64>,
    },
}

/// Memory that a call writes to.
#[derive(Debug)]
pub(crate) enum Writable {
    Small(Vec<u8>),
    /// Workers of this machine change it in place.
    Shared(SharedArray),
}

impl Writable {
    /// A copy of `data`; from `threshold` bytes in shared memory.
    fn copy_of(data: &[u8], threshold: usize) -> io::Result<Writable> {
        if data.len() < threshold || data.is_empty() {
            return Ok(Writable::Small(data.to_vec()));
        }
        let array = SharedArray::new(data.len())?;
        // SAFETY: the array has this length, and nobody else has it yet.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), array.start().as_ptr(), data.len());
        }
        Ok(Writable::Shared(array))
    }

    fn start(&mut self) -> *mut u8 {
        match self {
            Writable::Small(data) => data.as_mut_ptr(),
            Writable::Shared(array) => array.start().as_ptr(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Writable::Small(data) => data.len(),
            Writable::Shared(array) => array.len(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Writable::Small(data) => data,
            // SAFETY: the array has this length. The call that may change it has not been submitted, or has ended.
            Writable::Shared(array) => unsafe {
                std::slice::from_raw_parts(array.start().as_ptr(), array.len())
            },
        }
    }
}

impl AsRef<[u8]> for Writable {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Argument {
    /// The argument for `prepare`. Pointers in it are valid as long as this lives.
    pub(crate) fn given(&mut self) -> ArgumentValue {
        match self {
            Argument::Absent => ArgumentValue::Absent,
            Argument::Scalar(scalar) => ArgumentValue::Scalar(*scalar),
            Argument::Input { data, shape } => ArgumentValue::Array(Memory {
                start: data.as_ptr().cast_mut(),
                len: Some(data.len()),
                shape: Some(shape.clone()),
                order: Order::NATIVE,
            }),
            Argument::InOut { data, shape } => ArgumentValue::Array(Memory {
                start: data.start(),
                len: Some(data.len()),
                shape: Some(shape.clone()),
                order: Order::NATIVE,
            }),
            Argument::Texts { texts, .. } => ArgumentValue::Texts(std::mem::take(texts)),
            Argument::Files { files, .. } => ArgumentValue::Texts(files.iter().map(path).collect()),
        }
    }

    /// The dimensions, if it is strings or files.
    pub(crate) fn shape_of_texts(&self) -> Option<&[u64]> {
        match self {
            Argument::Texts { shape, .. } | Argument::Files { shape, .. } => Some(shape),
            _ => None,
        }
    }

    /// The elements, if it is an array of numbers.
    pub(crate) fn elements(&self) -> Option<&[u8]> {
        match self {
            Argument::Input { data, .. } => Some(data),
            Argument::InOut { data, .. } => Some(data.bytes()),
            _ => None,
        }
    }
}

fn path(file: &File) -> Option<Vec<u8>> {
    Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes())
}

/// A file in memory with this content.
fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("gridrpc-inference", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(content)?;
    Ok(file)
}

/// The content that a call has written to a file.
pub(crate) fn content(file: &mut File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// Whether the protocol has an input for this parameter.
pub(crate) fn is_input(parameter: &Parameter) -> bool {
    parameter.mode.is_input() && !matches!(parameter.kind, Kind::Callback(_))
}

/// Whether the protocol has an output for this parameter.
pub(crate) fn is_output(parameter: &Parameter) -> bool {
    parameter.mode.is_output() && !matches!(parameter.kind, Kind::Callback(_))
}

/// The reason why a function cannot be called by this protocol, if any.
pub(crate) fn unsupported(function: &Function) -> Option<&'static str> {
    if function.is_parallel() {
        return Some("it runs on several processes");
    }
    function.parameters.iter().find_map(|parameter| match parameter.kind {
        Kind::Callback(_) => Some("it calls back a function of its caller"),
        Kind::Array { element: Type::Filename, .. } if parameter.mode.is_output() => {
            Some("it has several output files")
        }
        _ => None,
    })
}

/// Assigns the inputs to the parameters of a function. From `threshold` bytes, arrays that it changes are put into
/// shared memory.
pub(crate) fn arguments(
    name: &str,
    function: &Function,
    inputs: Vec<InputTensor>,
    threshold: usize,
) -> Result<Vec<Argument>, InferenceError> {
    if let Some(reason) = unsupported(function) {
        return Err(InferenceError::Unsupported { function: name.to_owned(), reason });
    }
    let problem = |parameter: &str, problem: String| ArgumentError {
        function: name.to_owned(),
        parameter: parameter.to_owned(),
        problem,
    };
    let parameters = &function.parameters;
    let mut arguments: Vec<Argument> = parameters.iter().map(|_| Argument::Absent).collect();
    for input in inputs {
        let Some(index) = parameters.iter().position(|known| known.name == input.name) else {
            let known: Vec<&str> = parameters
                .iter()
                .filter(|known| is_input(known))
                .map(|known| known.name.as_str())
                .collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            let input = shortened(&input.name);
            return Err(problem(&input, format!("is unknown; its inputs are: {known}")).into());
        };
        let parameter = &parameters[index];
        if !is_input(parameter) {
            return Err(problem(&parameter.name, "is not an input".into()).into());
        }
        if !matches!(arguments[index], Argument::Absent) {
            return Err(problem(&parameter.name, "is given twice".into()).into());
        }
        arguments[index] =
            argument(parameter, input, function.fortran(), threshold).map_err(|why| match why {
                TensorMismatch::Problem(why) => problem(&parameter.name, why).into(),
                TensorMismatch::System(error) => InferenceError::System(format!(
                    "{name}: no memory for argument `{}`: {error}",
                    parameter.name
                )),
            })?;
    }
    for (parameter, argument) in parameters.iter().zip(&mut arguments) {
        if matches!(parameter.kind, Kind::Scalar(Type::Filename)) && parameter.mode == Mode::Out {
            let file = memory_file(&[]).map_err(|error| {
                let output = &parameter.name;
                InferenceError::System(format!("{name}: no memory for output `{output}`: {error}"))
            })?;
            *argument = Argument::Files { files: vec![file], shape: vec![1] };
        }
    }
    Ok(arguments)
}

/// The name of an unknown input, for a message.
fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

/// Reason why a tensor is not an argument.
enum TensorMismatch {
    /// The rest of a sentence that starts with the argument.
    Problem(String),
    System(io::Error),
}

impl From<String> for TensorMismatch {
    fn from(problem: String) -> TensorMismatch {
        TensorMismatch::Problem(problem)
    }
}

impl From<DataError> for TensorMismatch {
    fn from(error: DataError) -> TensorMismatch {
        TensorMismatch::Problem(error.to_string())
    }
}

impl From<io::Error> for TensorMismatch {
    fn from(error: io::Error) -> TensorMismatch {
        TensorMismatch::System(error)
    }
}

fn argument(
    parameter: &Parameter,
    input: InputTensor,
    fortran: bool,
    threshold: usize,
) -> Result<Argument, TensorMismatch> {
    let (of, dimensions): (Type, Option<&[Dimension]>) = match &parameter.kind {
        Kind::Scalar(of) => (*of, None),
        Kind::Array { element, dimensions } => (*element, Some(dimensions)),
        Kind::Callback(_) => {
            return Err(TensorMismatch::Problem("is a function to call back".into()));
        }
    };
    let Some(dtype) = dtype(of) else { return texts(of, dimensions, input) };
    if dimensions.is_none()
        && matches!(of, Type::Char | Type::UChar)
        && input.datatype == DataType::Bytes
    {
        return character(of, &input);
    }
    let (datatype, is_complex) = DataType::of(dtype);
    // Characters may use either type of one byte.
    let is_character = matches!(of, Type::Char | Type::UChar)
        && matches!(input.datatype, DataType::Int8 | DataType::Uint8);
    if input.datatype != datatype && !is_character {
        let found = input.datatype;
        return Err(format!("has datatype {found}, but has to be {datatype}").into());
    }
    let mut shape = input.shape;
    if is_complex && shape.pop() != Some(2) {
        return Err("is complex: its last dimension has to be 2, real and imaginary part"
            .to_owned()
            .into());
    }
    let Some(dimensions) = dimensions else {
        if shape.iter().any(|dimension| *dimension != 1) {
            return Err(
                format!("has shape {shape:?}, but is one number: its shape has to be [1]").into()
            );
        }
        let data = native(input.data, dtype);
        let scalar = Scalar::from_bytes(of, &data);
        return scalar
            .map(Argument::Scalar)
            .ok_or_else(|| TensorMismatch::from(DataError::Missing));
    };
    check_rank(&shape, dimensions)?;
    let mut data = native(input.data, dtype);
    if is_transposed(fortran, input.order) && shape.len() > 1 {
        data = match input.order {
            ElementOrder::Row => transposed(&data, &shape, dtype.size()),
            ElementOrder::Column => {
                let reversed: Vec<u64> = shape.iter().rev().copied().collect();
                transposed(&data, &reversed, dtype.size())
            }
        }
        .into();
    }
    if parameter.mode == Mode::InOut {
        let data = Writable::copy_of(&data, threshold)?;
        return Ok(Argument::InOut { data, shape });
    }
    Ok(Argument::Input { data, shape })
}

/// Whether a function takes arrays in the other order.
pub(crate) fn is_transposed(fortran: bool, order: ElementOrder) -> bool {
    fortran != (order == ElementOrder::Column)
}

fn check_rank(shape: &[u64], dimensions: &[Dimension]) -> Result<(), TensorMismatch> {
    if shape.len() == dimensions.len() {
        return Ok(());
    }
    let wanted = dimensions.len();
    Err(format!("has shape {shape:?}, but has to have {wanted} dimension(s)").into())
}

/// A character, given as a string.
fn character(of: Type, input: &InputTensor) -> Result<Argument, TensorMismatch> {
    let strings = strings(&input.data).collect::<Result<Vec<_>, _>>()?;
    let [[byte]] = strings[..] else {
        return Err("has to be one character, or an integer".to_owned().into());
    };
    let value = if of.is_signed() { byte.cast_signed().into() } else { i64::from(*byte) };
    Ok(Argument::Scalar(Scalar::Int(value)))
}

fn texts(
    of: Type,
    dimensions: Option<&[Dimension]>,
    input: InputTensor,
) -> Result<Argument, TensorMismatch> {
    if input.datatype != DataType::Bytes {
        let found = input.datatype;
        return Err(format!("has datatype {found}, but has to be BYTES").into());
    }
    let shape = input.shape;
    match dimensions {
        Some(dimensions) => check_rank(&shape, dimensions)?,
        None if shape.iter().any(|dimension| *dimension != 1) => {
            return Err(
                format!("has shape {shape:?}, but is one string: its shape has to be [1]").into()
            );
        }
        None => {}
    }
    if of == Type::Filename {
        let mut files = Vec::new();
        for content in strings(&input.data) {
            files.push(memory_file(content?)?);
        }
        return Ok(Argument::Files { files, shape });
    }
    let mut texts = Vec::new();
    for text in strings(&input.data) {
        let text = text?;
        if text.contains(&0) {
            return Err("has a zero byte in it, at which C would end it".to_owned().into());
        }
        texts.push(Some(text.to_vec()));
    }
    Ok(Argument::Texts { texts, shape })
}

/// Converts little-endian elements to the order of this machine, and the reverse.
pub(crate) fn native(data: Bytes, dtype: DType) -> Bytes {
    if cfg!(target_endian = "little") || data.is_empty() {
        return data;
    }
    let mut data = Vec::from(data);
    dtype.make_native(gridrpc_wire::Order::Little, &mut data);
    data.into()
}
