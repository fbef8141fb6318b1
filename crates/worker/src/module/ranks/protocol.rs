//! Protocol between a worker and its ranks: length-prefixed JSON and bytes, and an optional descriptor. Both ends
//! come from the same installation, so the protocol is private.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RankMessage {
    /// Worker to rank, first message: the file of the module whose functions will be called.
    Serve(String),
    /// Rank to worker: it has connected, and sees this many ranks.
    Here { rank: u32, ranks: u32 },
    /// Worker to rank: call a function. The descriptor is that of the arrays' memory; the bytes are lists of texts.
    /// Without a descriptor, the first `content` bytes of that memory follow the texts.
    Run { function: String, stage: Layout, content: usize, places: Vec<RankArgument> },
    /// Worker to rank: the call that it runs has been cancelled.
    Cancel,
    /// Rank to worker: the function has returned after this much processor time, ns. The bytes are the returned lists
    /// of texts, in the order of their parameters. If all of the memory came as bytes, the results follow.
    Returned { processor: u64 },
    /// Rank to worker: the function has thrown an exception, with this type and message.
    Raised { kind: String, message: String },
    /// Rank to worker: it cannot carry out the request.
    Failed(String),
}

/// Layout of the memory of a call: the private part of each rank, then the results of rank 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    /// Start of the results, bytes.
    pub(super) results: usize,
    /// Total length, bytes.
    pub(super) len: usize,
}

/// Alignment of the results, bytes: a page, so that they can be mapped.
pub(super) const PAGE: usize = 4096;

/// Location of an argument for a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum RankArgument {
    /// NULL.
    Null,
    /// A number.
    Number([u8; 16]),
    /// At this offset in the memory of the call.
    At(usize),
    /// In new zeroed memory of this many bytes.
    New(usize),
    /// Texts: the next `len` bytes of those that follow the message.
    Texts {
        /// Length, bytes.
        len: usize,
        /// Whether the function gets the only text, and not a list.
        alone: bool,
        /// Whether they are returned.
        returns: bool,
    },
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// A stream socket.
    pub(super) socket: OwnedFd,
    /// Whether descriptors can be sent. Otherwise memory is sent as bytes.
    pub(super) passes_memory: bool,
}

/// Lengths of the JSON and of the bytes.
const HEAD: usize = 12;

impl Connection {
    /// Sends a message with the bytes of both parts.
    pub(super) fn send(
        &self,
        said: &RankMessage,
        [bytes, content]: [&[u8]; 2],
        file: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(said)?;
        let mut message = Vec::with_capacity(HEAD + text.len() + bytes.len());
        message.extend_from_slice(&(text.len() as u32).to_ne_bytes());
        message.extend_from_slice(&((bytes.len() + content.len()) as u64).to_ne_bytes());
        message.extend_from_slice(&text);
        message.extend_from_slice(bytes);
        // The descriptor goes with the first bytes.
        let descriptors: Vec<_> = file.iter().map(AsRawFd::as_raw_fd).collect();
        let sent = gridrpc_sys::send(self.as_fd(), &message, &descriptors)?;
        self.send_all(&message[sent..])?;
        self.send_all(content)
    }

    fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match gridrpc_sys::send(self.as_fd(), bytes, &[]) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn receive(&self) -> io::Result<(RankMessage, Vec<u8>, Option<OwnedFd>)> {
        let mut head = [0; HEAD];
        let mut descriptors = VecDeque::new();
        self.fill(&mut head, &mut descriptors)?;
        let [a, b, c, d, len @ ..] = head;
        let mut text = vec![0; u32::from_ne_bytes([a, b, c, d]) as usize];
        self.fill(&mut text, &mut descriptors)?;
        let mut bytes = vec![0; u64::from_ne_bytes(len) as usize];
        self.fill(&mut bytes, &mut descriptors)?;
        Ok((serde_json::from_slice(&text)?, bytes, descriptors.pop_front().flatten()))
    }

    fn fill(
        &self,
        mut buffer: &mut [u8],
        descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<()> {
        while !buffer.is_empty() {
            match gridrpc_sys::receive(self.as_fd(), buffer, descriptors) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(came) => buffer = &mut buffer[came..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_said_arrives_with_its_bytes_and_its_descriptor() {
        let (one, other) = UnixStream::pair().unwrap();
        let end = |socket: UnixStream| Connection { socket: socket.into(), passes_memory: true };
        let (one, other) = (end(one), end(other));
        let file = gridrpc_sys::memory_file(c"test", PAGE as u64).unwrap();
        let places = vec![RankArgument::Number([7; 16]), RankArgument::At(PAGE)];
        let stage = Layout { results: PAGE, len: 2 * PAGE };
        let run =
            RankMessage::Run { function: "f".into(), stage, content: 4, places: places.clone() };
        one.send(&run, [b"texts", b"more"], Some(file.as_fd())).unwrap();
        one.send(&RankMessage::Returned { processor: 5 }, [b"", b""], None).unwrap();
        let (said, bytes, file) = other.receive().unwrap();
        assert!(matches!(said, RankMessage::Run { places: came, .. } if came == places));
        assert!(bytes == b"textsmore" && file.is_some());
        assert!(matches!(other.receive().unwrap().0, RankMessage::Returned { processor: 5 }));
        drop(one);
        assert_eq!(other.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
