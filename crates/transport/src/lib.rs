//! Transports: bytes there and back over one connection. Frames, queues and what they mean are above.

pub mod addresses;
pub mod dial;
mod keys;
pub mod listener;
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
pub use memory::Memory;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
pub use tcp::Tcp;
pub use ticket::{SECRET, Ticket, TicketError, TicketKeys};
pub use tls::Tls;
pub use unix::Unix;

/// One end of a connection. Sending and receiving may happen in two threads at once.
///
/// All methods fail as the system calls do: with `WouldBlock` where a socket that does not block has
/// nothing, or takes nothing, and with `Interrupted`.
pub trait Transport: fmt::Debug + Send + Sync {
    /// What tells, by being readable or writable, that there may be something to receive or to send.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Takes bytes to send, and says how many. Descriptors go with the first of them, where they can.
    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize>;

    /// The same for bytes that others follow at once: they may wait for those, and go in one packet.
    fn send_before(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        self.send(bytes, descriptors)
    }

    /// Sends what the transport has taken and keeps itself, as far as the socket takes it.
    /// `Ok(true)`: nothing is left.
    fn flush(&self) -> io::Result<bool>;

    /// Receives into `buffer`, and puts descriptors that come along behind `descriptors`: see
    /// [`gridrpc_sys::receive`]. Returns 0 at the end.
    fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize>;

    /// Receives into `place`. Returns 0 at the end.
    fn receive_into(&self, place: &mut [u8]) -> io::Result<usize>;

    /// Receives at most `limit` bytes behind those in `bytes`, within its capacity. Returns 0 at the end.
    fn receive_behind(&self, bytes: &mut Vec<u8>, limit: usize) -> io::Result<usize>;

    /// Whether something can be received although the socket need not be readable.
    fn has_more(&self) -> bool;
}

/// For transports that carry bytes only: a message that announces descriptors would come without them.
fn refuse_descriptors(descriptors: &[RawFd]) -> io::Result<()> {
    if descriptors.is_empty() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Whether calls on a socket wait.
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
