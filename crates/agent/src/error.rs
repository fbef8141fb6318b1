//! Why serving a client ends early.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use gridrpc_client::GridError;
use gridrpc_link::LinkError;
use gridrpc_transport::TicketError;
use gridrpc_transport::dial::DialError;
use thiserror::Error;

/// Why an agent ended before its client asked for it.
#[derive(Debug, Error)]
pub enum AgentError {
    /// It got no ticket.
    #[error("no ticket came on standard input: {0}")]
    NoTicket(io::Error),
    /// The ticket file cannot be read.
    #[error(
        "the ticket in `{}` cannot be read: {error}; the folder that `staging` in grid.toml names has to be \
         one that the nodes share, and a ticket is taken once", .file.display()
    )]
    NoTicketIn {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The ticket is invalid.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The client cannot be reached.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The client broke the protocol, or the connection failed.
    #[error("the client: {0}")]
    Link(#[from] LinkError),
    /// The client was silent for too long.
    #[error("the client was silent for {} s: this agent ends", .0.as_secs_f64())]
    Silent(Duration),
    /// The workers cannot start.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// Something that the workers need is missing.
    #[error("{0}")]
    NoWorkers(String),
    /// The system refused an operation.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}
