//! Frames: a header of sixteen bytes and a body of bounded length.

use crate::bytes::{MAX_BODY, Order, Reader, VERSION, WireError, bounded};
use crate::kind::Kind;

/// Length of a frame header, bytes.
pub const HEADER_LEN: usize = 16;
/// Maximum number of descriptors of a frame.
pub const MAX_DESCRIPTORS: u16 = 250;

const MAGIC: [u8; 2] = *b"GR";

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender's byte order.
    pub order: Order,
    /// Content of the body.
    pub kind: Kind,
    /// Number of file descriptors that came with the frame.
    pub descriptors: u16,
    /// Length of the body, bytes.
    pub body_len: usize,
    /// For a `Data` frame: the number of the message whose streams it continues.
    pub stream: u32,
}

/// A whole frame, borrowed from the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header.
    pub header: Header,
    /// The body.
    pub body: &'a [u8],
}

impl Header {
    /// Parses the first sixteen bytes of a frame; `None` if there are fewer.
    ///
    /// # Errors
    /// When the bytes are not the header of a frame of this version, or exceed its limits.
    pub fn parse(bytes: &[u8]) -> Result<Option<Header>, WireError> {
        let Some(raw) = bytes.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        if raw[..2] != MAGIC {
            return Err(WireError::Magic([raw[0], raw[1]]));
        }
        if raw[2] != VERSION {
            return Err(WireError::Version(raw[2]));
        }
        let order = Order::from_mark(raw[3]).ok_or(WireError::ByteOrder(raw[3]))?;
        let kind = Kind::from_code(raw[4]).ok_or(WireError::Kind(raw[4]))?;
        let mut rest = Reader::new(&raw[5..], order);
        let flags = rest.u8("flags")?;
        let descriptors = rest.u16("descriptors")?;
        let body_len = rest.u32("body length")?;
        let stream = rest.u32("stream")?;
        let goes_on = matches!(kind, Kind::Data | Kind::Packed);
        if flags != 0 || stream != 0 && !goes_on {
            return Err(WireError::Reserved(u32::from(flags) | stream));
        }
        bounded("number of descriptors", descriptors.into(), MAX_DESCRIPTORS.into())?;
        bounded("body length", body_len.into(), MAX_BODY as u64)?;
        Ok(Some(Header { order, kind, descriptors, body_len: body_len as usize, stream }))
    }

    /// The sixteen bytes of this header.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let little = self.order == Order::Little;
        let count =
            if little { self.descriptors.to_le_bytes() } else { self.descriptors.to_be_bytes() };
        let len = self.body_len as u32;
        let len = if little { len.to_le_bytes() } else { len.to_be_bytes() };
        let mut raw = [0; HEADER_LEN];
        raw[..2].copy_from_slice(&MAGIC);
        raw[2..6].copy_from_slice(&[VERSION, self.order.mark(), self.kind as u8, 0]);
        raw[6..8].copy_from_slice(&count);
        raw[8..12].copy_from_slice(&len);
        let stream = self.stream;
        let stream = if little { stream.to_le_bytes() } else { stream.to_be_bytes() };
        raw[12..].copy_from_slice(&stream);
        raw
    }
}

impl<'a> Frame<'a> {
    /// Parses one frame from the front of `bytes`. Returns it and its length; `None` if it is incomplete.
    ///
    /// # Errors
    /// As [`Header::parse`].
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, WireError> {
        let Some(header) = Header::parse(bytes)? else {
            return Ok(None);
        };
        let end = HEADER_LEN + header.body_len;
        Ok(bytes.get(HEADER_LEN..end).map(|body| (Frame { header, body }, end)))
    }
}

/// The header of a `Data` frame with `len` bytes of payload, which continue the streams of message number `stream`.
///
/// # Errors
/// When `len` is above [`MAX_BODY`].
pub fn data_header(order: Order, stream: u32, len: usize) -> Result<[u8; HEADER_LEN], WireError> {
    bounded("body length", len as u64, MAX_BODY as u64)?;
    Ok(Header { order, kind: Kind::Data, descriptors: 0, body_len: len, stream }.to_bytes())
}
