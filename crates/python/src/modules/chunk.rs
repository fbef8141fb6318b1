//! Calls with many items of a module's function, from their arguments to their results.

use std::sync::Arc;

use gridrpc_core::CallOptions;
use gridrpc_idl::{Kind, Mode, Parameter};
use gridrpc_invoke::{ArgumentValue, ChunkBuilder, ChunkLanding, LandedChunk, LandedColumn, Run};
use gridrpc_link::payload::Incoming;
use gridrpc_typed::dtype;
use gridrpc_wire::{DType, Order};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::ArrayView;
use crate::buffer::Buffer;
use crate::errors;
use crate::modules::arguments::Arguments;
use crate::modules::results::{rows, texts_to_python};
use crate::modules::target::{Target, is_returned};
use crate::package;

/// State of a call until the results of its items are delivered.
pub struct PendingChunk {
    landing: ChunkLanding,
    target: Arc<gridrpc_invoke::Target>,
    /// Changed arrays, held in place until then; dropped after the landing.
    _views: Vec<ArrayView>,
}

/// A request, the state needed for its results, and its number of items.
pub struct PreparedChunk {
    pub request: gridrpc_client::Request,
    pub pending: PendingChunk,
    pub items: usize,
}

/// Form and limits of the items of one call.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// An item is the only argument, and not a tuple or dict of all arguments.
    pub single: bool,
    /// Time after which no further item starts, ns; 0: no limit.
    pub limit: u64,
    /// Maximum size of the arguments and results of all items, bytes.
    pub budget: usize,
}

/// Prepares a call with the first of these items, up to one that has to go alone. `None`: the first one has to go
/// alone.
pub fn make_chunk(
    grid: &Arc<gridrpc_client::Grid>,
    target: &Target,
    native: &Bound<'_, PyAny>,
    items: &Bound<'_, PyList>,
    bounds: Bounds,
    options: CallOptions,
) -> PyResult<Option<PreparedChunk>> {
    let Some(mut builder) = ChunkBuilder::new(&target.target) else { return Ok(None) };
    let parameters = &target.target.interface().parameters;
    let is_changed = |p: &Parameter| {
        p.mode == Mode::InOut
            && matches!(&p.kind, Kind::Array { element, .. } if dtype(*element).is_some())
    };
    let keeps = parameters.iter().any(is_changed);
    let mut arguments = Arguments::new(target, native);
    let mut views = Vec::new();
    let mut given: Vec<ArgumentValue> = Vec::with_capacity(parameters.len());
    let mut places = Places { target, count: usize::MAX, places: Vec::new() };
    for item in items {
        given.clear();
        given.resize(parameters.len(), ArgumentValue::Absent);
        if !take(&mut arguments, &mut places, &item, bounds.single, &mut given) {
            break;
        }
        // SAFETY: the views hold the arrays in place, with their lengths; those that are changed
        // outlive the landing.
        if !unsafe { builder.add(&given, bounds.budget) } {
            break;
        }
        if keeps {
            views.append(&mut arguments.views);
        } else {
            arguments.views.clear();
        }
    }
    let items = builder.items();
    if items == 0 {
        return Ok(None);
    }
    let made = builder.finish(grid, bounds.limit, options);
    let (request, landing) = made.map_err(|error| errors::prepare(&error))?;
    let pending = PendingChunk { landing, target: Arc::clone(&target.target), _views: views };
    Ok(Some(PreparedChunk { request, pending, items }))
}

/// Parameters for a number of positional arguments: most items have as many as the previous one.
struct Places<'t> {
    target: &'t Target,
    count: usize,
    places: Vec<usize>,
}

impl Places<'_> {
    fn of(&mut self, count: usize) -> &[usize] {
        if self.count != count {
            self.count = count;
            self.places = self.target.places(count).collect();
        }
        &self.places
    }
}

/// Takes the arguments of one item. Returns `false` if it has to go alone, if it is valid at all.
fn take(
    arguments: &mut Arguments<'_, '_>,
    places: &mut Places<'_>,
    item: &Bound<'_, PyAny>,
    single: bool,
    given: &mut [ArgumentValue],
) -> bool {
    let mut set = |index: usize, object: &Bound<'_, PyAny>| {
        if object.is_none() && arguments.target.may_be_left_out(index) {
            return true;
        }
        // Iterators can be consumed only once, so they are left to a separate call, which reports errors.
        let texts = matches!(&arguments.target.parameter(index).kind,
            Kind::Array { element, .. } if dtype(*element).is_none());
        if texts && !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
            return false;
        }
        let taken = arguments.take(index, object);
        taken.map(|taken| given[index] = taken).is_ok() && arguments.failed.is_none()
    };
    if single {
        let [place, ..] = *places.of(1) else { return false };
        return set(place, item);
    }
    if let Ok(item) = item.cast_exact::<PyTuple>() {
        let places = places.of(item.len());
        return places.len() == item.len()
            && item.iter_borrowed().zip(places).all(|(object, place)| set(*place, &object));
    }
    let Ok(item) = item.cast_exact::<PyDict>() else { return false };
    item.iter().all(|(name, object)| {
        let name = name.extract::<String>();
        let place = name.ok().and_then(|name| places.target.place(&name));
        place.is_some_and(|place| set(place, &object))
    })
}

impl PendingChunk {
    /// The outcome of the call: the results of the completed items, and type and message of the next item's error, or
    /// None.
    pub fn take(
        self,
        py: Python<'_>,
        sections: Vec<Incoming>,
        order: Order,
    ) -> PyResult<Py<PyAny>> {
        let PendingChunk { landing, target, _views } = self;
        let landed =
            py.detach(|| landing.land(sections, order)).map_err(|error| errors::land(&error))?;
        let error = landed.error.clone();
        Ok((results(py, &target, landed)?, error).into_pyobject(py)?.into_any().unbind())
    }

    /// The results of the first items of a call whose worker was lost after them.
    pub fn take_partial(
        self,
        py: Python<'_>,
        items: u64,
        parts: Vec<Incoming>,
        order: Order,
    ) -> PyResult<Py<PyAny>> {
        let PendingChunk { landing, target, _views } = self;
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        let landed = py.detach(|| landing.land_partial(items, parts, order));
        let landed = landed.map_err(|error| errors::land(&error))?;
        Ok(results(py, &target, landed)?.unbind())
    }
}

/// The result of each item.
fn results<'py>(
    py: Python<'py>,
    target: &gridrpc_invoke::Target,
    landed: LandedChunk,
) -> PyResult<Bound<'py, PyAny>> {
    let parameters = &target.interface().parameters;
    let fortran = target.interface().fortran();
    let mut names = Vec::new();
    let mut columns = Vec::new();
    for (index, column) in landed.columns {
        let parameter = &parameters[index];
        if !is_returned(parameter) {
            continue;
        }
        names.push(parameter.name.as_str());
        columns.push(match column {
            LandedColumn::Arrays(dtype, runs, section) => {
                arrays(py, &runs, dtype, fortran, section)?
            }
            LandedColumn::Texts(runs, all) => texts(py, parameter, &runs, all)?,
        });
    }
    Ok(match columns.len() {
        0 => PyList::new(py, [py.None()])?.as_sequence().repeat(landed.items)?.into_any(),
        1 => columns.remove(0).into_any(),
        _ => {
            let named = package::many_named_results(py)?;
            named.call1((&*target.name, names, columns))?
        }
    })
}

/// Maximum size of memory shared by the arrays of adjacent items, bytes. Holding one array holds no more than this,
/// and separate memory for each would take most of the time.
const BLOCK: usize = 4 << 10;

/// Each item's array.
fn arrays<'py>(
    py: Python<'py>,
    runs: &[Run],
    dtype: DType,
    fortran: bool,
    section: Incoming,
) -> PyResult<Bound<'py, PyList>> {
    let results = PyList::empty(py);
    let buffer = Bound::new(py, Buffer::new(section, false))?;
    let mut from = 0;
    for run in runs {
        let most = (BLOCK / run.bytes.max(1)).max(1);
        let mut left = run.items;
        while left > 0 {
            let items = left.min(most);
            let block = Run { items, ..run.clone() };
            let rows = rows(py, &block, dtype, fortran, &buffer, from)?;
            results.call_method1(intern!(py, "extend"), (rows,))?;
            from += items * run.bytes;
            left -= items;
        }
    }
    Ok(results)
}

fn texts<'py>(
    py: Python<'py>,
    parameter: &Parameter,
    runs: &[Run],
    all: Vec<Option<Vec<u8>>>,
) -> PyResult<Bound<'py, PyList>> {
    let results = PyList::empty(py);
    let mut all = all.into_iter();
    for run in runs {
        for _ in 0..run.items {
            let own = all.by_ref().take(run.count()).collect();
            results.append(texts_to_python(py, parameter, own)?)?;
        }
    }
    Ok(results)
}
