//! Conversion of the interface language's types to the wire format.

use gridrpc_idl::{Function, Kind, Parameter, Type};
use gridrpc_wire::DType;

/// The wire's element type for this type; `None` for strings and files.
#[must_use]
pub fn dtype(of: Type) -> Option<DType> {
    let size = of.size()?;
    Some(match of {
        Type::String | Type::Filename => return None,
        Type::Float => DType::Float32,
        Type::Double => DType::Float64,
        Type::SComplex => DType::Complex64,
        Type::DComplex => DType::Complex128,
        integer => match (integer.is_signed(), size) {
            (true, 1) => DType::Int8,
            (true, 2) => DType::Int16,
            (true, 4) => DType::Int32,
            (true, _) => DType::Int64,
            (false, 1) => DType::UInt8,
            (false, 2) => DType::UInt16,
            (false, 4) => DType::UInt32,
            (false, _) => DType::UInt64,
        },
    })
}

/// The callback parameters of a function: their indices, and their own parameters.
pub fn callbacks(of: &Function) -> impl Iterator<Item = (usize, &[Parameter])> {
    of.parameters.iter().enumerate().filter_map(|(number, parameter)| match &parameter.kind {
        Kind::Callback(own) => Some((number, own.as_slice())),
        _ => None,
    })
}

/// Whether an integer fits this type. Numbers from 2^63 are passed as negative ones with the same bits.
#[must_use]
pub fn integer_fits(value: i64, of: Type) -> bool {
    let Some(bits) = of.size().map(|size| size as u32 * 8) else { return false };
    if bits >= 64 {
        return true;
    }
    if of.is_signed() {
        let most = (1_i64 << (bits - 1)) - 1;
        (-most - 1..=most).contains(&value)
    } else {
        (0..1_i64 << bits).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_width_that_this_machine_gives_them() {
        assert_eq!(dtype(Type::Long), Some(DType::Int64));
        assert_eq!(dtype(Type::Char), Some(DType::Int8));
        assert_eq!(dtype(Type::UInt32), Some(DType::UInt32));
        assert_eq!(dtype(Type::String), None);
    }

    #[test]
    fn integers_are_held_against_the_range_of_their_type() {
        assert!(integer_fits(-128, Type::Char) && integer_fits(127, Type::Char));
        assert!(!integer_fits(128, Type::Char) && !integer_fits(-129, Type::Char));
        assert!(integer_fits(65_535, Type::UShort) && !integer_fits(-1, Type::UShort));
        assert!(integer_fits(i64::MIN, Type::Long) && integer_fits(-1, Type::UInt64));
    }
}
