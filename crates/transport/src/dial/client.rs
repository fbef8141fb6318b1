//! Dialling the client of a ticket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::attempts::{Attempt, Attempts, DialFailure, DialledStream, Dialling, Encryption};
use crate::keys::no_name;
use crate::{AgentKeys, KeysError, Ticket, Transport, set_blocking};

/// A connection to a client.
#[derive(Debug)]
pub struct ClientConnection {
    /// The connection. The secret has been sent; the client's first message shows whether it was accepted.
    pub transport: Arc<dyn Transport>,
    /// Address of the client.
    pub address: SocketAddr,
    /// The matching address of the ticket.
    pub name: String,
    /// Other addresses, and their results until then.
    pub tried: Vec<DialFailure>,
}

/// Reason why a client cannot be reached.
#[derive(Debug, Error)]
pub enum DialError {
    /// The ticket contains no usable keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The system refuses something that every attempt needs.
    #[error("nothing can be dialled: {0}")]
    Io(#[from] io::Error),
    /// None of the addresses has answered as the client.
    #[error("{0}")]
    Unreachable(Attempts),
}

/// Dials the client of a ticket, and sends it the secret. `blocking`: whether the returned connection blocks.
///
/// # Errors
/// When no address has answered as the client in time.
pub fn dial(
    ticket: &Ticket,
    timeout: Duration,
    blocking: bool,
) -> Result<ClientConnection, DialError> {
    let keys = ticket.keys.as_ref().map(AgentKeys::new).transpose()?;
    let encryption = keys.map(|keys| Encryption { config: keys.config(), name: no_name() });
    let until = Instant::now() + timeout;
    let mut dialling = Dialling::begin(&ticket.addresses, encryption, until)?;
    let Some(winner) = dialling.run()? else {
        return Err(DialError::Unreachable(dialling.give_up()));
    };
    let Attempt { name, address, line } = winner;
    let transport: Arc<dyn Transport> = match line {
        DialledStream::Encrypted(tls) => {
            show(&*tls, ticket)?;
            tls.set_blocking(blocking)?;
            tls
        }
        DialledStream::Plain(tcp) => {
            show(&tcp, ticket)?;
            set_blocking(tcp.socket(), blocking)?;
            Arc::new(tcp)
        }
        DialledStream::Connecting(_) | DialledStream::Moving => {
            unreachable!("it has reached the client")
        }
    };
    Ok(ClientConnection { transport, address, name, tried: dialling.give_up().0 })
}

fn show(transport: &dyn Transport, ticket: &Ticket) -> io::Result<()> {
    // A new connection accepts that much at once.
    if transport.send(&ticket.secret, &[])? == ticket.secret.len() && transport.flush()? {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}
