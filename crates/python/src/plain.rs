//! Pickles of plain values, written and read without the pickle module.
//!
//! Most small calls contain only numbers and short texts, and setting up a pickler or an unpickler takes longer than
//! writing or reading those. The output is a normal pickle; the input may come from any pickler. Anything that is not
//! plain is left to the pickle module as a whole.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Maximum length of a pickle written or read here, bytes. For longer ones the setup is negligible.
const LONGEST: usize = 1024;
/// Maximum nesting depth of tuples.
const DEEPEST: usize = 8;

// The supported operations of pickle.
const PROTO: u8 = 0x80;
const FRAME: u8 = 0x95;
const STOP: u8 = b'.';
const MARK: u8 = b'(';
const MEMOIZE: u8 = 0x94;
const NONE: u8 = b'N';
const TRUE: u8 = 0x88;
const FALSE: u8 = 0x89;
const INT_4: u8 = b'J';
const INT_1: u8 = b'K';
const INT_2: u8 = b'M';
const LONG_1: u8 = 0x8a;
const FLOAT: u8 = b'G';
const TEXT_1: u8 = 0x8c;
const TEXT_4: u8 = b'X';
const BYTES_1: u8 = b'C';
const BYTES_4: u8 = b'B';
const EMPTY_TUPLE: u8 = b')';
const TUPLE: u8 = b't';
const TUPLE_1: u8 = 0x85;
const TUPLE_2: u8 = 0x86;
const TUPLE_3: u8 = 0x87;
const EMPTY_DICT: u8 = b'}';
const SET_ITEM: u8 = b's';
const SET_ITEMS: u8 = b'u';

/// Appends the pickle of a value. Returns `false` if it is not plain or too long; `out` may then contain a part of
/// it.
pub fn dumps(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(&[PROTO, 5]);
    let plain = write(value, out, 0);
    out.push(STOP);
    plain && out.len() <= LONGEST
}

/// Appends the pickle of `(args, kwargs)`. Returns `false` as [`dumps`] does.
pub fn dumps_call(
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
    out: &mut Vec<u8>,
) -> bool {
    out.extend_from_slice(&[PROTO, 5]);
    if !write_tuple(args, out, 0) {
        return false;
    }
    out.push(EMPTY_DICT);
    if !kwargs.is_empty() {
        out.push(MARK);
        for (name, value) in kwargs {
            if !write(&name, out, 0) || !write(&value, out, 0) {
                return false;
            }
        }
        out.push(SET_ITEMS);
    }
    out.extend_from_slice(&[TUPLE_2, STOP]);
    out.len() <= LONGEST
}

fn write(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, depth: usize) -> bool {
    if value.is_none() {
        out.push(NONE);
    } else if let Ok(float) = value.cast_exact::<PyFloat>() {
        out.push(FLOAT);
        out.extend_from_slice(&float.value().to_be_bytes());
    } else if let Ok(int) = value.cast_exact::<PyInt>() {
        let Ok(int) = int.extract::<i64>() else { return false };
        write_int(int, out);
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        out.push(if flag.is_true() { TRUE } else { FALSE });
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        // Lone surrogates are not valid UTF-8.
        let Ok(text) = text.to_str() else { return false };
        return write_bytes(text.as_bytes(), TEXT_1, TEXT_4, out);
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return write_bytes(bytes.as_bytes(), BYTES_1, BYTES_4, out);
    } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return depth < DEEPEST && write_tuple(tuple, out, depth);
    } else {
        return false;
    }
    true
}

fn write_int(int: i64, out: &mut Vec<u8>) {
    if let Ok(int) = u8::try_from(int) {
        out.extend_from_slice(&[INT_1, int]);
    } else if let Ok(int) = u16::try_from(int) {
        out.push(INT_2);
        out.extend_from_slice(&int.to_le_bytes());
    } else if let Ok(int) = i32::try_from(int) {
        out.push(INT_4);
        out.extend_from_slice(&int.to_le_bytes());
    } else {
        out.extend_from_slice(&[LONG_1, 8]);
        out.extend_from_slice(&int.to_le_bytes());
    }
}

fn write_bytes(bytes: &[u8], short: u8, long: u8, out: &mut Vec<u8>) -> bool {
    if bytes.len() > LONGEST {
        return false;
    }
    if let Ok(len) = u8::try_from(bytes.len()) {
        out.extend_from_slice(&[short, len]);
    } else {
        out.push(long);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    }
    out.extend_from_slice(bytes);
    true
}

fn write_tuple(tuple: &Bound<'_, PyTuple>, out: &mut Vec<u8>, depth: usize) -> bool {
    let end = match tuple.len() {
        0 => EMPTY_TUPLE,
        1 => TUPLE_1,
        2 => TUPLE_2,
        3 => TUPLE_3,
        _ => {
            out.push(MARK);
            TUPLE
        }
    };
    for item in tuple.iter_borrowed() {
        if out.len() > LONGEST || !write(&item, out, depth + 1) {
            return false;
        }
    }
    out.push(end);
    true
}

/// The value in a pickle. Returns `None`, without side effects, if it is not plain or not a pickle.
pub fn loads<'py>(py: Python<'py>, pickle: &[u8]) -> Option<Bound<'py, PyAny>> {
    if pickle.len() > LONGEST {
        return None;
    }
    let mut reader = Reader { rest: pickle, stack: Vec::new(), marks: Vec::new() };
    if reader.take::<2>()? != [PROTO, 5] {
        return None;
    }
    loop {
        let [operation] = reader.take()?;
        if operation == STOP {
            let value = reader.stack.pop()?;
            return (reader.stack.is_empty() && reader.rest.is_empty()).then_some(value);
        }
        reader.step(py, operation)?;
    }
}

/// The rest of a pickle, and the values that are not part of another one yet.
struct Reader<'py, 'p> {
    rest: &'p [u8],
    stack: Vec<Bound<'py, PyAny>>,
    marks: Vec<usize>,
}

impl<'py, 'p> Reader<'py, 'p> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    fn bytes(&mut self, len: usize) -> Option<&'p [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    fn step(&mut self, py: Python<'py>, operation: u8) -> Option<()> {
        let value = match operation {
            NONE => py.None().into_bound(py),
            TRUE => PyBool::new(py, true).to_owned().into_any(),
            FALSE => PyBool::new(py, false).to_owned().into_any(),
            INT_1 => int(py, self.take::<1>()?[0].into())?,
            INT_2 => int(py, u16::from_le_bytes(self.take()?).into())?,
            INT_4 => int(py, i32::from_le_bytes(self.take()?).into())?,
            LONG_1 => {
                let len = usize::from(self.take::<1>()?[0]);
                let digits = self.bytes(len)?;
                let sign = if digits.last()? & 0x80 == 0 { 0 } else { 0xff };
                let mut whole = [sign; 8];
                whole.get_mut(..len)?.copy_from_slice(digits);
                int(py, i64::from_le_bytes(whole))?
            }
            FLOAT => PyFloat::new(py, f64::from_be_bytes(self.take()?)).into_any(),
            TEXT_1 => self.short().and_then(|text| string(py, text))?,
            TEXT_4 => self.long().and_then(|text| string(py, text))?,
            BYTES_1 => PyBytes::new(py, self.short()?).into_any(),
            BYTES_4 => PyBytes::new(py, self.long()?).into_any(),
            EMPTY_TUPLE => PyTuple::empty(py).into_any(),
            TUPLE_1 => self.tuple(py, self.stack.len().checked_sub(1)?)?,
            TUPLE_2 => self.tuple(py, self.stack.len().checked_sub(2)?)?,
            TUPLE_3 => self.tuple(py, self.stack.len().checked_sub(3)?)?,
            TUPLE => {
                let start = self.marks.pop()?;
                self.tuple(py, start)?
            }
            EMPTY_DICT => PyDict::new(py).into_any(),
            SET_ITEM => return self.set_items(self.stack.len().checked_sub(2)?),
            SET_ITEMS => {
                let start = self.marks.pop()?;
                return self.set_items(start);
            }
            MARK => {
                self.marks.push(self.stack.len());
                return Some(());
            }
            // Matters only to later references to it, which are rejected.
            MEMOIZE => return Some(()),
            FRAME => return self.take::<8>().map(|_| ()),
            _ => return None,
        };
        self.stack.push(value);
        Some(())
    }

    fn short(&mut self) -> Option<&'p [u8]> {
        let len = self.take::<1>()?[0];
        self.bytes(len.into())
    }

    fn long(&mut self) -> Option<&'p [u8]> {
        let len = u32::from_le_bytes(self.take()?);
        self.bytes(len as usize)
    }

    /// The values from `start` on, as a tuple.
    fn tuple(&mut self, py: Python<'py>, start: usize) -> Option<Bound<'py, PyAny>> {
        if start > self.stack.len() {
            return None;
        }
        Some(PyTuple::new(py, self.stack.drain(start..)).ok()?.into_any())
    }

    /// Adds the names and values from `start` on to the dictionary before them.
    fn set_items(&mut self, start: usize) -> Option<()> {
        let count = self.stack.len().checked_sub(start)?;
        let dict = self.stack.get(start.checked_sub(1)?)?.cast_exact::<PyDict>().ok()?.clone();
        if count % 2 != 0 {
            return None;
        }
        for pair in self.stack[start..].chunks_exact(2) {
            // All values here are plain: their hashes run no foreign code.
            dict.set_item(&pair[0], &pair[1]).ok()?;
        }
        self.stack.truncate(start);
        Some(())
    }
}

fn int(py: Python<'_>, value: i64) -> Option<Bound<'_, PyAny>> {
    Some(value.into_pyobject(py).ok()?.into_any())
}

fn string<'py>(py: Python<'py>, utf8: &[u8]) -> Option<Bound<'py, PyAny>> {
    Some(PyString::new(py, std::str::from_utf8(utf8).ok()?).into_any())
}

/// Size of the objects, bytes, if all are None, numbers, str or bytes; otherwise -1.
#[pyfunction]
pub fn plain_bytes(objects: &Bound<'_, PyList>) -> isize {
    let mut bytes = 0_isize;
    for object in objects {
        bytes += if object.is_exact_instance_of::<PyInt>()
            || object.is_exact_instance_of::<PyFloat>()
            || object.is_none()
            || object.is_exact_instance_of::<PyBool>()
        {
            8
        } else if let Ok(text) = object.cast_exact::<PyString>() {
            text.len().unwrap_or(0).cast_signed()
        } else if let Ok(content) = object.cast_exact::<PyBytes>() {
            content.as_bytes().len().cast_signed()
        } else {
            return -1;
        };
    }
    bytes
}
