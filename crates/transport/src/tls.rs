//! TLS 1.3 over TCP: encrypted, protected against changes, and both ends are authenticated (keys.rs).

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead as _, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, sendmsg};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, Connection, InvalidMessage, ServerConfig, ServerConnection,
};

use crate::keys::{AgentKeys, Keys, no_name};
use crate::{Transport, refuse_descriptors};

/// A TCP connection that is encrypted, or is about to be: [`Tls::advance`].
///
/// Sending and receiving share one lock, but no thread holds it while waiting for the network, even if the socket
/// blocks: one thread sends while another one receives.
pub struct Tls {
    socket: OwnedFd,
    blocking: AtomicBool,
    state: Mutex<State>,
}

struct State {
    tls: Connection,
    /// Received data that has not been decrypted; bounded by this buffer's size.
    coming: Vec<u8>,
    start: usize,
    end: usize,
    /// How much is read from the socket at once, bytes.
    most: usize,
    /// The other end has closed its sending half.
    closed: bool,
    /// Queued data has not been tried: more follows.
    follows: bool,
}

/// How much is encrypted before it is sent, bytes: whole records.
const AHEAD: usize = 64 << 10;
/// How much may wait for what follows, bytes.
const BEFORE: usize = 4 << 10;
/// How much is read from the socket at once, bytes: before the other end is authenticated and while it sends little, and
/// afterwards.
const FIRST: usize = 4 << 10;
const BULK: usize = 128 << 10;
/// How many reads of [`FIRST`] bytes drain a failed connection.
const DRAINED: usize = 16;

impl Tls {
    /// The client's end of an accepted connection. The socket stays blocking or non-blocking.
    ///
    /// # Errors
    /// When there is no memory or the descriptor is no socket.
    pub fn accept(socket: OwnedFd, keys: &Keys) -> io::Result<Tls> {
        Tls::accept_with(socket, keys.config())
    }

    /// An agent's end of a connection that it has opened.
    ///
    /// # Errors
    /// As [`Tls::accept`].
    pub fn connect(socket: OwnedFd, keys: &AgentKeys) -> io::Result<Tls> {
        Tls::connect_with(socket, keys.config(), no_name())
    }

    pub(super) fn accept_with(socket: OwnedFd, config: Arc<ServerConfig>) -> io::Result<Tls> {
        let tls = ServerConnection::new(config).map_err(io::Error::other)?;
        Tls::new(socket, tls.into())
    }

    pub(super) fn connect_with(
        socket: OwnedFd,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Tls> {
        let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Tls::new(socket, tls.into())
    }

    fn new(socket: OwnedFd, mut tls: Connection) -> io::Result<Tls> {
        tls.set_buffer_limit(Some(AHEAD + BEFORE));
        let blocking = AtomicBool::new(crate::blocks(socket.as_fd())?);
        let coming = Vec::new();
        let (most, closed, follows) = (FIRST, false, false);
        let state = State { tls, coming, start: 0, end: 0, most, closed, follows };
        Ok(Tls { socket, blocking, state: Mutex::new(state) })
    }

    /// Makes sending and receiving block, or not.
    ///
    /// # Errors
    /// As `fcntl(2)`.
    pub fn set_blocking(&self, blocking: bool) -> io::Result<()> {
        crate::set_blocking(self.socket.as_fd(), blocking)?;
        self.blocking.store(blocking, Ordering::Relaxed);
        Ok(())
    }

    /// Continues the handshake without blocking. `Ok(true)`: it is complete, and the other end has the private key of
    /// its certificate. Nothing may be sent or received before.
    ///
    /// # Errors
    /// When the other end is not the expected one, or is gone.
    pub fn advance(&self) -> io::Result<bool> {
        let mut state = self.lock();
        loop {
            let sent = state.write_out(self.socket.as_fd())?;
            if sent && !state.tls.is_handshaking() {
                return Ok(true);
            }
            match state.feed(self.socket.as_fd()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The certificate of the other end, which has been verified.
    pub(super) fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        Some(self.lock().tls.peer_certificates()?.first()?.clone().into_owned())
    }

    /// Lets the other end read why the handshake has failed: closing a socket with unread data resets the connection,
    /// and the reason may be lost.
    pub(super) fn drain(&self) {
        let mut rest = [0; FIRST];
        for _ in 0..DRAINED {
            match recv(self.socket.as_raw_fd(), &mut rest, MsgFlags::MSG_DONTWAIT) {
                Ok(1..) => {}
                _ => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive_with(&self, room: usize, mut put: impl FnMut(&[u8])) -> io::Result<usize> {
        loop {
            let taken = self.lock().take(self.socket.as_fd(), room, &mut put);
            match taken {
                Err(error) if self.has_to_wait(&error) => self.wait_for_bytes()?,
                taken => return taken,
            }
        }
    }

    fn has_to_wait(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::WouldBlock && self.blocking.load(Ordering::Relaxed)
    }

    /// Waits as a receiver would, within the socket's time-out.
    fn wait_for_bytes(&self) -> io::Result<()> {
        recv(self.socket.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK)?;
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut waited = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        poll(&mut waited, PollTimeout::NONE)?;
        Ok(())
    }
}

impl State {
    /// Decrypts received data, or data that can be read now, and handles everything but the contents.
    fn feed(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if self.start == self.end {
            if self.coming.len() < self.most {
                self.coming.resize(self.most, 0);
            }
            let count = recv(socket.as_raw_fd(), &mut self.coming, MsgFlags::MSG_DONTWAIT)?;
            if count == 0 {
                // An attacker may have cut the connection: only the other end can announce the end.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (self.start, self.end) = (0, count);
            if count == self.most && !self.tls.is_handshaking() {
                self.most = BULK;
            }
        }
        self.start += self.tls.read_tls(&mut &self.coming[self.start..self.end])?;
        match self.tls.process_new_packets() {
            Ok(now) => self.closed |= now.peer_has_closed(),
            Err(error) => {
                // Reports the reason to the other end, if possible.
                let _ = self.write_out(socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
        if self.tls.wants_write() {
            // A failed sending half is reported to senders.
            let _ = self.write_out(socket);
        }
        Ok(())
    }

    /// Passes at most `room` received bytes to `put`. Reads from the socket only if there are none.
    fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        room: usize,
        put: &mut impl FnMut(&[u8]),
    ) -> io::Result<usize> {
        let mut taken = 0;
        while taken < room {
            let mut reader = self.tls.reader();
            match reader.fill_buf() {
                Ok([]) => return Ok(taken),
                Ok(chunk) => {
                    let count = chunk.len().min(room - taken);
                    put(&chunk[..count]);
                    reader.consume(count);
                    taken += count;
                    continue;
                }
                // No data is available, so read more.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.start == self.end && taken > 0 {
                break;
            }
            self.feed(socket)?;
        }
        Ok(taken)
    }

    /// Sends encrypted data as far as the socket takes it now. `Ok(true)`: nothing is left.
    fn write_out(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Out(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The reason for an error that is one of the TLS protocol.
pub(super) fn reason(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Whether the other end has sent something that is not TLS.
pub(super) fn is_not_tls(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidMessage(message) = error else { return false };
    matches!(
        message,
        InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::InvalidEmptyPayload
            | InvalidMessage::MessageTooLarge
    )
}

/// A socket for writing without blocking.
struct Out<'a>(BorrowedFd<'a>);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        Ok(sendmsg::<()>(self.0.as_raw_fd(), parts, &[], flags, None)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Transport for Tls {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn send(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        refuse_descriptors(descriptors)?;
        let bytes = &bytes[..bytes.len().min(AHEAD)];
        loop {
            let mut state = self.lock();
            let has_room =
                std::mem::take(&mut state.follows) || state.write_out(self.socket.as_fd())?;
            let count = if has_room { state.tls.writer().write(bytes)? } else { 0 };
            if count > 0 {
                // A failure now will repeat later: these bytes have been accepted.
                let _ = state.write_out(self.socket.as_fd());
            }
            drop(state);
            if count > 0 || bytes.is_empty() {
                return Ok(count);
            }
            if !self.blocking.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.wait_for_room()?;
        }
    }

    fn send_before(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
        refuse_descriptors(descriptors)?;
        if bytes.len() <= BEFORE {
            let mut state = self.lock();
            if !state.tls.wants_write() {
                state.follows = true;
                return state.tls.writer().write(bytes);
            }
        }
        self.send(bytes, descriptors)
    }

    fn flush(&self) -> io::Result<bool> {
        loop {
            let empty = self.lock().write_out(self.socket.as_fd())?;
            if empty || !self.blocking.load(Ordering::Relaxed) {
                return Ok(empty);
            }
            self.wait_for_room()?;
        }
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        _descriptors: &mut VecDeque<Option<OwnedFd>>,
    ) -> io::Result<usize> {
        self.receive_into(buffer)
    }

    fn receive_into(&self, place: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let room = place.len();
        self.receive_with(room, |chunk| {
            place[filled..filled + chunk.len()].copy_from_slice(chunk);
            filled += chunk.len();
        })
    }

    fn receive_behind(&self, bytes: &mut Vec<u8>, limit: usize) -> io::Result<usize> {
        let room = limit.min(bytes.capacity() - bytes.len());
        self.receive_with(room, |chunk| bytes.extend_from_slice(chunk))
    }

    fn has_more(&self) -> bool {
        let mut state = self.lock();
        state.start < state.end
            || state.closed
            || state.tls.reader().fill_buf().is_ok_and(|chunk| !chunk.is_empty())
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Send nothing to strangers, not even the end of the connection.
        if !state.tls.is_handshaking() {
            state.tls.send_close_notify();
            let _ = state.write_out(self.socket.as_fd());
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("socket", &self.socket).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
