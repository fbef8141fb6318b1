//! Lists of strings and of files' contents, as the bytes of one section.

use gridrpc_wire::Order;

/// Each string as its length and its bytes; -1 and no bytes for one that is not there.
#[must_use]
pub fn encode_texts(texts: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    texts.iter().for_each(|text| add_text(text.as_deref(), &mut bytes));
    bytes
}

/// Appends one string to such a list.
pub fn add_text(text: Option<&[u8]>, bytes: &mut Vec<u8>) {
    let len = text.map_or(-1, |text| text.len() as i64);
    bytes.extend_from_slice(&len.to_ne_bytes());
    bytes.extend_from_slice(text.unwrap_or_default());
}

/// The strings in bytes that came in `order`; `None` if they are not `count` strings.
#[must_use]
pub fn decode_texts(bytes: &[u8], order: Order, count: usize) -> Option<Vec<Option<Vec<u8>>>> {
    let texts = list_texts(bytes, order)?;
    (texts.len() == count).then(|| texts.into_iter().map(|text| text.map(<[u8]>::to_vec)).collect())
}

/// The strings in bytes that came in `order`, however many there are; `None` if they are no list.
#[must_use]
pub fn list_texts(mut bytes: &[u8], order: Order) -> Option<Vec<Option<&[u8]>>> {
    let mut texts = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<8>() {
        let len = match order {
            Order::Little => i64::from_le_bytes(*len),
            Order::Big => i64::from_be_bytes(*len),
        };
        if len == -1 {
            texts.push(None);
            bytes = rest;
            continue;
        }
        let (text, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        texts.push(Some(text));
        bytes = rest;
    }
    bytes.is_empty().then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_and_broken_lists_are_refused() {
        let texts = [Some(b"one".to_vec()), None, Some(Vec::new())];
        let bytes = encode_texts(&texts);
        assert_eq!(decode_texts(&bytes, Order::NATIVE, 3), Some(texts.to_vec()));
        assert_eq!(decode_texts(&bytes, Order::NATIVE, 2), None);
        assert_eq!(decode_texts(&bytes[..bytes.len() - 1], Order::NATIVE, 3), None);
        assert_eq!(decode_texts(&(-2_i64).to_ne_bytes(), Order::NATIVE, 1), None);
        assert_eq!(decode_texts(&i64::MAX.to_ne_bytes(), Order::NATIVE, 1), None);
    }
}
