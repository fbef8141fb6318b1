//! Delivery of results to the caller's memory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gridrpc_client::ResultArray;
use gridrpc_link::buffers::{Sink, Source};
use gridrpc_link::payload::Incoming;
use gridrpc_shm::segment::{InPlaceResult, PooledSegment};
use gridrpc_typed::{Shape, decode_texts, scatter};
use gridrpc_wire::{DType, Order, Value, decode_values};
use thiserror::Error;

/// Destination of a result's elements.
#[derive(Debug)]
pub(super) enum Destination {
    /// Into the caller's memory.
    Caller(*mut u8),
    /// The same, which the worker has written to if it shares that memory.
    InPlace(*mut u8),
    /// None: the caller takes them where they arrived.
    Made,
}

/// How to deliver one result.
#[derive(Debug)]
pub(super) enum Plan {
    Array {
        dtype: DType,
        shape: Shape,
        dimensions: Vec<u64>,
        to: Destination,
        /// Byte order of the destination.
        order: Order,
    },
    Texts(usize),
    Files(Vec<Option<PathBuf>>),
}

/// A section of the call that the worker may have written to.
#[derive(Debug)]
pub(super) struct ResultSlot {
    pub(super) section: u16,
    pub(super) lent: Arc<PooledSegment>,
    pub(super) offset: u64,
}

/// State of a call's results until they are delivered. Dropping it returns the caller's memory: nothing is read from
/// it or written to it any more.
#[derive(Debug)]
pub struct Landing {
    pub(super) function: Arc<str>,
    /// With the parameter's index and name.
    pub(super) plans: Vec<(usize, String, Plan)>,
    pub(super) rooms: Vec<ResultSlot>,
    pub(super) sources: Vec<Arc<Source>>,
    pub(super) sinks: Vec<Arc<Sink>>,
}

// SAFETY: the pointers belong to the caller, who has promised to leave the memory alone until the call has ended, in
// whichever thread it waits.
unsafe impl Send for Landing {}
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for Landing {}

/// An array created for the caller.
#[derive(Debug)]
pub struct NewArray {
    /// Type of its elements.
    pub dtype: DType,
    /// Its dimensions, in the order of the interface.
    pub dimensions: Vec<u64>,
    /// Its elements, where they arrived.
    pub elements: Incoming,
}

/// One result for the caller to take.
#[derive(Debug)]
pub enum Landed {
    /// An array created for the caller.
    Array(NewArray),
    /// Strings; `None` for a missing one.
    Texts(Vec<Option<Vec<u8>>>),
}

/// Reason why results cannot be delivered.
#[derive(Debug, Error)]
pub enum LandError {
    /// They do not match the interface of the function: worker and client disagree.
    #[error("{0}")]
    Broken(String),
    /// An output file cannot be written.
    #[error("{function}: could not write `{}`, result `{result}`: {error}", .path.display())]
    File {
        /// The function.
        function: Arc<str>,
        /// The parameter with the file name.
        result: String,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl Landing {
    /// A landing without results.
    #[must_use]
    pub fn new(function: &Arc<str>) -> Landing {
        Landing {
            function: Arc::clone(function),
            plans: Vec::new(),
            rooms: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
        }
    }

    /// The array that a parameter returns, and its dimensions, if another call can take it: the caller has provided no
    /// memory for it, and all of it is a result.
    #[must_use]
    pub fn array(&self, parameter: usize) -> Option<(ResultArray, &[u64])> {
        let (_, _, plan) = self.plans.iter().find(|(index, ..)| *index == parameter)?;
        match plan {
            Plan::Array { dtype, shape, dimensions, to: Destination::Made, .. }
                if shape.is_whole() =>
            {
                let len = shape.bytes() as u64;
                Some((ResultArray { parameter, dtype: *dtype, len }, dimensions))
            }
            _ => None,
        }
    }

    /// Delivers the results, whose numbers have this byte order. Returns those that the caller has to take, by the index of the parameter.
    ///
    /// # Errors
    /// When they do not match the interface, or a file cannot be written.
    pub fn land(
        mut self,
        sections: Vec<Incoming>,
        order: Order,
    ) -> Result<Vec<(usize, Landed)>, LandError> {
        if self.plans.is_empty() {
            return Ok(Vec::new());
        }
        let values = match sections.first() {
            Some(values) => decode_values(values.bytes(), order).map_err(|error| {
                LandError::Broken(format!("{}: broken results: {error}", self.function))
            })?,
            None => Vec::new(),
        };
        let mut sections: Vec<Option<Incoming>> = sections.into_iter().map(Some).collect();
        let mut landed = Vec::new();
        for (parameter, name, plan) in std::mem::take(&mut self.plans) {
            let misfit = || {
                let function = &self.function;
                LandError::Broken(format!("{function}: result `{name}` does not fit its interface"))
            };
            let value = values.get(parameter).ok_or_else(misfit)?;
            let mut take = |index: u16| sections.get_mut(usize::from(index)).and_then(Option::take);
            match (plan, value) {
                (
                    Plan::Array { dtype, shape, dimensions, to, order: wanted },
                    Value::Array(array),
                ) => {
                    let section = take(array.section).ok_or_else(misfit)?;
                    if array.dtype != dtype || section.len() != shape.selected_bytes() {
                        return Err(misfit());
                    }
                    let swapped = (order != wanted).then_some(dtype);
                    let made = self.put(section, &shape, to, swapped).ok_or_else(misfit)?;
                    if let Some(elements) = made {
                        let made = NewArray { dtype, dimensions, elements };
                        landed.push((parameter, Landed::Array(made)));
                    }
                }
                (Plan::Texts(count), Value::Bytes(index)) => {
                    let section = take(*index).ok_or_else(misfit)?;
                    let texts = decode_texts(section.bytes(), order, count);
                    landed.push((parameter, Landed::Texts(texts.ok_or_else(misfit)?)));
                }
                (Plan::Files(paths), Value::Bytes(index)) => {
                    let section = take(*index).ok_or_else(misfit)?;
                    let texts = decode_texts(section.bytes(), order, paths.len());
                    for (path, content) in paths.iter().zip(texts.ok_or_else(misfit)?) {
                        let Some(path) = path else { continue };
                        std::fs::write(path, content.unwrap_or_default()).map_err(|error| {
                            LandError::File {
                                function: Arc::clone(&self.function),
                                result: name.clone(),
                                path: path.clone(),
                                error,
                            }
                        })?;
                    }
                }
                _ => return Err(misfit()),
            }
        }
        Ok(landed)
    }

    /// `swapped`: the elements are of this type, and have another byte order than their destination.
    fn put(
        &self,
        section: Incoming,
        shape: &Shape,
        to: Destination,
        swapped: Option<DType>,
    ) -> Option<Option<Incoming>> {
        let (section, in_room) = match section {
            Incoming::Argument(index, len) => (Incoming::Left(self.room(index, len)?), true),
            other => (other, false),
        };
        match to {
            Destination::InPlace(_) | Destination::Caller(_) if shape.selected() == 0 => Some(None),
            Destination::InPlace(start) | Destination::Caller(start) => {
                let is_there = matches!(section, Incoming::Placed(_))
                    || in_room && matches!(to, Destination::InPlace(_));
                if is_there && swapped.is_none() {
                    return Some(None);
                }
                let len = shape.bytes();
                // SAFETY: the caller has promised an array of the size that the interface says.
                let array = unsafe { std::slice::from_raw_parts_mut(start, len) };
                match swapped {
                    // Only the selected elements may change.
                    Some(dtype) if !shape.is_whole() => {
                        let converted = converted(section, dtype);
                        scatter(shape, converted.bytes(), array);
                    }
                    _ => {
                        if !is_there {
                            scatter(shape, section.bytes(), array);
                        }
                        if let Some(dtype) = swapped {
                            dtype.swap_bytes(array);
                        }
                    }
                }
                Some(None)
            }
            // The call has no section for an in-place result.
            Destination::Made if in_room => None,
            Destination::Made => {
                let section = match swapped {
                    Some(dtype) => converted(section, dtype),
                    None => section,
                };
                if shape.is_whole() {
                    return Some(Some(section));
                }
                let mut array = vec![0; shape.bytes()];
                scatter(shape, section.bytes(), &mut array);
                Some(Some(Incoming::Bytes(array)))
            }
        }
    }

    /// The data that the worker has left in a section of the call.
    fn room(&self, section: u16, len: u64) -> Option<InPlaceResult> {
        let room = self.rooms.iter().find(|room| room.section == section)?;
        InPlaceResult::new(&room.lent, room.offset, len).ok()
    }
}

/// The same elements in the other byte order, in memory of their own.
pub(super) fn converted(section: Incoming, dtype: DType) -> Incoming {
    let mut bytes = match section {
        Incoming::Bytes(bytes) => bytes,
        other => other.bytes().to_vec(),
    };
    dtype.swap_bytes(&mut bytes);
    Incoming::Bytes(bytes)
}

impl Drop for Landing {
    fn drop(&mut self) {
        for source in self.sources.drain(..) {
            // Another thread may still send it, for a call that has ended early.
            if Arc::strong_count(&source) > 1 {
                source.detach();
            }
        }
        self.sinks.iter().for_each(|sink| sink.close());
    }
}

#[cfg(test)]
mod tests {
    use gridrpc_idl::Extent;
    use gridrpc_wire::{Array, encode_values};

    use super::*;
    use gridrpc_shm::segment::Pool;

    const COUNT: u64 = 4;

    /// Delivers a result of this many doubles, which the worker reports in `section`, whose order is `order`. `to`:
    /// where, and in what order.
    fn landed(
        section: Incoming,
        order: Order,
        (to, wanted): (Destination, Order),
    ) -> Result<Vec<(usize, Landed)>, LandError> {
        let extent = Extent { size: COUNT, start: 0, end: COUNT, step: 1 };
        let (dtype, shape) = (DType::Float64, Shape::new(vec![extent], false, 8));
        let mut landing = Landing::new(&Arc::from("module/function"));
        let plan = Plan::Array { dtype, shape, dimensions: vec![COUNT], to, order: wanted };
        landing.plans.push((0, "result".into(), plan));
        let lent = Pool::new(0).take(COUNT * 8).unwrap();
        lent.write(&numbers(Order::FOREIGN)).unwrap();
        landing.rooms.push(ResultSlot { section: 0, lent: Arc::new(lent), offset: 0 });
        let array = Array { dtype, fortran: false, shape: vec![COUNT], section: 1 };
        let mut values = Vec::new();
        encode_values(&[Value::Array(array)], order, &mut values).unwrap();
        landing.land(vec![Incoming::Bytes(values), section], order)
    }

    fn numbers(order: Order) -> Vec<u8> {
        let bytes = |number: f64| match order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        };
        [1.0, -2.5, 1e300, 0.0].into_iter().flat_map(bytes).collect()
    }

    const MADE: (Destination, Order) = (Destination::Made, Order::NATIVE);

    #[test]
    fn a_result_that_the_caller_has_no_place_for_is_taken_where_it_came() {
        let mut landed = landed(Incoming::Bytes(vec![7; 32]), Order::NATIVE, MADE).unwrap();
        let Some((0, Landed::Array(array))) = landed.pop() else { panic!("no array") };
        assert_eq!((array.dimensions, array.elements.bytes()), (vec![COUNT], &[7; 32][..]));
    }

    #[test]
    fn a_result_in_a_section_that_is_not_for_it_or_of_another_size_is_refused() {
        for section in [Incoming::Argument(0, 32), Incoming::Bytes(vec![7; 31])] {
            let error = landed(section, Order::NATIVE, MADE).unwrap_err().to_string();
            assert_eq!(error, "module/function: result `result` does not fit its interface");
        }
    }

    #[test]
    fn results_get_the_byte_order_of_their_destination() {
        for came in [Order::Little, Order::Big] {
            let mut made = landed(Incoming::Bytes(numbers(came)), came, MADE).unwrap();
            let Some((0, Landed::Array(array))) = made.pop() else { panic!("no array") };
            assert_eq!(array.elements.bytes(), numbers(Order::NATIVE));
            for wanted in [Order::Little, Order::Big] {
                let mut memory = vec![0; 32];
                let to = (Destination::Caller(memory.as_mut_ptr()), wanted);
                assert!(landed(Incoming::Bytes(numbers(came)), came, to).unwrap().is_empty());
                assert_eq!(memory, numbers(wanted), "{came:?} {wanted:?}");
            }
        }
    }

    #[test]
    fn a_result_that_the_worker_has_left_in_place_is_converted_there() {
        let place = Destination::InPlace;
        let left = || Incoming::Argument(0, 32);
        // The caller's array is that memory.
        let mut memory = numbers(Order::FOREIGN);
        landed(left(), Order::FOREIGN, (place(memory.as_mut_ptr()), Order::NATIVE)).unwrap();
        assert_eq!(memory, numbers(Order::NATIVE));
        landed(left(), Order::FOREIGN, (place(memory.as_mut_ptr()), Order::FOREIGN)).unwrap();
        assert_eq!(memory, numbers(Order::NATIVE), "there is nothing to convert");
        // It is copied from there.
        let to = (Destination::Caller(memory.as_mut_ptr()), Order::NATIVE);
        landed(left(), Order::FOREIGN, to).unwrap();
        assert_eq!(memory, numbers(Order::NATIVE));
    }
}
