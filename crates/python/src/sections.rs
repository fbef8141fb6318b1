//! Python's memory as sections of a payload.

use gridrpc_link::payload::PayloadBuilder;
use gridrpc_shm::find_shared;
use pyo3::prelude::*;

use crate::buffer::View;
use crate::errors;

/// Copies memory into a payload. Releases the interpreter's lock for a large copy.
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

/// Like [`add_view`], but refers to memory of `gridrpc.empty` in place.
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
