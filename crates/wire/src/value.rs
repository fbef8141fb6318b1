//! Typed values: the arguments and results of functions of modules.
//!
//! The values of a call are one inline section. The elements of arrays and the contents of byte strings are separate
//! sections, so that they can be sent through shared memory.

use crate::bytes::{ANY_COUNT, Order, Reader, WireError, Writer, bounded};

/// Maximum number of dimensions of an array.
pub const MAX_DIMENSIONS: usize = 32;

/// Element type of an array, of fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the names say it
pub enum DType {
    Int8 = 1,
    Int16 = 2,
    Int32 = 3,
    Int64 = 4,
    UInt8 = 5,
    UInt16 = 6,
    UInt32 = 7,
    UInt64 = 8,
    Float32 = 9,
    Float64 = 10,
    Complex64 = 11,
    Complex128 = 12,
    Bool = 13,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 13] = [
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float32,
        DType::Float64,
        DType::Complex64,
        DType::Complex128,
        DType::Bool,
    ];

    /// Bytes of one element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            DType::Complex64 => 8,
            DType::Complex128 => 16,
            _ => self.word(),
        }
    }

    /// Number of bytes whose order is swapped: a complex number has two words.
    fn word(self) -> usize {
        match self {
            DType::Int8 | DType::UInt8 | DType::Bool => 1,
            DType::Int16 | DType::UInt16 => 2,
            DType::Int32 | DType::UInt32 | DType::Float32 | DType::Complex64 => 4,
            DType::Int64 | DType::UInt64 | DType::Float64 | DType::Complex128 => 8,
        }
    }

    /// NumPy's name of the type, such as `float64`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::UInt8 => "uint8",
            DType::UInt16 => "uint16",
            DType::UInt32 => "uint32",
            DType::UInt64 => "uint64",
            DType::Float32 => "float32",
            DType::Float64 => "float64",
            DType::Complex64 => "complex64",
            DType::Complex128 => "complex128",
            DType::Bool => "bool",
        }
    }

    /// The element type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Converts elements received in `order` to native order, in place. A trailing incomplete element stays
    /// unchanged.
    pub fn make_native(self, order: Order, elements: &mut [u8]) {
        if order != Order::NATIVE {
            self.swap_bytes(elements);
        }
    }

    /// Converts elements from one byte order to the other, in place. A trailing incomplete element stays unchanged.
    pub fn swap_bytes(self, elements: &mut [u8]) {
        match self.word() {
            2 => swap_words::<2>(elements),
            4 => swap_words::<4>(elements),
            8 => swap_words::<8>(elements),
            _ => {}
        }
    }
}

/// The size is constant, so that the compiler uses instructions for it.
fn swap_words<const SIZE: usize>(bytes: &mut [u8]) {
    let (words, _) = bytes.as_chunks_mut::<SIZE>();
    words.iter_mut().for_each(|word| word.reverse());
}

/// An array value: its type and shape, and the section with its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Whether the first index varies fastest, as in Fortran.
    pub fortran: bool,
    /// Length of each dimension.
    pub shape: Vec<u64>,
    /// Index of the section with the elements.
    pub section: u16,
}

impl Array {
    /// Length of all elements, bytes; `None` when it overflows. An array with a dimension of
    /// 0 has no elements, however long the others are.
    #[must_use]
    pub fn byte_len(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let size = self.dtype.size() as u64;
        self.shape.iter().try_fold(size, |len, dim| len.checked_mul(*dim))
    }
}

/// Value of one parameter, as argument or result.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(String),
    /// A byte string: index of its section.
    Bytes(u16),
    /// An array.
    Array(Array),
}

/// Encodes values into the bytes of their section.
///
/// # Errors
/// When there are more than 65,535 of them, a text is longer than [`MAX_BODY`](crate::MAX_BODY)
/// or an array has more than [`MAX_DIMENSIONS`]; `out` is then as it was.
pub fn encode_values(values: &[Value], order: Order, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let written = write_values(values, &mut Writer { out, order });
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_values(values: &[Value], w: &mut Writer<'_>) -> Result<(), WireError> {
    w.count(values.len(), "number of values")?;
    for value in values {
        match value {
            Value::None => w.u8(0),
            Value::Int(int) => {
                w.u8(1);
                w.u64(int.cast_unsigned());
            }
            Value::Float(float) => {
                w.u8(2);
                w.u64(float.to_bits());
            }
            Value::Text(text) => {
                w.u8(3);
                w.text(text)?;
            }
            Value::Bytes(section) => {
                w.u8(4);
                w.u16(*section);
            }
            Value::Array(array) => {
                bounded("number of dimensions", array.shape.len() as u64, MAX_DIMENSIONS as u64)?;
                w.u8(5);
                w.u8(array.dtype as u8);
                w.u8(array.fortran.into());
                w.u16(array.section);
                w.count(array.shape.len(), "number of dimensions")?;
                array.shape.iter().for_each(|dim| w.u64(*dim));
            }
        }
    }
    Ok(())
}

/// Decodes the values in a section of a frame that came in `order`.
///
/// # Errors
/// When the bytes are not values.
pub fn decode_values(bytes: &[u8], order: Order) -> Result<Vec<Value>, WireError> {
    let mut r = Reader::new(bytes, order);
    let count = r.count(1, ANY_COUNT, "number of values")?;
    let values = r.list(count, decode_value)?;
    r.finish()?;
    Ok(values)
}

fn decode_value(r: &mut Reader<'_>) -> Result<Value, WireError> {
    Ok(match r.u8("value type")? {
        0 => Value::None,
        1 => Value::Int(r.u64("integer")?.cast_signed()),
        2 => Value::Float(f64::from_bits(r.u64("float")?)),
        3 => Value::Text(r.text("text")?.to_owned()),
        4 => Value::Bytes(r.u16("section")?),
        5 => {
            let code = r.u8("element type")?;
            let dtype = DType::ALL.into_iter().find(|dtype| *dtype as u8 == code);
            let dtype =
                dtype.ok_or(WireError::Meaningless { what: "element type", value: code.into() })?;
            let fortran = match r.u8("element order")? {
                0 => false,
                1 => true,
                value => {
                    return Err(WireError::Meaningless {
                        what: "element order",
                        value: value.into(),
                    });
                }
            };
            let section = r.u16("section")?;
            let dims = r.count(8, MAX_DIMENSIONS, "number of dimensions")?;
            let shape = r.list(dims, |r| r.u64("dimension"))?;
            Value::Array(Array { dtype, fortran, shape, section })
        }
        other => return Err(WireError::Meaningless { what: "value type", value: other.into() }),
    })
}
