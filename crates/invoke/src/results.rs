//! Delivery of results to the caller's memory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gridrpc_link::buffers::{Sink, Source};
use gridrpc_link::payload::Incoming;
use gridrpc_shm::segment::{Left, Lent};
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
    Array { dtype: DType, shape: Shape, dimensions: Vec<u64>, to: Destination },
    Texts(usize),
    Files(Vec<Option<PathBuf>>),
}

/// A section of the call that the worker may have written to.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) section: u16,
    pub(super) lent: Arc<Lent>,
    pub(super) offset: u64,
}

/// State of a call's results until they are delivered. Dropping it returns the caller's memory: nothing is read from
/// it or written to it any more.
#[derive(Debug)]
pub struct Landing {
    pub(super) function: Arc<str>,
    /// With the parameter's index and name.
    pub(super) plans: Vec<(usize, String, Plan)>,
    pub(super) rooms: Vec<Room>,
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
pub struct MadeArray {
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
    Array(MadeArray),
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
    pub(super) fn new(function: &Arc<str>) -> Landing {
        Landing {
            function: Arc::clone(function),
            plans: Vec::new(),
            rooms: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
        }
    }

    /// Delivers the results. Returns those that the caller has to take, by the index of the parameter.
    ///
    /// # Errors
    /// When they do not match the interface, or a file cannot be written.
    pub fn land(mut self, sections: Vec<Incoming>) -> Result<Vec<(usize, Landed)>, LandError> {
        if self.plans.is_empty() {
            return Ok(Vec::new());
        }
        let values = match sections.first() {
            Some(values) => decode_values(values.bytes(), Order::NATIVE).map_err(|error| {
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
                (Plan::Array { dtype, shape, dimensions, to }, Value::Array(array)) => {
                    let section = take(array.section).ok_or_else(misfit)?;
                    if array.dtype != dtype || section.len() != shape.selected_bytes() {
                        return Err(misfit());
                    }
                    let made = self.put(section, &shape, to).ok_or_else(misfit)?;
                    if let Some(elements) = made {
                        let made = MadeArray { dtype, dimensions, elements };
                        landed.push((parameter, Landed::Array(made)));
                    }
                }
                (Plan::Texts(count), Value::Bytes(index)) => {
                    let section = take(*index).ok_or_else(misfit)?;
                    let texts = decode_texts(section.bytes(), Order::NATIVE, count);
                    landed.push((parameter, Landed::Texts(texts.ok_or_else(misfit)?)));
                }
                (Plan::Files(paths), Value::Bytes(index)) => {
                    let section = take(*index).ok_or_else(misfit)?;
                    let texts = decode_texts(section.bytes(), Order::NATIVE, paths.len());
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

    fn put(&self, section: Incoming, shape: &Shape, to: Destination) -> Option<Option<Incoming>> {
        let (section, in_room) = match section {
            Incoming::Argument(index, len) => (Incoming::Left(self.room(index, len)?), true),
            other => (other, false),
        };
        let bytes = section.bytes();
        match to {
            Destination::InPlace(_) if in_room => Some(None),
            Destination::InPlace(start) | Destination::Caller(start) => {
                if !matches!(section, Incoming::Placed(_)) && shape.selected() > 0 {
                    let len = shape.bytes();
                    // SAFETY: the caller has promised an array of the size that the interface says.
                    let array = unsafe { std::slice::from_raw_parts_mut(start, len) };
                    scatter(shape, bytes, array);
                }
                Some(None)
            }
            // The call has no section in which a worker could have left it.
            Destination::Made if in_room => None,
            Destination::Made if shape.is_whole() => Some(Some(section)),
            Destination::Made => {
                let mut array = vec![0; shape.bytes()];
                scatter(shape, bytes, &mut array);
                Some(Some(Incoming::Bytes(array)))
            }
        }
    }

    /// The data that the worker has left in a section of the call.
    fn room(&self, section: u16, len: u64) -> Option<Left> {
        let room = self.rooms.iter().find(|room| room.section == section)?;
        Left::new(&room.lent, room.offset, len).ok()
    }
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

    /// Delivers a result of this many doubles, which the worker reports in `section`.
    fn landed(section: Incoming) -> Result<Vec<(usize, Landed)>, LandError> {
        let extent = Extent { size: COUNT, start: 0, end: COUNT, step: 1 };
        let (dtype, shape) = (DType::Float64, Shape::new(vec![extent], false, 8));
        let mut landing = Landing::new(&Arc::from("module/function"));
        let plan = Plan::Array { dtype, shape, dimensions: vec![COUNT], to: Destination::Made };
        landing.plans.push((0, "result".into(), plan));
        let lent = Arc::new(Pool::new(0).take(COUNT * 8).unwrap());
        landing.rooms.push(Room { section: 0, lent, offset: 0 });
        let array = Array { dtype, fortran: false, shape: vec![COUNT], section: 1 };
        let mut values = Vec::new();
        encode_values(&[Value::Array(array)], Order::NATIVE, &mut values).unwrap();
        landing.land(vec![Incoming::Bytes(values), section])
    }

    #[test]
    fn a_result_that_the_caller_has_no_place_for_is_taken_where_it_came() {
        let mut landed = landed(Incoming::Bytes(vec![7; 32])).unwrap();
        let Some((0, Landed::Array(array))) = landed.pop() else { panic!("no array") };
        assert_eq!((array.dimensions, array.elements.bytes()), (vec![COUNT], &[7; 32][..]));
    }

    #[test]
    fn a_result_in_a_section_that_is_not_for_it_or_of_another_size_is_refused() {
        for section in [Incoming::Argument(0, 32), Incoming::Bytes(vec![7; 31])] {
            let error = landed(section).unwrap_err().to_string();
            assert_eq!(error, "module/function: result `result` does not fit its interface");
        }
    }
}
