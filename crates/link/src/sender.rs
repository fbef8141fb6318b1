//! The sending half of a connection: a queue of frames, and streams that let others pass.

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
    /// Descriptors that go with the first byte of what follows.
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
    /// Bytes of the first entry that have been sent.
    sent: usize,
    /// Bytes of the connection so far.
    position: u64,
    /// Messages with streams so far.
    streamed: u32,
    /// Streams that let other messages pass, in the order of their turns.
    bulks: VecDeque<Bulk>,
    packing: Packing,
    /// More pieces will come than are here.
    goes_on: bool,
    /// Such streams that wait until they are to begin.
    held: VecDeque<Bulk>,
}

/// Streams of one message that go piece by piece, in turn with those of others.
#[derive(Debug)]
struct Bulk {
    number: u32,
    parts: VecDeque<Arc<Source>>,
    /// Bytes of the first part that have been taken.
    taken: usize,
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
            let header = data_header(Order::NATIVE, self.streamed, end - start)?;
            self.tail().extend_from_slice(&header);
            self.queue.push_back(Out::Slice(Arc::clone(bytes), start..end));
        }
        Ok(())
    }

    /// Has streams that go piece by piece compressed.
    pub fn compress(&mut self, mode: Compression) {
        self.packing = Packing::new(mode);
    }

    /// Appends frames that are encoded already. Those with streams are the last ones, and
    /// [`Sender::push_bulk`] comes next.
    pub fn push_frames(&mut self, frames: &[u8]) {
        if !frames.is_empty() {
            self.tail().extend_from_slice(frames);
        }
    }

    /// The same, and takes their memory if that saves a copy; what is left there is empty.
    pub(crate) fn take_frames(&mut self, frames: &mut Vec<u8>) {
        let tail = self.tail();
        if tail.is_empty() {
            std::mem::swap(tail, frames);
        } else {
            tail.extend_from_slice(frames);
            frames.clear();
        }
    }

    /// Has descriptors go with the first byte of what is appended next.
    pub(crate) fn push_descriptors(&mut self, descriptors: Vec<Arc<OwnedFd>>) {
        self.queue.push_back(Out::Descriptors(descriptors));
        // What follows is not to be appended to what lies before.
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

    /// Has the streamed sections of the message pushed before follow it piece by piece, so that what is
    /// pushed later passes them, and several messages' take turns.
    pub fn push_bulk(&mut self, parts: VecDeque<Arc<Source>>) {
        let bulk = self.bulk(parts);
        self.bulks.push_back(bulk);
    }

    /// The same, but they wait until [`Sender::begin_held`].
    pub fn push_held(&mut self, parts: VecDeque<Arc<Source>>) {
        let bulk = self.bulk(parts);
        self.held.push_back(bulk);
    }

    /// Has the next so many of what waits go.
    pub fn begin_held(&mut self, count: usize) {
        let count = count.min(self.held.len());
        self.bulks.extend(self.held.drain(..count));
    }

    fn bulk(&mut self, parts: VecDeque<Arc<Source>>) -> Bulk {
        self.streamed = self.streamed.wrapping_add(1);
        Bulk { number: self.streamed, parts, taken: 0 }
    }

    /// Appends the next piece of the bulk whose turn it is. `false`: there is none.
    fn next_piece(&mut self) -> bool {
        let Some(mut bulk) = self.bulks.pop_front() else { return false };
        while bulk.parts.front().is_some_and(|part| bulk.taken == part.len()) {
            bulk.parts.pop_front();
            bulk.taken = 0;
        }
        let Some(part) = bulk.parts.front().cloned() else { return !self.bulks.is_empty() };
        let (start, end) = (bulk.taken, part.len().min(bulk.taken + PIECE));
        bulk.taken = end;
        let pushed = self.push_piece(bulk.number, part, start..end);
        self.bulks.push_back(bulk);
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

    /// Appends the next piece of the streamed sections of the message pushed before, of at most a body's
    /// length, compressed if that makes it faster.
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

    /// Sends as much as the socket takes. `Ok(true)`: everything but what is held.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        self.flush_part(u64::MAX)
    }

    /// The same, but once it has sent this many bytes, it leaves the rest for the next time.
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
                    // The buffer that is kept for next time.
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
            // The header of a piece goes with the piece.
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

    /// Has the transport send what it keeps itself. `Ok(true)`: nothing is left.
    fn flush_transport(&mut self) -> io::Result<bool> {
        loop {
            match self.socket.flush() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                flushed => return flushed,
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

    /// All that waits to be sent, if that is bytes only: nothing that a descriptor goes with, or that
    /// lies elsewhere.
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
        let left =
            |bulk: &Bulk| bulk.parts.iter().map(|part| part.len()).sum::<usize>() - bulk.taken;
        self.queue.iter().map(Out::len).sum::<usize>() + self.bulks.iter().map(left).sum::<usize>()
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket()
    }
}

/// What messages are pushed to, to be sent later.
pub trait Push {
    /// Appends a message.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    fn push(&mut self, message: &Message<'_>) -> Result<(), WireError>;

    /// Appends a message that descriptors go with.
    ///
    /// # Errors
    /// As [`Push::push`].
    fn push_with(
        &mut self,
        message: &Message<'_>,
        descriptors: Vec<Arc<OwnedFd>>,
    ) -> Result<(), WireError>;

    /// Appends the bytes of a streamed section of the message pushed before.
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

/// What a stream sends before it is another's turn, bytes.
const PIECE: usize = 256 << 10;
/// What most messages fit in, bytes.
const SMALL: usize = 256;
/// Buffers up to this size are used again.
pub(super) const KEEP: usize = 256 << 10;
