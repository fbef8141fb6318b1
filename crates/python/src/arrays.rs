//! Arrays of callers: held in place, and checked against their parameters.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use gridrpc_idl::Type;
use gridrpc_invoke::Memory;
use gridrpc_typed::dtype;
use gridrpc_wire::{DType, Order};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// First characters of a format whose elements have the other byte order.
const FOREIGN: &[char] = if cfg!(target_endian = "little") { &['>', '!'] } else { &['<'] };

/// An array of a caller, held in place while this lives.
pub struct ArrayView {
    buffer: Box<ffi::Py_buffer>,
}

// SAFETY: the memory belongs to the exporter and is held by the buffer; it is released under the interpreter's lock.
unsafe impl Send for ArrayView {}
// SAFETY: only its address and length are read.
unsafe impl Sync for ArrayView {}

impl ArrayView {
    /// The array for a parameter. Lists and numbers are converted to arrays, if they receive no results. The error
    /// completes a sentence that starts with the argument.
    pub fn of_argument(
        object: &Bound<'_, PyAny>,
        element: Type,
        fortran: bool,
        writable: bool,
    ) -> Result<ArrayView, String> {
        let wanted = dtype(element).map_or("", DType::name);
        // SAFETY: an object is given.
        let has_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
        if has_buffer {
            let view = ArrayView::new(object).map_err(|error| error.to_string())?;
            view.check(wanted, element, fortran, writable)?;
            return Ok(view);
        }
        let kind = object.get_type().name().map_or_else(|_| "that".into(), |name| name.to_string());
        if writable {
            return Err(format!("has to be a NumPy array, which is changed in place, not {kind}"));
        }
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if !is_list && object.extract::<f64>().is_err() {
            return Err(format!("has to be an array of {wanted}, not {kind}"));
        }
        let array = || -> PyResult<ArrayView> {
            let py = object.py();
            let named = PyDict::new(py);
            named.set_item("dtype", wanted)?;
            named.set_item("order", if fortran { "F" } else { "C" })?;
            let array = py.import("numpy")?.call_method("array", (object,), Some(&named))?;
            ArrayView::new(&array)
        };
        array().map_err(|error| format!("cannot be made an array of {wanted}: {error}"))
    }

    fn new(object: &Bound<'_, PyAny>) -> PyResult<ArrayView> {
        let mut buffer = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        // SAFETY: the interpreter is attached, the place is ours; -1 means that it set an error.
        let status = unsafe {
            ffi::PyObject_GetBuffer(object.as_ptr(), buffer.as_mut_ptr(), ffi::PyBUF_FULL_RO)
        };
        if status != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: on success it was filled in.
        let buffer = unsafe { Box::from_raw(Box::into_raw(buffer).cast()) };
        Ok(ArrayView { buffer })
    }

    fn dimensions(&self) -> Vec<u64> {
        // SAFETY: with PyBUF_FULL_RO `shape` has as many entries as there are dimensions.
        let shape = unsafe { entries(self.buffer.shape, self.buffer.ndim) };
        shape.iter().map(|length| *length as u64).collect()
    }

    /// Its length, bytes.
    pub fn len(&self) -> usize {
        self.buffer.len as usize
    }

    /// Its address and shape.
    pub fn memory(&self) -> Memory {
        Memory {
            start: self.buffer.buf.cast(),
            len: Some(self.len()),
            shape: Some(self.dimensions()),
            order: if self.is_foreign() { Order::FOREIGN } else { Order::NATIVE },
        }
    }

    /// Whether its elements have the byte order that this machine does not have.
    fn is_foreign(&self) -> bool {
        self.buffer.itemsize > 1 && self.format().starts_with(FOREIGN)
    }

    fn check(
        &self,
        wanted: &str,
        element: Type,
        fortran: bool,
        writable: bool,
    ) -> Result<(), String> {
        if !self.has_elements(element) {
            let format = self.element_name();
            return Err(format!(
                "has elements of type {format}, but they have to be {wanted} (a.astype(\"{wanted}\"))"
            ));
        }
        let (name, function) = if fortran {
            ("Fortran order", "asfortranarray")
        } else {
            ("C order", "ascontiguousarray")
        };
        if !self.is_dense(fortran) {
            return Err(format!("has to be contiguous in {name} (numpy.{function}(a))"));
        }
        if writable && self.buffer.readonly != 0 {
            return Err("is read-only, but is to be changed in place".into());
        }
        Ok(())
    }

    fn format(&self) -> &str {
        if self.buffer.format.is_null() {
            return "B";
        }
        // SAFETY: a C string of the exporter.
        unsafe { CStr::from_ptr(self.buffer.format) }.to_str().unwrap_or("?")
    }

    /// The kind of its elements (`i` and `u` for integers, `f`, `c`, `b` for bool), from their code.
    fn kind(&self) -> Option<char> {
        // `!` is network order, which is `>`.
        let code = self.format().trim_start_matches(['@', '=', '<', '>', '!']);
        Some(match code {
            "b" | "h" | "i" | "l" | "q" | "n" => 'i',
            "B" | "H" | "I" | "L" | "Q" | "N" => 'u',
            "c" => 'a',
            "?" => 'b',
            "f" | "d" => 'f',
            "Zf" | "Zd" => 'c',
            _ => return None,
        })
    }

    fn has_elements(&self, element: Type) -> bool {
        let kind = self.kind();
        if element.size() != usize::try_from(self.buffer.itemsize).ok() {
            return false;
        }
        match element {
            Type::Char | Type::UChar => matches!(kind, Some('i' | 'u' | 'a')),
            Type::Float | Type::Double => kind == Some('f'),
            Type::SComplex | Type::DComplex => kind == Some('c'),
            integer if integer.is_signed() => kind == Some('i'),
            _ => kind == Some('u'),
        }
    }

    fn element_name(&self) -> String {
        let bits = self.buffer.itemsize * 8;
        match self.kind() {
            Some('i') => format!("int{bits}"),
            Some('u') => format!("uint{bits}"),
            Some('f') => format!("float{bits}"),
            Some('c') => format!("complex{bits}"),
            Some('b') => "bool".into(),
            _ => format!("`{}`", self.format()),
        }
    }

    /// Whether the elements are contiguous in the requested order.
    fn is_dense(&self, fortran: bool) -> bool {
        let dimensions = self.buffer.ndim;
        // SAFETY: with PyBUF_FULL_RO both have as many entries as there are dimensions.
        let (shape, strides) = unsafe {
            (entries(self.buffer.shape, dimensions), entries(self.buffer.strides, dimensions))
        };
        if shape.contains(&0) {
            return true;
        }
        let mut expected = self.buffer.itemsize;
        let mut check = |length: isize, stride: isize| {
            let fits = length == 1 || stride == expected;
            expected *= length;
            fits
        };
        let pairs = shape.iter().zip(strides);
        if fortran {
            pairs.into_iter().all(|(length, stride)| check(*length, *stride))
        } else {
            pairs.rev().all(|(length, stride)| check(*length, *stride))
        }
    }
}

/// # Safety
/// `start` has `count` entries, or is null and `count` does not matter.
unsafe fn entries<'a>(start: *const ffi::Py_ssize_t, count: i32) -> &'a [ffi::Py_ssize_t] {
    if start.is_null() || count <= 0 {
        return &[];
    }
    // SAFETY: as promised.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

impl Drop for ArrayView {
    fn drop(&mut self) {
        // SAFETY: the buffer was taken once, and is released once.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.buffer) });
    }
}
