//! Elements of tensors as JSON.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::datatype::DataType;
use crate::error::DataError;
use crate::tensor::{add_string, strings};

/// The elements of a JSON array, which may be nested, with at most `count` elements.
pub(super) fn decode(json: &RawValue, datatype: DataType, count: u64) -> Result<Bytes, DataError> {
    let mut elements = Elements::new(datatype, count);
    let mut deserializer = serde_json::Deserializer::from_str(json.get());
    elements
        .deserialize(&mut deserializer)
        .map_err(|error| DataError::Element { datatype, problem: error.to_string() })?;
    elements.finish()
}

/// The same of the next value of a map, without a pass over its text that only looks for its end; none for `null`. The
/// outer error is one of the JSON.
pub(super) fn decode_next<'de, A: MapAccess<'de>>(
    map: &mut A,
    datatype: DataType,
    count: u64,
) -> Result<Option<Result<Bytes, DataError>>, A::Error> {
    let mut elements = Elements::new(datatype, count);
    map.next_value_seed(&mut elements)?;
    Ok((!elements.is_null).then(|| elements.finish()))
}

struct Elements {
    datatype: DataType,
    data: Vec<u8>,
    count: u64,
    limit: u64,
    /// The first element that is wrong. What follows is skipped.
    problem: Option<String>,
    is_list: bool,
    /// The whole is `null`.
    is_null: bool,
}

impl Elements {
    fn new(datatype: DataType, limit: u64) -> Elements {
        // The data grow as elements come: the shape is only a claim.
        let (is_list, is_null) = (false, false);
        Elements { datatype, data: Vec::new(), count: 0, limit, problem: None, is_list, is_null }
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
        self.is_list = true;
        while sequence.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.refuse("there is an object");
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.is_null = !self.is_list;
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
        DataType::Fp32 => put!(f32),
        DataType::Fp64 => put!(f64),
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

fn list<T: serde::Serialize>(
    json: &mut Vec<u8>,
    elements: impl Iterator<Item = T>,
) -> Result<(), DataError> {
    json.push(b'[');
    for (index, element) in elements.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        // Numbers and strings can always be written to memory.
        serde_json::to_writer(&mut *json, &element).map_err(|_| DataError::Missing)?;
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
    fn nested_arrays_are_flattened() {
        assert_eq!(decoded("[[1,2],[3,[4]]]", DataType::Uint8, 4).unwrap(), [1, 2, 3, 4][..]);
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
        ] {
            assert!(decoded(json, datatype, 1).is_err(), "{datatype}: {json}");
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let parsed = serde_json::from_str::<Box<RawValue>>(&deep);
        assert!(parsed.is_err() || decode(&parsed.unwrap(), DataType::Uint8, 1).is_err());
    }
}
