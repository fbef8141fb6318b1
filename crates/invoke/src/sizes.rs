//! Sizes of a call's arrays: their inputs, and the check of the caller's arrays.

use gridrpc_idl::{Dimension, Expr, Function, Kind, Type, Values};
use gridrpc_typed::{Scalar, Scalars, Shape, dtype, integer_fits};

use crate::argument::{ArgumentValue, Memory};

/// The integers that sizes are computed from; missing ones follow from the arrays' shapes.
pub(super) fn known_scalars(
    function: &Function,
    all: &[ArgumentValue],
) -> Result<Scalars, (usize, String)> {
    let mut scalars = Scalars::new(function);
    for (index, (parameter, given)) in function.parameters.iter().zip(all).enumerate() {
        let Kind::Scalar(of) = parameter.kind else { continue };
        let value = match given {
            ArgumentValue::Scalar(value) => *value,
            ArgumentValue::Absent if of.is_integer() => match derived(function, all, index) {
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

/// The length of a dimension that is declared as exactly this scalar.
pub(super) fn derived(function: &Function, given: &[ArgumentValue], scalar: usize) -> Option<i64> {
    function.parameters.iter().zip(given).find_map(|(parameter, given)| {
        let Kind::Array { dimensions, .. } = &parameter.kind else { return None };
        let shape = match given {
            ArgumentValue::Array(memory) => memory.shape.as_ref()?,
            ArgumentValue::Shared(shared) => &shared.shape,
            ArgumentValue::Result(result) => &result.shape,
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

/// Why the length of a dimension that is this scalar does not follow from an array that is given: the array has another
/// number of dimensions.
pub(super) fn other_rank(
    function: &Function,
    given: &[ArgumentValue],
    scalar: usize,
) -> Option<String> {
    function.parameters.iter().zip(given).find_map(|(parameter, given)| {
        let Kind::Array { dimensions, .. } = &parameter.kind else { return None };
        let ArgumentValue::Array(Memory { shape: Some(shape), .. }) = given else { return None };
        let is_it = |dimension: &Dimension| {
            matches!(dimension.size, Some(Expr::Scalar(size)) if size == scalar)
        };
        let (wanted, got) = (dimensions.len(), shape.len());
        // A number in place of an array has none.
        (got > 0 && wanted != got && dimensions.iter().any(is_it)).then(|| {
            let (name, s) = (&parameter.name, if wanted == 1 { "" } else { "s" });
            format!("does not follow from `{name}`, which has to have {wanted} dimension{s}, not {got}")
        })
    })
}

/// Inputs of sizes: scalars, and elements of the caller's arrays.
pub(super) struct SizeInputs<'a> {
    pub(super) function: &'a Function,
    pub(super) given: &'a [ArgumentValue],
    pub(super) scalars: &'a Scalars,
}

impl Values for SizeInputs<'_> {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        self.scalars.scalar(parameter)
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        element(self.function, self.given, parameter, index)
    }

    fn real(&self, parameter: usize) -> Option<f64> {
        match self.given.get(parameter) {
            Some(ArgumentValue::Scalar(Scalar::Float(value))) => Some(*value),
            _ => self.scalar(parameter).map(|value| value as f64),
        }
    }
}

/// An element of a caller's array that sizes depend on.
pub(super) fn element(
    function: &Function,
    given: &[ArgumentValue],
    parameter: usize,
    index: u64,
) -> Option<i64> {
    let Kind::Array { element, .. } = function.parameters.get(parameter)?.kind else {
        return None;
    };
    let ArgumentValue::Array(memory) = given.get(parameter)? else { return None };
    let size = element.size().filter(|_| element.is_integer())?;
    let at = usize::try_from(index).ok()?.checked_mul(size)?;
    if memory.start.is_null() || memory.len.is_some_and(|len| len < at + size) {
        return None;
    }
    // SAFETY: within the array; in C, as far as the interface declares it.
    let bytes = unsafe { std::slice::from_raw_parts(memory.start.add(at), size) };
    let mut number = [0; 8];
    let number = number.get_mut(..size)?;
    number.copy_from_slice(bytes);
    dtype(element)?.make_native(memory.order, number);
    match Scalar::from_bytes(element, number) {
        Some(Scalar::Int(value)) => Some(value),
        _ => None,
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

/// Checks that an array has the shape, or at least the length, of its parameter.
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
