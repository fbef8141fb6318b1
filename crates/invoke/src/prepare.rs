//! Preparation of a call: computes and checks sizes, and places each section where its transfer is cheapest. Nothing
//! is sent until all arguments have been checked.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gridrpc_client::{Dependency, Grid};
use gridrpc_core::BlobId;
use gridrpc_idl::{Function, Kind, Mode, Type, Values as _, extents};
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::PayloadBuilder;
use gridrpc_typed::{NamedFile, Scalar, Scalars, Shape, dtype, encode_files, encode_texts};
use gridrpc_wire::{Array, DType, Order, Ranks, Value, encode_values};

use crate::argument::{ArgumentError, ArgumentValue, CallResult, Memory, PrepareError};
use crate::prepared::{Lending, Prepared};
use crate::results::{Landing, Plan};
use crate::sizes::{SizeInputs, fits, known_scalars, other_rank};
use crate::target::Target;

/// Checks the arguments of a call and builds its payload. `ranks`: the ranks of a parallel function.
///
/// # Errors
/// When an argument does not fit its parameter, a file that it names cannot be read, the system refuses memory, the
/// interface has changed at the function's server, or the call exceeds a limit there.
///
/// # Safety
/// Arrays without a known length must be as long as the interface says. All must stay where they are
/// until the landing is used or dropped (results), and until then unchanged if they are lent.
pub unsafe fn prepare(
    grid: &Grid,
    target: &Target,
    given: &[ArgumentValue],
    lending: Lending,
    ranks: Option<&Ranks>,
) -> Result<Prepared, PrepareError> {
    target.refresh(grid)?;
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
    // SAFETY: the caller has promised arrays of the size that the interface says.
    unsafe { target.check_limits(grid, given)? };
    let is_plain = ranks.is_none() && lending != Lending::Detached;
    let order = if is_plain { order_of(function, given) } else { Order::NATIVE };
    let payload = grid.payload().in_order(order);
    let mut preparation = Preparation {
        function,
        given,
        lending,
        order,
        scalars,
        payload: match lending {
            // The results come from elsewhere.
            Lending::Detached => payload.without_shared_memory(),
            Lending::UntilLanded | Lending::Copied => payload,
        },
        blobs: Vec::new(),
        needs: Vec::new(),
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
    let after = preparation.number_needs(&mut values);
    let Preparation { mut payload, blobs, landing, sinks, scalars, .. } = preparation;
    let width = ranks.map_or(1, |ranks| ranks.ranks);
    if values.is_empty() && ranks.is_none() {
        let payload = payload.finish();
        return Ok(Prepared { payload, blobs, after, sinks, landing, scalars, width });
    }
    let mut bytes = Vec::new();
    ranks
        .map_or(Ok(()), |ranks| ranks.encode(order, &mut bytes))
        .and_then(|()| encode_values(&values, order, &mut bytes))
        .map_err(|error| problem("", error.to_string()))?;
    payload.add_first(&bytes).map_err(|error| PrepareError::System {
        function: target.name.to_string(),
        parameter: String::new(),
        path: None,
        error,
    })?;
    Ok(Prepared { payload: payload.finish(), blobs, after, sinks, landing, scalars, width })
}

/// The byte order of a call: that of its largest array that goes to the function, which travels as it is. Smaller arrays
/// of the other order are converted here. Shared data and results of other calls have this machine's order.
fn order_of(function: &Function, given: &[ArgumentValue]) -> Order {
    let mut largest = (0, Order::NATIVE);
    for (parameter, one) in function.parameters.iter().zip(given) {
        let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
        match one {
            ArgumentValue::Array(Memory { len: Some(len), order, .. })
                if comes && *len > largest.0 =>
            {
                largest = (*len, *order);
            }
            ArgumentValue::Shared(_) | ArgumentValue::Result(_) => return Order::NATIVE,
            _ => {}
        }
    }
    largest.1
}

/// A call in preparation.
pub(super) struct Preparation<'a> {
    pub(super) function: &'a Function,
    pub(super) given: &'a [ArgumentValue],
    pub(super) lending: Lending,
    /// Byte order in which the call travels.
    pub(super) order: Order,
    pub(super) scalars: Scalars,
    pub(super) payload: PayloadBuilder<'a>,
    pub(super) blobs: Vec<BlobId>,
    /// Results of other calls, with their parameters.
    pub(super) needs: Vec<(usize, CallResult)>,
    pub(super) landing: Landing,
    pub(super) sinks: Vec<(u16, Arc<Sink>)>,
    /// Next section number of the call, and of its result.
    pub(super) sections: u16,
    pub(super) results: u16,
}

impl Preparation<'_> {
    /// Adds one argument. The error completes a sentence that starts with the argument.
    fn add(&mut self, index: usize) -> Result<Value, Problem> {
        let parameter = &self.function.parameters[index];
        let given = &self.given[index];
        match (&parameter.kind, given) {
            (Kind::Callback(_), ArgumentValue::Callback) => Ok(Value::None),
            (Kind::Callback(_), _) => Err("has to be a function to call back".into()),
            (Kind::Scalar(of @ (Type::String | Type::Filename)), given) => {
                self.add_texts(index, *of, 1, given)
            }
            (Kind::Scalar(of), given) => self.add_scalar(*of, index, given),
            (Kind::Array { element, dimensions }, given) => {
                let known = SizeInputs {
                    function: self.function,
                    given: self.given,
                    scalars: &self.scalars,
                };
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
                if let ArgumentValue::Array(memory) = given {
                    fits(memory, &shape, &sizes, dimensions, *element)?;
                }
                match (parameter.mode, given) {
                    (Mode::Work, _) => Ok(Value::None),
                    (Mode::In, ArgumentValue::Array(memory)) => {
                        self.add_in(memory, &shape, dtype)?;
                        Ok(self.array(dtype, &shape))
                    }
                    (Mode::In, ArgumentValue::Shared(shared)) => {
                        self.add_part(shared, &shape, &sizes, dtype)?;
                        Ok(self.array(dtype, &shape))
                    }
                    (Mode::In, ArgumentValue::Result(result)) => {
                        self.check_result(result, &shape, &sizes, dtype)?;
                        self.needs.push((index, result.clone()));
                        Ok(self.array_in(dtype, &shape, 0))
                    }
                    (Mode::InOut, ArgumentValue::Array(memory)) => {
                        let to = self.add_in_out(memory, &shape, dtype)?;
                        let (shape_there, order) = (shape.clone(), memory.order);
                        self.plan(
                            index,
                            Plan::Array { dtype, shape: shape_there, dimensions: sizes, to, order },
                        );
                        Ok(self.array(dtype, &shape))
                    }
                    (Mode::Out, ArgumentValue::Array(_) | ArgumentValue::Absent) => {
                        let (to, room) = self.add_out(given, &shape);
                        let order = match given {
                            ArgumentValue::Array(memory) => memory.order,
                            _ => Order::NATIVE,
                        };
                        let shape_there = shape.clone();
                        self.plan(
                            index,
                            Plan::Array { dtype, shape: shape_there, dimensions: sizes, to, order },
                        );
                        Ok(if room { self.array(dtype, &shape) } else { Value::None })
                    }
                    (_, ArgumentValue::Absent) => Err("is missing".into()),
                    (_, ArgumentValue::Shared(_)) => {
                        Err("is shared data, which cannot be changed".into())
                    }
                    (_, ArgumentValue::Result(_)) => {
                        Err("is the result of another call, which cannot be changed".into())
                    }
                    _ => Err("has to be an array".into()),
                }
            }
        }
    }

    /// The value for the array whose section has just been added.
    fn array(&mut self, dtype: DType, shape: &Shape) -> Value {
        let section = self.sections;
        self.sections += 1;
        self.array_in(dtype, shape, section)
    }

    fn array_in(&self, dtype: DType, shape: &Shape, section: u16) -> Value {
        let fortran = self.function.fortran();
        Value::Array(Array { dtype, fortran, shape: vec![shape.selected() as u64], section })
    }

    /// Numbers the sections of the results of other calls, which are added behind all others when those have returned.
    fn number_needs(&mut self, values: &mut [Value]) -> Vec<Dependency> {
        let number = |(index, result): (usize, CallResult)| {
            if let Value::Array(array) = &mut values[index] {
                array.section = self.sections;
                self.sections += 1;
            }
            let CallResult { call, owner, array, .. } = result;
            Dependency { call, array: Some(array), owner }
        };
        std::mem::take(&mut self.needs).into_iter().map(number).collect()
    }

    /// Records how to deliver a result; every OUT and INOUT parameter has one section.
    fn plan(&mut self, index: usize, plan: Plan) {
        let name = self.function.parameters[index].name.clone();
        self.landing.plans.push((index, name, plan));
        self.results += 1;
    }

    fn add_scalar(
        &mut self,
        of: Type,
        index: usize,
        given: &ArgumentValue,
    ) -> Result<Value, Problem> {
        let scalar = match given {
            ArgumentValue::Scalar(scalar) => *scalar,
            ArgumentValue::Absent => match self.scalars.scalar(index) {
                Some(size) => Scalar::Int(size),
                None if of.is_integer() => {
                    let near = other_rank(self.function, self.given, index);
                    let why = near.unwrap_or_else(|| {
                        "is not a dimension of an array that is given".to_owned()
                    });
                    return Err(format!("is missing, and {why}").into());
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
                let mut bytes = complex.to_bytes(of);
                dtype.make_native(self.order, &mut bytes);
                self.payload.add(&bytes[..dtype.size()])?;
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

    /// Adds strings, or files: the content of input files is read here.
    fn add_texts(
        &mut self,
        index: usize,
        of: Type,
        count: usize,
        given: &ArgumentValue,
    ) -> Result<Value, Problem> {
        let parameter = &self.function.parameters[index];
        let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
        let goes = matches!(parameter.mode, Mode::Out | Mode::InOut);
        let texts: &[Option<Vec<u8>>] = match given {
            ArgumentValue::Texts(texts) => texts,
            _ if !comes && (of == Type::String || !goes) => &[],
            ArgumentValue::Absent => return Err("is missing".into()),
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
        let is_named = |text: &Option<Vec<u8>>| text.as_ref().is_some_and(|text| !text.is_empty());
        if !comes && (of == Type::String || texts.iter().all(is_named)) {
            return Ok(Value::None);
        }
        let bytes = if of == Type::Filename {
            let read = |name: &Option<Vec<u8>>| read(name.as_deref(), comes);
            let files: Result<Vec<_>, Problem> = texts.iter().map(read).collect();
            encode_files(&files?, self.order)
        } else {
            encode_texts(texts, self.order)
        };
        self.payload.add(&bytes)?;
        let section = self.sections;
        self.sections += 1;
        Ok(Value::Bytes(section))
    }
}

/// Reason why an argument cannot be sent.
pub(super) enum Problem {
    /// It does not match its parameter: the rest of a sentence that starts with the argument.
    Misfit(String),
    /// The system refuses memory, or a file.
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

/// The path in a file argument; `None` for NULL and an empty name.
fn path(name: Option<&[u8]>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    name.filter(|name| !name.is_empty()).map(|name| std::ffi::OsStr::from_bytes(name).into())
}

/// Reads a file argument, with its contents if they go to the function.
fn read(name: Option<&[u8]>, comes: bool) -> Result<NamedFile, Problem> {
    let Some(path) = path(name) else {
        return Ok(if name.is_some() { NamedFile::Empty } else { NamedFile::Null });
    };
    if !comes {
        return Ok(NamedFile::Content(Vec::new()));
    }
    match std::fs::read(&path) {
        Ok(content) => Ok(NamedFile::Content(content)),
        Err(error) => Err(Problem::System { path: Some(path), error }),
    }
}
