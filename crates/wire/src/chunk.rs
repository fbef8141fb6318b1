//! Many items in one call of a module function: the header before its values.

use crate::bytes::{Order, Reader, WireError, Writer};
use crate::value::{Value, decode_values, encode_values};

/// Replaces the number of values: no function has so many parameters.
const MARK: u16 = u16::MAX;
/// Length of the header, bytes.
const HEAD_LEN: usize = 14;

/// Data common to all items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In a call: the number of items. In its result: the number of completed items.
    pub items: u32,
    /// In a call: no item starts later than this many ns after the first; 0: no limit. In a result: 0.
    pub limit: u64,
}

impl Chunk {
    /// Whether the bytes of section 0 belong to many items.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MARK.to_ne_bytes())
    }

    /// Encodes the header, and the values after it, into the bytes of their section.
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

    /// Decodes a section of a frame received in `order`.
    ///
    /// # Errors
    /// When the bytes do not belong to many items.
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
