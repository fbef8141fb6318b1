//! The agent: the process on another host that runs workers there for a client, which it dials. It is a
//! client of a grid of its own, whose workers are those of the host.

mod answers;
mod arrivals;
mod callbacks;
mod examining;
mod filling;
mod greeting;
mod input;
mod kept;
mod modules;
mod serving;
mod spreading;
mod ticket;

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::client::GridError;
use crate::link::LinkError;
use crate::transport::dial::{self, DialError};

pub use ticket::{SECRET, Ticket, TicketError, TicketKeys};

/// How long the agent tries to reach its client.
const DIAL: Duration = Duration::from_secs(30);

/// Why an agent has ended before its client wanted it to.
#[derive(Debug, Error)]
pub enum AgentError {
    /// It has not been told whom to dial.
    #[error("no ticket came on standard input: {0}")]
    NoTicket(io::Error),
    /// What it was told makes no sense.
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
    /// The workers cannot be had.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// Reads a ticket from standard input, dials its client and serves it until that is gone.
///
/// # Errors
/// When that cannot be done, or the client vanishes.
pub fn run() -> Result<(), AgentError> {
    input::go_on_with_parent();
    let word = input::first_line().map_err(AgentError::NoTicket)?;
    let ticket = Ticket::decode(&word)?;
    let input = input::watch();
    let dialled = dial::dial(&ticket, DIAL, false)?;
    serving::serve(dialled, ticket.keys.as_ref(), &input)
}
