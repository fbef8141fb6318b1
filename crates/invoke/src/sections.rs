//! Sources of a call's arrays, and destinations of its results: the caller's memory, shared memory, or the frame.

use std::ptr::NonNull;
use std::sync::Arc;

use gridrpc_core::BlobId;
use gridrpc_link::buffers::{Sink, Source};
use gridrpc_shm::arrays;
use gridrpc_shm::segment::PooledSegment;
use gridrpc_typed::{Shape, gather};
use gridrpc_wire::{DType, Order};

use crate::argument::{ArgumentValue, CallResult, Memory, SharedPart};
use crate::prepare::{Preparation, Problem};
use crate::prepared::Lending;
use crate::results::{Destination, ResultSlot};
use crate::sizes::bytes;

impl Preparation<'_> {
    fn is_large(&self, shape: &Shape) -> bool {
        shape.is_whole() && !self.payload.is_small(shape.bytes())
    }

    pub(super) fn add_in(
        &mut self,
        memory: &Memory,
        shape: &Shape,
        dtype: DType,
    ) -> Result<(), Problem> {
        let bytes = bytes(memory, shape)?;
        if memory.order != self.order {
            let fill = |packed: &mut [u8]| {
                gather(shape, bytes, packed);
                dtype.swap_bytes(packed);
            };
            return Ok(self.payload.add_with(shape.selected_bytes(), fill)?);
        }
        if self.is_large(shape) {
            if self.payload.has_shared_memory() {
                if let Some((lent, offset)) = arrays::find(memory.start, bytes.len()) {
                    self.payload.add_shared(lent, offset, bytes.len() as u64, 0);
                    return Ok(());
                }
            } else if let Some(source) = self.lend(memory, shape) {
                self.payload.add_source(source);
                return Ok(());
            }
        }
        if shape.is_whole() {
            return Ok(self.payload.add(bytes)?);
        }
        let len = shape.selected_bytes();
        Ok(self.payload.add_with(len, |packed| gather(shape, bytes, packed))?)
    }

    /// Adds shared data, which the workers have by then.
    pub(super) fn add_part(
        &mut self,
        shared: &SharedPart,
        shape: &Shape,
        sizes: &[u64],
        dtype: DType,
    ) -> Result<(), Problem> {
        let SharedPart { blob, part, len, .. } = *shared;
        if !shape.is_whole() {
            return Err("is shared data, and no part of that can travel alone".into());
        }
        let is_it = are_alike(shared.dtype, dtype);
        if !is_it || len != shape.bytes() || sizes.len() > 1 && shared.shape != sizes {
            let (given, wanted) = (shared.dtype.name(), dtype.name());
            let has = &shared.shape;
            return Err(format!(
                "is shared data of shape {has:?} and type {given}, but has to have {sizes:?} of {wanted}"
            )
            .into());
        }
        self.payload.add_blob(blob, part, len as u64);
        if !self.blobs.contains(&BlobId(blob)) {
            self.blobs.push(BlobId(blob));
        }
        Ok(())
    }

    /// Checks an array that another call returns: its size follows from the arguments of that call.
    pub(super) fn check_result(
        &self,
        result: &CallResult,
        shape: &Shape,
        sizes: &[u64],
        dtype: DType,
    ) -> Result<(), Problem> {
        if !shape.is_whole() {
            return Err(
                "is the result of another call, and no part of that can travel alone".into()
            );
        }
        let CallResult { array, shape: has, fortran, .. } = result;
        let fits = array.len == shape.bytes() as u64 && (sizes.len() < 2 || has == sizes);
        if !fits || !are_alike(array.dtype, dtype) {
            let (given, wanted) = (array.dtype.name(), dtype.name());
            return Err(format!(
                "is the result of another call, of shape {has:?} and type {given}, but has to have {sizes:?} of {wanted}"
            )
            .into());
        }
        if has.len() > 1 && *fortran != self.function.fortran() {
            let order = if *fortran { "Fortran" } else { "C" };
            return Err(format!(
                "is the result of another call, an array in {order} order, but has to have the other order: pass the \
                 array that the call returns"
            )
            .into());
        }
        Ok(())
    }

    /// Lends the caller's memory, to be sent without a copy.
    fn lend(&mut self, memory: &Memory, shape: &Shape) -> Option<Arc<Source>> {
        let start = NonNull::new(memory.start).filter(|_| self.lending != Lending::Copied)?;
        // SAFETY: the caller of `prepare` has promised to leave it alone until the landing, which
        // detaches it, is used or dropped.
        let source = Arc::new(unsafe { Source::lent(start, shape.bytes()) });
        self.landing.sources.push(Arc::clone(&source));
        Some(source)
    }

    pub(super) fn add_in_out(
        &mut self,
        memory: &Memory,
        shape: &Shape,
        dtype: DType,
    ) -> Result<Destination, Problem> {
        let to = Destination::Caller(memory.start);
        // A call that may run twice must find its arguments unchanged.
        let is_large = self.is_large(shape) && !self.function.idempotent;
        if is_large && !self.payload.has_shared_memory() {
            self.add_in(memory, shape, dtype)?;
            self.sink(memory, shape);
            return Ok(to);
        }
        if !is_large {
            self.add_in(memory, shape, dtype)?;
            return Ok(to);
        }
        // A worker of the call's byte order may work in the section, whichever that is; others copy it.
        let (len, is_as_sent) = (shape.bytes() as u64, memory.order == self.order);
        if is_as_sent && let Some((lent, offset)) = arrays::find(memory.start, shape.bytes()) {
            self.room(&lent, offset, len, 0);
            return Ok(Destination::InPlace(memory.start));
        }
        let Some(lent) = self.payload.take_shared(len)? else {
            self.add_in(memory, shape, dtype)?;
            return Ok(to);
        };
        let bytes = bytes(memory, shape)?;
        if is_as_sent {
            lent.write(bytes)?;
        } else {
            let mut converted = bytes.to_vec();
            dtype.swap_bytes(&mut converted);
            lent.write(&converted)?;
        }
        self.room(&Arc::new(lent), 0, len, len);
        Ok(to)
    }

    /// Destination of a result, and whether the call has a section for it because the caller has it in shared memory.
    /// Otherwise the worker leaves it in its own memory, which is warm from earlier results.
    pub(super) fn add_out(&mut self, given: &ArgumentValue, shape: &Shape) -> (Destination, bool) {
        let ArgumentValue::Array(memory) = given else { return (Destination::Made, false) };
        if self.is_large(shape) {
            if !self.payload.has_shared_memory() {
                if !self.function.idempotent {
                    self.sink(memory, shape);
                }
            } else if self.order == Order::NATIVE
                && let Some((lent, offset)) = arrays::find(memory.start, shape.bytes())
            {
                self.room(&lent, offset, shape.bytes() as u64, 0);
                return (Destination::InPlace(memory.start), true);
            }
        }
        (Destination::Caller(memory.start), false)
    }

    /// Adds a section that the worker writes a result to.
    fn room(&mut self, lent: &Arc<PooledSegment>, offset: u64, len: u64, moved: u64) {
        self.payload.add_shared(Arc::clone(lent), offset, len, moved);
        let room = ResultSlot { section: self.sections, lent: Arc::clone(lent), offset };
        self.landing.rooms.push(room);
    }

    /// Makes the next result arrive in the caller's memory.
    fn sink(&mut self, memory: &Memory, shape: &Shape) {
        if let Some(start) = NonNull::new(memory.start)
            && self.lending == Lending::UntilLanded
        {
            // SAFETY: as in `lend`; the landing closes it.
            let sink = Arc::new(unsafe { Sink::new(start, shape.bytes()) });
            self.landing.sinks.push(Arc::clone(&sink));
            self.sinks.push((self.results, sink));
        }
    }
}

/// Whether arrays of one type can be passed as the other: characters may use either type of one byte.
fn are_alike(one: DType, other: DType) -> bool {
    one == other || one.size() == 1 && other.size() == 1
}
