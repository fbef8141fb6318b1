//! One call on a grid, from the tensors of its request to those of its response.

use std::sync::Arc;

use bytes::Bytes;
use gridrpc_client::{Call, Grid, Outcome, Profile, Request, Watcher};
use gridrpc_core::{CallOptions, Owner};
use gridrpc_idl::{Function, Kind, Type, extents};
use gridrpc_invoke::{Landed, Landing, Lending, Target, prepare};
use gridrpc_link::payload::Incoming;
use gridrpc_typed::{Scalars, dtype};
use tokio::sync::Notify;

use crate::arguments::{
    Argument, arguments, content, is_output, is_transposed, native, unsupported,
};
use crate::blocking::run;
use crate::datatype::DataType;
use crate::error::InferenceError;
use crate::tensor::{
    ElementOrder, InferRequest, InferResponse, OutputTensor, RequestedOutput, add_string,
};
use crate::transpose::transposed;

/// Where and how a call runs.
#[derive(Clone, Debug)]
pub struct GridCall {
    /// The grid.
    pub grid: Arc<Grid>,
    /// The function, as registered there.
    pub target: Arc<Target>,
    /// The owner of the call there.
    pub owner: Owner,
    /// Its options.
    pub options: CallOptions,
    /// Limit for the results and work arrays of the call, bytes.
    pub max_result_bytes: u64,
}

/// Calls a function on a grid. No thread waits for the result. If the future is dropped, the call is cancelled.
///
/// `ended` gets the bytes of the result or the name of the error, and the profile, of a call that a worker answered or
/// that ended without.
///
/// # Errors
/// When the inputs do not match the interface, the grid refuses the call, or it fails.
pub async fn infer_on_grid(
    call: GridCall,
    request: InferRequest,
    ended: impl FnOnce(Result<u64, &str>, &Profile),
) -> Result<InferResponse, InferenceError> {
    let InferRequest { inputs, outputs, order, timeout, .. } = request;
    let GridCall { grid, target, owner, mut options, max_result_bytes } = call;
    if let Some(timeout) = timeout {
        let deadline = options.deadline.map_or(timeout, |deadline| deadline.min(timeout));
        options.deadline = Some(deadline);
    }
    let bytes: usize = inputs.iter().map(|input| input.data.len()).sum();
    let wanted = wanted(&target, outputs, order)?;
    let prepared = {
        let (grid, target) = (Arc::clone(&grid), Arc::clone(&target));
        run(bytes, move || {
            let inputs =
                arguments(&target.name, target.interface(), inputs, grid.shared_threshold())?;
            Prepared::new(&grid, &target, inputs, options, max_result_bytes)
        })
        .await??
    };
    let Prepared { request, lent, shapes } = prepared;
    let request = Request { owner, ..request };
    let call =
        grid.submit(request).map_err(|error| InferenceError::from_submit(&target.name, error))?;
    let mut running = Running { grid, call, ended: false, lent };
    let outcome = running.outcome().await;
    let size = |sections: &[Incoming]| sections.iter().map(Incoming::len).sum::<usize>() as u64;
    let recorded = match &outcome {
        Outcome::Returned(sections, _) => Ok(size(sections)),
        Outcome::Raised { error, .. } => Err(&**error),
        Outcome::Ended(end) => Err(end.name()),
    };
    ended(recorded, &running.call.profile());
    let (sections, order) = match outcome {
        Outcome::Returned(sections, order) => (sections, order),
        Outcome::Raised { error, message, .. } => {
            let function = target.name.to_string();
            return Err(InferenceError::Raised { function, error, message });
        }
        Outcome::Ended(end) => {
            return Err(InferenceError::Ended { function: target.name.to_string(), end });
        }
    };
    let lent = std::mem::take(&mut running.lent);
    let received: usize = sections.iter().map(Incoming::len).sum();
    run(bytes + received, move || {
        let CallMemory { landing, arguments } = lent;
        let landing =
            landing.ok_or_else(|| InferenceError::System("the call has no results".into()))?;
        let landed = landing.land(sections, order)?;
        respond(target.interface(), &wanted, landed, arguments, shapes)
    })
    .await?
}

/// The parameters to return, with the order of their elements.
fn wanted(
    target: &Target,
    outputs: Option<Vec<RequestedOutput>>,
    order: ElementOrder,
) -> Result<Vec<(usize, ElementOrder)>, InferenceError> {
    let function = target.interface();
    let parameters = || function.parameters.iter().enumerate();
    if let Some(reason) = unsupported(function) {
        return Err(InferenceError::Unsupported { function: target.name.to_string(), reason });
    }
    let Some(outputs) = outputs else {
        let all = parameters().filter(|(_, parameter)| is_output(parameter));
        return Ok(all.map(|(index, _)| (index, order)).collect());
    };
    let mut wanted: Vec<(usize, ElementOrder)> = Vec::new();
    for output in outputs {
        let mut known = parameters().filter(|(_, parameter)| is_output(parameter));
        let found = known.find(|(_, parameter)| parameter.name == output.name);
        let problem = match found {
            Some((index, _)) if wanted.iter().all(|(other, _)| *other != index) => {
                wanted.push((index, output.order));
                continue;
            }
            Some(_) => "is requested twice",
            None => "is not an output",
        };
        return Err(InferenceError::Argument(gridrpc_invoke::ArgumentError {
            function: target.name.to_string(),
            parameter: output.name.chars().take(100).collect(),
            problem: problem.into(),
        }));
    }
    Ok(wanted)
}

/// Memory of a call, and where its results go. The order matters: the landing uses the memory until it is dropped.
#[derive(Default)]
struct CallMemory {
    landing: Option<Landing>,
    arguments: Vec<Argument>,
}

/// A call that can be submitted.
struct Prepared {
    request: Request,
    lent: CallMemory,
    /// The dimensions of arrays, by parameter.
    shapes: Vec<Vec<u64>>,
}

impl Prepared {
    fn new(
        grid: &Grid,
        target: &Target,
        mut arguments: Vec<Argument>,
        options: CallOptions,
        limit: u64,
    ) -> Result<Prepared, InferenceError> {
        let function = target.interface();
        let given: Vec<_> = arguments.iter_mut().map(Argument::given).collect();
        // SAFETY: the arguments own the memory, of the lengths that they say. They are neither changed nor dropped
        // before the landing: see `CallMemory`.
        let prepared = unsafe { prepare(grid, target, &given, Lending::UntilLanded, None) }?;
        let shapes = shapes(&target.name, function, &prepared.scalars, &arguments, limit)?;
        let (request, landing) = prepared.request(target, options, None);
        Ok(Prepared { request, lent: CallMemory { landing: Some(landing), arguments }, shapes })
    }
}

/// The dimensions of the arrays of a call. Refuses results that are too large for the server before a worker allocates
/// them.
fn shapes(
    name: &str,
    function: &Function,
    scalars: &Scalars,
    arguments: &[Argument],
    limit: u64,
) -> Result<Vec<Vec<u64>>, InferenceError> {
    let mut scalars = scalars.clone();
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(elements) = argument.elements() {
            scalars.set_elements(function, index, elements);
        }
    }
    let mut total: u64 = 0;
    let mut shapes = Vec::with_capacity(function.parameters.len());
    for (index, parameter) in function.parameters.iter().enumerate() {
        let Kind::Array { element, .. } = &parameter.kind else {
            shapes.push(vec![1]);
            continue;
        };
        let extents = match extents(function, index, &scalars) {
            Ok(extents) => extents,
            Err(error) => {
                return Err(InferenceError::Argument(gridrpc_invoke::ArgumentError {
                    function: name.to_owned(),
                    parameter: parameter.name.clone(),
                    problem: format!("cannot be allocated: {error}"),
                }));
            }
        };
        let shape: Vec<u64> = extents.iter().map(|extent| extent.size).collect();
        // `prepare` has compared the number of strings only.
        if let Some(given) = arguments[index].shape_of_texts()
            && given != shape
        {
            return Err(InferenceError::Argument(gridrpc_invoke::ArgumentError {
                function: name.to_owned(),
                parameter: parameter.name.clone(),
                problem: format!("has shape {given:?}, but has to have {shape:?}"),
            }));
        }
        if !parameter.mode.is_input() {
            let width = element.size().unwrap_or(size_of::<usize>()) as u64;
            let bytes = if shape.contains(&0) {
                0
            } else {
                shape.iter().fold(width, |bytes, dimension| bytes.saturating_mul(*dimension))
            };
            total = total.saturating_add(bytes);
        }
        shapes.push(shape);
    }
    if total > limit {
        let function = name.to_owned();
        return Err(InferenceError::ResultTooLarge { function, size: total, limit });
    }
    Ok(shapes)
}

/// A submitted call. Dropping it cancels the call.
struct Running {
    grid: Arc<Grid>,
    call: Arc<Call>,
    ended: bool,
    lent: CallMemory,
}

impl Running {
    async fn outcome(&mut self) -> Outcome {
        let completion = Arc::new(Completion::default());
        self.call.watch(&completion, 0);
        loop {
            completion.0.notified().await;
            if let Some(outcome) = self.call.take_outcome() {
                self.ended = true;
                return outcome;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.grid.cancel(&self.call);
        }
    }
}

/// Wakes the task that waits for a call.
#[derive(Debug, Default)]
struct Completion(Notify);

impl Watcher for Completion {
    fn ended(&self, _: u64) {
        self.0.notify_one();
    }
}

/// Elements where they arrived, as the memory of a response.
struct ResponseElements(Incoming);

impl AsRef<[u8]> for ResponseElements {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

fn respond(
    function: &Function,
    wanted: &[(usize, ElementOrder)],
    mut landed: Vec<(usize, Landed)>,
    mut arguments: Vec<Argument>,
    shapes: Vec<Vec<u64>>,
) -> Result<InferResponse, InferenceError> {
    let mut outputs = Vec::with_capacity(wanted.len());
    for (index, order) in wanted {
        let parameter = &function.parameters[*index];
        let place = landed.iter().position(|(place, _)| place == index);
        let landed = place.map(|place| landed.swap_remove(place).1);
        let argument = std::mem::replace(&mut arguments[*index], Argument::Absent);
        let missing =
            || InferenceError::System(format!("the result `{}` is missing", parameter.name));
        let of = match &parameter.kind {
            Kind::Scalar(of) | Kind::Array { element: of, .. } => *of,
            Kind::Callback(_) => return Err(missing()),
        };
        let (datatype, shape, data) = match (landed, argument) {
            (Some(Landed::Array(array)), _) => numbers(
                function,
                *order,
                of,
                array.dimensions,
                Bytes::from_owner(ResponseElements(array.elements)),
            )
            .ok_or_else(missing)?,
            (None, Argument::InOut { data, shape }) => {
                numbers(function, *order, of, shape, Bytes::from_owner(data)).ok_or_else(missing)?
            }
            (Some(Landed::Texts(texts)), _) => {
                let texts = texts.into_iter().map(Option::unwrap_or_default);
                (DataType::Bytes, shapes[*index].clone(), strings(texts)?)
            }
            (None, Argument::Files { mut files, shape }) if of == Type::Filename => {
                let contents = files.iter_mut().map(content).collect::<Result<Vec<_>, _>>();
                let contents = contents.map_err(|error| {
                    let output = &parameter.name;
                    InferenceError::System(format!("could not read output `{output}`: {error}"))
                })?;
                (DataType::Bytes, shape, strings(contents.into_iter())?)
            }
            _ => return Err(missing()),
        };
        outputs.push(OutputTensor { name: parameter.name.clone(), datatype, shape, data });
    }
    Ok(InferResponse { outputs })
}

fn strings(texts: impl Iterator<Item = Vec<u8>>) -> Result<Bytes, InferenceError> {
    let mut data = Vec::new();
    for text in texts {
        add_string(&text, &mut data)
            .map_err(|error| InferenceError::System(format!("a result {error}")))?;
    }
    Ok(data.into())
}

/// An array of numbers in the requested order.
fn numbers(
    function: &Function,
    order: ElementOrder,
    of: Type,
    mut shape: Vec<u64>,
    data: Bytes,
) -> Option<(DataType, Vec<u64>, Bytes)> {
    let dtype = dtype(of)?;
    let (datatype, is_complex) = DataType::of(dtype);
    let mut data = native(data, dtype);
    if is_transposed(function.fortran(), order) && shape.len() > 1 {
        data = match order {
            // The memory is in column-major order: row-major with the dimensions reversed.
            ElementOrder::Row => {
                let reversed: Vec<u64> = shape.iter().rev().copied().collect();
                transposed(&data, &reversed, dtype.size())
            }
            ElementOrder::Column => transposed(&data, &shape, dtype.size()),
        }
        .into();
    }
    if is_complex {
        shape.push(2);
    }
    Some((datatype, shape, data))
}
