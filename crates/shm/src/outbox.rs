//! Outbox: unsent messages of a worker, readable by its client.
//!
//! A worker holds back the answers of microsecond calls for some time, to send many together. If its next call takes
//! long or kills it, they must not be late or lost. So before it begins another call, it copies the unsent bytes into
//! a box in memory that it shares with its client. The client reads them there when the worker has run one call for
//! long, and when the worker is gone.
//!
//! Both ends count the bytes of the connection, including those from the box, so each byte is taken once: the box
//! stores how many bytes precede its first one, and the client knows how many it has. A live worker and its client
//! agree by one word about who delivers the bytes in the box:
//!
//! - The worker puts bytes into the box and adds their number to the word.
//! - To send them, it marks the word as *sending*; from then on the client leaves the box alone. The same step shows
//!   the worker how many bytes the client has taken, and it skips those. When all others have been sent, it empties
//!   the box, whose next contents get another epoch.
//! - The client copies the bytes in the box and then marks them as taken. This fails if the word has changed in the
//!   meantime; then the client discards the copy.
//!
//! When the worker is gone, its client reads the socket to its end and then takes the missing bytes from the box,
//! however far the worker had come with sending them.
//!
//! A model (crates/client/model) runs both ends in all orders, with deaths of the worker anywhere.

use crate::sync::{AtomicU64, Ordering};

/// Memory of a box.
pub trait Memory {
    /// Its word.
    fn word(&self) -> &AtomicU64;
    /// Number of bytes of the connection that precede its first one.
    fn base(&self) -> &AtomicU64;
    /// Its capacity, bytes: fewer than 65,536.
    fn capacity(&self) -> usize;
    /// Copies bytes to an offset in it.
    fn write(&self, at: usize, bytes: &[u8]);
    /// Appends a copy of `len` bytes at an offset in it. They may change during the copy.
    fn read(&self, at: usize, len: usize, out: &mut Vec<u8>);
}

/// The word: how many bytes are in the box, how many of them from the front the client has taken, how
/// often the box has been emptied, and whether the worker sends what is in it.
const FILLED: u64 = 0xffff;
const TAKEN_SHIFT: u32 = 16;
const EPOCH_SHIFT: u32 = 32;
const SENDING: u64 = 1 << 63;

fn filled(word: u64) -> usize {
    (word & FILLED) as usize
}

fn taken(word: u64) -> usize {
    (word >> TAKEN_SHIFT & FILLED) as usize
}

/// The worker's end.
#[derive(Debug)]
pub struct Outbox<M> {
    memory: M,
    filled: usize,
    epoch: u64,
}

impl<M: Memory> Outbox<M> {
    /// An empty outbox in this memory.
    pub fn new(memory: M) -> Outbox<M> {
        Outbox { memory, filled: 0, epoch: 0 }
    }

    /// Number of bytes in it, including those that the client has taken.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Whether it can hold this many bytes in all.
    pub fn holds(&self, len: usize) -> bool {
        len <= self.memory.capacity()
    }

    /// Appends bytes, within its capacity. `position`: number of bytes of the connection that precede the first one
    /// in the box.
    pub fn put(&mut self, position: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.filled == 0 {
            self.memory.base().store(position, Ordering::Relaxed);
        }
        self.memory.write(self.filled, bytes);
        self.memory.word().fetch_add(bytes.len() as u64, Ordering::Release);
        self.filled += bytes.len();
    }

    /// Takes over delivery of the bytes in the box. Returns how many bytes from the front the client has taken.
    pub fn begin_sending(&mut self) -> usize {
        if self.filled == 0 {
            return 0;
        }
        taken(self.memory.word().fetch_or(SENDING, Ordering::AcqRel))
    }

    /// Empties the box after everything has been sent.
    pub fn empty(&mut self) {
        if self.filled > 0 {
            self.filled = 0;
            self.epoch = (self.epoch + 1) & 0x7fff_ffff;
            self.memory.word().store(self.epoch << EPOCH_SHIFT, Ordering::Release);
        }
    }
}

/// Resets the box for a new process in its owner's place.
pub fn reset(memory: &impl Memory) {
    memory.word().store(0, Ordering::Release);
}

/// Result of an attempt to take bytes from the box of a live worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The box is empty, or the worker is about to send its bytes.
    Nothing,
    /// The client has taken the bytes.
    Taken,
    /// Earlier bytes are still in the socket, or have just been sent: read those first.
    Again,
}

/// Takes the bytes that a live worker has put into its box. `received`: number of bytes of the connection that the
/// client has.
pub fn take(memory: &impl Memory, received: u64, out: &mut Vec<u8>) -> Take {
    let word = memory.word().load(Ordering::Acquire);
    let (filled, taken) = (filled(word), taken(word));
    if word & SENDING != 0 || taken >= filled || filled > memory.capacity() {
        return Take::Nothing;
    }
    let base = memory.base().load(Ordering::Relaxed);
    if received != base.wrapping_add(taken as u64) {
        return Take::Again;
    }
    let before = out.len();
    memory.read(taken, filled - taken, out);
    let all = word & !(FILLED << TAKEN_SHIFT) | (filled as u64) << TAKEN_SHIFT;
    // Release: the worker refills the box only after these bytes have been read.
    let step = memory.word().compare_exchange(word, all, Ordering::AcqRel, Ordering::Relaxed);
    if step.is_err() {
        out.truncate(before);
        return Take::Again;
    }
    Take::Taken
}

/// Number of attempts to read a box that changes although its owner is gone.
const LOOKS: usize = 100;

/// Takes the unsent bytes in the box of a worker that is gone. `received`: number of bytes of the connection that the
/// client has, which is all that was sent.
pub fn take_rest(memory: &impl Memory, received: u64, out: &mut Vec<u8>) {
    let before = out.len();
    for _ in 0..LOOKS {
        let word = memory.word().load(Ordering::Acquire);
        let filled = filled(word);
        let base = memory.base().load(Ordering::Relaxed);
        let lacking = base.wrapping_add(filled as u64).wrapping_sub(received);
        let lacking = usize::try_from(lacking).unwrap_or(usize::MAX);
        if filled > memory.capacity() || lacking > filled {
            return;
        }
        memory.read(filled - lacking, lacking, out);
        // It may still be dying, if the process that started it was killed.
        if memory.word().load(Ordering::Acquire) == word {
            return;
        }
        out.truncate(before);
    }
}
