//! Tensors of requests and responses. Their data have the layout of the binary tensor extension: little-endian
//! elements, and strings behind their lengths of four bytes.

use std::time::Duration;

use bytes::Bytes;
use gridrpc_wire::TraceContext;
use http::HeaderMap;

use crate::datatype::DataType;
use crate::error::DataError;
use crate::name::FunctionName;

/// Order of a tensor's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementOrder {
    /// The last index varies fastest, as the protocol says.
    #[default]
    Row,
    /// The first index varies fastest: the request parameter `order` is "F".
    Column,
}

impl ElementOrder {
    /// The order that the parameter `order` names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ElementOrder> {
        match name {
            "C" => Some(ElementOrder::Row),
            "F" => Some(ElementOrder::Column),
            _ => None,
        }
    }
}

/// An input of a request.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// Name of the parameter.
    pub name: String,
    /// Type of the elements.
    pub datatype: DataType,
    /// The dimensions.
    pub shape: Vec<u64>,
    /// Order of the elements.
    pub order: ElementOrder,
    /// The elements; their length has been checked against the shape.
    pub data: Bytes,
}

impl InputTensor {
    /// Checks the data of a tensor.
    ///
    /// # Errors
    /// When the data do not have the length of the shape, or a string ends behind them.
    pub fn new(
        name: String,
        datatype: DataType,
        shape: Vec<u64>,
        order: ElementOrder,
        data: Bytes,
    ) -> Result<InputTensor, DataError> {
        let count = count(&shape)?;
        match datatype.size() {
            Some(size) => {
                let expected = count.checked_mul(size as u64);
                let expected = expected.ok_or_else(|| DataError::TooManyElements(shape.clone()))?;
                let found = data.len() as u64;
                if expected != found {
                    return Err(DataError::Length { datatype, shape, expected, found });
                }
            }
            None => {
                let mut found = 0;
                for string in strings(&data) {
                    string?;
                    found += 1;
                }
                if found != count {
                    return Err(DataError::Count { shape, expected: count, found });
                }
            }
        }
        Ok(InputTensor { name, datatype, shape, order, data })
    }
}

/// The datatype with this name.
pub(crate) fn datatype(name: &str) -> Result<DataType, DataError> {
    DataType::from_name(name)
        .ok_or_else(|| DataError::UnknownDatatype(name.chars().take(20).collect()))
}

/// Number of elements of a shape.
pub(crate) fn count(shape: &[u64]) -> Result<u64, DataError> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let count = shape.iter().try_fold(1_u64, |count, dimension| count.checked_mul(*dimension));
    count.ok_or_else(|| DataError::TooManyElements(shape.to_vec()))
}

/// The dimensions of a message; they must not be negative.
pub(crate) fn unsigned(shape: &[i64]) -> Result<Vec<u64>, DataError> {
    let one = |dimension: &i64| {
        u64::try_from(*dimension).map_err(|_| DataError::NegativeDimension(*dimension))
    };
    shape.iter().map(one).collect()
}

/// The strings of a BYTES tensor.
pub(crate) fn strings(data: &[u8]) -> impl Iterator<Item = Result<&[u8], DataError>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = data.get(at..).filter(|rest| !rest.is_empty())?;
        let string = rest
            .split_first_chunk::<4>()
            .and_then(|(len, rest)| rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?));
        let start = at;
        at = string.map_or(data.len(), |string| start + 4 + string.len());
        Some(string.ok_or(DataError::TruncatedString { at: start }))
    })
}

/// Appends a string of a BYTES tensor.
///
/// # Errors
/// When it is longer than its length can say.
pub(crate) fn add_string(string: &[u8], data: &mut Vec<u8>) -> Result<(), DataError> {
    let len = u32::try_from(string.len()).map_err(|_| DataError::Element {
        datatype: DataType::Bytes,
        problem: format!("a string has {} bytes", string.len()),
    })?;
    data.extend_from_slice(&len.to_le_bytes());
    data.extend_from_slice(string);
    Ok(())
}

/// An output that the caller requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedOutput {
    /// Name of the parameter.
    pub name: String,
    /// Order of its elements.
    pub order: ElementOrder,
}

/// A call, as it was requested.
#[derive(Clone, Debug)]
pub struct InferRequest {
    /// The function.
    pub function: FunctionName,
    /// The inputs, in any order.
    pub inputs: Vec<InputTensor>,
    /// The requested outputs; `None`: all.
    pub outputs: Option<Vec<RequestedOutput>>,
    /// Order of the elements of outputs that are not listed.
    pub order: ElementOrder,
    /// Time limit of the call.
    pub timeout: Option<Duration>,
    /// The caller's span, from the header `traceparent`.
    pub trace: Option<TraceContext>,
}

/// The caller's span, from the header of W3C Trace Context. An invalid one counts as none, as the standard says.
pub(crate) fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}

/// An output of a call.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    /// Name of the parameter.
    pub name: String,
    /// Type of the elements.
    pub datatype: DataType,
    /// The dimensions.
    pub shape: Vec<u64>,
    /// The elements.
    pub data: Bytes,
}

/// The results of a call.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    /// The outputs, in the order of the request or declaration.
    pub outputs: Vec<OutputTensor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(datatype: DataType, shape: &[u64], data: &[u8]) -> Result<InputTensor, DataError> {
        let data = Bytes::copy_from_slice(data);
        InputTensor::new("x".into(), datatype, shape.to_vec(), ElementOrder::Row, data)
    }

    #[test]
    fn data_must_have_the_length_of_the_shape() {
        assert!(input(DataType::Fp64, &[2, 3], &[0; 48]).is_ok());
        assert!(input(DataType::Fp64, &[], &[0; 8]).is_ok());
        assert!(input(DataType::Fp64, &[0, u64::MAX, u64::MAX], &[]).is_ok());
        let error = input(DataType::Fp64, &[2, 3], &[0; 47]).unwrap_err();
        assert!(matches!(error, DataError::Length { expected: 48, found: 47, .. }));
        for shape in [&[u64::MAX, 2][..], &[1 << 61], &[1 << 32, 1 << 32]] {
            let error = input(DataType::Fp64, shape, &[0; 8]).unwrap_err();
            assert!(matches!(error, DataError::TooManyElements(_)), "{error}");
        }
    }

    #[test]
    fn strings_end_within_the_data() {
        let mut data = Vec::new();
        add_string(b"one", &mut data).unwrap();
        add_string(b"", &mut data).unwrap();
        assert!(input(DataType::Bytes, &[2], &data).is_ok());
        let error = input(DataType::Bytes, &[3], &data).unwrap_err();
        assert!(matches!(error, DataError::Count { expected: 3, found: 2, .. }));
        for len in [1, 5, data.len() - 1] {
            assert!(input(DataType::Bytes, &[2], &data[..len]).is_err(), "{len}");
        }
        let huge = [0xff, 0xff, 0xff, 0xff, 1];
        let error = input(DataType::Bytes, &[1], &huge).unwrap_err();
        assert_eq!(error, DataError::TruncatedString { at: 0 });
    }
}
