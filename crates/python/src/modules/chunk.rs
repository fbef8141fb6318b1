//! Many items in one call of a module's function, from their arguments to what each returns.

use std::sync::Arc;

use gridrpc_core::CallOptions;
use gridrpc_idl::{Kind, Mode, Parameter};
use gridrpc_invoke::{ChunkBuilder, ChunkLanding, Given, LandedChunk, LandedColumn, Run};
use gridrpc_link::payload::Incoming;
use gridrpc_typed::dtype;
use gridrpc_wire::DType;
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

/// What has to be kept of a call until the results of its items are where they belong.
pub struct PendingChunk {
    landing: ChunkLanding,
    target: Arc<gridrpc_invoke::Target>,
    /// Arrays that are changed, held in place until then; dropped behind the landing.
    _views: Vec<ArrayView>,
}

/// A request, what to do with its results, and how many items it has.
pub struct MadeChunk {
    pub request: gridrpc_client::Request,
    pub pending: PendingChunk,
    pub items: usize,
}

/// Items of one call: how they are to be taken, and what bounds them.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// An item is the only argument, and not a tuple or dict of all of them.
    pub single: bool,
    /// After which time no further item is begun, ns; 0: all are.
    pub limit: u64,
    /// Arguments and results of all items at most, bytes.
    pub budget: usize,
}

/// Puts a call together with the first of these items: up to one that has to go alone. `None`: that is
/// the first one.
pub fn make_chunk(
    grid: &Arc<gridrpc_client::Grid>,
    target: &Target,
    native: &Bound<'_, PyAny>,
    items: &Bound<'_, PyList>,
    bounds: Bounds,
    options: CallOptions,
) -> PyResult<Option<MadeChunk>> {
    let Some(mut builder) = ChunkBuilder::new(&target.target) else { return Ok(None) };
    let parameters = &target.target.interface().parameters;
    let is_changed = |p: &Parameter| {
        p.mode == Mode::InOut
            && matches!(&p.kind, Kind::Array { element, .. } if dtype(*element).is_some())
    };
    let keeps = parameters.iter().any(is_changed);
    let mut arguments = Arguments::new(target, native);
    let mut views = Vec::new();
    let mut given: Vec<Given> = Vec::with_capacity(parameters.len());
    let mut places = Places { target, count: usize::MAX, places: Vec::new() };
    for item in items {
        given.clear();
        given.resize(parameters.len(), Given::Absent);
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
    Ok(Some(MadeChunk { request, pending, items }))
}

/// Which parameters so many arguments by position are for: most items have as many as the one before.
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

/// Takes the arguments of one item. `false`: it has to go alone, if it can go at all.
fn take(
    arguments: &mut Arguments<'_, '_>,
    places: &mut Places<'_>,
    item: &Bound<'_, PyAny>,
    single: bool,
    given: &mut [Given],
) -> bool {
    let mut set = |index: usize, object: &Bound<'_, PyAny>| {
        if object.is_none() && arguments.target.may_be_left_out(index) {
            return true;
        }
        // What can be looked at only once is left to the call that may tell what is wrong with it.
        let texts = matches!(&arguments.target.parameter(index).kind,
            Kind::Array { element, .. } if dtype(*element).is_none());
        if texts && !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
            return false;
        }
        let taken = arguments.take(index, object);
        taken.map(|taken| given[index] = taken).is_ok()
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
    /// What the call has come to: what its items return, as far as they have been run, and type and
    /// message of the error of the one behind them, or None.
    pub fn take(self, py: Python<'_>, sections: Vec<Incoming>) -> PyResult<Py<PyAny>> {
        let PendingChunk { landing, target, _views } = self;
        let landed = py.detach(|| landing.land(sections)).map_err(|error| errors::land(&error))?;
        let error = landed.error.clone();
        Ok((results(py, &target, landed)?, error).into_pyobject(py)?.into_any().unbind())
    }

    /// What the first items return, whose worker was lost behind them.
    pub fn take_partial(
        self,
        py: Python<'_>,
        items: u64,
        parts: Vec<Incoming>,
    ) -> PyResult<Py<PyAny>> {
        let PendingChunk { landing, target, _views } = self;
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        let landed = py.detach(|| landing.land_partial(items, parts));
        let landed = landed.map_err(|error| errors::land(&error))?;
        Ok(results(py, &target, landed)?.unbind())
    }
}

/// What each item returns.
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

/// Arrays of items beside each other share memory of so many bytes at most: who keeps one keeps no more,
/// and memory of its own would take most of the time.
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
