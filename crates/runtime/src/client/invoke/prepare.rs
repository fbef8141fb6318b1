//! From what the caller gives to a request: sizes computed and checked, each section put where it
//! travels best. Nothing is sent before all arguments are found to fit.

use std::io;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{BlobId, Reservation, ServerId};
use gridrpc_idl::{Dimension, Expr, Function, Kind, Mode, Type, Values, extents};
use gridrpc_wire::{Array, DType, Order, Value, encode_values};

use crate::client::arrays::{self, SharedArray};
use crate::client::call::Callbacks;
use crate::client::common::request::Request;
use crate::client::grid::Grid;
use crate::client::invoke::given::{ArgumentError, Given, Memory, PrepareError, SharedPart};
use crate::client::invoke::landing::{Destination, Landing, Plan, Room};
use crate::client::invoke::target::Target;
use crate::loan::{Sink, Source};
use crate::payload::{Payload, PayloadBuilder};
use crate::sys;
use crate::typed::{Scalar, Scalars, Shape, dtype, encode_texts, gather, integer_fits};

/// Whether the caller's memory may be used after the request has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    /// Until the [`Landing`] is used or dropped.
    UntilLanded,
    /// Not for arguments: they are copied. Results are put there when they land.
    Copied,
}

/// A call that can be made.
#[derive(Debug)]
pub struct Prepared {
    /// What is sent.
    pub payload: Payload,
    /// The shared data that it refers to.
    pub blobs: Vec<BlobId>,
    /// Where streamed results go.
    pub sinks: Vec<(u16, Arc<Sink>)>,
    /// What puts the results into their places.
    pub landing: Landing,
    /// The scalars, for the sizes of callbacks' arguments.
    pub scalars: Scalars,
}

/// How a call is to be made.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// After which time it fails.
    pub deadline: Option<Duration>,
    /// The server that has to run it, if not any that has room.
    pub server: Option<ServerId>,
    /// The reserved worker that has to run it.
    pub on: Option<Reservation>,
    /// What its function may call back.
    pub callbacks: Option<Callbacks>,
}

impl Prepared {
    /// The request, for [`Grid::submit`], and what puts the results into their places.
    #[must_use]
    pub fn request(self, target: &Target, options: CallOptions) -> (Request, Landing) {
        let request = request(target, self.payload, options);
        (Request { blobs: self.blobs, sinks: self.sinks, ..request }, self.landing)
    }
}

/// The request for a call that needs nothing else.
pub(super) fn request(target: &Target, payload: Payload, options: CallOptions) -> Request {
    let CallOptions { deadline, server, on, callbacks } = options;
    Request {
        function: Arc::clone(&target.function),
        payload,
        blobs: Vec::new(),
        deadline,
        idempotent: target.interface().idempotent && on.is_none(),
        priority: 0,
        server,
        on,
        callbacks,
        sinks: Vec::new(),
        after: Vec::new(),
    }
}

/// Checks the arguments of a call and puts its payload together.
///
/// # Errors
/// When an argument does not fit its parameter, a file that it names cannot be read, or the system
/// refuses memory.
///
/// # Safety
/// Arrays without a known length must be as long as the interface says. All must stay where they are
/// until the landing is used or dropped (results), and until then unchanged if they are lent.
pub unsafe fn prepare(
    grid: &Grid,
    target: &Target,
    given: &[Given],
    lending: Lending,
) -> Result<Prepared, PrepareError> {
    let function = target.interface();
    let problem = |parameter: &str, problem: String| ArgumentError {
        function: target.name.to_string(),
        parameter: parameter.to_owned(),
        problem,
    };
    if given.len() != function.parameters.len() {
        let (wanted, got) = (function.parameters.len(), given.len());
        return Err(problem("", format!("it has {wanted} parameters, but {got} are given")).into());
    }
    let scalars = known_scalars(function, given)
        .map_err(|(parameter, why)| problem(&function.parameters[parameter].name, why))?;
    let mut preparation = Preparation {
        function,
        given,
        lending,
        scalars,
        payload: grid.payload(),
        blobs: Vec::new(),
        landing: Landing::new(&target.name),
        sinks: Vec::new(),
        sections: 1,
        results: 1,
    };
    let mut values = Vec::with_capacity(given.len());
    for (index, parameter) in function.parameters.iter().enumerate() {
        let value = preparation.add(index).map_err(|why| match why {
            Problem::Misfit(why) => PrepareError::Argument(problem(&parameter.name, why)),
            Problem::System { path, error } => PrepareError::System {
                function: target.name.to_string(),
                parameter: parameter.name.clone(),
                path,
                error,
            },
        })?;
        values.push(value);
    }
    let Preparation { mut payload, blobs, landing, sinks, scalars, .. } = preparation;
    if values.is_empty() {
        return Ok(Prepared { payload: payload.finish(), blobs, sinks, landing, scalars });
    }
    let mut bytes = Vec::new();
    encode_values(&values, Order::NATIVE, &mut bytes)
        .map_err(|error| problem("", error.to_string()))?;
    payload.add_first(&bytes).map_err(|error| PrepareError::System {
        function: target.name.to_string(),
        parameter: String::new(),
        path: None,
        error,
    })?;
    Ok(Prepared { payload: payload.finish(), blobs, sinks, landing, scalars })
}

/// The integers that sizes are computed from; those left out follow from the arrays' shapes.
fn known_scalars(function: &Function, all: &[Given]) -> Result<Scalars, (usize, String)> {
    let mut scalars = Scalars::new(function);
    for (index, (parameter, given)) in function.parameters.iter().zip(all).enumerate() {
        let Kind::Scalar(of) = parameter.kind else { continue };
        let value = match given {
            Given::Scalar(value) => *value,
            Given::Absent if of.is_integer() => match derived(function, all, index) {
                Some(size) => Scalar::Int(size),
                None => continue,
            },
            _ => continue,
        };
        if let Scalar::Int(int) = value
            && of.is_integer()
            && !integer_fits(int, of)
        {
            return Err((index, format!("is {int}, which does not fit in {}", of.idl_name())));
        }
        scalars.set(index, value);
    }
    Ok(scalars)
}

/// The length of a dimension that is declared to be just this scalar.
pub(super) fn derived(function: &Function, given: &[Given], scalar: usize) -> Option<i64> {
    function.parameters.iter().zip(given).find_map(|(parameter, given)| {
        let Kind::Array { dimensions, .. } = &parameter.kind else { return None };
        let shape = match given {
            Given::Array(memory) => memory.shape.as_ref()?,
            Given::Shared(shared) => &shared.shape,
            _ => return None,
        };
        let is_it = |dimension: &Dimension| {
            matches!(dimension.size, Some(Expr::Scalar(size)) if size == scalar)
        };
        let shape = Some(shape).filter(|shape| shape.len() == dimensions.len())?;
        let at = dimensions.iter().position(is_it)?;
        i64::try_from(shape[at]).ok()
    })
}

/// What sizes are computed from: scalars, and elements of the caller's arrays.
struct Known<'a> {
    function: &'a Function,
    given: &'a [Given],
    scalars: &'a Scalars,
}

impl Values for Known<'_> {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        self.scalars.scalar(parameter)
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        element(self.function, self.given, parameter, index)
    }
}

/// An element of an array of the caller's, as far as sizes are computed from it.
pub(super) fn element(
    function: &Function,
    given: &[Given],
    parameter: usize,
    index: u64,
) -> Option<i64> {
    let Kind::Array { element, .. } = function.parameters.get(parameter)?.kind else {
        return None;
    };
    let Given::Array(memory) = given.get(parameter)? else { return None };
    let size = element.size().filter(|_| element.is_integer())?;
    let at = usize::try_from(index).ok()?.checked_mul(size)?;
    if memory.start.is_null() || memory.len.is_some_and(|len| len < at + size) {
        return None;
    }
    // SAFETY: within the array, or in C as far as the interface says that there is one.
    let bytes = unsafe { std::slice::from_raw_parts(memory.start.add(at), size) };
    match Scalar::from_bytes(element, bytes) {
        Some(Scalar::Int(value)) => Some(value),
        _ => None,
    }
}

struct Preparation<'a> {
    function: &'a Function,
    given: &'a [Given],
    lending: Lending,
    scalars: Scalars,
    payload: PayloadBuilder<'a>,
    blobs: Vec<BlobId>,
    landing: Landing,
    sinks: Vec<(u16, Arc<Sink>)>,
    /// The number of the next section of the call, and of its result.
    sections: u16,
    results: u16,
}

impl Preparation<'_> {
    /// Adds one argument. The error completes a sentence that starts with the argument.
    fn add(&mut self, index: usize) -> Result<Value, Problem> {
        let parameter = &self.function.parameters[index];
        let given = &self.given[index];
        match (&parameter.kind, given) {
            (Kind::Callback(_), Given::Callback) => Ok(Value::None),
            (Kind::Callback(_), _) => Err("has to be a function to call back".into()),
            (Kind::Scalar(of @ (Type::String | Type::Filename)), given) => {
                self.add_texts(index, *of, 1, given)
            }
            (Kind::Scalar(of), given) => self.add_scalar(*of, index, given),
            (Kind::Array { element, dimensions }, given) => {
                let known =
                    Known { function: self.function, given: self.given, scalars: &self.scalars };
                let extents = extents(self.function, index, &known)
                    .map_err(|error| format!("cannot be sent: {error}"))?;
                let sizes: Vec<u64> = extents.iter().map(|extent| extent.size).collect();
                if matches!(element, Type::String | Type::Filename) {
                    let count = sizes.iter().product::<u64>() as usize;
                    return self.add_texts(index, *element, count, given);
                }
                let Some(dtype) = dtype(*element) else { return Err("cannot be sent".into()) };
                let shape =
                    Shape::new(extents, self.function.fortran(), element.size().unwrap_or(1));
                if let Given::Array(memory) = given {
                    fits(memory, &shape, &sizes, dimensions, *element)?;
                }
                match (parameter.mode, given) {
                    (Mode::Work, _) => Ok(Value::None),
                    (Mode::In, Given::Array(memory)) => {
                        self.add_in(memory, &shape)?;
                        Ok(self.array(dtype, &shape))
                    }
                    (Mode::In, Given::Shared(shared)) => {
                        self.add_part(shared, &shape, &sizes, dtype)?;
                        Ok(self.array(dtype, &shape))
                    }
                    (Mode::InOut, Given::Array(memory)) => {
                        let to = self.add_in_out(memory, &shape)?;
                        self.plan(
                            index,
                            Plan::Array { dtype, shape: shape.clone(), dimensions: sizes, to },
                        );
                        Ok(self.array(dtype, &shape))
                    }
                    (Mode::Out, Given::Array(_) | Given::Absent) => {
                        let (to, room) = self.add_out(given, &shape)?;
                        self.plan(
                            index,
                            Plan::Array { dtype, shape: shape.clone(), dimensions: sizes, to },
                        );
                        Ok(if room { self.array(dtype, &shape) } else { Value::None })
                    }
                    (_, Given::Absent) => Err("is missing".into()),
                    (_, Given::Shared(_)) => Err("is shared data, which cannot be changed".into()),
                    _ => Err("has to be an array".into()),
                }
            }
        }
    }

    /// The value for the array whose section has just been added.
    fn array(&mut self, dtype: DType, shape: &Shape) -> Value {
        let section = self.sections;
        self.sections += 1;
        let fortran = self.function.fortran();
        Value::Array(Array { dtype, fortran, shape: vec![shape.selected() as u64], section })
    }

    /// Remembers what to do with a result; every OUT and INOUT parameter has one section.
    fn plan(&mut self, index: usize, plan: Plan) {
        let name = self.function.parameters[index].name.clone();
        self.landing.plans.push((index, name, plan));
        self.results += 1;
    }

    fn add_scalar(&mut self, of: Type, index: usize, given: &Given) -> Result<Value, Problem> {
        let scalar = match given {
            Given::Scalar(scalar) => *scalar,
            Given::Absent => match self.scalars.scalar(index) {
                Some(size) => Scalar::Int(size),
                None if of.is_integer() => {
                    return Err("is missing, and is no dimension of an array that is given".into());
                }
                None => return Err("is missing".into()),
            },
            _ => return Err("has to be a number".into()),
        };
        match (scalar, of) {
            (Scalar::Complex(..), Type::SComplex | Type::DComplex)
            | (_, Type::SComplex | Type::DComplex) => {
                let complex = match scalar {
                    Scalar::Int(value) => Scalar::Complex(value as f64, 0.0),
                    Scalar::Float(value) => Scalar::Complex(value, 0.0),
                    complex @ Scalar::Complex(..) => complex,
                };
                let Some(dtype) = dtype(of) else { return Err("cannot be sent".into()) };
                self.payload.add(&complex.to_bytes(of)[..dtype.size()])?;
                let section = self.sections;
                self.sections += 1;
                Ok(Value::Array(Array { dtype, fortran: false, shape: Vec::new(), section }))
            }
            (Scalar::Complex(..), _) => {
                Err(format!("is complex, but has to be {}", of.idl_name()).into())
            }
            (Scalar::Int(value), Type::Float | Type::Double) => Ok(Value::Float(value as f64)),
            (Scalar::Int(value), _) => Ok(Value::Int(value)),
            (Scalar::Float(value), Type::Float | Type::Double) => Ok(Value::Float(value)),
            (Scalar::Float(value), _) => {
                Err(format!("is {value}, but has to be an integer ({})", of.idl_name()).into())
            }
        }
    }

    /// Strings, or files: of those that go in, the content is read here.
    fn add_texts(
        &mut self,
        index: usize,
        of: Type,
        count: usize,
        given: &Given,
    ) -> Result<Value, Problem> {
        let parameter = &self.function.parameters[index];
        let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
        let goes = matches!(parameter.mode, Mode::Out | Mode::InOut);
        let texts: &[Option<Vec<u8>>] = match given {
            Given::Texts(texts) => texts,
            _ if !comes && (of == Type::String || !goes) => &[],
            Given::Absent => return Err("is missing".into()),
            _ if of == Type::Filename => return Err("has to name a file".into()),
            _ => return Err("has to be a string".into()),
        };
        let is_listed = comes || goes && of == Type::Filename;
        if is_listed && texts.len() != count {
            return Err(format!("has {} strings, but needs {count}", texts.len()).into());
        }
        if goes && of == Type::String {
            self.plan(index, Plan::Texts(count));
        } else if goes {
            let paths = texts.iter().map(|text| path(text.as_deref())).collect();
            self.plan(index, Plan::Files(paths));
        }
        if !comes {
            return Ok(Value::None);
        }
        let bytes = if of == Type::Filename {
            let contents: Result<Vec<_>, Problem> = texts.iter().map(read).collect();
            encode_texts(&contents?)
        } else {
            encode_texts(texts)
        };
        self.payload.add(&bytes)?;
        let section = self.sections;
        self.sections += 1;
        Ok(Value::Bytes(section))
    }

    fn is_large(&self, shape: &Shape) -> bool {
        shape.is_whole() && !self.payload.is_small(shape.bytes())
    }

    fn add_in(&mut self, memory: &Memory, shape: &Shape) -> Result<(), Problem> {
        let bytes = bytes(memory, shape)?;
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

    /// Shared data, which the workers have by then.
    fn add_part(
        &mut self,
        shared: &SharedPart,
        shape: &Shape,
        sizes: &[u64],
        dtype: DType,
    ) -> Result<(), Problem> {
        let SharedPart { blob, part, len, .. } = *shared;
        if !shape.is_whole() {
            return Err("is shared data, of which no part can travel alone".into());
        }
        // Characters go by either type of one byte.
        let is_it = shared.dtype == dtype || shared.dtype.size() == 1 && dtype.size() == 1;
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

    /// The caller's memory, to be sent from where it lies.
    fn lend(&mut self, memory: &Memory, shape: &Shape) -> Option<Arc<Source>> {
        let start = NonNull::new(memory.start).filter(|_| self.lending == Lending::UntilLanded)?;
        // SAFETY: the caller of `prepare` has promised to leave it alone until the landing, which
        // detaches it, is used or dropped.
        let source = Arc::new(unsafe { Source::lent(start, shape.bytes()) });
        self.landing.sources.push(Arc::clone(&source));
        Some(source)
    }

    fn add_in_out(&mut self, memory: &Memory, shape: &Shape) -> Result<Destination, Problem> {
        let to = Destination::Caller(memory.start);
        // A call that may run twice must find its arguments as they were.
        if !self.is_large(shape) || self.function.idempotent {
            self.add_in(memory, shape)?;
            return Ok(to);
        }
        let len = shape.bytes() as u64;
        if !self.payload.has_shared_memory() {
            self.add_in(memory, shape)?;
            self.sink(memory, shape);
            return Ok(to);
        }
        if let Some((lent, offset)) = arrays::find(memory.start, shape.bytes()) {
            self.room(&lent, offset, len, 0);
            return Ok(Destination::InPlace);
        }
        let Some(lent) = self.payload.take_shared(len)? else {
            self.add_in(memory, shape)?;
            return Ok(to);
        };
        lent.write(bytes(memory, shape)?)?;
        self.room(&Arc::new(lent), 0, len, len);
        Ok(to)
    }

    /// Makes room for a result, if it is large. Returns whether the call has a section for it.
    fn add_out(&mut self, given: &Given, shape: &Shape) -> Result<(Destination, bool), Problem> {
        let len = shape.bytes() as u64;
        let shares = self.payload.has_shared_memory() && self.is_large(shape);
        let Given::Array(memory) = given else {
            if !shares {
                return Ok((Destination::Made(None), false));
            }
            let array = match SharedArray::new(shape.bytes()) {
                Err(error) if sys::is_out_of_descriptors(&error) => {
                    return Ok((Destination::Made(None), false));
                }
                array => array?,
            };
            self.room(&array.lent(), 0, len, len);
            return Ok((Destination::Made(Some(array)), true));
        };
        let to = Destination::Caller(memory.start);
        if !shares {
            if self.is_large(shape) && !self.function.idempotent {
                self.sink(memory, shape);
            }
            return Ok((to, false));
        }
        if let Some((lent, offset)) = arrays::find(memory.start, shape.bytes()) {
            self.room(&lent, offset, len, 0);
            return Ok((Destination::InPlace, true));
        }
        let Some(lent) = self.payload.take_shared(len)? else { return Ok((to, false)) };
        lent.make_ready(len);
        self.room(&Arc::new(lent), 0, len, len);
        Ok((to, true))
    }

    /// A section that the worker writes a result to.
    fn room(&mut self, lent: &Arc<crate::segment::Lent>, offset: u64, len: u64, moved: u64) {
        self.payload.add_shared(Arc::clone(lent), offset, len, moved);
        let room = Room { section: self.sections, lent: Arc::clone(lent), offset };
        self.landing.rooms.push(room);
    }

    /// Has the next result received where the caller has it.
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

/// Why one argument cannot be sent.
enum Problem {
    /// It does not fit its parameter: the rest of a sentence that starts with the argument.
    Misfit(String),
    /// The system refuses memory, or a file that it names.
    System { path: Option<PathBuf>, error: io::Error },
}

impl From<String> for Problem {
    fn from(misfit: String) -> Problem {
        Problem::Misfit(misfit)
    }
}

impl From<&str> for Problem {
    fn from(misfit: &str) -> Problem {
        Problem::Misfit(misfit.to_owned())
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::System { path: None, error }
    }
}

/// The whole array in the caller's memory.
pub(super) fn bytes<'m>(memory: &'m Memory, shape: &Shape) -> Result<&'m [u8], String> {
    if shape.bytes() == 0 {
        return Ok(&[]);
    }
    if memory.start.is_null() {
        return Err("is a null pointer".into());
    }
    // SAFETY: the caller of `prepare` has promised an array of the size that the interface says;
    // where the length is known, `fits` has checked it.
    Ok(unsafe { std::slice::from_raw_parts(memory.start, shape.bytes()) })
}

/// Whether an array has the shape, or at least the length, that its parameter wants.
pub(super) fn fits(
    memory: &Memory,
    shape: &Shape,
    sizes: &[u64],
    dimensions: &[Dimension],
    element: Type,
) -> Result<(), String> {
    if memory.start.is_null() && shape.bytes() > 0 {
        return Err("is a null pointer".into());
    }
    if let Some(given) = &memory.shape
        && dimensions.len() > 1
        && given != sizes
    {
        return Err(format!("has shape {given:?}, but has to have {sizes:?}"));
    }
    if let Some(len) = memory.len
        && len != shape.bytes()
    {
        let size = element.size().unwrap_or(1);
        return Err(format!("has {} elements, but has to have {}", len / size, shape.count()));
    }
    Ok(())
}

/// The file that a name names: NULL and an empty name name none.
fn path(name: Option<&[u8]>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    name.filter(|name| !name.is_empty()).map(|name| std::ffi::OsStr::from_bytes(name).into())
}

fn read(name: &Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Problem> {
    let Some(path) = path(name.as_deref()) else { return Ok(None) };
    match std::fs::read(&path) {
        Ok(content) => Ok(Some(content)),
        Err(error) => Err(Problem::System { path: Some(path), error }),
    }
}
