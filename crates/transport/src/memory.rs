//! In-process connection for tests. The capacity of each direction simulates a slow network.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::{Transport, refuse_descriptors};

/// Capacity of a direction of [`pair`], bytes.
const ROOM: usize = 64 << 10;

/// One direction: bytes in transit to one end.
#[derive(Debug)]
struct Pipe {
    bytes: Mutex<Bytes>,
    room: usize,
    /// Readable while there is something to receive, like a socket.
    readable: EventFd,
}

#[derive(Debug, Default)]
struct Bytes {
    waiting: VecDeque<u8>,
    /// One of the ends is gone.
    closed: bool,
}

impl Pipe {
    fn new(room: usize) -> io::Result<Pipe> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let readable = EventFd::from_value_and_flags(0, flags)?;
        Ok(Pipe { bytes: Mutex::default(), room, readable })
    }

    fn lock(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        // It cannot be full.
        let _ = self.readable.write(1);
    }
}

/// One end of an in-memory connection. It never blocks. Its socket becomes readable like that of a connection, but it
/// is always writable.
#[derive(Debug)]
pub struct Memory {
    comes: Arc<Pipe>,
    goes: Arc<Pipe>,
}

/// Two ends of a connection.
///
/// # Errors
/// When this process may have no more descriptors.
pub fn pair() -> io::Result<(Memory, Memory)> {
    pair_with_room(ROOM)
}

/// Two ends of a connection that holds at most `room` bytes in each direction.
///
/// # Errors
/// As [`pair`].
pub fn pair_with_room(room: usize) -> io::Result<(Memory, Memory)> {
    let (one, other) = (Arc::new(Pipe::new(room)?), Arc::new(Pipe::new(room)?));
    let there = Memory { comes: Arc::clone(&one), goes: Arc::clone(&other) };
    Ok((there, Memory { comes: other, goes: one }))
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.comes.close();
        self.goes.close();
    }
}

impl Transport for Memory {
    fn socket(&self) -> BorrowedFd<'_> {
        self.comes.readable.as_fd()
    }

    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        refuse_descriptors(descriptors)?;
        let mut there = self.goes.lock();
        if there.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(self.goes.room - there.waiting.len());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if there.waiting.is_empty() && count > 0 {
            self.goes.readable.write(1)?;
        }
        there.waiting.extend(&bytes[..count]);
        Ok(count)
    }

    fn flush(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        _descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize> {
        self.receive_into(buffer)
    }

    fn receive_into(&self, place: &mut [u8]) -> io::Result<usize> {
        let mut here = self.comes.lock();
        if here.waiting.is_empty() && !here.closed {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = here.waiting.read(place)?;
        if here.waiting.is_empty() && !here.closed {
            self.comes.readable.read()?;
        }
        Ok(count)
    }

    fn receive_behind(&self, bytes: &mut Vec<u8>, limit: usize) -> io::Result<usize> {
        let old = bytes.len();
        let room = limit.min(bytes.capacity() - old);
        bytes.resize(old + room, 0);
        let count = self.receive_into(&mut bytes[old..]);
        bytes.truncate(old + count.as_ref().copied().unwrap_or(0));
        count
    }

    fn has_more(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    fn is_readable(end: &Memory) -> bool {
        let mut waited = [PollFd::new(end.socket(), PollFlags::POLLIN)];
        poll(&mut waited, PollTimeout::ZERO).unwrap() == 1
    }

    #[test]
    fn it_behaves_as_a_socket_that_does_not_block() {
        let (one, other) = pair_with_room(4).unwrap();
        let mut place = [0; 3];
        let kind = |result: io::Result<usize>| result.unwrap_err().kind();
        assert_eq!(kind(one.receive_into(&mut place)), io::ErrorKind::WouldBlock);
        assert!(!is_readable(&one));
        assert_eq!(other.send(b"hello", &[]).unwrap(), 4);
        assert_eq!(kind(other.send(b"o", &[])), io::ErrorKind::WouldBlock);
        assert!(is_readable(&one) && !is_readable(&other));
        assert_eq!(one.receive_into(&mut place).unwrap(), 3);
        assert!(is_readable(&one));
        let mut bytes = Vec::with_capacity(10);
        assert_eq!(one.receive_behind(&mut bytes, 2).unwrap(), 1);
        assert_eq!((&place, &bytes[..]), (b"hel", &b"l"[..]));
        assert!(!is_readable(&one));
    }

    #[test]
    fn what_was_sent_comes_before_the_end() {
        let (one, other) = pair().unwrap();
        assert_eq!(one.send(b"bye", &[]).unwrap(), 3);
        drop(one);
        let mut place = [0; 8];
        assert!(is_readable(&other));
        assert_eq!(other.receive_into(&mut place).unwrap(), 3);
        assert!(is_readable(&other));
        assert_eq!(other.receive_into(&mut place).unwrap(), 0);
        assert_eq!(other.send(b"?", &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
