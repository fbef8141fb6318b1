//! A connection at the listener that has not presented its secret.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use crate::{Keys, SECRET, Tcp, Tls, Transport};

/// A new connection.
pub(super) struct Handshake {
    line: Line,
    from: SocketAddr,
    /// When it is dropped.
    pub(super) until: Instant,
    secret: [u8; SECRET],
    come: usize,
    silent: bool,
}

enum Line {
    Plain(Tcp),
    Encrypted(Arc<Tls>),
}

/// Result of reading the secret.
pub(super) enum Shown {
    /// The secret may still arrive.
    NotYet,
    /// No secret, and none will come.
    Nothing,
    Secret([u8; SECRET]),
}

impl Handshake {
    pub(super) fn new(
        stream: TcpStream,
        from: SocketAddr,
        keys: Option<&Keys>,
        until: Instant,
    ) -> io::Result<Handshake> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let socket = OwnedFd::from(stream);
        let line = match keys {
            None => Line::Plain(Tcp(socket)),
            Some(keys) => Line::Encrypted(Arc::new(Tls::accept(socket, keys)?)),
        };
        // A dual-stack listener reports IPv4 addresses as IPv6.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        Ok(Handshake { line, from, until, secret: [0; SECRET], come: 0, silent: true })
    }

    fn transport(&self) -> &dyn Transport {
        match &self.line {
            Line::Plain(tcp) => tcp,
            Line::Encrypted(tls) => &**tls,
        }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.transport().socket()
    }

    /// Whether it has sent nothing at all.
    pub(super) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Reads what has arrived, no more than the secret, without blocking.
    pub(super) fn look(&mut self) -> Shown {
        self.silent = false;
        if let Line::Encrypted(tls) = &self.line {
            match tls.advance() {
                Ok(true) => {}
                Ok(false) => return Shown::NotYet,
                Err(_) => return Shown::Nothing,
            }
        }
        while self.come < SECRET {
            let mut rest = [0; SECRET];
            let wanted = SECRET - self.come;
            match self.transport().receive_into(&mut rest[..wanted]) {
                Ok(0) => return Shown::Nothing,
                Ok(count) => {
                    self.secret[self.come..self.come + count].copy_from_slice(&rest[..count]);
                    self.come += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Shown::NotYet,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Shown::Nothing,
            }
        }
        Shown::Secret(self.secret)
    }

    /// Its connection, once its agent is known.
    pub(super) fn admitted(self) -> Admitted {
        let transport: Arc<dyn Transport> = match self.line {
            Line::Plain(tcp) => Arc::new(tcp),
            Line::Encrypted(tls) => tls,
        };
        Admitted { agent: 0, transport, from: self.from }
    }
}

/// An agent that has presented its secret.
#[derive(Debug)]
pub struct Admitted {
    /// The number that it was invited by.
    pub agent: u32,
    /// The connection, which is non-blocking. Data may be buffered already ([`Transport::has_more`]) although the
    /// socket is not readable.
    pub transport: Arc<dyn Transport>,
    /// Address from which it dialled.
    pub from: SocketAddr,
}
