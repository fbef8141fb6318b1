//! Elements of tensors as JSON.

use std::fmt;

use bytes::Bytes;
use fast_float2::FastFloat;
use serde::Serialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::datatype::DataType;
use crate::error::DataError;
use crate::tensor::{add_string, strings};

/// Deepest nesting of arrays.
const MAX_DEPTH: i32 = 127;
/// Below these, whole numbers have at most as many digits as their type is precise to.
const WHOLE_F64: f64 = 1e15;
const WHOLE_F32: f64 = 1e7;

/// The elements of a JSON array, which may be nested, with at most `count` elements.
pub(super) fn decode(json: &RawValue, datatype: DataType, count: u64) -> Result<Bytes, DataError> {
    if let Some(data) = numbers(json.get().as_bytes(), datatype, count) {
        return Ok(data.into());
    }
    let mut elements = Elements::new(datatype, count);
    let mut deserializer = serde_json::Deserializer::from_str(json.get());
    elements
        .deserialize(&mut deserializer)
        .map_err(|error| DataError::Element { datatype, problem: error.to_string() })?;
    elements.finish()
}

/// The elements of an array that has numbers of this type only; none: it has others, or too many.
///
/// serde_json rounds one in ten decimal fractions to a neighbour of the nearest number, and takes longer.
fn numbers(json: &[u8], datatype: DataType, count: u64) -> Option<Vec<u8>> {
    match datatype {
        DataType::Fp32 => flat(json, count, f32::to_le_bytes),
        DataType::Fp64 => flat(json, count, f64::to_le_bytes),
        _ => None,
    }
}

/// Decodes valid JSON.
fn flat<T: FastFloat, const SIZE: usize>(
    json: &[u8],
    count: u64,
    bytes: impl Fn(T) -> [u8; SIZE],
) -> Option<Vec<u8>> {
    // An element takes two bytes of text at least. The shape is only a claim.
    let most = usize::try_from(count).unwrap_or(usize::MAX).min(json.len() / 2 + 1);
    let mut data = Vec::with_capacity(most * SIZE);
    let (mut at, mut depth, mut left) = (0, 0, count);
    while let Some(byte) = json.get(at) {
        match byte {
            b'[' if depth < MAX_DEPTH => depth += 1,
            b']' => depth -= 1,
            b',' | b' ' | b'\t' | b'\n' | b'\r' => {}
            b'-' | b'0'..=b'9' if left > 0 => {
                let (number, length) = fast_float2::parse_partial(&json[at..]).ok()?;
                data.extend_from_slice(&bytes(number));
                left -= 1;
                at += length;
                continue;
            }
            _ => return None,
        }
        at += 1;
    }
    Some(data)
}

struct Elements {
    datatype: DataType,
    data: Vec<u8>,
    count: u64,
    limit: u64,
    /// The first element that is wrong. Skips the rest.
    problem: Option<String>,
}

impl Elements {
    fn new(datatype: DataType, limit: u64) -> Elements {
        // The data grow as elements come: the shape is only a claim.
        Elements { datatype, data: Vec::new(), count: 0, limit, problem: None }
    }

    fn finish(self) -> Result<Bytes, DataError> {
        let Elements { datatype, data, problem, .. } = self;
        match problem {
            _ if matches!(datatype, DataType::Fp16 | DataType::Bf16) => {
                Err(DataError::BinaryOnly(datatype))
            }
            Some(problem) => Err(DataError::Element { datatype, problem }),
            None => Ok(data.into()),
        }
    }

    fn refuse(&mut self, problem: impl Into<String>) {
        self.problem.get_or_insert_with(|| problem.into());
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.takes_one_more() {
            self.data.extend_from_slice(bytes);
        }
    }

    fn takes_one_more(&mut self) -> bool {
        if self.count == self.limit {
            self.refuse(format!("there are more than the {} elements of the shape", self.limit));
        }
        self.count += 1;
        self.problem.is_none()
    }

    fn integer(&mut self, value: i128) {
        macro_rules! put {
            ($of:ty) => {
                match <$of>::try_from(value) {
                    Ok(value) => self.add(&value.to_le_bytes()),
                    Err(_) => self.refuse(format!("{value} does not fit")),
                }
            };
        }
        match self.datatype {
            DataType::Uint8 => put!(u8),
            DataType::Uint16 => put!(u16),
            DataType::Uint32 => put!(u32),
            DataType::Uint64 => put!(u64),
            DataType::Int8 => put!(i8),
            DataType::Int16 => put!(i16),
            DataType::Int32 => put!(i32),
            DataType::Int64 => put!(i64),
            DataType::Fp32 => self.add(&(value as f32).to_le_bytes()),
            DataType::Fp64 => self.add(&(value as f64).to_le_bytes()),
            DataType::Bool | DataType::Fp16 | DataType::Bf16 | DataType::Bytes => {
                self.refuse("there is a number");
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Elements {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Elements {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "elements of type {}", self.datatype)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.refuse("there is an object");
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.refuse("there is null");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        match self.datatype {
            DataType::Bool => self.add(&[value.into()]),
            _ => self.refuse("there is a truth value"),
        }
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.integer(value.into());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.integer(value.into());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        match self.datatype {
            DataType::Fp32 => self.add(&(value as f32).to_le_bytes()),
            DataType::Fp64 => self.add(&value.to_le_bytes()),
            _ => self.refuse(format!("there is the number {value}")),
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        if self.datatype != DataType::Bytes {
            self.refuse("there is a string");
        } else if self.takes_one_more()
            && let Err(error) = add_string(value.as_bytes(), &mut self.data)
        {
            self.refuse(error.to_string());
        }
        Ok(())
    }
}

/// Writes the elements as a flat JSON array. Numbers that JSON lacks, NaN and infinities, become `null`.
pub(super) fn encode(datatype: DataType, data: &[u8], json: &mut Vec<u8>) -> Result<(), DataError> {
    macro_rules! put {
        ($of:ty) => {
            list(json, data.as_chunks().0.iter().map(|bytes| <$of>::from_le_bytes(*bytes)))
        };
    }
    match datatype {
        DataType::Bool => list(json, data.iter().map(|byte| *byte != 0)),
        DataType::Uint8 => put!(u8),
        DataType::Uint16 => put!(u16),
        DataType::Uint32 => put!(u32),
        DataType::Uint64 => put!(u64),
        DataType::Int8 => put!(i8),
        DataType::Int16 => put!(i16),
        DataType::Int32 => put!(i32),
        DataType::Int64 => put!(i64),
        DataType::Fp32 => {
            let numbers = data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            floats(json, numbers, |number| whole(number.into(), WHOLE_F32))
        }
        DataType::Fp64 => {
            let numbers = data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            floats(json, numbers, |number| whole(number, WHOLE_F64))
        }
        DataType::Fp16 | DataType::Bf16 => Err(DataError::BinaryOnly(datatype)),
        DataType::Bytes => {
            let mut texts = Vec::new();
            for string in strings(data) {
                let text = str::from_utf8(string?).map_err(|_| DataError::Element {
                    datatype,
                    problem: "a string is not UTF-8: request binary data".into(),
                })?;
                texts.push(text);
            }
            list(json, texts.into_iter())
        }
    }
}

/// The number, if it is whole and its absolute value below `limit`: these are printed faster.
fn whole(number: f64, limit: f64) -> Option<i64> {
    let is_whole = number.abs() < limit
        && number.fract() == 0.0
        && (number != 0.0 || number.is_sign_positive());
    is_whole.then_some(number as i64)
}

fn floats<T: Copy + Serialize>(
    json: &mut Vec<u8>,
    numbers: impl Iterator<Item = T>,
    whole: impl Fn(T) -> Option<i64>,
) -> Result<(), DataError> {
    array(json, numbers, |json, number| match whole(number) {
        Some(whole) => {
            serde_json::to_writer(&mut *json, &whole)?;
            json.extend_from_slice(b".0");
            Ok(())
        }
        None => serde_json::to_writer(json, &number),
    })
}

fn list<T: Serialize>(
    json: &mut Vec<u8>,
    elements: impl Iterator<Item = T>,
) -> Result<(), DataError> {
    array(json, elements, |json, element| serde_json::to_writer(json, &element))
}

fn array<T>(
    json: &mut Vec<u8>,
    elements: impl Iterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T) -> serde_json::Result<()>,
) -> Result<(), DataError> {
    json.push(b'[');
    for (index, element) in elements.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        // Numbers and strings can always be written to memory.
        write(json, element).map_err(|_| DataError::Missing)?;
    }
    json.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(json: &str, datatype: DataType, count: u64) -> Result<Bytes, DataError> {
        decode(&serde_json::from_str::<Box<RawValue>>(json).unwrap(), datatype, count)
    }

    fn encoded(datatype: DataType, data: &[u8]) -> String {
        let mut json = Vec::new();
        encode(datatype, data, &mut json).unwrap();
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn elements_come_back() {
        for (datatype, json) in [
            (DataType::Bool, "[true,false]"),
            (DataType::Uint8, "[0,255]"),
            (DataType::Int16, "[-32768,32767]"),
            (DataType::Uint64, "[18446744073709551615,0]"),
            (DataType::Int64, "[-9223372036854775808,1]"),
            (DataType::Fp32, "[0.1,-2.5]"),
            (DataType::Fp64, "[0.1,1e300]"),
            (DataType::Bytes, r#"["","a\"ä"]"#),
        ] {
            let data = decoded(json, datatype, 2).unwrap();
            assert_eq!(encoded(datatype, &data).replace("e+", "e"), json, "{datatype}");
        }
    }

    #[test]
    fn floats_come_back_bit_by_bit() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let fractions = (0..2000).map(|_| (next() >> 11) as f64 / 1e15);
        let all: Vec<f64> = fractions
            .chain([0.0, -0.0, -3.0, 1e15, -999_999_999_999_999.0, 9e15, 1e22, 5e-324, f64::MAX])
            .collect();
        let bytes: Vec<u8> = all.iter().flat_map(|number| number.to_le_bytes()).collect();
        let text = encoded(DataType::Fp64, &bytes);
        assert_eq!(decoded(&text, DataType::Fp64, all.len() as u64).unwrap(), bytes);
        let bytes: Vec<u8> =
            all.iter().flat_map(|number| (*number as f32).to_le_bytes()).take(8000).collect();
        let text = encoded(DataType::Fp32, &bytes);
        assert_eq!(decoded(&text, DataType::Fp32, 2000).unwrap(), bytes);
        let whole = [-0.0, 2.0, 1e15].map(f64::to_le_bytes).concat();
        assert_eq!(encoded(DataType::Fp64, &whole), "[-0.0,2.0,1000000000000000.0]");
    }

    #[test]
    fn nested_arrays_are_flattened() {
        assert_eq!(decoded("[[1,2],[3,[4]]]", DataType::Uint8, 4).unwrap(), [1, 2, 3, 4][..]);
        let floats = [1.0, 2.0, 3.0, 4.0].map(f64::to_le_bytes).concat();
        assert_eq!(decoded(" [[1, 2.0],\n[3e0,[4]], []]", DataType::Fp64, 4).unwrap(), floats);
        assert_eq!(decoded("7", DataType::Uint8, 1).unwrap(), [7][..]);
    }

    #[test]
    fn numbers_that_json_lacks_are_null() {
        let data: Vec<u8> =
            [f64::NAN, f64::INFINITY].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(encoded(DataType::Fp64, &data), "[null,null]");
    }

    #[test]
    fn elements_of_another_type_are_refused() {
        for (datatype, json) in [
            (DataType::Uint8, "[256]"),
            (DataType::Uint8, "[-1]"),
            (DataType::Int32, "[1.5]"),
            (DataType::Int32, "[\"1\"]"),
            (DataType::Int32, "[null]"),
            (DataType::Int32, "[true]"),
            (DataType::Int32, "{\"a\":1}"),
            (DataType::Bool, "[1]"),
            (DataType::Bytes, "[1]"),
            (DataType::Fp16, "[1.0]"),
            (DataType::Uint8, "[1,2]"),
            (DataType::Fp64, "[1,2]"),
            (DataType::Fp64, "[\"1\"]"),
            (DataType::Fp32, "[1,null]"),
            (DataType::Fp32, "{\"a\":1}"),
        ] {
            assert!(decoded(json, datatype, 1).is_err(), "{datatype}: {json}");
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let parsed = serde_json::from_str::<Box<RawValue>>(&deep);
        for datatype in [DataType::Uint8, DataType::Fp64] {
            let Ok(parsed) = &parsed else { continue };
            assert!(decode(parsed, datatype, 1).is_err());
        }
    }
}
