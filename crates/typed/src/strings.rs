//! Lists of strings and of file contents, encoded in one section.

use gridrpc_wire::Order;

/// Encodes each string as its length and its bytes; a missing one as -1 without bytes.
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
pub fn encode_files(files: &[NamedFile]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for file in files {
        match file {
            NamedFile::Null => add_text(None, &mut bytes),
            NamedFile::Empty => bytes.extend_from_slice(&EMPTY_NAME.to_ne_bytes()),
            NamedFile::Content(content) => add_text(Some(content), &mut bytes),
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
        let bytes = encode_files(&files);
        assert_eq!(decode_files(&bytes, Order::NATIVE, 4).as_deref(), Some(&files[..]));
        assert_eq!(decode_files(&bytes, Order::NATIVE, 3), None);
        assert_eq!(decode_files(&bytes[..bytes.len() - 1], Order::NATIVE, 4), None);
        assert_eq!(decode_files(&(-3_i64).to_ne_bytes(), Order::NATIVE, 1), None);
        assert_eq!(list_texts(&bytes, Order::NATIVE), None);
    }

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
