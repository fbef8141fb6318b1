//! Agent: the process on another host that runs workers there for a client. It dials the client, and is
//! itself the client of a grid whose workers are those of its host.

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

/// How often it checks for a ticket that has not arrived.
const LOOKING: Duration = Duration::from_millis(200);

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

/// Options of an agent.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A file with its ticket, which it removes. None: the ticket is the first line of standard input, and
    /// the agent ends when standard input ends.
    pub ticket: Option<PathBuf>,
    /// How long it waits for that file to appear.
    pub patience: Duration,
    /// Number of processors; none: as many as the system lets it use.
    pub processors: Option<usize>,
}

/// Reads a ticket, dials the client and serves it until it disconnects.
///
/// # Errors
/// When any of these steps fails, or the client vanishes.
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

/// Reads and removes a file. `patience`: how long to wait for it.
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
