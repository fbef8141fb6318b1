//! A call of a module's function, from its arguments to its result.

use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_client::{Callbacks, Dependency, Request};
use gridrpc_core::CallOptions;
use gridrpc_idl::{Kind, Mode, Parameter};
use gridrpc_invoke::{
    ArgumentValue, CallSize, CallbackFrame, Landed, Landing, Lending, size_of_call,
};
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_typed::dtype;
use gridrpc_wire::{Order, Ranks};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::ArrayView;
use crate::errors;
use crate::modules::arguments::Arguments;
use crate::modules::callbacks::PythonCallbacks;
use crate::modules::passed::PassedArray;
use crate::modules::results::{texts_to_python, to_numpy};
use crate::modules::target::{Target, is_returned};
use crate::package;

/// State of a call until its results are delivered.
pub struct Pending {
    landing: Landing,
    target: Arc<gridrpc_invoke::Target>,
    /// Held in place until then; dropped after the landing.
    _views: Vec<ArrayView>,
    /// The caller's arrays for results, by parameter.
    outs: Vec<(usize, Py<PyAny>)>,
    raised: Option<Arc<Mutex<Option<PyErr>>>>,
    /// Whether the caller has passed no arguments: what the function changes in place is returned, too.
    is_attached: bool,
}

/// A request, and the state needed for its results.
pub struct PreparedCall {
    pub request: Request,
    pub pending: Pending,
    /// Hold shared data until the call has been submitted.
    pub leases: Vec<Py<PyAny>>,
}

impl PreparedCall {
    /// A call that ends without being made, because one that it needs has failed.
    fn not_called(target: &Target, failed: Dependency, options: CallOptions) -> PreparedCall {
        let Target { target, .. } = target;
        let request = Request::new(target.function(), Payload::default(), options);
        let request = Request { after: vec![failed], ..request };
        let pending = Pending {
            landing: Landing::new(&target.name),
            target: Arc::clone(target),
            _views: Vec::new(),
            outs: Vec::new(),
            raised: None,
            is_attached: false,
        };
        PreparedCall { request, pending, leases: Vec::new() }
    }
}

/// Prepares a call. `ranks`: the ranks of a parallel function.
#[allow(clippy::too_many_arguments)] // the parts of one call
pub fn make(
    py: Python<'_>,
    grid: &Arc<gridrpc_client::Grid>,
    target: &Target,
    native: &Bound<'_, PyAny>,
    (args, kwargs): (&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>),
    out: Option<&Bound<'_, PyAny>>,
    options: CallOptions,
    ranks: Option<&Ranks>,
) -> PyResult<PreparedCall> {
    target.refresh(py, grid)?;
    let interface = target.target.interface();
    let mut objects = target.assign(args, kwargs)?;
    let outs = assign_out(target, out, &mut objects)?;
    let mut arguments = Arguments::new(target, native);
    let given = arguments.take_all(&objects)?;
    let Arguments { views, callbacks, leases, failed, .. } = arguments;
    if let Some(failed) = failed {
        return Ok(PreparedCall::not_called(target, failed, options));
    }
    // SAFETY: the views hold the arrays in place, with their lengths; they outlive the landing. Python code that
    // changes an array in transit changes the data that is sent, as for any other call.
    let prepared = unsafe {
        let (grid, target) = (&**grid, &*target.target);
        let much = views.iter().map(ArrayView::len).sum::<usize>() > MUCH;
        let given = SendArguments(given);
        let prepare = move || {
            let given = given;
            gridrpc_invoke::prepare(grid, target, &given.0, Lending::UntilLanded, ranks)
        };
        if much { py.detach(prepare) } else { prepare() }
    };
    let prepared = prepared.map_err(|error| errors::prepare(&error))?;
    let mut raised = None;
    let mut called_back = None;
    if !callbacks.is_empty() {
        let frame = CallbackFrame::new(Arc::clone(&target.target), prepared.scalars.clone());
        let handler = PythonCallbacks {
            grid: Arc::clone(grid),
            frame,
            callbacks,
            fortran: interface.fortran(),
            raised: Arc::default(),
        };
        raised = Some(Arc::clone(&handler.raised));
        called_back = Some(Callbacks(Arc::new(handler)));
    }
    let (request, landing) = prepared.request(&target.target, options, called_back);
    let pending = Pending {
        landing,
        target: Arc::clone(&target.target),
        _views: views,
        outs,
        raised,
        is_attached: false,
    };
    Ok(PreparedCall { request, pending, leases })
}

/// The size of a call. `native`: the grid of the shared data.
pub fn call_size(
    target: &Target,
    native: &Bound<'_, PyAny>,
    (args, kwargs): (&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>),
) -> PyResult<CallSize> {
    let objects = target.assign(args, kwargs)?;
    let mut arguments = Arguments::new(target, native);
    let given = arguments.take_all(&objects)?;
    // SAFETY: the views hold the arrays in place, with their lengths.
    let size = unsafe { size_of_call(target.target.interface(), &given) };
    drop(arguments);
    Ok(size)
}

/// Larger data is copied without the interpreter's lock, bytes.
const MUCH: usize = 64 << 10;

struct SendArguments(Vec<ArgumentValue>);

// SAFETY: the pointers are to arrays that are held by views.
unsafe impl Send for SendArguments {}

/// `out=`: one array, several in order, or by name.
fn assign_out<'py>(
    target: &Target,
    out: Option<&Bound<'py, PyAny>>,
    objects: &mut [Option<Bound<'py, PyAny>>],
) -> PyResult<Vec<(usize, Py<PyAny>)>> {
    let Some(out) = out else { return Ok(Vec::new()) };
    let parameters = &target.target.interface().parameters;
    let is_array =
        |p: &Parameter| matches!(&p.kind, Kind::Array { element, .. } if dtype(*element).is_some());
    let results = parameters.iter().enumerate().filter(|(_, p)| is_returned(p) && is_array(p));
    let results: Vec<usize> = results.map(|(index, _)| index).collect();
    let mut assigned: Vec<(usize, Bound<'py, PyAny>)> = Vec::new();
    if let Ok(named) = out.cast::<PyDict>() {
        for (name, array) in named {
            let name: String = name.extract()?;
            let found = results.iter().find(|index| parameters[**index].name == name);
            let index = found.ok_or_else(|| target.bad(&name, "is not one of its results"))?;
            assigned.push((*index, array));
        }
    } else if let Ok(several) = out.cast::<PyTuple>() {
        if several.len() != results.len() {
            let (wanted, got) = (results.len(), several.len());
            return Err(target.bad("out", format!("has {got} arrays for {wanted} results")));
        }
        assigned.extend(results.iter().copied().zip(several.iter()));
    } else if results.len() == 1 {
        assigned.push((results[0], out.clone()));
    } else {
        let wanted = results.len();
        return Err(target.bad("out", format!("has to be a tuple of {wanted} arrays")));
    }
    let mut outs = Vec::new();
    for (index, array) in assigned {
        if !array.is_none() {
            outs.push((index, array.clone().unbind()));
            objects[index] = Some(array);
        }
    }
    Ok(outs)
}

impl Pending {
    /// The function.
    pub fn target(&self) -> &Arc<gridrpc_invoke::Target> {
        &self.target
    }

    /// The array that a parameter returns, if another call can take it.
    pub fn array(&self, parameter: usize) -> Option<PassedArray> {
        let (array, shape) = self.landing.array(parameter)?;
        let (shape, fortran) = (shape.to_vec(), self.target.interface().fortran());
        Some(PassedArray { array, shape, fortran })
    }

    /// State of a call that this program has attached to.
    pub fn attached(target: Arc<gridrpc_invoke::Target>, landing: Landing) -> Pending {
        let (_views, outs, raised) = (Vec::new(), Vec::new(), None);
        Pending { landing, target, _views, outs, raised, is_attached: true }
    }

    /// The return value of the call: None, one result, or a named tuple of several.
    pub fn take(
        self,
        py: Python<'_>,
        sections: Vec<Incoming>,
        order: Order,
    ) -> PyResult<Py<PyAny>> {
        let Pending { landing, target, _views, outs, is_attached, .. } = self;
        let landed =
            py.detach(|| landing.land(sections, order)).map_err(|error| errors::land(&error))?;
        let mut landed: Vec<(usize, Option<Landed>)> =
            landed.into_iter().map(|(index, landed)| (index, Some(landed))).collect();
        let mut results = Vec::new();
        let mut names = Vec::new();
        for (index, parameter) in target.interface().parameters.iter().enumerate() {
            if !(is_returned(parameter) || is_attached && parameter.mode == Mode::InOut) {
                continue;
            }
            names.push(parameter.name.as_str());
            if let Some((_, array)) = outs.iter().find(|(place, _)| *place == index) {
                results.push(array.bind(py).clone());
                continue;
            }
            let found = landed.iter_mut().find(|(place, _)| *place == index);
            let found = found.and_then(|(_, landed)| landed.take());
            results.push(match found {
                Some(Landed::Array(array)) => to_numpy(py, array, target.interface().fortran())?,
                Some(Landed::Texts(texts)) => texts_to_python(py, parameter, texts)?,
                None => py.None().into_bound(py),
            });
        }
        match results.len() {
            0 => Ok(py.None()),
            1 => Ok(results.remove(0).unbind()),
            _ => {
                let named = package::named_results(py)?;
                Ok(named.call1((&*target.name, names, results))?.unbind())
            }
        }
    }

    /// The exception raised by a callback of the call, if any.
    pub fn raised(&self) -> Option<PyErr> {
        let raised = self.raised.as_ref()?;
        raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
