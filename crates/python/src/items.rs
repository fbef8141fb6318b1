//! Items of a call in a Python worker: runs them, and stores their results where the client finds them if this
//! process is lost.

use gridrpc_shm::AppendBuffer;
use gridrpc_sys::monotonic_ns;
use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyIterator, PyList, PyString, PyType};

use crate::buffer::View;

/// Maximum number of items between two clock readings: a reading costs as much as a small function.
const MOST_BETWEEN_LOOKS: u32 = 64;
/// Target time between clock readings, ns.
const BETWEEN_LOOKS: u64 = 100_000;

// Encoding of a result: a byte for its type, and the data of that type in little-endian order.
const NONE: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const TEXT: u8 = 5;
const BYTES: u8 = 6;
const SCALAR: u8 = 7;
const PICKLE: u8 = 8;

/// Kinds of NumPy scalars that consist of their bytes only.
const NUMBERS: &str = "biufc";

/// The items of the running call.
#[pyclass(module = "gridrpc._native")]
pub struct Items {
    items: gridrpc_shm::Items,
    results: Option<AppendBuffer>,
    /// NumPy's `generic`, if it is loaded.
    generic: Option<Py<PyAny>>,
    /// The type of the last NumPy scalar, and the encoding that precedes its bytes.
    scalar: Option<(Py<PyType>, Vec<u8>)>,
}

impl Items {
    pub fn new(py: Python<'_>, mut items: gridrpc_shm::Items) -> PyResult<Items> {
        let results = match items.room() {
            0 => None,
            room => items.section(room),
        };
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        let numpy = modules.get_item(intern!(py, "numpy")).ok();
        let generic = numpy.and_then(|numpy| numpy.getattr(intern!(py, "generic")).ok());
        let generic = generic.map(Bound::unbind);
        Ok(Items { items, results, generic, scalar: None })
    }

    /// In a child that the function has forked, and that returns too: the stored results belong to the parent.
    fn leave_to_parent(&mut self) {
        if !self.items.are_ours() {
            (self.items, self.results) = (gridrpc_shm::Items::inner(), None);
        }
    }

    /// Appends to the stored results. Returns `false` if there is no room.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.results.as_mut().is_none_or(|results| results.push(bytes))
    }

    /// Appends longer data after its length.
    fn push_long(&mut self, kind: u8, bytes: &[u8]) -> Option<bool> {
        let len = u32::try_from(bytes.len()).ok()?.to_le_bytes();
        let [a, b, c, d] = len;
        Some(self.push(&[kind, a, b, c, d]) && self.push(bytes))
    }

    /// Stores a result if it is an immutable number, text, bytes or None, of Python or NumPy. Returns `None` if it is
    /// something else, and `false` if there is no room for it.
    fn keep_plain(&mut self, result: &Bound<'_, PyAny>) -> Option<bool> {
        if let Ok(float) = result.cast_exact::<PyFloat>() {
            let [a, b, c, d, e, f, g, h] = float.value().to_le_bytes();
            Some(self.push(&[FLOAT, a, b, c, d, e, f, g, h]))
        } else if let Ok(int) = result.cast_exact::<PyInt>() {
            let [a, b, c, d, e, f, g, h] = int.extract::<i64>().ok()?.to_le_bytes();
            Some(self.push(&[INT, a, b, c, d, e, f, g, h]))
        } else if result.is_none() {
            Some(self.push(&[NONE]))
        } else if let Ok(flag) = result.cast_exact::<PyBool>() {
            Some(self.push(&[if flag.is_true() { TRUE } else { FALSE }]))
        } else if let Ok(text) = result.cast_exact::<PyString>() {
            // Lone surrogates are not valid UTF-8.
            self.push_long(TEXT, text.to_str().ok()?.as_bytes())
        } else if let Ok(bytes) = result.cast_exact::<PyBytes>() {
            self.push_long(BYTES, bytes.as_bytes())
        } else {
            self.keep_scalar(result)
        }
    }

    fn keep_scalar(&mut self, result: &Bound<'_, PyAny>) -> Option<bool> {
        let py = result.py();
        let kind = result.get_type();
        if !self.scalar.as_ref().is_some_and(|(known, _)| kind.is(known)) {
            let generic = self.generic.as_ref()?.bind(py);
            if !result.is_instance(generic).ok()? {
                return None;
            }
            let dtype = result.getattr(intern!(py, "dtype")).ok()?;
            let letter: String = dtype.getattr(intern!(py, "kind")).ok()?.extract().ok()?;
            if !NUMBERS.contains(&letter) || letter.is_empty() {
                return None;
            }
            let name: String = dtype.getattr(intern!(py, "str")).ok()?.extract().ok()?;
            let mut before = vec![SCALAR, u8::try_from(name.len()).ok()?];
            before.extend_from_slice(name.as_bytes());
            self.scalar = Some((kind.unbind(), before));
        }
        let view = View::new(result).ok()?;
        let (_, before) = self.scalar.as_ref()?;
        let mut record = before.clone();
        record.push(u8::try_from(view.bytes().len()).ok()?);
        record.extend_from_slice(view.bytes());
        Some(self.push(&record))
    }
}

#[pymethods]
impl Items {
    /// Items that belong to no call of a worker.
    #[new]
    fn alone(py: Python<'_>) -> PyResult<Items> {
        Items::new(py, gridrpc_shm::Items::inner())
    }

    /// Appends the results of the iterator `calls` to `done` until there are `count`. After `limit` ns no further
    /// item starts; 0: no limit.
    ///
    /// Returns None, or whether the last result is plain: then the time is up, or the storage is full. If it is not
    /// plain, only `keep` can store it.
    fn run(
        &mut self,
        calls: &Bound<'_, PyIterator>,
        done: &Bound<'_, PyList>,
        count: usize,
        limit: u64,
    ) -> PyResult<Option<bool>> {
        let mut calls = calls.clone();
        let mut looked = monotonic_ns();
        let until = if limit == 0 { u64::MAX } else { looked.saturating_add(limit) };
        let (mut step, mut since) = (1, 0);
        for _ in done.len()..count {
            if since >= step {
                let now = monotonic_ns();
                if now >= until {
                    return Ok(Some(true));
                }
                let quick = now - looked < BETWEEN_LOOKS;
                (looked, since) = (now, 0);
                step = if quick { MOST_BETWEEN_LOOKS.min(2 * step) } else { 1 };
            }
            since += 1;
            self.items.begin();
            // The function raised StopIteration, which looks like the end of the items.
            let result = calls.next().unwrap_or_else(|| Err(PyStopIteration::new_err(())))?;
            done.append(&result)?;
            self.leave_to_parent();
            match self.keep_plain(&result) {
                Some(true) => self.items.end(),
                Some(false) => return Ok(Some(true)),
                None => return Ok(Some(false)),
            }
        }
        Ok(None)
    }

    /// Begins the next item.
    fn begin(&mut self) {
        self.items.begin();
    }

    /// Stores the pickled result of the ended item. Returns whether there is room for more.
    fn keep(&mut self, head: &Bound<'_, PyAny>, buffers: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
        self.leave_to_parent();
        let head = View::new(head)?;
        let buffers = buffers.iter().map(View::new).collect::<PyResult<Vec<_>>>()?;
        let mut record = vec![PICKLE];
        record.extend_from_slice(&(head.bytes().len() as u32).to_le_bytes());
        record.extend_from_slice(&(buffers.len() as u32).to_le_bytes());
        for buffer in &buffers {
            record.extend_from_slice(&(buffer.bytes().len() as u64).to_le_bytes());
        }
        let mut parts = std::iter::once(&head).chain(&buffers);
        let pushed = self.push(&record) && parts.all(|part| self.push(part.bytes()));
        if pushed {
            self.items.end();
        }
        Ok(pushed)
    }
}
