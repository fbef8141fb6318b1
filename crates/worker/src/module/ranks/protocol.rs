//! Protocol between a worker and its ranks: length-prefixed JSON and bytes, and an optional descriptor. Both ends
//! come from the same installation, so the protocol is private.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// Worker to rank, first message: the file of the module whose functions will be called.
    Serve(String),
    /// Rank to worker: it has connected, and sees this many ranks.
    Here { rank: u32, ranks: u32 },
    /// Worker to rank: call a function. The descriptor is that of the arrays' memory; the bytes are lists of texts.
    Run { function: String, stage: Layout, places: Vec<Place> },
    /// Rank to worker: the function has returned after this much processor time, ns. The bytes are the returned lists
    /// of texts, in the order of their parameters.
    Returned { processor: u64 },
    /// Rank to worker: the function has thrown an exception, with this type and message.
    Raised { kind: String, message: String },
    /// Rank to worker: it cannot carry out the request.
    Failed(String),
}

/// Layout of the memory of a call: a page with the cancellation flag, the private part of each rank, then the results
/// of rank 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    /// Start of the results, bytes.
    pub(super) results: usize,
    /// Total length, bytes.
    pub(super) len: usize,
}

/// Length of the first page, bytes.
pub(super) const PAGE: usize = 4096;

/// Location of an argument for a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Place {
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
pub(super) struct Connection(pub(super) UnixStream);

/// Lengths of the JSON and of the bytes.
const HEAD: usize = 12;

impl Connection {
    pub(super) fn send(
        &self,
        said: &Said,
        bytes: &[u8],
        file: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(said)?;
        let mut message = Vec::with_capacity(HEAD + text.len() + bytes.len());
        message.extend_from_slice(&(text.len() as u32).to_ne_bytes());
        message.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
        message.extend_from_slice(&text);
        message.extend_from_slice(bytes);
        // The descriptor goes with the first bytes.
        let descriptors: Vec<_> = file.iter().map(AsRawFd::as_raw_fd).collect();
        let sent = gridrpc_sys::send(self.0.as_fd(), &message, &descriptors)?;
        (&self.0).write_all(&message[sent..])
    }

    pub(super) fn receive(&self) -> io::Result<(Said, Vec<u8>, Option<OwnedFd>)> {
        let mut head = [0; HEAD];
        let mut descriptors = VecDeque::new();
        let mut filled = 0;
        while filled < HEAD {
            match gridrpc_sys::receive(self.0.as_fd(), &mut head[filled..], &mut descriptors) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(came) => filled += came,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let [a, b, c, d, len @ ..] = head;
        let mut text = vec![0; u32::from_ne_bytes([a, b, c, d]) as usize];
        (&self.0).read_exact(&mut text)?;
        let mut bytes = vec![0; u64::from_ne_bytes(len) as usize];
        (&self.0).read_exact(&mut bytes)?;
        Ok((serde_json::from_slice(&text)?, bytes, descriptors.pop_front().flatten()))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_arrives_with_its_bytes_and_its_descriptor() {
        let (one, other) = UnixStream::pair().unwrap();
        let (one, other) = (Connection(one), Connection(other));
        let file = gridrpc_sys::memory_file(c"test", PAGE as u64).unwrap();
        let places = vec![Place::Number([7; 16]), Place::At(PAGE)];
        let stage = Layout { results: PAGE, len: 2 * PAGE };
        let run = Said::Run { function: "f".into(), stage, places: places.clone() };
        one.send(&run, b"texts", Some(file.as_fd())).unwrap();
        one.send(&Said::Returned { processor: 5 }, b"", None).unwrap();
        let (said, bytes, file) = other.receive().unwrap();
        assert!(matches!(said, Said::Run { places: came, .. } if came == places));
        assert!(bytes == b"texts" && file.is_some());
        assert!(matches!(other.receive().unwrap().0, Said::Returned { processor: 5 }));
        drop(one);
        assert_eq!(other.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
