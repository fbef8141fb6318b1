//! Memory for Python's buffer protocol.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use gridrpc_link::payload::Incoming;
use gridrpc_shm::SharedArray;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

/// Owner of a buffer's memory.
enum Memory {
    Section(Incoming),
    /// Shared memory of this process, which calls refer to in place.
    Array(#[allow(dead_code)] SharedArray),
    /// Memory of another object, and the object that keeps it alive.
    Held {
        _view: View,
        _keeper: Py<PyAny>,
    },
}

/// A section of a payload, in place, or memory to share. Its memory lives as long as anything that views it.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct Buffer {
    /// Owns the memory.
    memory: Memory,
    start: NonNull<u8>,
    len: usize,
    readonly: bool,
}

// SAFETY: `start` points into `memory`, which is owned, Send and Sync, and never moves what it holds.
unsafe impl Send for Buffer {}
// SAFETY: as above; Python's own rules govern writes through a view.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Creates a buffer, which is writable if the caller alone holds the section.
    pub fn new(mut section: Incoming, readonly: bool) -> Buffer {
        let len = section.bytes().len();
        let start = match &mut section {
            Incoming::Bytes(bytes) => NonNull::new(bytes.as_mut_ptr()),
            Incoming::Kept(bytes) => NonNull::new(bytes.as_ptr().cast_mut()),
            Incoming::Shared(stretch) => Some(stretch.start()),
            Incoming::Left(stretch) => Some(stretch.start()),
            // Those lie in the caller's own memory, and are not accessible from here.
            Incoming::Placed(_) | Incoming::Argument(..) => None,
        };
        let readonly = readonly || matches!(section, Incoming::Kept(_));
        let start = start.unwrap_or(NonNull::dangling());
        Buffer { memory: Memory::Section(section), start, len, readonly }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to so many bytes that `memory` owns; writers through a Python view are responsible
        // for races.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// A buffer in shared memory.
    pub fn of_array(array: SharedArray) -> Buffer {
        let (start, len) = (array.start(), array.len());
        Buffer { memory: Memory::Array(array), start, len, readonly: false }
    }
}

#[pymethods]
impl Buffer {
    /// A read-only buffer of the memory that `view` shows; `keeper` keeps that memory alive.
    #[staticmethod]
    fn held(view: Bound<'_, PyAny>, keeper: Py<PyAny>) -> PyResult<Buffer> {
        let view = View::new(&view)?;
        let (start, len) = (view.bytes().as_ptr().cast_mut(), view.bytes().len());
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        let memory = Memory::Held { _view: view, _keeper: keeper };
        Ok(Buffer { memory, start, len, readonly: true })
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        if this.readonly && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("shared data is read-only"));
        }
        // SAFETY: `view` comes from the interpreter; the memory lives as long as `slf`, to which
        // PyBuffer_FillInfo adds a reference.
        let result = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.start.as_ptr().cast::<c_void>(),
                this.len as ffi::Py_ssize_t,
                c_int::from(this.readonly),
                flags,
            )
        };
        if result == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        let place = match self.memory {
            Memory::Array(_) | Memory::Section(Incoming::Shared(_) | Incoming::Left(_)) => {
                "shared memory"
            }
            Memory::Section(_) | Memory::Held { .. } => "memory",
        };
        let access = if self.readonly { "read-only" } else { "writable" };
        format!("<gridrpc buffer: {} bytes of {access} {place}>", self.len)
    }
}

/// `bytes(buffer)`, for large buffers: uses huge pages, where the kernel provides them.
#[pyfunction]
pub fn large_bytes<'py>(py: Python<'py>, buffer: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let view = View::new(&buffer)?;
    let len = view.bytes().len() as ffi::Py_ssize_t;
    // SAFETY: the interpreter makes an object of that length; nobody else knows it yet.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        fill(ffi::PyBytes_AsString(made.as_ptr()), view.bytes());
        Ok(made)
    }
}

/// `bytearray(buffer)`, for large buffers: uses huge pages, where the kernel provides them.
#[pyfunction]
pub fn large_bytearray<'py>(
    py: Python<'py>,
    buffer: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let view = View::new(&buffer)?;
    let len = view.bytes().len() as ffi::Py_ssize_t;
    // SAFETY: as above.
    unsafe {
        let made = ffi::PyByteArray_FromStringAndSize(std::ptr::null(), len);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        fill(ffi::PyByteArray_AsString(made.as_ptr()), view.bytes());
        Ok(made)
    }
}

/// Copies all of `bytes` to new memory of that length.
///
/// # Safety
/// `place` has room for all of `bytes`.
unsafe fn fill(place: *mut c_char, bytes: &[u8]) {
    if let Some(start) = NonNull::new(place.cast::<u8>()) {
        gridrpc_sys::ask_for_huge_pages(start, bytes.len());
        // SAFETY: the caller says so.
        unsafe { start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// The first section, which contains a pickle or values, as bytes; the others as buffers. Arguments of a call that
/// lie in the caller's own memory are read-only.
pub fn split_head(
    py: Python<'_>,
    sections: Vec<Incoming>,
    arguments: bool,
) -> PyResult<(Py<PyAny>, Vec<Py<Buffer>>)> {
    let mut sections = sections.into_iter();
    let head = match sections.next() {
        None => PyBytes::new(py, b"").into_any().unbind(),
        Some(Incoming::Bytes(bytes)) => PyBytes::new(py, &bytes).into_any().unbind(),
        Some(large) => Py::new(py, Buffer::new(large, true))?.into_any(),
    };
    let rest = sections
        .map(|section| {
            let theirs = matches!(&section, Incoming::Shared(stretch) if stretch.is_callers());
            Py::new(py, Buffer::new(section, arguments && theirs))
        })
        .collect::<PyResult<Vec<_>>>()?;
    Ok((head, rest))
}

/// The object in a pickle and its buffers.
pub fn unpickle<B: PyTypeInfo>(
    py: Python<'_>,
    head: Py<PyAny>,
    buffers: Vec<Py<B>>,
) -> PyResult<Py<PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads = LOADS.import(py, "pickle", "loads")?;
    if buffers.is_empty() {
        return Ok(loads.call1((head,))?.unbind());
    }
    let named = PyDict::new(py);
    named.set_item("buffers", buffers)?;
    Ok(loads.call((head,), Some(&named))?.unbind())
}

/// Contiguous memory of a Python object, held in place.
///
/// Does not use `PyUntypedBuffer`, which rejects arrays without dimensions.
pub struct View {
    buffer: Box<ffi::Py_buffer>,
}

impl View {
    /// The memory of an object that supports the buffer protocol.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<View> {
        let mut buffer = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        // SAFETY: the interpreter is attached, the place is ours; -1 means that it set an error.
        let status = unsafe {
            ffi::PyObject_GetBuffer(object.as_ptr(), buffer.as_mut_ptr(), ffi::PyBUF_ANY_CONTIGUOUS)
        };
        if status != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: on success it was filled in.
        let buffer = unsafe { Box::from_raw(Box::into_raw(buffer).cast()) };
        Ok(View { buffer })
    }

    /// Its bytes. Changes by another thread in the meantime change the data that is sent.
    pub fn bytes(&self) -> &[u8] {
        let (start, len) = (self.buffer.buf.cast::<u8>().cast_const(), self.buffer.len);
        if len <= 0 {
            return &[];
        }
        // SAFETY: the buffer is held and contiguous; bytes have no invalid values.
        unsafe { std::slice::from_raw_parts(start, len as usize) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the buffer was taken once, and is released once.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.buffer) });
    }
}
