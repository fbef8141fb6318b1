//! Transports: bytes over one connection in both directions. Frames, queues and their meaning belong to the layers
//! above.

pub mod addresses;
pub mod certificates;
pub mod dial;
mod keys;
pub mod listener;
mod local;
pub mod memory;
mod tcp;
mod ticket;
mod tls;
mod unix;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

pub use keys::{AgentKeys, Keys, KeysError};
pub use local::{dial_local, dial_local_server, listen_local, may_connect, user_of};
pub use memory::Memory;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
pub use tcp::Tcp;
pub use ticket::{SECRET, Ticket, TicketError, TicketKeys};
pub use tls::Tls;
pub use unix::Unix;

/// One end of a connection. Two threads may send and receive at the same time.
///
/// All methods fail as system calls do: with `WouldBlock` when a non-blocking socket has no data or no room, and with
/// `Interrupted`.
pub trait Transport: fmt::Debug + Send + Sync {
    /// A descriptor that becomes readable or writable when there may be something to receive or room to send.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Accepts bytes to send, and returns how many. Descriptors go with the first of them, where supported.
    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize>;

    /// Accepts bytes that are followed by more at once: they may wait for those, and go in one packet.
    fn send_before(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        self.send(bytes, descriptors)
    }

    /// Sends bytes that the transport has accepted and buffered, as far as the socket takes them. `Ok(true)`: nothing
    /// is left.
    fn flush(&self) -> io::Result<bool>;

    /// Receives into `buffer`, and appends received descriptors to `descriptors`: see [`gridrpc_sys::receive`].
    /// Returns 0 at the end.
    fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize>;

    /// Receives into `place`. Returns 0 at the end.
    fn receive_into(&self, place: &mut [u8]) -> io::Result<usize>;

    /// Receives at most `limit` bytes and appends them to `bytes`, within its capacity. Returns 0 at the end.
    fn receive_behind(&self, bytes: &mut Vec<u8>, limit: usize) -> io::Result<usize>;

    /// Whether buffered data can be received although the socket need not be readable.
    fn has_more(&self) -> bool;

    /// Whether descriptors go with the bytes.
    fn carries_descriptors(&self) -> bool {
        false
    }
}

/// Rejects descriptors in transports that carry only bytes: the message that announces them would arrive without
/// them.
fn refuse_descriptors(descriptors: &[RawFd]) -> io::Result<()> {
    if descriptors.is_empty() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Whether a socket is blocking.
fn blocks(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let flags = OFlag::from_bits_retain(fcntl(socket, FcntlArg::F_GETFL)?);
    Ok(!flags.contains(OFlag::O_NONBLOCK))
}

fn set_blocking(socket: BorrowedFd<'_>, blocking: bool) -> io::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(socket, FcntlArg::F_GETFL)?);
    flags.set(OFlag::O_NONBLOCK, !blocking);
    fcntl(socket, FcntlArg::F_SETFL(flags))?;
    Ok(())
}
