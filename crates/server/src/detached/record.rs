//! The file of a detached call: a header, and the bytes of its arguments or of its result.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write};

use gridrpc_wire::{Order, RemoteError};
use serde::{Deserialize, Serialize};

/// Longest header, bytes.
const MAX_HEADER: u32 = 1 << 20;

/// Number of a detached call. It is random: whoever does not know it cannot guess it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DetachedId(u128);

impl DetachedId {
    pub(crate) fn random() -> io::Result<DetachedId> {
        Ok(DetachedId(u128::from_ne_bytes(gridrpc_sys::random()?)))
    }

    /// The id in a text, which has 32 lower-case hexadecimal digits and nothing else.
    pub(crate) fn parse(text: &str) -> Option<DetachedId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == 32 && text.bytes().all(is_digit);
        is_id.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(DetachedId)
    }
}

impl fmt::Display for DetachedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Why a detached call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFailure {
    /// Name of the error, as in a `Failure`.
    pub(crate) error: String,
    /// Message for people.
    pub(crate) message: String,
    /// Stack trace.
    #[serde(default)]
    pub(crate) trace: String,
}

impl StoredFailure {
    pub(crate) fn new(error: RemoteError, message: impl Into<String>) -> StoredFailure {
        let (error, message) = (error.name().to_owned(), message.into());
        StoredFailure { error, message, trace: String::new() }
    }

    /// Whether there was a result, which has been removed.
    pub(crate) fn is_removal(&self) -> bool {
        RemoteError::from_name(&self.error) == Some(RemoteError::CallNotFound)
    }
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The owner.
    pub(crate) user: String,
    /// Groups of the owner when the call was detached.
    pub(crate) groups: Vec<String>,
    /// `module/function`.
    pub(crate) function: String,
    /// The hash of the interface that the client knew.
    pub(crate) hash: String,
    /// Whether the call may run again.
    pub(crate) idempotent: bool,
    /// When it was detached, seconds since 1970. For people.
    pub(crate) submitted: u64,
    /// Why it has failed; none: it has not ended, or has a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<StoredFailure>,
    /// The byte order of the arguments.
    #[serde(default = "is_big")]
    pub(crate) big_endian: bool,
    /// Length of each section, bytes. The first one has the values of the arguments; in the file of a result, those of
    /// the result follow.
    pub(crate) sections: Vec<u64>,
}

fn is_big() -> bool {
    Order::NATIVE == Order::Big
}

impl Record {
    /// The byte order of the arguments.
    pub(crate) fn order(&self) -> Order {
        if self.big_endian { Order::Big } else { Order::Little }
    }

    /// Writes header and sections, whose lengths it records.
    pub(crate) fn write(&mut self, to: &mut impl Write, sections: &[&[u8]]) -> io::Result<()> {
        self.sections = sections.iter().map(|section| section.len() as u64).collect();
        let header = serde_json::to_vec(self)?;
        let length = u32::try_from(header.len()).unwrap_or(u32::MAX);
        if length > MAX_HEADER {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the header is too long"));
        }
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&header)?;
        sections.iter().try_for_each(|section| to.write_all(section))
    }

    /// Reads the header and the first `most` sections.
    pub(crate) fn read(from: &mut File, most: usize) -> io::Result<(Record, Vec<Vec<u8>>)> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut left = from.metadata()?.len();
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        left = left.saturating_sub(4);
        if length > MAX_HEADER || u64::from(length) > left {
            return Err(damaged("the header is longer than the file"));
        }
        let mut header = vec![0; length as usize];
        from.read_exact(&mut header)?;
        left -= u64::from(length);
        let record: Record = serde_json::from_slice(&header)?;
        let mut sections = Vec::new();
        for length in record.sections.iter().take(most) {
            left = left
                .checked_sub(*length)
                .ok_or_else(|| damaged("a section is longer than the file"))?;
            let mut section = Vec::new();
            let length = usize::try_from(*length).map_err(|_| io::ErrorKind::OutOfMemory)?;
            section.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
            section.resize(length, 0);
            from.read_exact(&mut section)?;
            sections.push(section);
        }
        Ok((record, sections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_32_lower_case_digits() {
        let id = DetachedId::random().unwrap();
        assert_eq!(DetachedId::parse(&id.to_string()), Some(id));
        let shout = "A".repeat(32);
        let long = "0".repeat(33);
        for text in ["", "0", "../../../../../../../etc/passwd0", &shout, &long] {
            assert_eq!(DetachedId::parse(text), None, "{text}");
        }
    }
}
