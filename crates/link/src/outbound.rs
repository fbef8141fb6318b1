//! Sending half of a connection, for many threads. Pushing takes a separate short lock; encryption and sending take
//! another, so that pushing never waits for the network.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use gridrpc_wire::{Compression, Message, Order, WireError};

use crate::buffers::Source;
use crate::sender::KEEP;
use crate::{Push, Sender, Socket};

/// Maximum number of bytes sent at once, even if the socket takes more. The sending thread serves other connections
/// too, and a fast reader could keep it busy for gigabytes.
const TURN: u64 = 8 << 20;

/// Pushed messages that the sender has not received yet.
#[derive(Debug, Default)]
struct Queue {
    frames: Vec<u8>,
    /// Entries between the frames, with the number of frame bytes before each.
    between: Vec<(usize, QueueEntry)>,
    /// Number of messages whose held streams are to begin.
    begun: usize,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.begun == 0
    }

    fn push(
        &mut self,
        message: &Message<'_>,
        order: Order,
        streams: QueueEntry,
    ) -> Result<(), WireError> {
        message.encode(order, &mut self.frames)?;
        self.between.push((self.frames.len(), streams));
        Ok(())
    }

    /// Moves everything to `sender`, in order.
    fn hand_over(&mut self, sender: &mut Sender) {
        if self.between.is_empty() {
            sender.take_frames(&mut self.frames);
        } else {
            let mut start = 0;
            for (end, between) in self.between.drain(..) {
                sender.push_frames(&self.frames[start..end]);
                match between {
                    QueueEntry::Descriptors(descriptors) => sender.push_descriptors(descriptors),
                    QueueEntry::InTurns(streams) => sender.push_bulk(streams),
                    QueueEntry::InLine(streams) => sender.push_streams(&streams),
                    QueueEntry::Held(streams) => sender.push_held(streams),
                }
                start = end;
            }
            sender.push_frames(&self.frames[start..]);
            self.frames.clear();
        }
        if self.begun > 0 {
            sender.begin_held(std::mem::take(&mut self.begun));
        }
        if self.frames.capacity() > KEEP {
            self.frames = Vec::new();
        }
    }
}

/// An entry between two frames.
#[derive(Debug)]
enum QueueEntry {
    /// Descriptors for the following message.
    Descriptors(Vec<Arc<OwnedFd>>),
    /// Streams of the previous message. Those of other messages, and later messages, may pass them.
    InTurns(VecDeque<Arc<Source>>),
    /// Streams of the previous message, which nothing passes.
    InLine(VecDeque<Arc<Source>>),
    /// Streams of the previous message, which wait until they are to begin.
    Held(VecDeque<Arc<Source>>),
}

/// Starts (`true`) or stops watching for a writable socket.
pub type Watch = Box<dyn Fn(bool) + Send + Sync>;

/// The sending half.
pub struct Outbound {
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
    watch: Watch,
}

struct Writer {
    sender: Sender,
    /// The last queue taken, now empty; its memory is reused.
    taken: Queue,
    blocked: bool,
    failed: Option<io::Error>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbound")
    }
}

impl Outbound {
    /// The sending half of a connection over `socket`, which is non-blocking. `watch` is called when sending has to
    /// wait for a writable socket, and when that wait is over.
    #[must_use]
    pub fn new(socket: Socket, watch: Watch) -> Outbound {
        let writer = Writer {
            sender: Sender::new(socket),
            taken: Queue::default(),
            blocked: false,
            failed: None,
        };
        Outbound { queue: Mutex::default(), writer: Mutex::new(writer), watch }
    }

    /// Sets the compression of streams.
    pub fn compress(&self, mode: Compression) {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).sender.compress(mode);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the queue, for several messages that belong together.
    #[must_use]
    pub fn pushing(&self) -> Pushing<'_> {
        Pushing(self.queue())
    }

    /// Appends a message.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    pub fn push(&self, message: &Message<'_>) -> Result<(), WireError> {
        message.encode(Order::NATIVE, &mut self.queue().frames)
    }

    /// Appends a message with streamed sections, which are sent piece by piece.
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_with(
        &self,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), WireError> {
        self.push_in(Order::NATIVE, message, streams)
    }

    /// Appends a message in a byte order, with streamed sections that have it as well.
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_in(
        &self,
        order: Order,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), WireError> {
        if streams.is_empty() {
            return message.encode(order, &mut self.queue().frames);
        }
        self.queue().push(message, order, QueueEntry::InTurns(streams))
    }

    /// Appends a message and sends all of its streams before later messages, which may depend on them.
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_in_line(
        &self,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), WireError> {
        if streams.is_empty() {
            return self.push(message);
        }
        self.queue().push(message, Order::NATIVE, QueueEntry::InLine(streams))
    }

    /// Appends a message in a byte order, with streams that wait until [`Outbound::begin_held`].
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_held(
        &self,
        order: Order,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), WireError> {
        self.queue().push(message, order, QueueEntry::Held(streams))
    }

    /// Releases the oldest held streams with the next flush.
    pub fn begin_held(&self) {
        self.queue().begun += 1;
    }

    /// Sends pushed messages, as far as the socket takes them. Returns at once if another thread is sending, which
    /// then sends these as well.
    pub fn flush(&self) {
        self.send_all(true);
    }

    /// Like [`Outbound::flush`], but does nothing while the socket is full and is being watched.
    pub fn flush_if_open(&self) {
        self.send_all(false);
    }

    fn send_all(&self, although_blocked: bool) {
        loop {
            let mut writer = match self.writer.try_lock() {
                Ok(writer) => writer,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            if writer.blocked && !although_blocked {
                return;
            }
            self.send(&mut writer);
            drop(writer);
            // Another thread may have pushed in the meantime, and relied on this thread to send.
            if self.queue().is_empty() {
                return;
            }
        }
    }

    fn send(&self, writer: &mut Writer) {
        let Writer { sender, taken, blocked, failed } = writer;
        std::mem::swap(taken, &mut *self.queue());
        taken.hand_over(sender);
        if failed.is_some() {
            return;
        }
        let is_blocked = match sender.flush_part(TURN) {
            Ok(all) => !all,
            // The receiving half detects it as well, and reports it.
            Err(error) => {
                *failed = Some(error);
                false
            }
        };
        if is_blocked != std::mem::replace(blocked, is_blocked) {
            (self.watch)(is_blocked);
        }
    }

    /// Number of unsent bytes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let pushed = self.queue().frames.len();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        pushed + writer.sender.waiting()
    }
}

/// The queue of an [`Outbound`], locked for messages that belong together.
pub struct Pushing<'o>(MutexGuard<'o, Queue>);

impl Pushing<'_> {
    /// Appends a message in a byte order.
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_in(&mut self, order: Order, message: &Message<'_>) -> Result<(), WireError> {
        message.encode(order, &mut self.0.frames)
    }
}

impl Push for Pushing<'_> {
    fn push(&mut self, message: &Message<'_>) -> Result<(), WireError> {
        message.encode(Order::NATIVE, &mut self.0.frames)
    }

    fn push_with(
        &mut self,
        message: &Message<'_>,
        descriptors: Vec<Arc<OwnedFd>>,
    ) -> Result<(), WireError> {
        let (start, count) = (self.0.frames.len(), descriptors.len() as u16);
        message.encode_with(count, Order::NATIVE, &mut self.0.frames)?;
        self.0.between.push((start, QueueEntry::Descriptors(descriptors)));
        Ok(())
    }

    fn push_stream(&mut self, bytes: &Arc<Source>) -> Result<(), WireError> {
        let Queue { frames, between, .. } = &mut *self.0;
        match between.last_mut() {
            Some((end, QueueEntry::InLine(streams))) if *end == frames.len() => {
                streams.push_back(Arc::clone(bytes));
            }
            _ => between.push((frames.len(), QueueEntry::InLine([Arc::clone(bytes)].into()))),
        }
        Ok(())
    }
}
