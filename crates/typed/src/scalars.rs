//! Scalar values that sizes depend on.

use gridrpc_idl::{Function, Kind, Type, Values};

/// A scalar argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer; an unsigned 64-bit one by its bits.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
}

impl Scalar {
    /// Its bytes in this type, at the front of the array.
    #[must_use]
    pub fn to_bytes(self, of: Type) -> [u8; 16] {
        let mut bytes = [0; 16];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        match (self, of) {
            (Scalar::Int(value), Type::Float) => put(0, &(value as f32).to_ne_bytes()),
            (Scalar::Int(value), Type::Double) => put(0, &(value as f64).to_ne_bytes()),
            // The low bytes of an integer represent it, in native order.
            (Scalar::Int(value), _) => match of.size() {
                Some(1) => put(0, &(value as i8).to_ne_bytes()),
                Some(2) => put(0, &(value as i16).to_ne_bytes()),
                Some(4) => put(0, &(value as i32).to_ne_bytes()),
                _ => put(0, &value.to_ne_bytes()),
            },
            (Scalar::Float(value), Type::Float) => put(0, &(value as f32).to_ne_bytes()),
            (Scalar::Float(value), _) => put(0, &value.to_ne_bytes()),
            (Scalar::Complex(re, im), Type::SComplex) => {
                put(0, &(re as f32).to_ne_bytes());
                put(4, &(im as f32).to_ne_bytes());
            }
            (Scalar::Complex(re, im), _) => {
                put(0, &re.to_ne_bytes());
                put(8, &im.to_ne_bytes());
            }
        }
        bytes
    }

    /// The number with these bytes in this type; `None` for strings and files.
    #[must_use]
    pub fn from_bytes(of: Type, bytes: &[u8]) -> Option<Scalar> {
        let f32_at =
            |at: usize| Some(f64::from(f32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)));
        let f64_at = |at: usize| Some(f64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(match of {
            Type::String | Type::Filename => return None,
            Type::Float => Scalar::Float(f32_at(0)?),
            Type::Double => Scalar::Float(f64_at(0)?),
            Type::SComplex => Scalar::Complex(f32_at(0)?, f32_at(4)?),
            Type::DComplex => Scalar::Complex(f64_at(0)?, f64_at(8)?),
            integer => Scalar::Int(integer_at(integer, bytes)?),
        })
    }
}

fn integer_at(of: Type, bytes: &[u8]) -> Option<i64> {
    Some(match (of.is_signed(), of.size()?) {
        (true, 1) => i8::from_ne_bytes(*bytes.first_chunk()?).into(),
        (true, 2) => i16::from_ne_bytes(*bytes.first_chunk()?).into(),
        (true, 4) => i32::from_ne_bytes(*bytes.first_chunk()?).into(),
        (false, 1) => u8::from_ne_bytes(*bytes.first_chunk()?).into(),
        (false, 2) => u16::from_ne_bytes(*bytes.first_chunk()?).into(),
        (false, 4) => u32::from_ne_bytes(*bytes.first_chunk()?).into(),
        _ => i64::from_ne_bytes(*bytes.first_chunk()?),
    })
}

/// The known integers among the arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Scalars {
    scalars: Vec<Option<i64>>,
    /// Elements of the integer arrays that sizes refer to.
    elements: Vec<(usize, Vec<i64>)>,
}

/// Whether a size or a range refers to this parameter, or to elements of it.
pub fn gives_sizes(function: &Function, index: usize) -> bool {
    function.parameters.iter().any(|parameter| {
        let Kind::Array { dimensions, .. } = &parameter.kind else { return false };
        dimensions.iter().any(|dimension| {
            let range =
                dimension.range.iter().flat_map(|range| [&range.start, &range.end, &range.step]);
            let mut parts = range.chain([&dimension.size]).flatten();
            parts.any(|part| part.scalars().contains(&index))
        })
    })
}

impl Scalars {
    /// Creates an empty set for the arguments of a function.
    #[must_use]
    pub fn new(function: &Function) -> Scalars {
        Scalars { scalars: vec![None; function.parameters.len()], elements: Vec::new() }
    }

    /// Sets the value of an argument. An unsigned 64-bit value from 2^63 is not a size.
    pub fn set(&mut self, parameter: usize, value: Scalar) {
        if let (Scalar::Int(value), Some(place)) = (value, self.scalars.get_mut(parameter)) {
            *place = Some(value);
        }
    }

    /// Sets the elements of an integer array, if sizes refer to them.
    pub fn set_elements(&mut self, function: &Function, parameter: usize, bytes: &[u8]) {
        let Some(Kind::Array { element, .. }) =
            function.parameters.get(parameter).map(|parameter| &parameter.kind)
        else {
            return;
        };
        let Some(size) = element.size().filter(|_| element.is_integer()) else { return };
        if !gives_sizes(function, parameter) {
            return;
        }
        let elements = bytes.chunks_exact(size);
        let elements = elements.filter_map(|bytes| integer_at(*element, bytes)).collect();
        self.elements.push((parameter, elements));
    }

    /// The known scalars, after the arguments of one of its callbacks.
    #[must_use]
    pub fn behind(&self, mut own: Vec<Option<i64>>) -> Scalars {
        let shift = own.len();
        own.extend_from_slice(&self.scalars);
        let elements = self.elements.iter();
        let elements = elements.map(|(index, values)| (index + shift, values.clone())).collect();
        Scalars { scalars: own, elements }
    }
}

impl Values for Scalars {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        self.scalars.get(parameter).copied().flatten()
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        let (_, elements) = self.elements.iter().find(|(array, _)| *array == parameter)?;
        elements.get(usize::try_from(index).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_through_the_bytes_of_their_type() {
        for (of, value) in [
            (Type::Char, Scalar::Int(-7)),
            (Type::UShort, Scalar::Int(65_535)),
            (Type::Int, Scalar::Int(-2_000_000_000)),
            (Type::ULong, Scalar::Int(-1)),
            (Type::Float, Scalar::Float(0.5)),
            (Type::Double, Scalar::Float(1e300)),
            (Type::SComplex, Scalar::Complex(1.5, -2.0)),
            (Type::DComplex, Scalar::Complex(1e-9, 3.0)),
        ] {
            assert_eq!(Scalar::from_bytes(of, &value.to_bytes(of)), Some(value), "{of:?}");
        }
        assert_eq!(
            Scalar::from_bytes(Type::Double, &Scalar::Int(3).to_bytes(Type::Double)),
            Some(Scalar::Float(3.0))
        );
    }
}
