//! Results of functions of modules as Python objects.

use gridrpc_idl::{Kind, Parameter};
use gridrpc_invoke::{NewArray, Run};
use gridrpc_wire::DType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::buffer::Buffer;

pub fn numpy_array<'py>(
    py: Python<'py>,
    dimensions: &[u64],
    dtype: DType,
    fortran: bool,
    buffer: Buffer,
) -> PyResult<Bound<'py, PyAny>> {
    static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ndarray = NDARRAY.import(py, "numpy", "ndarray")?;
    let named = PyDict::new(py);
    named.set_item("order", if fortran { "F" } else { "C" })?;
    let buffer = Bound::new(py, buffer)?;
    ndarray.call((PyTuple::new(py, dimensions)?, dtype.name(), buffer), Some(&named))
}

/// Copies the arrays of many items, which start at `offset` in the buffer, to one array with a row for each item.
pub fn rows<'py>(
    py: Python<'py>,
    run: &Run,
    dtype: DType,
    fortran: bool,
    buffer: &Bound<'py, Buffer>,
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ndarray = NDARRAY.import(py, "numpy", "ndarray")?;
    let mut shape = run.dimensions.clone();
    if fortran {
        shape.reverse();
    }
    shape.insert(0, run.items as u64);
    let rows = ndarray.call1((PyTuple::new(py, shape)?, dtype.name(), buffer, offset))?;
    let rows = rows.call_method0(intern!(py, "copy"))?;
    if !fortran {
        return Ok(rows);
    }
    let own = (1..=run.dimensions.len()).rev();
    rows.call_method1(
        intern!(py, "transpose"),
        PyTuple::new(py, std::iter::once(0).chain(own).collect::<Vec<_>>())?,
    )
}

pub fn to_numpy<'py>(
    py: Python<'py>,
    array: NewArray,
    fortran: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let buffer = Buffer::new(array.elements, false);
    numpy_array(py, &array.dimensions, array.dtype, fortran, buffer)
}

pub fn texts_to_python<'py>(
    py: Python<'py>,
    parameter: &Parameter,
    texts: Vec<Option<Vec<u8>>>,
) -> PyResult<Bound<'py, PyAny>> {
    let os = py.import("os")?;
    let decode = |text: Option<Vec<u8>>| match text {
        None => Ok(py.None().into_bound(py)),
        Some(text) => os.call_method1("fsdecode", (PyBytes::new(py, &text),)),
    };
    let mut texts = texts.into_iter().map(decode).collect::<PyResult<Vec<_>>>()?;
    match parameter.kind {
        Kind::Scalar(_) if texts.len() == 1 => Ok(texts.remove(0)),
        _ => Ok(texts.into_pyobject(py)?.into_any()),
    }
}
