//! The agent: the process on another host that runs workers there for a client, which it dials. It is a
//! client of a grid of its own, whose workers are those of the host.

mod answers;
mod broadcast;
mod callbacks;
mod examination;
mod handshake;
mod heartbeat;
mod held_results;
mod incoming;
pub mod inspect;
mod modules;
mod serving;
mod shared_data;
mod standard_input;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gridrpc_client::GridError;
use gridrpc_link::LinkError;
use gridrpc_transport::dial::{self, DialError};
use gridrpc_transport::{Ticket, TicketError};
use thiserror::Error;

/// How long the agent tries to reach its client.
const DIAL: Duration = Duration::from_secs(30);

/// How often it looks for a ticket that it waits for.
const LOOKING: Duration = Duration::from_millis(200);

/// Why an agent has ended before its client wanted it to.
#[derive(Debug, Error)]
pub enum AgentError {
    /// It has not been told whom to dial.
    #[error("no ticket came on standard input: {0}")]
    NoTicket(io::Error),
    /// The file that has its ticket cannot be read.
    #[error(
        "the ticket in `{}` cannot be read: {error}; the folder that `staging` in grid.toml names has to be \
         one that the nodes share, and a ticket is taken once", .file.display()
    )]
    NoTicketIn {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
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
    /// What the workers are to have is not there.
    #[error("{0}")]
    NoWorkers(String),
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// How an agent is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A file with its ticket, which it removes; none: that is the first line of its standard input, whose
    /// end is the agent's as well.
    pub ticket: Option<PathBuf>,
    /// How long it waits for that file, if it is not there yet.
    pub patience: Duration,
    /// How many processors it has; none: as many as the system lets it use.
    pub processors: Option<usize>,
}

/// Reads a ticket, dials its client and serves it until that is gone.
///
/// # Errors
/// When that cannot be done, or the client vanishes.
pub fn run(options: &Options) -> Result<(), AgentError> {
    standard_input::go_on_with_parent();
    if let Some(processors) = options.processors.filter(|processors| *processors > 0) {
        handshake::set_processors(processors);
    }
    let word = match &options.ticket {
        Some(file) => taken(file, options.patience)
            .map_err(|error| AgentError::NoTicketIn { file: file.clone(), error })?,
        None => standard_input::first_line().map_err(AgentError::NoTicket)?,
    };
    let ticket = Ticket::decode(&word)?;
    let input = match options.ticket {
        Some(_) => standard_input::Input::default(),
        None => standard_input::watch(),
    };
    let dialled = dial::dial(&ticket, DIAL, false)?;
    serving::serve(dialled, ticket.keys.as_ref(), &input)
}

/// What a file has, which is there no longer. `patience`: how long it is waited for.
fn taken(file: &Path, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let word = loop {
        match std::fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < until => {
                std::thread::sleep(LOOKING);
            }
            read => break read?,
        }
    };
    std::fs::remove_file(file)?;
    Ok(word)
}
