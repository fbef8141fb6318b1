//! Typed values: Python objects to sections, and back.

use gridrpc_runtime::client::find_shared;
use gridrpc_runtime::payload::{Incoming, PayloadBuilder};
use gridrpc_wire::{Array, DType, Order, Value, decode_values, encode_values};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple,
};

use crate::buffer::{Buffer, View};
use crate::errors;

/// What an array is described by: element type, Fortran order, shape.
type Shape = (String, bool, Vec<u64>);

/// Adds the arguments to a payload; the values are its first section. Each is None, a bool, an int, a float, a
/// str, bytes-like, `(shape, bytes-like)` for an array, or `(shape | None, blob, part, length)` for
/// shared data.
pub fn from_python(
    arguments: &[Bound<'_, PyAny>],
    payload: &mut PayloadBuilder<'_>,
) -> PyResult<()> {
    let mut values = Vec::with_capacity(arguments.len());
    let mut sections = 1_u16;
    for argument in arguments {
        if argument.is_none() {
            values.push(Value::None);
        } else if argument.is_instance_of::<PyBool>() || argument.is_instance_of::<PyInt>() {
            let int = argument
                .extract()
                .map_err(|_| PyOverflowError::new_err(format!("{argument} is beyond 64 bits")))?;
            values.push(Value::Int(int));
        } else if argument.is_instance_of::<PyFloat>() {
            values.push(Value::Float(argument.extract()?));
        } else if argument.is_instance_of::<PyString>() {
            values.push(Value::Text(argument.extract()?));
        } else {
            values.push(add_contents(argument, sections, payload)?);
            sections = sections
                .checked_add(1)
                .ok_or_else(|| PyValueError::new_err("more than 65,535 arrays"))?;
        }
    }
    if payload.room() == 0 {
        return Err(PyValueError::new_err("more than 1,023 arrays in one call"));
    }
    let mut bytes = Vec::new();
    encode_values(&values, Order::NATIVE, &mut bytes)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    payload.add_first(&bytes).map_err(|error| errors::no_room(&error))?;
    Ok(())
}

/// Whether a value travels as it is.
pub fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
}

fn add_contents(
    argument: &Bound<'_, PyAny>,
    section: u16,
    payload: &mut PayloadBuilder<'_>,
) -> PyResult<Value> {
    if payload.room() == 0 {
        return Err(PyValueError::new_err("more than 1,023 arrays in one call"));
    }
    let Ok(tuple) = argument.cast::<PyTuple>() else {
        let view = View::new(argument)?;
        add_view(argument.py(), &view, payload)?;
        return Ok(Value::Bytes(section));
    };
    let shape: Option<Shape> = tuple.get_item(0)?.extract()?;
    if tuple.len() == 2 {
        let view = View::new(&tuple.get_item(1)?)?;
        add_view(argument.py(), &view, payload)?;
    } else {
        let (blob, part, len) =
            (tuple.get_item(1)?.extract()?, tuple.get_item(2)?.extract()?, tuple.get_item(3)?);
        payload.add_blob(blob, part, len.extract()?);
    }
    let Some((dtype, fortran, shape)) = shape else { return Ok(Value::Bytes(section)) };
    let known = DType::from_name(&dtype);
    let dtype = known.ok_or_else(|| {
        PyTypeError::new_err(format!("arrays of type `{dtype}` cannot go to native functions"))
    })?;
    Ok(Value::Array(Array { dtype, fortran, shape, section }))
}

/// Values that a chunk carries at most: a message has room for 65,535, and each result has one more.
const MOST_IN_CHUNK: usize = 60_000;

/// Adds the arguments of `builtin/each` for the first of these items, as many as are plain and
/// have room. Returns how many those are.
pub fn each_from_python(
    name: &str,
    items: &Bound<'_, PyList>,
    single: bool,
    limit: i64,
    payload: &mut PayloadBuilder<'_>,
) -> PyResult<usize> {
    let Some(first) = items.iter().next() else { return Ok(0) };
    let width = if single { 1 } else { first.cast::<PyTuple>()?.len() };
    let mut values = Vec::with_capacity(3 + items.len() * width);
    values.extend([Value::Text(name.into()), Value::Int(width as i64), Value::Int(limit)]);
    let mut count = 0;
    for item in items {
        let had = values.len();
        if single {
            values.extend(plain(&item));
        } else {
            values.extend(item.cast::<PyTuple>()?.iter_borrowed().map_while(|part| plain(&part)));
        }
        if values.len() < had + width || values.len() > MOST_IN_CHUNK {
            values.truncate(had);
            break;
        }
        count += 1;
    }
    let mut bytes = Vec::new();
    encode_values(&values, Order::NATIVE, &mut bytes)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    payload.add_first(&bytes).map_err(|error| errors::no_room(&error))?;
    Ok(count)
}

/// A value that needs no section of its own; `None` for all others.
fn plain(object: &Bound<'_, PyAny>) -> Option<Value> {
    if object.is_none() {
        Some(Value::None)
    } else if object.is_instance_of::<PyInt>() {
        object.extract().ok().map(Value::Int)
    } else if object.is_instance_of::<PyFloat>() {
        object.extract().ok().map(Value::Float)
    } else if object.is_instance_of::<PyString>() {
        object.extract().ok().map(Value::Text)
    } else {
        None
    }
}

/// Bytes that the objects take, if all are None, numbers, str or bytes themselves; else -1.
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

/// Copies memory into a payload; the interpreter goes on meanwhile if there is much of it.
pub fn add_view(py: Python<'_>, view: &View, payload: &mut PayloadBuilder<'_>) -> PyResult<()> {
    const MUCH: usize = 64 << 10;
    let bytes = view.bytes();
    if bytes.len() < MUCH {
        payload.add(bytes).map_err(|error| errors::no_room(&error))?;
    } else {
        py.detach(|| payload.add(bytes)).map_err(|error| errors::no_room(&error))?;
    }
    Ok(())
}

/// As [`add_view`], but memory of `gridrpc.empty` is referred to where it lies.
pub fn refer_to_view(
    py: Python<'_>,
    view: &View,
    payload: &mut PayloadBuilder<'_>,
) -> PyResult<()> {
    let bytes = view.bytes();
    if payload.has_shared_memory()
        && !payload.is_small(bytes.len())
        && let Some((lent, offset)) = find_shared(bytes.as_ptr(), bytes.len())
    {
        payload.add_shared(lent, offset, bytes.len() as u64, 0);
        return Ok(());
    }
    add_view(py, view, payload)
}

/// The result of a native function: None, one value, or a tuple of several.
pub fn to_python(py: Python<'_>, sections: Vec<Incoming>) -> PyResult<Py<PyAny>> {
    let values = decode(&sections)?;
    let mut contents: Vec<Option<Incoming>> = sections.into_iter().map(Some).collect();
    Ok(result(py, values, &mut contents)?.unbind())
}

/// What `builtin/each` has returned: the results, and the type and message of the error that ended
/// them, or None.
pub fn each_to_python(py: Python<'_>, sections: Vec<Incoming>) -> PyResult<Py<PyAny>> {
    let mut values = decode(&sections)?.into_iter();
    let mut contents: Vec<Option<Incoming>> = sections.into_iter().map(Some).collect();
    let broken = || PyValueError::new_err("broken results of a chunk");
    let count = |values: &mut std::vec::IntoIter<Value>| match values.next() {
        Some(Value::Int(count)) => usize::try_from(count).map_err(|_| broken()),
        _ => Err(broken()),
    };
    let results = PyList::empty(py);
    for _ in 0..count(&mut values)? {
        let one = count(&mut values)?;
        if one > values.len() {
            return Err(broken());
        }
        results.append(result(py, values.by_ref().take(one), &mut contents)?)?;
    }
    let error = match (values.next(), values.next()) {
        (Some(Value::Text(error)), Some(Value::Text(message))) => Some((error, message)),
        _ => None,
    };
    Ok((results, error).into_pyobject(py)?.into_any().unbind())
}

fn decode(sections: &[Incoming]) -> PyResult<Vec<Value>> {
    let Some(bytes) = sections.first() else { return Ok(Vec::new()) };
    decode_values(bytes.bytes(), Order::NATIVE)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn result<'py>(
    py: Python<'py>,
    values: impl IntoIterator<Item = Value>,
    contents: &mut [Option<Incoming>],
) -> PyResult<Bound<'py, PyAny>> {
    let mut values = values.into_iter();
    let Some(first) = values.next() else { return Ok(py.None().into_bound(py)) };
    let first = value_to_python(py, first, contents)?;
    let Some(second) = values.next() else { return Ok(first) };
    let mut results = vec![first, value_to_python(py, second, contents)?];
    for value in values {
        results.push(value_to_python(py, value, contents)?);
    }
    Ok(PyTuple::new(py, results)?.into_any())
}

fn value_to_python<'py>(
    py: Python<'py>,
    value: Value,
    contents: &mut [Option<Incoming>],
) -> PyResult<Bound<'py, PyAny>> {
    let mut take = |index: u16| {
        let section = contents.get_mut(usize::from(index)).and_then(Option::take);
        let section = section.ok_or_else(|| PyValueError::new_err("a result without contents"))?;
        Bound::new(py, Buffer::new(section, false))
    };
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Int(value) => value.into_pyobject(py)?.into_any(),
        Value::Float(value) => value.into_pyobject(py)?.into_any(),
        Value::Text(value) => value.into_pyobject(py)?.into_any(),
        Value::Bytes(index) => PyMemoryView::from(take(index)?.as_any())?.into_any(),
        Value::Array(array) => {
            let elements = take(array.section)?;
            let named = PyDict::new(py);
            named.set_item("order", if array.fortran { "F" } else { "C" })?;
            let arguments = (array.shape, array.dtype.name(), elements);
            py.import("numpy")?.getattr("ndarray")?.call(arguments, Some(&named))?
        }
    })
}
