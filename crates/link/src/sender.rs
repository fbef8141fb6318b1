//! Sending half of a connection: a queue of frames, and streams that let other messages pass.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use gridrpc_wire::{Compression, MAX_BODY, Message, Order, Place, WireError, data_header};

use crate::buffers::Source;
use crate::compression::Packing;
use crate::{Socket, sections};

#[derive(Debug)]
enum Out {
    Bytes(Vec<u8>),
    /// Descriptors that go with the first byte of the next entry.
    Descriptors(Vec<Arc<OwnedFd>>),
    Slice(Arc<Source>, Range<usize>),
}

impl Out {
    fn len(&self) -> usize {
        match self {
            Out::Bytes(bytes) => bytes.len(),
            Out::Slice(_, range) => range.len(),
            Out::Descriptors(_) => 0,
        }
    }
}

/// The sending half. Nothing is sent before [`Sender::flush`].
#[derive(Debug)]
pub struct Sender {
    socket: Socket,
    queue: VecDeque<Out>,
    /// Number of bytes of the first entry that have been sent.
    sent: usize,
    /// Number of bytes sent on the connection.
    position: u64,
    /// Number of messages with streams so far.
    streamed: u32,
    /// Streams that let other messages pass, in sending order.
    bulks: VecDeque<MessageStreams>,
    packing: Packing,
    /// More pieces will be pushed later.
    goes_on: bool,
    /// Such streams, held back until they are to begin.
    held: VecDeque<MessageStreams>,
}

/// Streams of one message, sent piece by piece in turn with those of others.
#[derive(Debug)]
struct MessageStreams {
    number: u32,
    parts: VecDeque<Arc<Source>>,
    /// Number of bytes taken from the first part.
    taken: usize,
    /// Number of bytes that no piece has taken.
    left: usize,
}

impl Sender {
    /// The sending half of a connection over `socket`.
    #[must_use]
    pub fn new(socket: Socket) -> Sender {
        Sender {
            socket,
            queue: VecDeque::new(),
            sent: 0,
            position: 0,
            streamed: 0,
            bulks: VecDeque::new(),
            packing: Packing::new(Compression::Off),
            goes_on: false,
            held: VecDeque::new(),
        }
    }

    /// Appends a message.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    pub fn push(&mut self, message: &Message<'_>) -> Result<(), WireError> {
        message.encode(Order::NATIVE, self.tail())?;
        if sections(message).iter().any(|section| section.place == Place::Stream) {
            self.streamed = self.streamed.wrapping_add(1);
        }
        Ok(())
    }

    /// Appends a message with descriptors.
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

    /// Appends the bytes of a streamed section of the previous message.
    ///
    /// # Errors
    /// Never, as the pieces are cut to fit.
    pub fn push_stream(&mut self, bytes: &Arc<Source>) -> Result<(), WireError> {
        for start in (0..bytes.len()).step_by(MAX_BODY) {
            let end = bytes.len().min(start + MAX_BODY);
            let header = data_header(Order::NATIVE, self.streamed, end - start)?;
            self.tail().extend_from_slice(&header);
            self.queue.push_back(Out::Slice(Arc::clone(bytes), start..end));
        }
        Ok(())
    }

    /// Sets the compression of streams that are sent piece by piece.
    pub fn compress(&mut self, mode: Compression) {
        self.packing = Packing::new(mode);
    }

    /// Appends encoded frames. A frame with streams must be the last one, and [`Sender::push_bulk`] must follow.
    pub fn push_frames(&mut self, frames: &[u8]) {
        if !frames.is_empty() {
            self.tail().extend_from_slice(frames);
        }
    }

    /// Like [`Sender::push_frames`], but takes the memory if that saves a copy. `frames` is empty afterwards.
    pub(crate) fn take_frames(&mut self, frames: &mut Vec<u8>) {
        let tail = self.tail();
        if tail.is_empty() {
            std::mem::swap(tail, frames);
        } else {
            tail.extend_from_slice(frames);
            frames.clear();
        }
    }

    /// Attaches descriptors to the first byte of the next entry.
    pub(crate) fn push_descriptors(&mut self, descriptors: Vec<Arc<OwnedFd>>) {
        self.queue.push_back(Out::Descriptors(descriptors));
        // The next entry must not be appended to the previous one.
        self.queue.push_back(Out::Bytes(Vec::with_capacity(SMALL)));
    }

    /// Appends all streamed sections of the message pushed before by [`Sender::push_frames`].
    pub fn push_streams(&mut self, streams: &VecDeque<Arc<Source>>) {
        self.streamed = self.streamed.wrapping_add(1);
        for bytes in streams {
            // The pieces are cut to fit.
            let pushed = self.push_stream(bytes);
            debug_assert!(pushed.is_ok(), "{pushed:?}");
        }
    }

    /// Appends the streamed sections of the previous message piece by piece, so that later messages pass them, and
    /// long streams of several messages take turns.
    pub fn push_bulk(&mut self, parts: VecDeque<Arc<Source>>) {
        let bulk = self.bulk(parts);
        self.bulks.push_back(bulk);
    }

    /// Like [`Sender::push_bulk`], but the streams wait until [`Sender::begin_held`].
    pub fn push_held(&mut self, parts: VecDeque<Arc<Source>>) {
        let bulk = self.bulk(parts);
        self.held.push_back(bulk);
    }

    /// Releases the next `count` held streams.
    pub fn begin_held(&mut self, count: usize) {
        let count = count.min(self.held.len());
        self.bulks.extend(self.held.drain(..count));
    }

    fn bulk(&mut self, parts: VecDeque<Arc<Source>>) -> MessageStreams {
        self.streamed = self.streamed.wrapping_add(1);
        let left = parts.iter().map(|part| part.len()).sum();
        MessageStreams { number: self.streamed, parts, taken: 0, left }
    }

    /// Appends the next piece of the stream whose turn it is. Returns `false` if there is none.
    fn next_piece(&mut self) -> bool {
        let Some(mut bulk) = self.bulks.pop_front() else { return false };
        while bulk.parts.front().is_some_and(|part| bulk.taken == part.len()) {
            bulk.parts.pop_front();
            bulk.taken = 0;
        }
        let Some(part) = bulk.parts.front().cloned() else { return !self.bulks.is_empty() };
        let (start, end) = (bulk.taken, part.len().min(bulk.taken + PIECE));
        bulk.taken = end;
        bulk.left -= end - start;
        let pushed = self.push_piece(bulk.number, part, start..end);
        if bulk.left <= WHOLE {
            self.bulks.push_front(bulk);
        } else {
            self.bulks.push_back(bulk);
        }
        pushed.is_ok()
    }

    /// Appends a piece of a stream of message number `number`, compressed if that makes it faster.
    fn push_piece(
        &mut self,
        number: u32,
        part: Arc<Source>,
        range: Range<usize>,
    ) -> Result<(), WireError> {
        if let Some(packed) = part.with(|bytes| self.packing.pack(&bytes[range.clone()])) {
            let message = Message::Packed { stream: number, bytes: &packed };
            return message.encode(Order::NATIVE, self.tail());
        }
        let header = data_header(Order::NATIVE, number, range.len())?;
        self.tail().extend_from_slice(&header);
        self.queue.push_back(Out::Slice(part, range));
        Ok(())
    }

    /// Appends the next piece of the streamed sections of the previous message, of at most a body's length,
    /// compressed if that makes it faster.
    ///
    /// # Errors
    /// When it is longer.
    pub fn push_next_piece(&mut self, piece: Source) -> Result<(), WireError> {
        let len = piece.len();
        self.goes_on = true;
        self.push_piece(self.streamed, Arc::new(piece), 0..len)
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

    /// Sends as much as the socket takes. `Ok(true)`: everything except held streams.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        self.flush_part(u64::MAX)
    }

    /// Like [`Sender::flush`], but stops after this many bytes.
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub fn flush_part(&mut self, most: u64) -> io::Result<bool> {
        let end = self.position.saturating_add(most);
        loop {
            let front = usize::from(matches!(self.queue.front(), Some(Out::Descriptors(_))));
            if self.queue.is_empty() && self.next_piece() {
                continue;
            }
            let left = match self.queue.get(front) {
                None => return self.flush_transport(),
                Some(Out::Bytes(bytes)) => bytes.len() - self.sent,
                Some(Out::Slice(_, range)) => range.len() - self.sent,
                Some(Out::Descriptors(_)) => unreachable!("bytes follow descriptors"),
            };
            if left == 0 {
                if self.queue.len() > 1 {
                    self.recycle_front();
                } else if !self.next_piece() {
                    // The buffer that is kept for reuse.
                    return self.flush_transport();
                }
                continue;
            }
            if self.position >= end {
                return Ok(false);
            }
            let raw: Vec<i32> = match self.queue.front() {
                Some(Out::Descriptors(list)) => list.iter().map(|fd| fd.as_raw_fd()).collect(),
                _ => Vec::new(),
            };
            // The header of a piece is sent together with the piece.
            let followed = matches!(self.queue.get(front + 1), Some(Out::Slice(..)));
            let sent = match self.queue.get(front) {
                Some(Out::Bytes(bytes)) if followed => {
                    self.socket.send_before(&bytes[self.sent..], &raw)
                }
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
                    self.packing.sent(count, self.goes_on || !self.bulks.is_empty());
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

    /// Makes the transport send its buffered data. `Ok(true)`: nothing is left.
    fn flush_transport(&mut self) -> io::Result<bool> {
        loop {
            match self.socket.flush() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                flushed => return flushed,
            }
        }
    }

    /// Drops the sent entry at the front; a small buffer without successors is kept for reuse.
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

    /// Number of bytes sent on the connection.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// All unsent bytes, if there are only bytes: no descriptors, and no data stored elsewhere.
    #[must_use]
    pub fn plain(&self) -> Option<&[u8]> {
        if !self.bulks.is_empty() {
            return None;
        }
        let mut queue = self.queue.iter();
        match (queue.next(), queue.next()) {
            (None, _) => Some(&[]),
            (Some(Out::Bytes(bytes)), None) => Some(&bytes[self.sent..]),
            _ => None,
        }
    }

    /// Skips the first unsent bytes: the other end has received them by other means.
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

    /// A clone of the socket.
    #[must_use]
    pub fn shared_socket(&self) -> Socket {
        Arc::clone(&self.socket)
    }

    /// Number of unsent bytes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.iter().map(Out::len).sum::<usize>()
            + self.bulks.iter().map(|bulk| bulk.left).sum::<usize>()
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket()
    }
}

/// A queue of outgoing messages.
pub trait Push {
    /// Appends a message.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    fn push(&mut self, message: &Message<'_>) -> Result<(), WireError>;

    /// Appends a message with descriptors.
    ///
    /// # Errors
    /// As [`Push::push`].
    fn push_with(
        &mut self,
        message: &Message<'_>,
        descriptors: Vec<Arc<OwnedFd>>,
    ) -> Result<(), WireError>;

    /// Appends the bytes of a streamed section of the previous message.
    ///
    /// # Errors
    /// Never, as the pieces are cut to fit.
    fn push_stream(&mut self, bytes: &Arc<Source>) -> Result<(), WireError>;
}

impl Push for Sender {
    fn push(&mut self, message: &Message<'_>) -> Result<(), WireError> {
        Sender::push(self, message)
    }

    fn push_with(
        &mut self,
        message: &Message<'_>,
        descriptors: Vec<Arc<OwnedFd>>,
    ) -> Result<(), WireError> {
        Sender::push_with(self, message, descriptors)
    }

    fn push_stream(&mut self, bytes: &Arc<Source>) -> Result<(), WireError> {
        Sender::push_stream(self, bytes)
    }
}

/// Number of bytes that a stream sends before messages may pass it, and before the next stream's turn.
const PIECE: usize = 256 << 10;
/// Streams with at most this many bytes left keep their turn. If the results of many calls took turns, all of them
/// would end late, and together; one after the other, they arrive in half the time on average, and the workers of the
/// first ones are free early.
const WHOLE: usize = 2 << 20;
/// Typical maximum size of a message, bytes.
const SMALL: usize = 256;
/// Maximum size of a reused buffer, bytes.
pub(super) const KEEP: usize = 256 << 10;
