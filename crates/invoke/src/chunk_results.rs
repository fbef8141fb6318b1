//! Results of many items of one call, for their caller.

use std::sync::Arc;

use gridrpc_idl::{Function, Kind, Mode};
use gridrpc_link::payload::Incoming;
use gridrpc_typed::{Shape, dtype, list_texts};
use gridrpc_wire::{Array, Chunk, DType, Order, Value};

use crate::results::{LandError, converted};

/// Consecutive items whose results have the same shape.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number of items.
    pub items: usize,
    /// Their dimensions, in the order of the interface; empty for a single string.
    pub dimensions: Vec<u64>,
    /// Bytes of a result; for strings, only their lengths.
    pub bytes: usize,
}

impl Run {
    /// Number of elements, or strings, of a result.
    #[must_use]
    pub fn count(&self) -> usize {
        self.dimensions.iter().product::<u64>() as usize
    }
}

/// Results of one parameter.
#[derive(Debug)]
pub(super) enum Column {
    /// None.
    Nothing,
    /// Arrays that are created for the caller.
    Made(DType, Vec<Run>),
    /// The caller's arrays that are changed: their addresses and sizes in bytes.
    Changed(DType, Vec<(*mut u8, usize)>),
    /// Strings.
    Texts(Vec<Run>),
}

/// State of the results of many items until they are delivered.
#[derive(Debug)]
pub struct ChunkLanding {
    function: Arc<str>,
    /// Number of items.
    pub(super) items: usize,
    columns: Vec<Column>,
    names: Vec<String>,
}

// SAFETY: the pointers belong to the caller, who has promised to leave the memory alone until the call has ended, in
// whichever thread it waits.
unsafe impl Send for ChunkLanding {}
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for ChunkLanding {}

/// The results of one parameter for all completed items.
#[derive(Debug)]
pub enum LandedColumn {
    /// Arrays, one after the other.
    Arrays(DType, Vec<Run>, Incoming),
    /// Strings, one after the other; `None` for a missing one.
    Texts(Vec<Run>, Vec<Option<Vec<u8>>>),
}

/// Outcome of a call with many items.
#[derive(Debug)]
pub struct LandedChunk {
    /// Number of completed items, from the first one on.
    pub items: usize,
    /// Results that the caller has to take, by the index of the parameter.
    pub columns: Vec<(usize, LandedColumn)>,
    /// Type and message of the next item's error.
    pub error: Option<(String, String)>,
}

impl ChunkLanding {
    pub(super) fn new(name: &Arc<str>, function: &Function) -> ChunkLanding {
        let columns = function.parameters.iter().map(|parameter| {
            let of = match &parameter.kind {
                Kind::Scalar(of) | Kind::Array { element: of, .. } => *of,
                Kind::Callback(_) => return Column::Nothing,
            };
            match (parameter.mode, dtype(of)) {
                (Mode::In | Mode::Work, _) => Column::Nothing,
                (Mode::Out, Some(dtype)) => Column::Made(dtype, Vec::new()),
                (Mode::InOut, Some(dtype)) => Column::Changed(dtype, Vec::new()),
                (Mode::Out | Mode::InOut, None) => Column::Texts(Vec::new()),
            }
        });
        let columns = columns.collect();
        let names = function.parameters.iter().map(|parameter| parameter.name.clone()).collect();
        ChunkLanding { function: Arc::clone(name), items: 0, columns, names }
    }

    /// Adds an array that the next item changes.
    pub(super) fn changes(&mut self, parameter: usize, start: *mut u8, bytes: usize) {
        if let Column::Changed(_, places) = &mut self.columns[parameter] {
            places.push((start, bytes));
        }
    }

    /// Adds a result that the next item creates; `new`: its shape may differ from the previous one. Returns its
    /// minimum size in bytes; `None` if it cannot share a call.
    pub(super) fn makes(
        &mut self,
        parameter: usize,
        shaped: Option<&(Vec<u64>, Shape)>,
        new: bool,
    ) -> Option<usize> {
        let (runs, is_text) = match &mut self.columns[parameter] {
            Column::Made(_, runs) => (runs, false),
            Column::Texts(runs) => (runs, true),
            _ => return None,
        };
        if !shaped.is_none_or(|(_, shape)| shape.is_whole()) {
            return None;
        }
        let bytes = match shaped {
            // For strings, only the lengths are known.
            Some((_, shape)) if is_text => shape.count().checked_mul(size_of::<i64>())?,
            Some((_, shape)) => shape.bytes(),
            None => 0,
        };
        match runs.last_mut() {
            Some(last) if !new => last.items += 1,
            _ => {
                let dimensions = shaped.map_or(Vec::new(), |(dimensions, _)| dimensions.clone());
                runs.push(Run { items: 1, dimensions, bytes });
            }
        }
        Some(bytes)
    }

    /// Truncates to this many items.
    pub(super) fn keep(&mut self, items: usize) {
        for column in &mut self.columns {
            match column {
                Column::Nothing => {}
                Column::Changed(_, places) => places.truncate(items),
                Column::Made(_, runs) | Column::Texts(runs) => first(runs, items),
            }
        }
    }

    /// Delivers the results, whose numbers have this byte order. Returns those that the caller has to take.
    ///
    /// # Errors
    /// When they do not match the interface.
    pub fn land(self, sections: Vec<Incoming>, order: Order) -> Result<LandedChunk, LandError> {
        let function = &self.function;
        let broken =
            |error: String| LandError::Broken(format!("{function}: broken results: {error}"));
        let head = sections.first().map(Incoming::bytes).unwrap_or_default();
        let (chunk, values) =
            Chunk::decode(head, order).map_err(|error| broken(error.to_string()))?;
        let error = match values.get(self.columns.len()..) {
            Some([Value::Text(error), Value::Text(message)]) => {
                Some((error.clone(), message.clone()))
            }
            Some([]) => None,
            _ => return Err(broken(format!("{} values came", values.len()))),
        };
        let items = chunk.items as usize;
        let values = values.into_iter().take(self.columns.len()).collect();
        Ok(LandedChunk { items, columns: self.put(items, values, sections, order)?, error })
    }

    /// Delivers the partial results of a call whose worker was lost after `items` items.
    ///
    /// # Errors
    /// When they do not match the interface.
    pub fn land_partial(
        self,
        items: usize,
        results: Vec<Incoming>,
        order: Order,
    ) -> Result<LandedChunk, LandError> {
        // As in `land`, with a section for each parameter that returns data.
        let mut section = 0;
        let mut next = || {
            section += 1;
            section - 1
        };
        let values = self.columns.iter().map(|column| match column {
            Column::Nothing => Value::None,
            Column::Made(dtype, _) | Column::Changed(dtype, _) => {
                let (fortran, shape) = (false, Vec::new());
                Value::Array(Array { dtype: *dtype, fortran, shape, section: next() })
            }
            Column::Texts(_) => Value::Bytes(next()),
        });
        let values = values.collect();
        Ok(LandedChunk { items, columns: self.put(items, values, results, order)?, error: None })
    }

    /// Delivers the results of the first items; more may follow them.
    fn put(
        self,
        items: usize,
        values: Vec<Value>,
        sections: Vec<Incoming>,
        order: Order,
    ) -> Result<Vec<(usize, LandedColumn)>, LandError> {
        let function = &self.function;
        let broken =
            |error: String| LandError::Broken(format!("{function}: broken results: {error}"));
        if items > self.items {
            return Err(broken(format!("{items} items have been run")));
        }
        let mut sections: Vec<Option<Incoming>> = sections.into_iter().map(Some).collect();
        let mut take = |index: u16| sections.get_mut(usize::from(index)).and_then(Option::take);
        let native = |section: Incoming, dtype: DType| match order {
            Order::NATIVE => section,
            _ => converted(section, dtype),
        };
        let mut landed = Vec::new();
        for (index, (column, value)) in self.columns.into_iter().zip(&values).enumerate() {
            let misfit = || {
                let name = &self.names[index];
                LandError::Broken(format!("{function}: result `{name}` does not fit its interface"))
            };
            match (column, value) {
                (Column::Nothing, _) => {}
                (Column::Made(dtype, mut runs), Value::Array(array)) => {
                    let section = take(array.section).ok_or_else(misfit)?;
                    first(&mut runs, items);
                    let bytes: usize = runs.iter().map(|run| run.items * run.bytes).sum();
                    if array.dtype != dtype || section.len() < bytes {
                        return Err(misfit());
                    }
                    landed.push((index, LandedColumn::Arrays(dtype, runs, native(section, dtype))));
                }
                (Column::Changed(dtype, places), Value::Array(array)) => {
                    let section = take(array.section).ok_or_else(misfit)?;
                    if array.dtype != dtype {
                        return Err(misfit());
                    }
                    let section = native(section, dtype);
                    let mut rest = section.bytes();
                    for (start, len) in places.into_iter().take(items) {
                        let (now, behind) = rest.split_at_checked(len).ok_or_else(misfit)?;
                        rest = behind;
                        if len > 0 {
                            // SAFETY: the caller has promised an array of that size.
                            unsafe { std::ptr::copy(now.as_ptr(), start, len) };
                        }
                    }
                }
                (Column::Texts(mut runs), Value::Bytes(section)) => {
                    let section = take(*section).ok_or_else(misfit)?;
                    first(&mut runs, items);
                    let texts = list_texts(section.bytes(), order).ok_or_else(misfit)?;
                    let count = runs.iter().map(|run| run.items * run.count()).sum();
                    if texts.len() < count {
                        return Err(misfit());
                    }
                    let texts = texts.into_iter().take(count);
                    let texts = texts.map(|text| text.map(<[u8]>::to_vec)).collect();
                    landed.push((index, LandedColumn::Texts(runs, texts)));
                }
                _ => return Err(misfit()),
            }
        }
        Ok(landed)
    }
}

/// Keeps the first items.
fn first(runs: &mut Vec<Run>, mut items: usize) {
    for run in runs.iter_mut() {
        run.items = run.items.min(items);
        items -= run.items;
    }
    while runs.last().is_some_and(|run| run.items == 0) {
        runs.pop();
    }
}
