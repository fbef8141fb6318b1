//! One end of a connection: frames out with a queue, frames in with streams put together.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use gridrpc_wire::{
    Frame, HEADER_LEN, Header, Kind, MAX_BODY, Message, Order, Place, Section, WireError,
    data_header,
};
use thiserror::Error;

use crate::loan::{Sink, Source};
use crate::transport::Transport;

/// Why a connection cannot go on.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The other end sent what is no message.
    #[error("broken message: {0}")]
    Wire(#[from] WireError),
    /// The other end sent a message that has no place here.
    #[error("unexpected message: {0}")]
    Unexpected(String),
    /// Memory that the other end has lent could not be mapped. The connection goes on.
    #[error("there is no room for {bytes} bytes of shared memory: {why}")]
    NoRoom {
        /// How much.
        bytes: u64,
        /// What the system said.
        why: String,
    },
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

/// What both halves of a connection use.
pub type Socket = Arc<dyn Transport>;

#[derive(Debug)]
enum Out {
    Bytes(Vec<u8>),
    /// Descriptors that go with the first byte of what follows.
    Descriptors(Vec<Arc<OwnedFd>>),
    Slice(Arc<Source>, Range<usize>),
    /// What is behind it waits until the gate is opened.
    Gate,
}

impl Out {
    fn len(&self) -> usize {
        match self {
            Out::Bytes(bytes) => bytes.len(),
            Out::Slice(_, range) => range.len(),
            Out::Descriptors(_) | Out::Gate => 0,
        }
    }
}

/// The sending half. Nothing is sent before [`Sender::flush`].
#[derive(Debug)]
pub struct Sender {
    socket: Socket,
    queue: VecDeque<Out>,
    /// Bytes of the first entry that have been sent.
    sent: usize,
    /// Bytes of the connection so far.
    position: u64,
    /// Whether the transport kept some of them itself when it was last asked.
    kept: bool,
}

impl Sender {
    /// The sending half of a connection over `socket`.
    #[must_use]
    pub fn new(socket: Socket) -> Sender {
        Sender { socket, queue: VecDeque::new(), sent: 0, position: 0, kept: false }
    }

    /// Appends a message.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    pub fn push(&mut self, message: &Message<'_>) -> Result<(), WireError> {
        message.encode(Order::NATIVE, self.tail())
    }

    /// Puts a message before the first gate; without one, behind all.
    ///
    /// # Errors
    /// As [`Sender::push`].
    pub fn push_ahead(&mut self, message: &Message<'_>) -> Result<(), WireError> {
        match self.queue.iter().position(|out| matches!(out, Out::Gate)) {
            None => self.push(message),
            Some(gate) => {
                let mut frame = Vec::new();
                message.encode(Order::NATIVE, &mut frame)?;
                self.queue.insert(gate, Out::Bytes(frame));
                Ok(())
            }
        }
    }

    /// Appends a message that descriptors go with.
    ///
    /// # Errors
    /// As [`Sender::push`].
    pub fn push_with(
        &mut self,
        message: &Message<'_>,
        descriptors: Vec<Arc<OwnedFd>>,
    ) -> Result<(), WireError> {
        let mut frame = Vec::new();
        message.encode_with(descriptors.len() as u16, Order::NATIVE, &mut frame)?;
        self.queue.push_back(Out::Descriptors(descriptors));
        self.queue.push_back(Out::Bytes(frame));
        Ok(())
    }

    /// Appends the bytes of a streamed section of the message pushed before.
    ///
    /// # Errors
    /// Never, as the pieces are cut to fit.
    pub fn push_stream(&mut self, bytes: &Arc<Source>) -> Result<(), WireError> {
        for start in (0..bytes.len()).step_by(MAX_BODY) {
            let end = bytes.len().min(start + MAX_BODY);
            let header = data_header(Order::NATIVE, 0, end - start)?;
            self.tail().extend_from_slice(&header);
            self.queue.push_back(Out::Slice(Arc::clone(bytes), start..end));
        }
        Ok(())
    }

    fn tail(&mut self) -> &mut Vec<u8> {
        if !matches!(self.queue.back(), Some(Out::Bytes(_))) {
            self.queue.push_back(Out::Bytes(Vec::with_capacity(SMALL)));
        }
        match self.queue.back_mut() {
            Some(Out::Bytes(bytes)) => bytes,
            _ => unreachable!("a byte buffer was just put there"),
        }
    }

    /// What is pushed from here on waits until [`Sender::open_gate`].
    pub fn push_gate(&mut self) {
        self.queue.push_back(Out::Gate);
    }

    /// Whether everything before the first gate has been sent.
    #[must_use]
    pub fn is_at_gate(&self) -> bool {
        !self.kept && matches!(self.queue.front(), Some(Out::Gate))
    }

    /// Takes the gate away that everything before has been sent of.
    pub fn open_gate(&mut self) {
        if self.is_at_gate() {
            self.queue.pop_front();
        }
    }

    /// Sends as much as the socket takes, up to the first gate. `Ok(true)`: everything.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        loop {
            let mut descriptors: &[Arc<OwnedFd>] = &[];
            let mut front = 0;
            if let Some(Out::Descriptors(list)) = self.queue.front() {
                descriptors = list;
                front = 1;
            }
            let left = match self.queue.get(front) {
                None => return self.flush_transport(),
                Some(Out::Gate) => return self.flush_transport().map(|_| false),
                Some(Out::Bytes(bytes)) => bytes.len() - self.sent,
                Some(Out::Slice(_, range)) => range.len() - self.sent,
                Some(Out::Descriptors(_)) => unreachable!("bytes follow descriptors"),
            };
            if left == 0 {
                if self.queue.len() == 1 {
                    // The buffer that is kept for next time.
                    return self.flush_transport();
                }
                self.recycle_front();
                continue;
            }
            let raw: Vec<i32> = descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
            let sent = match self.queue.get(front) {
                Some(Out::Bytes(bytes)) => self.socket.send(&bytes[self.sent..], &raw),
                Some(Out::Slice(whole, range)) => whole.with(|whole| {
                    self.socket.send(&whole[range.start + self.sent..range.end], &raw)
                }),
                _ => unreachable!("looked at above"),
            };
            match sent {
                Ok(count) => {
                    let done = count == left;
                    if front == 1 {
                        self.queue.pop_front();
                    }
                    self.sent += count;
                    self.position += count as u64;
                    if done {
                        self.recycle_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Has the transport send what it keeps itself. `Ok(true)`: nothing is left.
    fn flush_transport(&mut self) -> io::Result<bool> {
        loop {
            match self.socket.flush() {
                Ok(empty) => {
                    self.kept = !empty;
                    return Ok(empty);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Drops the sent entry at the front; a small buffer that is alone is kept for next time.
    fn recycle_front(&mut self) {
        self.sent = 0;
        if self.queue.len() == 1
            && let Some(Out::Bytes(bytes)) = self.queue.front_mut()
            && bytes.capacity() <= KEEP
        {
            return bytes.clear();
        }
        self.queue.pop_front();
    }

    /// How many bytes of the connection have been sent.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// All that waits to be sent, if that is bytes only: nothing that a descriptor goes with, that
    /// lies elsewhere, or that waits at a gate.
    #[must_use]
    pub fn plain(&self) -> Option<&[u8]> {
        let mut queue = self.queue.iter();
        match (queue.next(), queue.next()) {
            (None, _) => Some(&[]),
            (Some(Out::Bytes(bytes)), None) => Some(&bytes[self.sent..]),
            _ => None,
        }
    }

    /// Leaves out the first bytes of what waits: the other end has them by other means.
    pub fn skip(&mut self, count: usize) {
        if let Some(Out::Bytes(bytes)) = self.queue.front() {
            let count = count.min(bytes.len() - self.sent);
            self.sent += count;
            self.position += count as u64;
            if self.sent == bytes.len() {
                self.recycle_front();
            }
        }
    }

    /// The socket, to keep.
    #[must_use]
    pub fn shared_socket(&self) -> Socket {
        Arc::clone(&self.socket)
    }

    /// How much waits to be sent, bytes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.iter().map(Out::len).sum()
    }

    /// How much is on its way, up to the first gate: what waits to be sent, and what the socket has
    /// taken and the other end has not confirmed. Bytes.
    #[must_use]
    pub fn under_way(&self) -> usize {
        let before = self.queue.iter().take_while(|out| !matches!(out, Out::Gate));
        let waiting: usize = before.map(Out::len).sum();
        waiting - self.sent + self.socket.unconfirmed()
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket()
    }
}

/// What most messages fit in, bytes.
const SMALL: usize = 256;
/// Buffers up to this size are used again.
const KEEP: usize = 256 << 10;

/// A message that has come in whole.
#[derive(Debug)]
pub struct Received<'a> {
    /// The message.
    pub message: Message<'a>,
    /// The sender's byte order.
    pub order: Order,
    /// The contents of its streamed sections, in their order.
    pub streams: Vec<Stream>,
    /// The descriptors that came with it; fewer if this process may have no more.
    pub descriptors: Vec<OwnedFd>,
}

/// A streamed section that has come.
#[derive(Debug)]
pub enum Stream {
    /// In a buffer of its own.
    Bytes(Vec<u8>),
    /// Where its caller wants it; so many bytes of it.
    Placed(Arc<Sink>, usize),
}

impl Stream {
    fn len(&self) -> usize {
        match self {
            Stream::Bytes(bytes) => bytes.len(),
            Stream::Placed(_, len) => *len,
        }
    }

    /// Its bytes, if they are in a buffer.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Stream::Bytes(bytes) => bytes,
            Stream::Placed(..) => Vec::new(),
        }
    }
}

/// Says where the streamed sections of a message are to lie, one place for each, if not in buffers.
pub type Placement = Box<dyn FnMut(&Message<'_>, &[usize]) -> Vec<Option<Arc<Sink>>> + Send>;

/// An answer whose streamed sections are still coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coming {
    /// Which one on its connection.
    pub number: u64,
    /// What all of its streams hold, bytes.
    pub total: usize,
    /// How much of that has not come, bytes.
    pub left: usize,
}

/// A message whose streamed sections are still coming.
#[derive(Debug)]
struct Pending {
    /// Which one with streams on its connection.
    number: u64,
    /// Whether it answers a call.
    answer: bool,
    frame: Vec<u8>,
    lengths: Vec<usize>,
    /// Where they are to lie, for those that have a place; shorter if the last ones have none.
    places: Vec<Option<Arc<Sink>>>,
    streams: Vec<Stream>,
    descriptors: Vec<OwnedFd>,
}

impl Pending {
    /// What the stream that is being filled still wants, bytes.
    fn wanted(&self) -> usize {
        let filling = self.streams.len() - 1;
        self.lengths[filling] - self.streams[filling].len()
    }

    /// Opens the next stream if this one is full. `true`: all are.
    fn advance(&mut self, spare: &mut Vec<Vec<u8>>) -> Result<bool, LinkError> {
        while self.streams.is_empty() || self.wanted() == 0 {
            let index = self.streams.len();
            let Some(len) = self.lengths.get(index).copied() else { return Ok(true) };
            let place = self.places.get_mut(index).and_then(Option::take);
            self.streams.push(match place.filter(|place| place.len() == len) {
                Some(place) => Stream::Placed(place, 0),
                None => Stream::Bytes(buffer(spare, len)?),
            });
        }
        Ok(false)
    }

    fn fill(&mut self) -> Option<&mut Stream> {
        self.streams.last_mut()
    }
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
    pending: Option<Pending>,
    /// Messages with streams so far.
    streamed: u64,
    /// Bytes of the `Data` frame being read that have not come yet.
    data_left: usize,
    max_payload: u64,
    placement: Option<Placement>,
    /// Buffers of streams that were given back.
    spare: Vec<Vec<u8>>,
    /// Bytes of the connection so far.
    position: u64,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// What a receive buffer starts with.
const BUFFER: usize = 64 << 10;
/// Buffers for streams that are kept, and how large they may be, bytes: warm memory is far cheaper
/// than new.
const SPARE: usize = 4;
const LARGEST_SPARE: usize = 256 << 20;
const SMALLEST_SPARE: usize = 64 << 10;

impl Receiver {
    /// The receiving half of a connection over `socket`. Messages with more than `max_payload`
    /// streamed bytes are refused.
    #[must_use]
    pub fn new(socket: Socket, max_payload: u64) -> Receiver {
        Receiver {
            socket,
            buffer: Vec::new(),
            filled: 0..0,
            descriptors: VecDeque::new(),
            pending: None,
            streamed: 0,
            data_left: 0,
            max_payload,
            placement: None,
            spare: Vec::new(),
            position: 0,
        }
    }

    /// Has `placement` say where streamed sections are to lie.
    pub fn place_streams(&mut self, placement: Placement) {
        self.placement = Some(placement);
    }

    /// Takes a buffer back that a stream came in.
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

    /// Whether [`Receiver::fill`] gives something although the socket need not be readable.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.socket.has_more()
    }

    /// The answer that has been announced and has not come in whole.
    #[must_use]
    pub fn coming(&self) -> Option<Coming> {
        let pending = self.pending.as_ref().filter(|pending| pending.answer)?;
        let total = pending.lengths.iter().sum();
        let come: usize = pending.streams.iter().map(Stream::len).sum();
        Some(Coming { number: pending.number, total, left: total - come })
    }

    /// Reads once from the socket. Returns how many bytes came; 0 at the end of the stream.
    ///
    /// # Errors
    /// As [`Transport::receive`]; `WouldBlock` when a non-blocking socket has nothing.
    pub fn fill(&mut self) -> io::Result<usize> {
        let count = self.receive()?;
        self.position += count as u64;
        Ok(count)
    }

    /// How many bytes of the connection have come.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes bytes of the connection that come by other means than the socket: whole frames without
    /// streams and descriptors.
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
        if self.filled.is_empty() {
            self.filled = 0..0;
            // The bulk of a stream goes straight to its place.
            if self.data_left > 0
                && let Some(stream) = self.pending.as_mut().and_then(Pending::fill)
            {
                let got = match stream {
                    Stream::Bytes(bytes) => self.socket.receive_behind(bytes, self.data_left),
                    Stream::Placed(place, filled) => {
                        let got = place.receive(&*self.socket, *filled, self.data_left);
                        *filled += got.as_ref().copied().unwrap_or(0);
                        got
                    }
                };
                self.data_left -= got.as_ref().copied().unwrap_or(0);
                return got;
            }
        }
        if self.buffer.is_empty() {
            self.buffer.resize(BUFFER, 0);
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
        let free = &mut self.buffer[self.filled.end..];
        let count = self.socket.receive(free, &mut self.descriptors)?;
        self.filled.end += count;
        Ok(count)
    }

    /// Hands every message that is whole to `handle`, in order.
    ///
    /// # Errors
    /// When the bytes are no messages, or `handle` says so.
    pub fn drain<E: From<LinkError>>(
        &mut self,
        mut handle: impl FnMut(Received<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.drain_one(&mut handle)? {}
        Ok(())
    }

    /// Hands over at most one message. `true`: there may be more.
    ///
    /// # Errors
    /// As [`Receiver::drain`].
    pub fn drain_one<E: From<LinkError>>(
        &mut self,
        handle: &mut impl FnMut(Received<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.take_data();
        if let Some(pending) = &mut self.pending {
            if self.data_left > 0 {
                return Ok(false);
            }
            if pending.advance(&mut self.spare)? {
                let Some(pending) = self.pending.take() else { return Ok(true) };
                let frame = parse_whole(&pending.frame)?;
                let message = Message::decode(&frame).map_err(LinkError::from)?;
                let Pending { streams, descriptors, .. } = pending;
                handle(Received { message, order: frame.header.order, streams, descriptors })?;
                return Ok(true);
            }
        }
        let bytes = &self.buffer[self.filled.clone()];
        let Some(header) = Header::parse(bytes).map_err(LinkError::from)? else {
            return Ok(false);
        };
        if header.kind == Kind::Data {
            self.begin_data(header)?;
            return Ok(true);
        }
        if self.pending.is_some() {
            return Err(unexpected("another message amid a streamed section").into());
        }
        let end = HEADER_LEN + header.body_len;
        let Some(body) = bytes.get(HEADER_LEN..end) else { return Ok(false) };
        let frame = Frame { header, body };
        let count = usize::from(header.descriptors);
        if count > self.descriptors.len() {
            return Err(unexpected("a message without the descriptors it announces").into());
        }
        let descriptors: Vec<OwnedFd> = self.descriptors.drain(..count).flatten().collect();
        let message = Message::decode(&frame).map_err(LinkError::from)?;
        let lengths = self.stream_lengths(&message)?;
        if lengths.is_empty() {
            self.filled.start += end;
            handle(Received { message, order: header.order, streams: Vec::new(), descriptors })?;
        } else {
            let places = match &mut self.placement {
                Some(placement) => placement(&message, &lengths),
                None => Vec::new(),
            };
            let frame = bytes[..end].to_vec();
            let answer = matches!(header.kind, Kind::Reply | Kind::Failure);
            self.streamed += 1;
            self.filled.start += end;
            self.pending = Some(Pending {
                number: self.streamed,
                answer,
                frame,
                lengths,
                places,
                streams: Vec::new(),
                descriptors,
            });
        }
        Ok(true)
    }

    fn stream_lengths(&self, message: &Message<'_>) -> Result<Vec<usize>, LinkError> {
        let mut lengths = Vec::new();
        let mut total = 0;
        for section in sections(message) {
            if section.place == Place::Stream {
                total += section.len;
                lengths.push(section.len as usize);
            }
        }
        if total > self.max_payload {
            let limit = self.max_payload;
            return Err(unexpected(&format!("{total} bytes of data, above the limit of {limit}")));
        }
        Ok(lengths)
    }

    fn begin_data(&mut self, header: Header) -> Result<(), LinkError> {
        let wanted = self.pending.as_ref().map(Pending::wanted);
        match wanted {
            None => Err(unexpected("data that belongs to no message")),
            Some(wanted) if header.body_len == 0 || header.body_len > wanted => {
                Err(unexpected("data that does not fit its section"))
            }
            Some(_) => {
                self.filled.start += HEADER_LEN;
                self.data_left = header.body_len;
                self.take_data();
                Ok(())
            }
        }
    }

    /// Moves bytes of a `Data` frame that are in the buffer to their stream.
    fn take_data(&mut self) {
        let count = self.data_left.min(self.filled.len());
        if count > 0
            && let Some(stream) = self.pending.as_mut().and_then(Pending::fill)
        {
            let start = self.filled.start;
            let bytes = &self.buffer[start..start + count];
            match stream {
                Stream::Bytes(stream) => stream.extend_from_slice(bytes),
                Stream::Placed(place, filled) => {
                    place.write(*filled, bytes);
                    *filled += count;
                }
            }
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

/// The sections of a message, if it is of a kind that has any.
fn sections<'m, 'a>(message: &'m Message<'a>) -> &'m [Section<'a>] {
    match message {
        Message::Function { sections, .. }
        | Message::Call { sections, .. }
        | Message::Reply { sections, .. }
        | Message::Failure { sections, .. }
        | Message::Callback { sections, .. }
        | Message::CallbackReply { sections, .. }
        | Message::Blob { sections, .. } => sections,
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
