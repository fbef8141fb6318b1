//! The file of named data: a header, and the bytes of one array or text. It holds no pickle.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::time::{Duration, SystemTime};

use gridrpc_wire::{DType, Order};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::roles::Role;

/// Longest header, bytes.
const MAX_HEADER: u32 = 1 << 20;
/// Most dimensions of an array.
const MAX_DIMENSIONS: usize = 32;
/// Longest name, and longest name of a reader, bytes.
const MAX_NAME: usize = 64;
const MAX_READER: usize = 255;
/// Most readers.
const MAX_READERS: usize = 1000;
/// Everyone, among readers.
const ALL: &str = "all";
/// In front of the name of a group, among readers.
const GROUP: char = '@';
/// Types of elements, and their sizes, bytes.
const TYPES: [(&str, u64); 14] = [
    ("bool", 1),
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("uint8", 1),
    ("uint16", 2),
    ("uint32", 4),
    ("uint64", 8),
    ("float16", 2),
    ("float32", 4),
    ("float64", 8),
    ("complex64", 8),
    ("complex128", 16),
];

/// An array, or bytes, as a client describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataShape {
    /// Type of the elements; none: bytes.
    pub(crate) dtype: Option<String>,
    /// Whether the first index runs fastest.
    #[serde(default)]
    pub(crate) fortran: bool,
    /// Dimensions of the array.
    #[serde(default)]
    pub(crate) dims: Vec<u64>,
    /// Length, bytes.
    pub(crate) bytes: u64,
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedRecord {
    pub(crate) owner: String,
    pub(crate) name: String,
    /// The number that calls refer to. Other data under the same name has another one.
    pub(crate) number: u64,
    /// Users, groups as `@GROUP`, or `all`; the owner is always one.
    pub(crate) readers: Vec<String>,
    /// When it is removed, ms since 1970.
    pub(crate) until: u64,
    #[serde(flatten)]
    pub(crate) shape: DataShape,
}

impl DataShape {
    /// Its problem, if any.
    pub(crate) fn problem(&self) -> Option<String> {
        let Some(dtype) = &self.dtype else {
            return (!self.dims.is_empty()).then(|| "bytes have no dimensions".to_owned());
        };
        let Some((_, size)) = TYPES.iter().find(|(name, _)| name == dtype) else {
            let shown: String = dtype.chars().take(MAX_NAME).collect();
            return Some(format!("arrays of `{shown}` cannot be shared by name"));
        };
        if self.dims.len() > MAX_DIMENSIONS {
            return Some(format!("it has more than {MAX_DIMENSIONS} dimensions"));
        }
        let bytes = self.dims.iter().try_fold(*size, |bytes, length| bytes.checked_mul(*length));
        let is_right = bytes == Some(self.bytes);
        (!is_right).then(|| format!("its dimensions do not make {} bytes", self.bytes))
    }

    /// A piece in this machine's byte order. None: the piece ends within an element.
    pub(crate) fn native<'a>(&self, piece: &'a [u8], order: Order) -> Option<Cow<'a, [u8]>> {
        let dtype = match self.dtype.as_deref() {
            Some(name) if order != Order::NATIVE => name,
            _ => return Some(Cow::Borrowed(piece)),
        };
        // Halves have no type of their own in messages.
        let dtype = if dtype == "float16" { DType::UInt16 } else { DType::from_name(dtype)? };
        let mut native = piece.to_vec();
        dtype.make_native(order, &mut native);
        piece.len().is_multiple_of(dtype.size()).then_some(Cow::Owned(native))
    }

    /// The first part of the data in workers, which takes the place of a pickle.
    pub(crate) fn head(&self) -> Vec<u8> {
        let DataShape { dtype, fortran, dims, .. } = self;
        json!({ "dtype": dtype, "fortran": fortran, "dims": dims }).to_string().into_bytes()
    }
}

/// The problem of a name, if any.
pub(crate) fn problem_of_name(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_valid = name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_plain);
    let shown: String = name.chars().take(MAX_NAME).collect();
    (!is_valid).then(|| {
        format!(
            "`{}` is not a name for shared data: it has up to {MAX_NAME} letters, digits, `_`, `-` and `.`, and begins \
             with a letter or digit",
            shown.escape_debug()
        )
    })
}

/// The problem of a list of readers, if any.
pub(crate) fn problem_of_readers(readers: &[String]) -> Option<String> {
    if readers.len() > MAX_READERS {
        return Some(format!("shared data has at most {MAX_READERS} readers"));
    }
    let is_valid = |reader: &String| {
        let name = reader.strip_prefix(GROUP).unwrap_or(reader);
        (1..=MAX_READER).contains(&name.len()) && !name.contains(char::is_control)
    };
    let wrong = readers.iter().find(|reader| !is_valid(reader))?;
    Some(format!("`{}` is not a user, a group as `@NAME`, or `all`", wrong.escape_debug()))
}

impl NamedRecord {
    /// Whether a user may read it.
    pub(crate) fn admits(&self, role: &Role) -> bool {
        let is_user = |reader: &String| match reader.strip_prefix(GROUP) {
            Some(group) => role.groups.iter().any(|of_user| of_user == group),
            None => reader == ALL || *reader == role.user,
        };
        self.owner == role.user || self.readers.iter().any(is_user)
    }

    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        now >= SystemTime::UNIX_EPOCH + Duration::from_millis(self.until)
    }

    /// Its name for other users.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let header = serde_json::to_vec(self)?;
        to.write_all(&(header.len() as u32).to_le_bytes())?;
        to.write_all(&header)
    }

    /// Reads the header. The data follows.
    ///
    /// # Errors
    /// When it is not a header, or the file has another length than it says.
    pub(crate) fn read(from: &mut File) -> io::Result<NamedRecord> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_HEADER {
            return Err(damaged("the header is too long"));
        }
        let mut header = vec![0; length as usize];
        from.read_exact(&mut header)?;
        let record: NamedRecord = serde_json::from_slice(&header)?;
        let data = from.metadata()?.len().checked_sub(4 + u64::from(length));
        if data != Some(record.shape.bytes) || record.shape.problem().is_some() {
            return Err(damaged("the data is not complete"));
        }
        Ok(record)
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// When it is damaged, or there is no memory for it.
    pub(crate) fn read_data(from: &mut File) -> io::Result<(NamedRecord, Vec<u8>)> {
        let record = NamedRecord::read(from)?;
        let length = usize::try_from(record.shape.bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut data = Vec::new();
        data.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        data.resize(length, 0);
        from.read_exact(&mut data)?;
        Ok((record, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dtype: Option<&str>, dims: &[u64], bytes: u64) -> DataShape {
        DataShape { dtype: dtype.map(str::to_owned), fortran: false, dims: dims.into(), bytes }
    }

    #[test]
    fn names_are_no_paths() {
        for name in ["a", "prices", "Q3-2026.v1", "0_"] {
            assert_eq!(problem_of_name(name), None, "{name}");
        }
        let long = "a".repeat(65);
        for name in ["", ".", "..", "../a", "a/b", "/a", ".new", "a\0", "ä", "a b", &long] {
            assert!(problem_of_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn shapes_match_their_bytes() {
        assert_eq!(shape(None, &[], 7).problem(), None);
        assert_eq!(shape(Some("float64"), &[2, 3], 48).problem(), None);
        assert_eq!(shape(Some("float64"), &[], 8).problem(), None);
        assert_eq!(shape(Some("int8"), &[0, 9], 0).problem(), None);
        for wrong in [
            shape(None, &[7], 7),
            shape(Some("object"), &[1], 8),
            shape(Some("float64"), &[2, 3], 47),
            shape(Some("int16"), &[1 << 32, 1 << 32], 0),
            shape(Some("int8"), &[1; 33], 1),
        ] {
            assert!(wrong.problem().is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn pieces_get_the_byte_order_of_this_machine() {
        let piece = [1, 2, 3, 4, 5, 6, 7, 8];
        let native = |dtype: Option<&str>, piece: &[u8], order| {
            shape(dtype, &[], 0).native(piece, order).map(Cow::into_owned)
        };
        for dtype in [None, Some("int8"), Some("float16"), Some("float64")] {
            assert_eq!(native(dtype, &piece, Order::NATIVE).unwrap(), piece, "{dtype:?}");
        }
        let foreign = |dtype| native(dtype, &piece, Order::FOREIGN).unwrap();
        assert_eq!(foreign(None), piece);
        assert_eq!(foreign(Some("bool")), piece);
        assert_eq!(foreign(Some("float16")), [2, 1, 4, 3, 6, 5, 8, 7]);
        assert_eq!(foreign(Some("complex64")), [4, 3, 2, 1, 8, 7, 6, 5]);
        assert_eq!(foreign(Some("uint64")), [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(native(Some("int32"), &piece[1..], Order::FOREIGN), None);
        assert_eq!(native(Some("float16"), &piece[1..], Order::FOREIGN), None);
        assert!(native(Some("float16"), &piece[1..], Order::NATIVE).is_some());
    }

    #[test]
    fn readers_are_users_and_groups() {
        let readers = ["ben", "@quants"].map(str::to_owned);
        assert_eq!(problem_of_readers(&readers), None);
        for wrong in ["", "@", "a\nb"] {
            assert!(problem_of_readers(&[wrong.to_owned()]).is_some(), "{wrong}");
        }
    }
}
