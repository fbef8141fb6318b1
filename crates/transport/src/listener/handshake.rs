//! One connection at the listener that has not shown its secret.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use crate::{Keys, SECRET, Tcp, Tls, Transport};

/// Somebody who has connected.
pub(super) struct Handshake {
    line: Line,
    from: SocketAddr,
    /// When it is sent away.
    pub(super) until: Instant,
    secret: [u8; SECRET],
    come: usize,
    silent: bool,
}

enum Line {
    Plain(Tcp),
    Encrypted(Arc<Tls>),
}

/// What somebody has shown.
pub(super) enum Shown {
    /// It may still come.
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
        // At a listener for both, addresses of IPv4 come in the clothes of IPv6.
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

    /// Whether it has said nothing at all.
    pub(super) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Reads what it has to say, no more than the secret, and waits for nothing.
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

    /// Its connection, for whoever it has turned out to be.
    pub(super) fn admitted(self) -> Admitted {
        let transport: Arc<dyn Transport> = match self.line {
            Line::Plain(tcp) => Arc::new(tcp),
            Line::Encrypted(tls) => tls,
        };
        Admitted { agent: 0, transport, from: self.from }
    }
}

/// An agent that has shown its secret.
#[derive(Debug)]
pub struct Admitted {
    /// Which one: the number that it was invited by.
    pub agent: u32,
    /// The connection, which does not block. Something may be at hand already
    /// ([`Transport::has_more`]) though the socket is not readable.
    pub transport: Arc<dyn Transport>,
    /// Where it dialled from.
    pub from: SocketAddr,
}
