//! A connection at the listener that has not been admitted.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use super::admission::Admission;
use super::error::HandshakeError;
use crate::certificates::Identity;
use crate::{SECRET, Tcp, Tls, Transport};

/// A new connection.
pub(super) struct Handshake {
    line: AcceptedStream,
    /// Whether it has to present a secret, and not a certificate.
    needs_secret: bool,
    pub(super) from: SocketAddr,
    /// When it is dropped.
    pub(super) until: Instant,
    secret: [u8; SECRET],
    come: usize,
    /// Whether it has sent nothing at all.
    pub(super) silent: bool,
}

enum AcceptedStream {
    Plain(Tcp),
    Encrypted(Arc<Tls>),
}

/// Result of a read.
pub(super) enum HandshakeState {
    /// More has to arrive.
    Pending,
    /// It will not be admitted.
    Refused(HandshakeError),
    Secret([u8; SECRET]),
    Certificate(Identity),
}

impl Handshake {
    pub(super) fn new(
        stream: TcpStream,
        from: SocketAddr,
        admission: &Admission,
        until: Instant,
    ) -> io::Result<Handshake> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let socket = OwnedFd::from(stream);
        let config = match admission {
            Admission::Secret { keys, .. } => keys.as_ref().map(|keys| keys.config()),
            Admission::Certificate { keys, .. } => Some(keys.config()),
        };
        let line = match config {
            None => AcceptedStream::Plain(Tcp(socket)),
            Some(config) => AcceptedStream::Encrypted(Arc::new(Tls::accept_with(socket, config)?)),
        };
        let needs_secret = matches!(admission, Admission::Secret { .. });
        // A dual-stack listener reports IPv4 addresses as IPv6.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let secret = [0; SECRET];
        Ok(Handshake { line, needs_secret, from, until, secret, come: 0, silent: true })
    }

    fn transport(&self) -> &dyn Transport {
        match &self.line {
            AcceptedStream::Plain(tcp) => tcp,
            AcceptedStream::Encrypted(tls) => &**tls,
        }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.transport().socket()
    }

    /// Reads available bytes, no more than the secret, without blocking.
    pub(super) fn advance(&mut self) -> HandshakeState {
        self.silent = false;
        if let AcceptedStream::Encrypted(tls) = &self.line {
            match tls.advance() {
                Ok(true) => {}
                Ok(false) => return HandshakeState::Pending,
                Err(error) => {
                    tls.drain();
                    return HandshakeState::Refused(HandshakeError::of(error));
                }
            }
        }
        if self.needs_secret { self.read_secret() } else { self.identify() }
    }

    fn read_secret(&mut self) -> HandshakeState {
        while self.come < SECRET {
            let mut rest = [0; SECRET];
            let wanted = SECRET - self.come;
            match self.transport().receive_into(&mut rest[..wanted]) {
                Ok(0) => return HandshakeState::Refused(HandshakeError::Closed),
                Ok(count) => {
                    self.secret[self.come..self.come + count].copy_from_slice(&rest[..count]);
                    self.come += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return HandshakeState::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return HandshakeState::Refused(HandshakeError::of(error)),
            }
        }
        HandshakeState::Secret(self.secret)
    }

    /// Learns who the user is, and answers that the certificate has been accepted.
    fn identify(&self) -> HandshakeState {
        let AcceptedStream::Encrypted(tls) = &self.line else {
            return HandshakeState::Refused(HandshakeError::NoCertificate);
        };
        let Some(certificate) = tls.peer_certificate() else {
            return HandshakeState::Refused(HandshakeError::NoCertificate);
        };
        let identity = match Identity::of(&certificate) {
            Ok(identity) => identity,
            Err(error) => return HandshakeState::Refused(HandshakeError::NoIdentity(error)),
        };
        // A new connection accepts that much at once.
        match tls.send(&ADMITTED, &[]) {
            Ok(count) if count == ADMITTED.len() => HandshakeState::Certificate(identity),
            Ok(_) => HandshakeState::Refused(HandshakeError::Closed),
            Err(error) => HandshakeState::Refused(HandshakeError::of(error)),
        }
    }

    /// Its connection, once it is known who has dialled.
    pub(super) fn admitted(self, identity: Option<Identity>) -> Admitted {
        let transport: Arc<dyn Transport> = match self.line {
            AcceptedStream::Plain(tcp) => Arc::new(tcp),
            AcceptedStream::Encrypted(tls) => tls,
        };
        Admitted { agent: 0, identity, transport, from: self.from }
    }
}

/// First bytes that a server sends to a user whose certificate it has accepted. In TLS 1.3 the user's side of the
/// handshake is complete before that.
pub const ADMITTED: [u8; 8] = *b"gridrpc1";

/// An agent that has presented its secret, or a user who has presented a certificate.
#[derive(Debug)]
pub struct Admitted {
    /// The number that the agent was invited by; 0 for users.
    pub agent: u32,
    /// The user, if the listener admits by certificate.
    pub identity: Option<Identity>,
    /// The connection, which is non-blocking. Data may be buffered already ([`Transport::has_more`]) although the
    /// socket is not readable.
    pub transport: Arc<dyn Transport>,
    /// The peer's address.
    pub from: SocketAddr,
}
