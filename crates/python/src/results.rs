//! Buffers of a result: copied once, or not at all.
//!
//! Data that lies in place of an argument, or in memory that the function got from `gridrpc.empty`, need not be
//! copied if nobody else in this process can reach it any more: data that is sent must not change later.

use std::sync::Arc;

use gridrpc_link::payload::{Incoming, PayloadBuilder};
use gridrpc_shm::find_shared;
use gridrpc_shm::segment::PooledSegment;
use pyo3::prelude::*;

use crate::buffer::View;
use crate::errors;

/// One buffer of a result.
enum Part {
    /// It lies in memory of Python alone.
    Elsewhere(View),
    /// The first bytes of an argument: its index among those lent, and the length.
    Argument(usize, usize),
    /// A stretch of an array from `gridrpc.empty`: its memory, offset and length.
    Array(Arc<PooledSegment>, u64, usize),
}

/// The buffers of a result.
pub struct Results(Vec<Part>);

impl Results {
    /// Locates the buffers, and releases those that need not be copied. `lent`: the arguments of the call that lie in
    /// shared memory.
    pub fn new(buffers: Vec<Bound<'_, PyAny>>, lent: &[Incoming]) -> PyResult<Results> {
        let mut parts = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            let view = View::new(&buffer)?;
            let known = reference(view.bytes(), lent).filter(|part| !is_twice(part, &parts));
            parts.push(known.unwrap_or(Part::Elsewhere(view)));
        }
        Ok(Results(parts))
    }

    /// Copies every buffer: there is nothing to refer to.
    pub fn copied(buffers: Vec<Bound<'_, PyAny>>) -> PyResult<Results> {
        Results::new(buffers, &[])
    }

    /// Adds them to an answer. `lent` is the same as for `new`.
    pub fn add(&self, lent: &[Incoming], payload: &mut PayloadBuilder<'_>) -> PyResult<()> {
        let no_room = |error: std::io::Error| errors::no_room(&error);
        for part in &self.0 {
            match part {
                Part::Elsewhere(view) => payload.add(view.bytes()).map_err(no_room)?,
                &Part::Argument(at, len) => match &lent[at] {
                    Incoming::Shared(stretch) if !stretch.is_held() => {
                        payload.add_argument(stretch.section(), len as u64);
                    }
                    incoming => payload.add(&incoming.bytes()[..len]).map_err(no_room)?,
                },
                &Part::Array(ref memory, offset, len) => {
                    let start = memory.stretch(offset, len as u64)?;
                    let alone = Arc::strong_count(memory) == 1;
                    if alone && !payload.is_small(len) {
                        payload.add_shared(Arc::clone(memory), offset, len as u64, len as u64);
                    } else {
                        // SAFETY: the stretch has been checked, and `memory` keeps it. Changes by another thread in
                        // the meantime change the data that is sent.
                        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
                        payload.add(bytes).map_err(no_room)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A reference for the answer in place of these bytes.
fn reference(bytes: &[u8], lent: &[Incoming]) -> Option<Part> {
    if bytes.is_empty() {
        return None;
    }
    let argument = lent.iter().position(|argument| match argument {
        Incoming::Shared(stretch) => {
            // The caller's own memory has to be copied, because the caller may change it.
            !stretch.is_callers()
                && stretch.start().as_ptr().cast_const() == bytes.as_ptr()
                && bytes.len() <= stretch.len()
        }
        _ => false,
    });
    match argument {
        Some(at) => Some(Part::Argument(at, bytes.len())),
        None => find_shared(bytes.as_ptr(), bytes.len())
            .map(|(memory, offset)| Part::Array(memory, offset, bytes.len())),
    }
}

/// Whether another part refers to the same memory: each result has separate memory.
fn is_twice(part: &Part, others: &[Part]) -> bool {
    others.iter().any(|other| match (part, other) {
        (Part::Argument(at, _), Part::Argument(other, _)) => at == other,
        (Part::Array(memory, ..), Part::Array(other, ..)) => Arc::ptr_eq(memory, other),
        _ => false,
    })
}
