//! The sending half of a connection that many threads push to. Pushing takes a short lock of its own;
//! encryption and sending happen under another one, so that nobody who pushes waits for the network.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use gridrpc_wire::{Message, Order, WireError};

use crate::link::{Sender, Socket};
use crate::loan::Source;
use crate::servers::Compression;

/// What has been pushed and is not the sender's yet.
#[derive(Debug, Default)]
struct Queue {
    frames: Vec<u8>,
    /// Streams, and behind how many bytes of the frames their message ends.
    streams: Vec<(usize, Streams)>,
    /// How many messages' streams that are held are to begin.
    begun: usize,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.begun == 0
    }

    fn push(&mut self, message: &Message<'_>, streams: Streams) -> Result<(), WireError> {
        message.encode(Order::NATIVE, &mut self.frames)?;
        self.streams.push((self.frames.len(), streams));
        Ok(())
    }
}

/// The streams of one message, and whether those of others and messages behind it may pass them.
#[derive(Debug)]
enum Streams {
    InTurns(VecDeque<Arc<Source>>),
    InLine(VecDeque<Arc<Source>>),
    Held(VecDeque<Arc<Source>>),
}

/// Has whoever waits for the socket look out for it, or no more, as it can or cannot be written to.
pub type Watch = Box<dyn Fn(bool) + Send + Sync>;

/// The sending half.
pub struct Outbound {
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
    watch: Watch,
}

struct Writer {
    sender: Sender,
    blocked: bool,
    failed: Option<io::Error>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbound")
    }
}

impl Outbound {
    /// The sending half of a connection over `socket`, which does not block. `watch` is told when sending
    /// has to wait until the socket can be written to, and when that is over.
    #[must_use]
    pub fn new(socket: Socket, watch: Watch) -> Outbound {
        let writer = Writer { sender: Sender::new(socket), blocked: false, failed: None };
        Outbound { queue: Mutex::default(), writer: Mutex::new(writer), watch }
    }

    /// Has streams compressed.
    pub fn compress(&self, mode: Compression) {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).sender.compress(mode);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    pub fn push(&self, message: &Message<'_>) -> Result<(), WireError> {
        message.encode(Order::NATIVE, &mut self.queue().frames)
    }

    /// Appends a message with streamed sections, which go piece by piece.
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_with(
        &self,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), WireError> {
        if streams.is_empty() {
            return self.push(message);
        }
        self.queue().push(message, Streams::InTurns(streams))
    }

    /// The same, with all of the streams before what is pushed later: that may depend on them.
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
        self.queue().push(message, Streams::InLine(streams))
    }

    /// Appends a message whose streams, of which there are some, wait until [`Outbound::begin_held`].
    ///
    /// # Errors
    /// As [`Outbound::push`].
    pub fn push_held(
        &self,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), WireError> {
        self.queue().push(message, Streams::Held(streams))
    }

    /// Has the streams begin that have been held longest; with the next flush.
    pub fn begin_held(&self) {
        self.queue().begun += 1;
    }

    /// Sends what has been pushed, as far as the socket takes it. Returns at once if another thread is
    /// sending, which then sends this as well.
    pub fn flush(&self) {
        loop {
            let mut writer = match self.writer.try_lock() {
                Ok(writer) => writer,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.send(&mut writer);
            drop(writer);
            // Somebody may have pushed meanwhile, and left it to this thread to send it.
            if self.queue().is_empty() {
                return;
            }
        }
    }

    fn send(&self, writer: &mut Writer) {
        let queue = std::mem::take(&mut *self.queue());
        let mut start = 0;
        for (end, streams) in queue.streams {
            writer.sender.push_frames(&queue.frames[start..end]);
            match streams {
                Streams::InTurns(streams) => writer.sender.push_bulk(streams),
                Streams::InLine(streams) => writer.sender.push_streams(&streams),
                Streams::Held(streams) => writer.sender.push_held(streams),
            }
            start = end;
        }
        writer.sender.push_frames(&queue.frames[start..]);
        writer.sender.begin_held(queue.begun);
        if writer.failed.is_some() {
            return;
        }
        let blocked = match writer.sender.flush() {
            Ok(all) => !all,
            // The receiving half sees it as well, and tells.
            Err(error) => {
                writer.failed = Some(error);
                false
            }
        };
        if blocked != std::mem::replace(&mut writer.blocked, blocked) {
            (self.watch)(blocked);
        }
    }

    /// How much waits to be sent, bytes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let pushed = self.queue().frames.len();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        pushed + writer.sender.waiting()
    }
}
