//! Receiving half of a connection: incoming frames with reassembled streams.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use gridrpc_wire::{
    Frame, HEADER_LEN, Header, Kind, MAX_BODY, MAX_DESCRIPTORS, Message, Order, Place,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::buffers::Sink;
use crate::{LinkError, Socket, sections};

/// A message received in full.
#[derive(Debug)]
pub struct Received<'a> {
    /// The message.
    pub message: Message<'a>,
    /// The sender's byte order.
    pub order: Order,
    /// The contents of its streamed sections, in order.
    pub streams: Vec<Stream>,
    /// Its descriptors; fewer if this process may have no more.
    pub descriptors: Vec<OwnedFd>,
}

/// A received streamed section.
#[derive(Debug)]
pub enum Stream {
    /// In a separate buffer.
    Bytes(Vec<u8>),
    /// In its destination, with the number of bytes.
    Placed(Arc<Sink>, usize),
    /// Dropped, with the number of bytes: the message has more than the receiver accepts.
    Dropped(usize),
}

impl Stream {
    fn len(&self) -> usize {
        match self {
            Stream::Bytes(bytes) => bytes.len(),
            Stream::Placed(_, len) | Stream::Dropped(len) => *len,
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        match self {
            Stream::Bytes(stream) => stream.extend_from_slice(bytes),
            Stream::Placed(place, filled) => {
                place.write(*filled, bytes);
                *filled += bytes.len();
            }
            Stream::Dropped(len) => *len += bytes.len(),
        }
    }

    /// Its bytes, if they are in a buffer.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Stream::Bytes(bytes) => bytes,
            Stream::Placed(..) | Stream::Dropped(_) => Vec::new(),
        }
    }
}

/// Selects the destinations of a message's streamed sections, one for each, or `None` for a buffer.
pub type Placement = Box<dyn FnMut(&Message<'_>, &[usize]) -> Vec<Option<Arc<Sink>>> + Send>;

/// An answer whose streamed sections are still arriving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialAnswer {
    /// Its number on the connection.
    pub number: u32,
    /// Number of bytes in all of its streams.
    pub total: usize,
    /// Number of bytes still to arrive.
    pub left: usize,
}

/// A message whose streamed sections are still arriving.
#[derive(Debug)]
struct Pending {
    /// Its number among those with streams on the connection.
    number: u32,
    /// Whether it answers a call.
    answer: bool,
    /// Whether its streams are dropped.
    is_dropped: bool,
    frame: Vec<u8>,
    lengths: Vec<usize>,
    /// Destinations of its streams; shorter if the last ones have none.
    places: Vec<Option<Arc<Sink>>>,
    streams: Vec<Stream>,
    descriptors: Vec<OwnedFd>,
}

impl Pending {
    /// Number of bytes missing from the current stream.
    fn wanted(&self) -> usize {
        let filling = self.streams.len() - 1;
        self.lengths[filling] - self.streams[filling].len()
    }

    /// Opens the next stream if this one is full. Returns `true` if all are full.
    fn advance(&mut self, spare: &mut Vec<Vec<u8>>) -> Result<bool, LinkError> {
        while self.streams.is_empty() || self.wanted() == 0 {
            let index = self.streams.len();
            let Some(len) = self.lengths.get(index).copied() else { return Ok(true) };
            let place = self.places.get_mut(index).and_then(Option::take);
            self.streams.push(match place.filter(|place| place.len() == len) {
                _ if self.is_dropped => Stream::Dropped(0),
                Some(place) => Stream::Placed(place, 0),
                None => Stream::Bytes(buffer(spare, len)?),
            });
        }
        Ok(false)
    }

    /// Passes on the complete message.
    fn hand_over<E: From<LinkError>>(
        self,
        handle: &mut impl FnMut(Received<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let frame = parse_whole(&self.frame)?;
        let message = Message::decode(&frame).map_err(LinkError::from)?;
        let Pending { streams, descriptors, .. } = self;
        handle(Received { message, order: frame.header.order, streams, descriptors })
    }
}

/// The stream that is being filled.
fn current(pending: &mut [Pending], index: Option<usize>) -> Option<&mut Stream> {
    pending.get_mut(index?)?.streams.last_mut()
}

/// An empty buffer for `len` bytes, warm if there is one.
fn buffer(spare: &mut Vec<Vec<u8>>, len: usize) -> Result<Vec<u8>, LinkError> {
    let fits = |spare: &Vec<u8>| spare.capacity() >= len && spare.capacity() / 4 <= len;
    if let Some(index) = spare.iter().position(fits) {
        return Ok(spare.swap_remove(index));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| {
        LinkError::Unexpected(format!("a section of {len} bytes, more than memory holds"))
    })?;
    Ok(bytes)
}

/// The receiving half.
pub struct Receiver {
    socket: Socket,
    buffer: Vec<u8>,
    filled: Range<usize>,
    descriptors: VecDeque<Option<OwnedFd>>,
    /// Messages whose streams are still arriving.
    pending: Vec<Pending>,
    /// The message of the last `Data` frame.
    current: Option<usize>,
    /// Number of messages with streams so far.
    streamed: u32,
    /// Bytes of the current `Data` frame that have not arrived.
    data_left: usize,
    max_payload: u64,
    /// Calls and shared data with more streamed bytes, up to this many, arrive without them.
    most_dropped: u64,
    placement: Option<Placement>,
    /// Returned stream buffers, for reuse.
    spare: Vec<Vec<u8>>,
    /// Number of bytes received on the connection.
    position: u64,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Maximum number of messages whose streams may arrive at the same time.
const MOST_PENDING: usize = 4096;
/// Maximum number of descriptors whose messages have not been read.
const MOST_DESCRIPTORS: usize = 4 * MAX_DESCRIPTORS as usize;
/// Size of a receive buffer, bytes: at first, for an idle connection, and once a read has filled that.
const FIRST: usize = 4 << 10;
const BUFFER: usize = 64 << 10;
/// Number of stream buffers kept for reuse, and their maximum size, bytes: warm memory is far cheaper than new
/// memory.
const SPARE: usize = 4;
const LARGEST_SPARE: usize = 256 << 20;
const SMALLEST_SPARE: usize = 64 << 10;

impl Receiver {
    /// The receiving half of a connection over `socket`. Messages with more than `max_payload` streamed bytes are
    /// rejected.
    #[must_use]
    pub fn new(socket: Socket, max_payload: u64) -> Receiver {
        Receiver {
            socket,
            buffer: Vec::new(),
            filled: 0..0,
            descriptors: VecDeque::new(),
            pending: Vec::new(),
            current: None,
            streamed: 0,
            data_left: 0,
            max_payload,
            most_dropped: 0,
            placement: None,
            spare: Vec::new(),
            position: 0,
        }
    }

    /// Changes the limit of streamed bytes in a message.
    pub fn limit_payload(&mut self, max_payload: u64) {
        self.max_payload = max_payload;
    }

    /// Drops the streamed bytes of calls and shared data above the limit, up to this many, and passes on the rest of the
    /// message.
    pub fn drop_payloads(&mut self, most: u64) {
        self.most_dropped = most;
    }

    /// Sets the function that selects destinations of streamed sections.
    pub fn place_streams(&mut self, placement: Placement) {
        self.placement = Some(placement);
    }

    /// Takes back a stream buffer for reuse.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE && (SMALLEST_SPARE..=LARGEST_SPARE).contains(&buffer.capacity())
        {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket()
    }

    /// Whether messages can bring descriptors.
    #[must_use]
    pub fn carries_descriptors(&self) -> bool {
        self.socket.carries_descriptors()
    }

    /// Whether [`Receiver::fill`] returns data although the socket need not be readable.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.socket.has_more()
    }

    /// Whether [`Receiver::fill`] would return data now.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        if self.has_more() {
            return true;
        }
        let mut waited = [PollFd::new(self.socket(), PollFlags::POLLIN)];
        poll(&mut waited, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// Whether messages have arrived whose streams are incomplete.
    #[must_use]
    pub fn expects_more(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The announced answers that are incomplete, in order.
    pub fn coming(&self) -> impl Iterator<Item = PartialAnswer> + '_ {
        self.pending.iter().filter(|pending| pending.answer).map(|pending| {
            let total = pending.lengths.iter().sum();
            let come: usize = pending.streams.iter().map(Stream::len).sum();
            PartialAnswer { number: pending.number, total, left: total - come }
        })
    }

    /// Reads once from the socket. Returns the number of bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// As [`gridrpc_transport::Transport::receive`]; `WouldBlock` when a non-blocking socket has nothing.
    pub fn fill(&mut self) -> io::Result<usize> {
        let count = self.receive()?;
        self.position += count as u64;
        Ok(count)
    }

    /// Number of bytes received on the connection.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Adds bytes of the connection that arrived by other means than the socket: whole frames without streams and
    /// descriptors.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let end = self.filled.end + bytes.len();
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.buffer[self.filled.end..end].copy_from_slice(bytes);
        self.filled.end = end;
        self.position += bytes.len() as u64;
    }

    fn receive(&mut self) -> io::Result<usize> {
        let most = if self.filled.is_empty() { 0 } else { MOST_DESCRIPTORS };
        if self.descriptors.len() > most {
            let text = "more descriptors arrived than the messages announce";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if self.filled.is_empty() {
            self.filled = 0..0;
            // Most of a stream goes straight to its destination.
            if self.data_left > 0
                && let Some(stream) = current(&mut self.pending, self.current)
            {
                let got = match stream {
                    Stream::Bytes(bytes) => Some(self.socket.receive_behind(bytes, self.data_left)),
                    Stream::Placed(place, filled) => {
                        let got = place.receive(&*self.socket, *filled, self.data_left);
                        *filled += got.as_ref().copied().unwrap_or(0);
                        Some(got)
                    }
                    Stream::Dropped(_) => None,
                };
                if let Some(got) = got {
                    self.data_left -= got.as_ref().copied().unwrap_or(0);
                    return got;
                }
            }
        }
        if self.buffer.is_empty() {
            self.buffer.resize(FIRST, 0);
        }
        if self.filled.end == self.buffer.len() {
            if self.filled.start > 0 {
                self.buffer.copy_within(self.filled.clone(), 0);
                self.filled = 0..self.filled.len();
            } else {
                // One frame is larger than the buffer: at most MAX_BODY and its header.
                self.buffer.resize(HEADER_LEN + MAX_BODY, 0);
            }
        }
        // After a piece of a stream, the header of the next one usually follows. Only the header is read here, so
        // that the piece itself goes straight to its destination.
        let between_pieces =
            !self.pending.is_empty() && self.filled.is_empty() && self.data_left == 0;
        let end = if between_pieces { HEADER_LEN } else { self.buffer.len() };
        let free = &mut self.buffer[self.filled.end..end];
        let count = self.socket.receive(free, &mut self.descriptors)?;
        self.filled.end += count;
        if self.filled.end == self.buffer.len() && self.buffer.len() < BUFFER {
            self.buffer.resize(BUFFER, 0);
        }
        Ok(count)
    }

    /// Passes every complete message to `handle`, in order.
    ///
    /// # Errors
    /// When the bytes are not valid messages, or `handle` fails.
    pub fn drain<E: From<LinkError>>(
        &mut self,
        mut handle: impl FnMut(Received<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.drain_one(&mut handle)? {}
        Ok(())
    }

    /// Passes on at most one message. Returns `true` if there may be more.
    ///
    /// # Errors
    /// As [`Receiver::drain`].
    pub fn drain_one<E: From<LinkError>>(
        &mut self,
        handle: &mut impl FnMut(Received<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.take_data();
        if self.data_left > 0 {
            return Ok(false);
        }
        if let Some(index) = self.current.take()
            && self.pending[index].advance(&mut self.spare)?
        {
            let pending = self.pending.remove(index);
            pending.hand_over(handle)?;
            return Ok(true);
        }
        let bytes = &self.buffer[self.filled.clone()];
        let Some(header) = Header::parse(bytes).map_err(LinkError::from)? else {
            return Ok(false);
        };
        if header.kind == Kind::Data {
            self.begin_data(header)?;
            return Ok(true);
        }
        let end = HEADER_LEN + header.body_len;
        if header.kind == Kind::Packed && bytes.len() >= end {
            self.unpack(header)?;
            return Ok(true);
        }
        let Some(body) = bytes.get(HEADER_LEN..end) else { return Ok(false) };
        let frame = Frame { header, body };
        let count = usize::from(header.descriptors);
        if count > self.descriptors.len() {
            return Err(unexpected("a message without the descriptors it announces").into());
        }
        let descriptors: Vec<OwnedFd> = self.descriptors.drain(..count).flatten().collect();
        let message = Message::decode(&frame).map_err(LinkError::from)?;
        let (lengths, is_dropped) = self.stream_lengths(&message)?;
        if lengths.is_empty() {
            self.filled.start += end;
            handle(Received { message, order: header.order, streams: Vec::new(), descriptors })?;
        } else {
            let places = match &mut self.placement {
                Some(placement) if !is_dropped => placement(&message, &lengths),
                _ => Vec::new(),
            };
            let frame = bytes[..end].to_vec();
            let answer = matches!(header.kind, Kind::Reply | Kind::Failure);
            self.streamed = self.streamed.wrapping_add(1);
            self.filled.start += end;
            let (number, streams) = (self.streamed, Vec::new());
            let mut pending = Pending {
                number,
                answer,
                is_dropped,
                frame,
                lengths,
                places,
                streams,
                descriptors,
            };
            if pending.advance(&mut self.spare)? {
                pending.hand_over(handle)?;
            } else if self.pending.len() < MOST_PENDING {
                self.pending.push(pending);
            } else {
                return Err(unexpected("more streams at once than anybody sends").into());
            }
        }
        Ok(true)
    }

    /// The lengths of the message's streamed sections, and whether their bytes are dropped.
    fn stream_lengths(&self, message: &Message<'_>) -> Result<(Vec<usize>, bool), LinkError> {
        let mut lengths = Vec::new();
        let mut total = 0;
        for section in sections(message) {
            if section.place == Place::Stream {
                total += section.len;
                lengths.push(section.len as usize);
            }
        }
        let is_above = total > self.max_payload;
        let may_be_dropped = total <= self.most_dropped
            && matches!(message, Message::HostCall(_) | Message::Blob { .. });
        if is_above && !may_be_dropped {
            let limit = self.max_payload;
            return Err(unexpected(&format!("{total} bytes of data, above the limit of {limit}")));
        }
        Ok((lengths, is_above))
    }

    fn begin_data(&mut self, header: Header) -> Result<(), LinkError> {
        let known = self.pending.iter().position(|pending| pending.number == header.stream);
        let Some(index) = known else { return Err(unexpected("data that belongs to no message")) };
        if header.body_len == 0 || header.body_len > self.pending[index].wanted() {
            return Err(unexpected("data that does not fit its section"));
        }
        self.filled.start += HEADER_LEN;
        self.current = Some(index);
        self.data_left = header.body_len;
        self.take_data();
        Ok(())
    }

    /// Handles a compressed piece of a stream.
    fn unpack(&mut self, header: Header) -> Result<(), LinkError> {
        let known = self.pending.iter().position(|pending| pending.number == header.stream);
        let Some(index) = known else { return Err(unexpected("data that belongs to no message")) };
        let start = self.filled.start + HEADER_LEN;
        let packed = &self.buffer[start..start + header.body_len];
        let most = self.pending[index].wanted().min(MAX_BODY);
        let piece = zstd::bulk::decompress(packed, most).map_err(|error| {
            unexpected(&format!("packed data that cannot be unpacked: {error}"))
        })?;
        if piece.is_empty() {
            return Err(unexpected("data that does not fit its section"));
        }
        self.filled.start = start + header.body_len;
        self.current = Some(index);
        if let Some(stream) = current(&mut self.pending, self.current) {
            stream.append(&piece);
        }
        Ok(())
    }

    /// Moves buffered bytes of a `Data` frame to their stream.
    fn take_data(&mut self) {
        let count = self.data_left.min(self.filled.len());
        if count > 0
            && let Some(stream) = current(&mut self.pending, self.current)
        {
            let start = self.filled.start;
            let bytes = &self.buffer[start..start + count];
            stream.append(bytes);
            self.filled.start += count;
            self.data_left -= count;
        }
    }
}

fn unexpected(what: &str) -> LinkError {
    LinkError::Unexpected(what.to_owned())
}

fn parse_whole(bytes: &[u8]) -> Result<Frame<'_>, LinkError> {
    match Frame::parse(bytes)? {
        Some((frame, _)) => Ok(frame),
        None => Err(unexpected("a frame that ends early")),
    }
}
