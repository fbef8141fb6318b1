//! Many items in one call of a module function: what stands before its values.

use crate::bytes::{Order, Reader, WireError, Writer};
use crate::value::{Value, decode_values, encode_values};

/// Stands where the number of values stands else: no function has so many parameters.
const MARK: u16 = u16::MAX;
/// Length of what stands before the values, bytes.
const HEAD_LEN: usize = 14;

/// What is said of all items together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In a call how many there are; in its result how many of them have been run.
    pub items: u32,
    /// In a call: no item is begun later than so many ns after the first; 0: there is no limit. In a result 0.
    pub limit: u64,
}

impl Chunk {
    /// Whether the bytes of section 0 are those of many items.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MARK.to_ne_bytes())
    }

    /// Encodes it, and the values behind it, into the bytes of their section.
    ///
    /// # Errors
    /// As [`encode_values`]; `out` is then as it was.
    pub fn encode(
        self,
        values: &[Value],
        order: Order,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let start = out.len();
        let mut writer = Writer { out, order };
        writer.u16(MARK);
        writer.u32(self.items);
        writer.u64(self.limit);
        let written = encode_values(values, order, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Decodes a section of a frame that came in `order`.
    ///
    /// # Errors
    /// When the bytes are not those of many items.
    pub fn decode(bytes: &[u8], order: Order) -> Result<(Chunk, Vec<Value>), WireError> {
        let head = bytes.len().min(HEAD_LEN);
        let mut reader = Reader::new(&bytes[..head], order);
        let mark = reader.u16("mark of many items")?;
        if mark != MARK {
            return Err(WireError::Meaningless { what: "mark of many items", value: mark.into() });
        }
        let items = reader.u32("number of items")?;
        let limit = reader.u64("limit")?;
        Ok((Chunk { items, limit }, decode_values(&bytes[head..], order)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_in_both_orders() {
        let chunk = Chunk { items: 3, limit: 5_000_000 };
        let values = [Value::Bytes(1), Value::None, Value::Text("why".into())];
        for order in [Order::Little, Order::Big] {
            let mut bytes = Vec::new();
            chunk.encode(&values, order, &mut bytes).unwrap();
            assert!(Chunk::is_one(&bytes));
            assert_eq!(Chunk::decode(&bytes, order).unwrap(), (chunk, values.to_vec()));
            for len in 0..bytes.len() {
                assert!(Chunk::decode(&bytes[..len], order).is_err(), "{len} bytes of it");
            }
        }
        let mut bytes = Vec::new();
        encode_values(&values, Order::NATIVE, &mut bytes).unwrap();
        assert!(!Chunk::is_one(&bytes));
        assert!(Chunk::decode(&bytes, Order::NATIVE).is_err());
    }
}
