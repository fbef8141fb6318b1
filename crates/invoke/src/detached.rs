//! Detached calls of module functions: a server keeps them when the client is gone, and another program takes their
//! results.

use std::sync::Arc;

use gridrpc_client::{
    Call, DetachedCall, DetachedError, Grid, GridError, Request, RequestSections, ServerCatalogue,
};
use gridrpc_idl::{Kind, Mode, Type, extents};
use gridrpc_typed::{Scalar, Shape, dtype};
use gridrpc_wire::{Order, Ranks, Value, decode_values};
use thiserror::Error;

use crate::argument::{ArgumentError, ArgumentValue};
use crate::prepared::Prepared;
use crate::results::{Destination, Landing, Plan};
use crate::sizes::{SizeInputs, known_scalars};
use crate::target::Target;

/// Why a call cannot be detached, or a program cannot attach to it.
#[derive(Debug, Error)]
pub enum DetachError {
    /// No server runs the function.
    #[error(
        "{0} runs on workers of this grid, which end with it: only calls of functions that a server offers can be detached"
    )]
    NoServer(Arc<str>),
    /// The call needs its client.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The call needs its object.
    #[error(
        "{0} is a method, and its object ends with this program: only calls of functions can be detached"
    )]
    Method(Arc<str>),
    /// The call depends on other calls of the client.
    #[error(
        "the call of {0} cannot be detached: it needs the result of another call, or another call needs its result"
    )]
    Dependent(Arc<str>),
    /// The call has a result.
    #[error("the call of {0} has ended: take its result")]
    Ended(Arc<str>),
    /// The arguments cannot be read.
    #[error("the arguments of {function} cannot be sent: {error}")]
    System {
        /// The function.
        function: Arc<str>,
        /// The system's error.
        error: std::io::Error,
    },
    /// The server refuses it, or cannot be reached.
    #[error(transparent)]
    Server(#[from] DetachedError),
    /// The grid refuses it.
    #[error(transparent)]
    Grid(#[from] GridError),
}

/// Detaches a call: its server runs it even if this program ends. Returns its id when the server has stored it.
///
/// # Errors
/// When the call needs its client, or the server refuses it.
pub fn detach(
    grid: &Grid,
    target: &Target,
    request: &Request,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<String, DetachError> {
    let (server, name) =
        target.offered_name().ok_or_else(|| DetachError::NoServer(Arc::clone(&target.name)))?;
    if !request.after.is_empty() {
        return Err(DetachError::Dependent(Arc::clone(&target.name)));
    }
    let system = |error| DetachError::System { function: Arc::clone(&target.name), error };
    let sections = grid.copy_sections(&request.payload).map_err(system)?;
    // Whoever takes the results has to know their sizes.
    let order = request.payload.order;
    landing(target, sections.first().map_or(&[], Vec::as_slice), order)?;
    let sections = RequestSections { sections, order };
    let catalogue = grid.server_catalogues().iter().find(|known| known.name == server);
    let catalogue = catalogue.ok_or_else(|| DetachError::NoServer(Arc::clone(&target.name)))?;
    Ok(catalogue.detach(&name, request.options.idempotent, sections, interrupted)?)
}

/// Detaches a call that was submitted to this grid: it ends with the result of the detached one. A call that waits here
/// is withdrawn; if it cannot be detached then, it has failed. A call that its server has got continues there. Returns the
/// id, and the server.
///
/// # Errors
/// When the call has ended, needs its client or other calls, or the server refuses it.
pub fn detach_call(
    grid: &Grid,
    target: &Target,
    call: &Arc<Call>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<(String, Arc<ServerCatalogue>), DetachError> {
    let function = || Arc::clone(&target.name);
    let (server, name) = target.offered_name().ok_or_else(|| DetachError::NoServer(function()))?;
    if target.name.contains('.') {
        return Err(DetachError::Method(function()));
    }
    let catalogue = grid.server_catalogues().iter().find(|known| known.name == server);
    let catalogue = catalogue.ok_or_else(|| DetachError::NoServer(function()))?;
    let payload = call.payload().filter(|_| !call.done());
    let payload = payload.ok_or_else(|| DetachError::Ended(function()))?;
    let system = |error| DetachError::System { function: function(), error };
    let values = payload.parts.first().map(|part| grid.copy_section(part)).transpose();
    landing(target, &values.map_err(system)?.unwrap_or_default(), payload.order)?;
    if !grid.withdraw(call) {
        let Some(id) = grid.detach_sent(catalogue, call, interrupted)? else {
            let why = if call.done() { DetachError::Ended } else { DetachError::Dependent };
            return Err(why(function()));
        };
        grid.attach_withdrawn(catalogue, &id, call)?;
        return Ok((id, Arc::clone(catalogue)));
    }
    let stored = grid.copy_sections(&payload).map_err(system).and_then(|sections| {
        let sections = RequestSections { sections, order: payload.order };
        Ok(catalogue.detach(&name, call.is_idempotent(), sections, interrupted)?)
    });
    let attached = stored.and_then(|id| {
        grid.attach_withdrawn(catalogue, &id, call)?;
        Ok((id, Arc::clone(catalogue)))
    });
    attached.inspect_err(|error| {
        grid.fail_withdrawn(
            call,
            &format!("the call of {} was to be detached: {error}", target.name),
        );
    })
}

/// Attaches to a detached call. The call that is returned ends when the detached one does; all results, also those of
/// INOUT parameters, are created for the caller.
///
/// # Errors
/// When the description does not fit the interface, or the system refuses a thread.
pub fn attach(
    grid: &Grid,
    server: &Arc<ServerCatalogue>,
    target: &Target,
    call: &DetachedCall,
) -> Result<(Arc<Call>, Landing), DetachError> {
    let landing = landing(target, &call.values, call.order)?;
    let attached = grid.attach_detached(server, &call.id, target.function())?;
    Ok((attached, landing))
}

/// Attaches to a detached call of this function. `prepared`: the same call, with [`Lending::Detached`]; the results go
/// to the memory of its arguments.
///
/// # Errors
/// When the server keeps no such call, or the system refuses a thread.
///
/// [`Lending::Detached`]: crate::Lending::Detached
pub fn attach_prepared(
    grid: &Grid,
    target: &Target,
    prepared: Prepared,
    id: &str,
) -> Result<(Arc<Call>, Landing), DetachError> {
    let server = server_of(grid, id)?;
    let call = server.detached(id, &mut || false)?;
    if *call.function != *target.name {
        let problem = format!("the call is one of {}", call.function);
        let (function, parameter) = (target.name.to_string(), String::new());
        return Err(ArgumentError { function, parameter, problem }.into());
    }
    let attached = grid.attach_detached(&server, id, target.function())?;
    Ok((attached, prepared.landing))
}

/// The server of a detached call.
///
/// # Errors
/// When the grid does not have it.
pub fn server_of(grid: &Grid, id: &str) -> Result<Arc<ServerCatalogue>, DetachError> {
    let url = gridrpc_client::server_of_detached(id)?;
    let catalogues = grid.server_catalogues();
    if let Some(known) = catalogues.iter().find(|known| known.is_called(url)) {
        return Ok(Arc::clone(known));
    }
    let known = catalogues.iter().map(|known| known.name.clone()).collect();
    Err(GridError::UnknownServer { name: url.to_owned(), known }.into())
}

/// The landing of results that are all created for the caller. `values`: those of the call's arguments.
fn landing(target: &Target, values: &[u8], order: Order) -> Result<Landing, ArgumentError> {
    let function = target.interface();
    let problem = |index: Option<usize>, problem: String| ArgumentError {
        function: target.name.to_string(),
        parameter: index.map_or_else(String::new, |index| function.parameters[index].name.clone()),
        problem,
    };
    let broken = |error: gridrpc_wire::WireError| problem(None, error.to_string());
    let (_, values) = Ranks::take(values, order).map_err(broken)?;
    let values = if values.is_empty() {
        Vec::new()
    } else {
        decode_values(values, order).map_err(broken)?
    };
    let mut given = vec![ArgumentValue::Absent; function.parameters.len()];
    for (given, value) in given.iter_mut().zip(&values) {
        match value {
            Value::Int(value) => *given = ArgumentValue::Scalar(Scalar::Int(*value)),
            Value::Float(value) => *given = ArgumentValue::Scalar(Scalar::Float(*value)),
            _ => {}
        }
    }
    let scalars =
        known_scalars(function, &given).map_err(|(index, why)| problem(Some(index), why))?;
    let known = SizeInputs { function, given: &given, scalars: &scalars };
    let mut landing = Landing::new(&target.name);
    for (index, parameter) in function.parameters.iter().enumerate() {
        let element = match &parameter.kind {
            Kind::Callback(_) => {
                let why = "is called back, and the client of a detached call may be gone";
                return Err(problem(Some(index), why.into()));
            }
            Kind::Scalar(of) => *of,
            Kind::Array { element, .. } => *element,
        };
        if !matches!(parameter.mode, Mode::Out | Mode::InOut) {
            continue;
        }
        if element == Type::Filename {
            let why = "is a file of the client, which may be gone when a detached call ends";
            return Err(problem(Some(index), why.into()));
        }
        let extents = match &parameter.kind {
            Kind::Array { .. } => extents(function, index, &known).map_err(|error| {
                problem(Some(index), format!("cannot be the result of a detached call: {error}"))
            })?,
            _ => Vec::new(),
        };
        let dimensions: Vec<u64> = extents.iter().map(|extent| extent.size).collect();
        let plan = match dtype(element) {
            None => Plan::Texts(dimensions.iter().product::<u64>() as usize),
            Some(dtype) => {
                let size = element.size().unwrap_or(1);
                let shape = Shape::new(extents, function.fortran(), size);
                let (to, order) = (Destination::Made, Order::NATIVE);
                Plan::Array { dtype, shape, dimensions, to, order }
            }
        };
        landing.plans.push((index, parameter.name.clone(), plan));
    }
    Ok(landing)
}
