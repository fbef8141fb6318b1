//! Calls with many items: one column per parameter, with the values of all items.

use gridrpc_client::{Grid, Request};
use gridrpc_core::CallOptions;
use gridrpc_idl::{Function, Kind, Mode, Type, Values};
use gridrpc_typed::{Scalar, Sizes, add_text, dtype, integer_fits};
use gridrpc_wire::{Array, Chunk, DType, Order, Value};

use crate::argument::{ArgumentValue, PrepareError};
use crate::chunk_results::ChunkLanding;
use crate::prepared::request;
use crate::sizes::{bytes, derived, element, fits};
use crate::target::Target;

/// Maximum size of an item's arguments and results in a chunk, bytes: larger items are faster alone.
const MOST_OF_AN_ITEM: usize = 32 << 10;

/// Values of one parameter for all items of a call.
#[derive(Debug)]
enum Arguments {
    /// None: a work array, or a result.
    Nothing,
    /// One number, or the elements of one array, per item.
    Numbers(DType, Vec<u8>),
    /// Strings.
    Texts(Vec<u8>),
}

impl Arguments {
    fn len(&self) -> usize {
        match self {
            Arguments::Nothing => 0,
            Arguments::Numbers(_, bytes) | Arguments::Texts(bytes) => bytes.len(),
        }
    }

    fn truncate(&mut self, len: usize) {
        match self {
            Arguments::Nothing => {}
            Arguments::Numbers(_, bytes) | Arguments::Texts(bytes) => bytes.truncate(len),
        }
    }
}

/// Builds a call with many items.
#[derive(Debug)]
pub struct ChunkBuilder<'t> {
    target: &'t Target,
    sizes: Sizes<'t>,
    arguments: Vec<Arguments>,
    /// Lengths of the columns before the current item.
    before: Vec<usize>,
    landing: ChunkLanding,
    items: u32,
    /// Bytes of all arguments, and of those results whose size is known.
    bytes: usize,
}

/// Whether the function's items may share a call: it runs in one process, and needs neither the client during the
/// call nor files.
fn goes_in_chunks(function: &Function) -> bool {
    !function.is_parallel()
        && function.parameters.iter().all(|parameter| match &parameter.kind {
            Kind::Scalar(of) | Kind::Array { element: of, .. } => *of != Type::Filename,
            Kind::Callback(_) => false,
        })
}

impl<'t> ChunkBuilder<'t> {
    /// Creates a builder for a function; `None` for one whose items cannot share a call: it has callbacks or files,
    /// or runs on several processes.
    #[must_use]
    pub fn new(target: &'t Target) -> Option<ChunkBuilder<'t>> {
        // An item that goes alone requests the interface again.
        if target.has_changed() {
            return None;
        }
        let function = target.interface();
        if !goes_in_chunks(function) {
            return None;
        }
        let arguments = function.parameters.iter().map(|parameter| {
            let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
            match &parameter.kind {
                Kind::Scalar(of) | Kind::Array { element: of, .. } if comes => match dtype(*of) {
                    Some(dtype) => Arguments::Numbers(dtype, Vec::new()),
                    None => Arguments::Texts(Vec::new()),
                },
                _ => Arguments::Nothing,
            }
        });
        Some(ChunkBuilder {
            target,
            sizes: Sizes::new(function),
            arguments: arguments.collect(),
            before: vec![0; function.parameters.len()],
            landing: ChunkLanding::new(&target.name, function),
            items: 0,
            bytes: 0,
        })
    }

    /// Number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items as usize
    }

    /// Adds an item, if all items together then have at most `budget` bytes. Returns whether it was added. An item is
    /// not added if it is large, refers to shared data, does not match the interface, or transfers only a part of an
    /// array. A separate call reports its problem.
    ///
    /// # Safety
    /// Arrays without a known length must be as long as the interface says. Those that are changed
    /// must stay where they are until the landing is used or dropped.
    pub unsafe fn add(&mut self, given: &[ArgumentValue], budget: usize) -> bool {
        if given.len() != self.arguments.len() || self.items == u32::MAX {
            return false;
        }
        for (before, column) in self.before.iter_mut().zip(&self.arguments) {
            *before = column.len();
        }
        let added = self.add_all(given).filter(|own| {
            *own <= MOST_OF_AN_ITEM && (self.items == 0 || self.bytes + own <= budget)
        });
        match added {
            Some(own) => {
                self.items += 1;
                self.landing.items += 1;
                self.bytes += own;
            }
            None => {
                for (column, before) in self.arguments.iter_mut().zip(&self.before) {
                    column.truncate(*before);
                }
                self.landing.keep(self.items as usize);
                self.sizes.forget();
            }
        }
        added.is_some()
    }

    /// Adds the item to all columns. Returns its size including its results, bytes.
    fn add_all(&mut self, given: &[ArgumentValue]) -> Option<usize> {
        let function = self.target.interface();
        let values = Item { function, given };
        let (shapes, new) = self.sizes.of(&values).ok()?;
        let mut len = 0;
        for (index, parameter) in function.parameters.iter().enumerate() {
            let column = &mut self.arguments[index];
            let of = match &parameter.kind {
                Kind::Scalar(of) | Kind::Array { element: of, .. } => *of,
                Kind::Callback(_) => return None,
            };
            let shaped = shapes.get(index).and_then(Option::as_ref);
            let had = column.len();
            match (column, shaped) {
                (Arguments::Nothing, _) => {}
                (Arguments::Numbers(dtype, column), None) => {
                    let number = number(of, &given[index], || values.scalar(index))?;
                    column.extend_from_slice(&number.to_bytes(of)[..dtype.size()]);
                }
                (Arguments::Numbers(_, column), Some((dimensions, shape))) => {
                    let ArgumentValue::Array(memory) = &given[index] else { return None };
                    let Kind::Array { dimensions: declared, element } = &parameter.kind else {
                        return None;
                    };
                    let is_native = memory.order == Order::NATIVE;
                    if !is_native || !shape.is_whole() || shape.bytes() > MOST_OF_AN_ITEM {
                        return None;
                    }
                    fits(memory, shape, dimensions, declared, *element).ok()?;
                    column.extend_from_slice(bytes(memory, shape).ok()?);
                    if parameter.mode == Mode::InOut {
                        self.landing.changes(index, memory.start, shape.bytes());
                        len += shape.bytes();
                    }
                }
                (Arguments::Texts(column), _) => {
                    let ArgumentValue::Texts(texts) = &given[index] else { return None };
                    let count = shaped.map_or(1, |(_, shape)| shape.count());
                    if texts.len() != count {
                        return None;
                    }
                    texts.iter().for_each(|text| add_text(text.as_deref(), column));
                }
            }
            len += self.arguments[index].len() - had;
            if parameter.mode == Mode::Out || parameter.mode == Mode::InOut && of == Type::String {
                if !matches!(given[index], ArgumentValue::Absent) && parameter.mode == Mode::Out {
                    return None;
                }
                len += self.landing.makes(index, shaped, new)?;
            }
            if parameter.mode == Mode::Work {
                len += shaped.map_or(0, |(_, shape)| shape.bytes());
            }
            if len > MOST_OF_AN_ITEM {
                return None;
            }
        }
        Some(len)
    }

    /// Builds the request. No item starts later than `limit` ns after the first, unless `limit` is 0.
    ///
    /// # Errors
    /// When the system refuses memory.
    pub fn finish(
        self,
        grid: &Grid,
        limit: u64,
        options: CallOptions,
    ) -> Result<(Request, ChunkLanding), PrepareError> {
        let ChunkBuilder { target, arguments, landing, items, .. } = self;
        let fortran = target.interface().fortran();
        let mut payload = grid.payload();
        let no_memory = |error| PrepareError::System {
            function: target.name.to_string(),
            parameter: String::new(),
            path: None,
            error,
        };
        let mut values = Vec::with_capacity(arguments.len());
        let mut section = 1;
        for column in arguments {
            let bytes = match column {
                Arguments::Nothing => {
                    values.push(Value::None);
                    continue;
                }
                Arguments::Numbers(dtype, bytes) => {
                    let shape = vec![(bytes.len() / dtype.size()) as u64];
                    values.push(Value::Array(Array { dtype, fortran, shape, section }));
                    bytes
                }
                Arguments::Texts(bytes) => {
                    values.push(Value::Bytes(section));
                    bytes
                }
            };
            payload.add_owned(bytes).map_err(no_memory)?;
            section += 1;
        }
        let mut bytes = Vec::with_capacity(64);
        Chunk { items, limit }
            .encode(&values, Order::NATIVE, &mut bytes)
            .map_err(|error| no_memory(std::io::Error::other(error)))?;
        payload.add_first(&bytes).map_err(no_memory)?;
        Ok((request(target, payload.finish(), options), landing))
    }
}

/// Values of one item.
struct Item<'a> {
    function: &'a Function,
    given: &'a [ArgumentValue],
}

impl Values for Item<'_> {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        match self.given.get(parameter)? {
            ArgumentValue::Scalar(Scalar::Int(value)) => Some(*value),
            ArgumentValue::Absent => derived(self.function, self.given, parameter),
            _ => None,
        }
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        element(self.function, self.given, parameter, index)
    }
}

/// The number of a scalar parameter in its type; `absent` computes one that was left out.
fn number(of: Type, given: &ArgumentValue, absent: impl FnOnce() -> Option<i64>) -> Option<Scalar> {
    let scalar = match given {
        ArgumentValue::Scalar(scalar) => *scalar,
        ArgumentValue::Absent => Scalar::Int(absent()?),
        _ => return None,
    };
    let complex = matches!(of, Type::SComplex | Type::DComplex);
    let real = matches!(of, Type::Float | Type::Double);
    match scalar {
        Scalar::Int(value) if complex => Some(Scalar::Complex(value as f64, 0.0)),
        Scalar::Float(value) if complex => Some(Scalar::Complex(value, 0.0)),
        Scalar::Complex(..) if complex => Some(scalar),
        Scalar::Int(value) if real => Some(Scalar::Float(value as f64)),
        Scalar::Float(_) if real => Some(scalar),
        Scalar::Int(value) if integer_fits(value, of) => Some(scalar),
        _ => None,
    }
}
