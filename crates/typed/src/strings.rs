//! Lists of strings and of file contents, encoded in one section.

use gridrpc_wire::Order;

/// Encodes each string as its length and its bytes; a missing one as -1 without bytes.
#[must_use]
pub fn encode_texts(texts: &[Option<Vec<u8>>], order: Order) -> Vec<u8> {
    let mut bytes = Vec::new();
    texts.iter().for_each(|text| append(text.as_deref(), order, &mut bytes));
    bytes
}

/// Appends one string to such a list, in this machine's byte order.
pub fn add_text(text: Option<&[u8]>, bytes: &mut Vec<u8>) {
    append(text, Order::NATIVE, bytes);
}

fn append(text: Option<&[u8]>, order: Order, bytes: &mut Vec<u8>) {
    let len = text.map_or(-1, |text| text.len() as i64);
    bytes.extend_from_slice(&len_bytes(len, order));
    bytes.extend_from_slice(text.unwrap_or_default());
}

fn len_bytes(len: i64, order: Order) -> [u8; 8] {
    match order {
        Order::Little => len.to_le_bytes(),
        Order::Big => len.to_be_bytes(),
    }
}

/// The strings in bytes received in `order`; `None` if they are not `count` strings.
#[must_use]
pub fn decode_texts(bytes: &[u8], order: Order, count: usize) -> Option<Vec<Option<Vec<u8>>>> {
    let texts = list_texts(bytes, order)?;
    (texts.len() == count).then(|| texts.into_iter().map(|text| text.map(<[u8]>::to_vec)).collect())
}

/// A file argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedFile {
    /// NULL: no file.
    Null,
    /// An empty name: no file either.
    Empty,
    /// The content of a file.
    Content(Vec<u8>),
}

/// Encodes files as strings; the length of an empty name is -2.
#[must_use]
pub fn encode_files(files: &[NamedFile], order: Order) -> Vec<u8> {
    let mut bytes = Vec::new();
    for file in files {
        match file {
            NamedFile::Null => append(None, order, &mut bytes),
            NamedFile::Empty => bytes.extend_from_slice(&len_bytes(EMPTY_NAME, order)),
            NamedFile::Content(content) => append(Some(content), order, &mut bytes),
        }
    }
    bytes
}

/// Decodes `count` files from bytes received in `order`; `None` if the bytes are malformed.
#[must_use]
pub fn decode_files(bytes: &[u8], order: Order, count: usize) -> Option<Vec<NamedFile>> {
    let mut files = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (len, behind) = split_len(rest, order)?;
        let content = match len {
            -1 => NamedFile::Null,
            EMPTY_NAME => NamedFile::Empty,
            len => NamedFile::Content(behind.get(..usize::try_from(len).ok()?)?.to_vec()),
        };
        rest = &behind[usize::try_from(len).unwrap_or(0)..];
        files.push(content);
    }
    (files.len() == count).then_some(files)
}

/// The length that stands for an empty file name.
const EMPTY_NAME: i64 = -2;

fn split_len(bytes: &[u8], order: Order) -> Option<(i64, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let len = match order {
        Order::Little => i64::from_le_bytes(*len),
        Order::Big => i64::from_be_bytes(*len),
    };
    Some((len, rest))
}

/// The strings in bytes received in `order`, in any number; `None` if they are not a list.
#[must_use]
pub fn list_texts(mut bytes: &[u8], order: Order) -> Option<Vec<Option<&[u8]>>> {
    let mut texts = Vec::new();
    while let Some((len, rest)) = split_len(bytes, order) {
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
    fn names_of_files_that_are_null_or_empty_are_kept_apart() {
        let files = [
            NamedFile::Null,
            NamedFile::Empty,
            NamedFile::Content(Vec::new()),
            NamedFile::Content(b"a".into()),
        ];
        for order in [Order::Little, Order::Big] {
            let bytes = encode_files(&files, order);
            assert_eq!(decode_files(&bytes, order, 4).as_deref(), Some(&files[..]));
            assert_eq!(decode_files(&bytes, order, 3), None);
            assert_eq!(decode_files(&bytes[..bytes.len() - 1], order, 4), None);
            assert_eq!(decode_files(&len_bytes(-3, order), order, 1), None);
            assert_eq!(list_texts(&bytes, order), None);
        }
    }

    #[test]
    fn strings_come_back_and_broken_lists_are_refused() {
        let texts = [Some(b"one".to_vec()), None, Some(Vec::new())];
        for order in [Order::Little, Order::Big] {
            let bytes = encode_texts(&texts, order);
            // The characters have no order.
            assert_eq!(bytes[8..11], *b"one");
            assert_eq!(decode_texts(&bytes, order, 3), Some(texts.to_vec()));
            assert_eq!(decode_texts(&bytes, order, 2), None);
            assert_eq!(decode_texts(&bytes[..bytes.len() - 1], order, 3), None);
            assert_eq!(decode_texts(&len_bytes(-2, order), order, 1), None);
            assert_eq!(decode_texts(&len_bytes(i64::MAX, order), order, 1), None);
        }
        let (little, big) = (encode_texts(&texts, Order::Little), encode_texts(&texts, Order::Big));
        assert_eq!(decode_texts(&little, Order::Big, 3), None);
        assert_eq!(decode_texts(&big, Order::Little, 3), None);
    }
}
