//! Reading and writing primitive values in either byte order, every read checked.

use thiserror::Error;

/// Maximum length of a readable text, bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// Byte order of a frame: its sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least significant byte first; `l` in the frame header.
    Little,
    /// Most significant byte first; `B` in the frame header.
    Big,
}

impl Default for Order {
    /// The order of this machine.
    fn default() -> Order {
        Order::NATIVE
    }
}

impl Order {
    /// The order of this machine.
    pub const NATIVE: Order =
        if cfg!(target_endian = "little") { Order::Little } else { Order::Big };

    /// The order that this machine does not have.
    pub const FOREIGN: Order =
        if cfg!(target_endian = "little") { Order::Big } else { Order::Little };

    pub(crate) fn mark(self) -> u8 {
        match self {
            Order::Little => b'l',
            Order::Big => b'B',
        }
    }

    pub(crate) fn from_mark(mark: u8) -> Option<Order> {
        match mark {
            b'l' => Some(Order::Little),
            b'B' => Some(Order::Big),
            _ => None,
        }
    }
}

/// Reason why bytes are not a valid message, or a message does not fit the format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The first two bytes are not `GR`.
    #[error("not a gridrpc frame: it starts with {0:02x?}; is the other end gridrpc?")]
    Magic([u8; 2]),
    /// The frame has a format version that this program does not support.
    #[error(
        "frame of format version {0}, but this program speaks version {speaks}; update the older end",
        speaks = VERSION
    )]
    Version(u8),
    /// The byte-order mark is neither `l` nor `B`.
    #[error("unknown byte-order mark {0:#04x}")]
    ByteOrder(u8),
    /// The kind of message is unknown.
    #[error("unknown message kind {0}")]
    Kind(u8),
    /// A header field that must be zero is not.
    #[error("reserved field is {0}, not 0")]
    Reserved(u32),
    /// A length or count exceeds the limit of the format.
    #[error("{what} is {value}, above the bound of {limit}")]
    TooLarge {
        /// The counted quantity.
        what: &'static str,
        /// The value found.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// The body ends inside a field.
    #[error("body ends inside `{0}`")]
    Truncated(&'static str),
    /// The body is longer than its message.
    #[error("{0} bytes behind the end of the message")]
    Trailing(usize),
    /// A text is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    Text(&'static str),
    /// A field has an undefined value.
    #[error("`{what}` has the meaningless value {value}")]
    Meaningless {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Limit of a list without a limit of its own: the maximum of its count.
pub(crate) const ANY_COUNT: usize = u16::MAX as usize;

/// A cursor over received bytes.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    order: Order,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: Order) -> Self {
        Reader { rest: bytes, order }
    }

    pub(crate) fn bytes(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(WireError::Truncated(what))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated(what))?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        let raw = self.array(what)?;
        Ok(match self.order {
            Order::Little => u16::from_le_bytes(raw),
            Order::Big => u16::from_be_bytes(raw),
        })
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        let raw = self.array(what)?;
        Ok(match self.order {
            Order::Little => u32::from_le_bytes(raw),
            Order::Big => u32::from_be_bytes(raw),
        })
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, WireError> {
        let raw = self.array(what)?;
        Ok(match self.order {
            Order::Little => u64::from_le_bytes(raw),
            Order::Big => u64::from_be_bytes(raw),
        })
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let len = self.u32(what)? as usize;
        std::str::from_utf8(self.bytes(len, what)?).map_err(|_| WireError::Text(what))
    }

    /// Reads a count of items of at least `item` bytes each. Rejects a count above `limit`, and one that the body
    /// cannot hold.
    pub(crate) fn count(
        &mut self,
        item: usize,
        limit: usize,
        what: &'static str,
    ) -> Result<usize, WireError> {
        let count = self.u16(what)? as usize;
        bounded(what, count as u64, limit as u64)?;
        if count * item > self.rest.len() {
            return Err(WireError::Truncated(what));
        }
        Ok(count)
    }

    /// Reads `count` items. The count has been checked, so the list is allocated once and exactly: growing step by
    /// step would take up to three times as much.
    pub(crate) fn list<T>(
        &mut self,
        count: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing(self.rest.len())) }
    }
}

/// An encoder that appends to a buffer.
pub(crate) struct Writer<'b> {
    pub(crate) out: &'b mut Vec<u8>,
    pub(crate) order: Order,
}

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        match self.order {
            Order::Little => self.out.extend_from_slice(&value.to_le_bytes()),
            Order::Big => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    pub(crate) fn u32(&mut self, value: u32) {
        match self.order {
            Order::Little => self.out.extend_from_slice(&value.to_le_bytes()),
            Order::Big => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    pub(crate) fn u64(&mut self, value: u64) {
        match self.order {
            Order::Little => self.out.extend_from_slice(&value.to_le_bytes()),
            Order::Big => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    pub(crate) fn text(&mut self, value: &str) -> Result<(), WireError> {
        // The limit on the body would reject it too, but only after copying all of it.
        bounded("text length", value.len() as u64, MAX_BODY as u64)?;
        self.u32(value.len() as u32);
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    /// Writes a readable text. Longer ones are cut to their last [`MAX_TEXT`] bytes, because the end of a trace is
    /// the most useful part. A long text must not prevent the message from being sent.
    pub(crate) fn prose(&mut self, value: &str) {
        let mut start = value.len().saturating_sub(MAX_TEXT);
        while !value.is_char_boundary(start) {
            start += 1;
        }
        let end = &value.as_bytes()[start..];
        self.u32(end.len() as u32);
        self.out.extend_from_slice(end);
    }

    pub(crate) fn count(&mut self, count: usize, what: &'static str) -> Result<(), WireError> {
        let value = u16::try_from(count).map_err(|_| WireError::TooLarge {
            what,
            value: count as u64,
            limit: u16::MAX.into(),
        })?;
        self.u16(value);
        Ok(())
    }
}

pub(crate) fn bounded(what: &'static str, value: u64, limit: u64) -> Result<(), WireError> {
    if value <= limit { Ok(()) } else { Err(WireError::TooLarge { what, value, limit }) }
}

/// Format version of this crate.
pub const VERSION: u8 = 3;

/// Maximum length of a frame's body, bytes. Longer payloads are sent as several `Data` frames.
pub const MAX_BODY: usize = 1 << 20;
