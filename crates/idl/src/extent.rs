//! Array dimensions of one call: sizes and ranges after evaluation.

use thiserror::Error;

use crate::expression::{Expr, SizeError, Values};
use crate::module::{Dimension, Function, Kind, Parameter};

/// One dimension, evaluated: `start <= end <= size` and `step >= 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of elements in memory.
    pub size: u64,
    /// First transferred element.
    pub start: u64,
    /// End of the transferred elements, exclusive.
    pub end: u64,
    /// Distance between transferred elements.
    pub step: u64,
}

impl Extent {
    /// Number of transferred elements.
    #[must_use]
    pub fn selected(&self) -> u64 {
        (self.end - self.start).div_ceil(self.step)
    }

    /// Whether all elements are transferred.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.selected() == self.size
    }
}

/// Why an array has no extent. Dimensions are numbered from 1 here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the messages say it
pub enum ExtentError {
    #[error("the {part} of dimension {dimension} of `{parameter}` cannot be computed: {reason}{}",
        of.as_ref().map_or(String::new(), |of| format!(" (`{of}`)")))]
    NoValue {
        parameter: String,
        dimension: usize,
        part: Part,
        reason: SizeError,
        /// The parameter whose value is not available.
        of: Option<String>,
    },
    #[error("the {part} of dimension {dimension} of `{parameter}` is {value}, below 0")]
    Negative { parameter: String, dimension: usize, part: Part, value: i64 },
    #[error("the end of dimension {dimension} of `{parameter}` is {value}, above its size {size}")]
    EndAboveSize { parameter: String, dimension: usize, value: u64, size: u64 },
    #[error("the start of dimension {dimension} of `{parameter}` is {value}, above its end {end}")]
    StartAboveEnd { parameter: String, dimension: usize, value: u64, end: u64 },
    #[error("`{parameter}` would have more than {} bytes", i64::MAX)]
    TooLarge { parameter: String },
}

/// A part of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Part {
    Size,
    Start,
    End,
    Step,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Size => "size",
            Part::Start => "start",
            Part::End => "end",
            Part::Step => "step",
        })
    }
}

/// The dimensions of a parameter; empty for scalars and callbacks. With `Shrink "no"`, ranges select all
/// elements.
///
/// # Errors
/// When a value is not available or invalid, or the array would not fit into any memory.
///
/// # Panics
/// When there is no such parameter.
pub fn extents(
    function: &Function,
    parameter: usize,
    values: &dyn Values,
) -> Result<Vec<Extent>, ExtentError> {
    let all = &function.parameters;
    Extents { own: all, outer: &[], shrink: function.shrink != Some(false), values }
        .of(&all[parameter])
}

/// The dimensions of a callback's parameter. In `values`, the callback's own parameters come first, followed
/// by those of the function; see [`Expr`].
///
/// # Errors
/// As [`extents`].
///
/// # Panics
/// When the function's parameter `callback` is not a callback, or has no such parameter.
pub fn callback_extents(
    function: &Function,
    callback: usize,
    parameter: usize,
    values: &dyn Values,
) -> Result<Vec<Extent>, ExtentError> {
    let outer = &function.parameters;
    let Kind::Callback(own) = &outer[callback].kind else {
        panic!("`{}` is not a callback", outer[callback].name);
    };
    Extents { own, outer, shrink: function.shrink != Some(false), values }.of(&own[parameter])
}

struct Extents<'a> {
    own: &'a [Parameter],
    outer: &'a [Parameter],
    shrink: bool,
    values: &'a dyn Values,
}

impl Extents<'_> {
    fn of(&self, parameter: &Parameter) -> Result<Vec<Extent>, ExtentError> {
        let Kind::Array { element, dimensions } = &parameter.kind else {
            return Ok(Vec::new());
        };
        let extents = dimensions
            .iter()
            .enumerate()
            .map(|(at, dimension)| self.dimension(&parameter.name, at + 1, dimension))
            .collect::<Result<Vec<_>, _>>()?;
        // Strings are stored separately; the array contains pointers to them.
        let width = element.size().unwrap_or(size_of::<usize>()) as u64;
        let fits = extents.iter().any(|extent| extent.size == 0)
            || extents
                .iter()
                .try_fold(width, |bytes, extent| bytes.checked_mul(extent.size))
                .is_some_and(|bytes| i64::try_from(bytes).is_ok());
        if fits {
            Ok(extents)
        } else {
            Err(ExtentError::TooLarge { parameter: parameter.name.clone() })
        }
    }

    fn dimension(
        &self,
        name: &str,
        number: usize,
        dimension: &Dimension,
    ) -> Result<Extent, ExtentError> {
        let part = |part, expression: Option<&Expr>| -> Result<u64, ExtentError> {
            let value = match expression {
                Some(expression) => expression
                    .evaluate(self.values)
                    .map_err(|reason| self.no_value(name, number, part, reason))?,
                None => 0,
            };
            u64::try_from(value).map_err(|_| ExtentError::Negative {
                parameter: name.to_owned(),
                dimension: number,
                part,
                value,
            })
        };
        let size = part(Part::Size, dimension.size.as_ref())?;
        let Some(range) = dimension.range.as_ref().filter(|_| self.shrink) else {
            return Ok(Extent { size, start: 0, end: size, step: 1 });
        };
        let start = part(Part::Start, range.start.as_ref())?;
        let end = match part(Part::End, range.end.as_ref())? {
            0 => size,
            end => end,
        };
        let step = part(Part::Step, range.step.as_ref())?.max(1);
        let (parameter, dimension) = (name.to_owned(), number);
        if end > size {
            return Err(ExtentError::EndAboveSize { parameter, dimension, value: end, size });
        }
        if start > end {
            return Err(ExtentError::StartAboveEnd { parameter, dimension, value: start, end });
        }
        Ok(Extent { size, start, end, step })
    }

    fn no_value(&self, name: &str, dimension: usize, part: Part, reason: SizeError) -> ExtentError {
        let of = match reason {
            SizeError::NotAvailable(index) => {
                self.own.iter().chain(self.outer).nth(index).map(|other| other.name.clone())
            }
            _ => None,
        };
        ExtentError::NoValue { parameter: name.to_owned(), dimension, part, reason, of }
    }
}
