//! An agent: serves the client of a ticket on a grid that the client configures, and ends with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridrpc_client::{Grid, Parent};
use gridrpc_core::Owner;
use gridrpc_link::NOT_PRELOADED;
use gridrpc_transport::dial::{self, ClientConnection};
use gridrpc_transport::{Ticket, TicketKeys};
use gridrpc_wire::{HostLoss, Message};

use crate::broadcast::Broadcast;
use crate::connection::{Connection, MAX_PAYLOAD};
use crate::error::AgentError;
use crate::examination::Examination;
use crate::handshake;
use crate::serving::{self, Terms};
use crate::standard_input::{self, Input};

/// How long the agent tries to reach its client.
const DIAL: Duration = Duration::from_secs(30);

/// How often it checks for a ticket that has not arrived.
const LOOKING: Duration = Duration::from_millis(200);

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
    serve(dialled, ticket.keys.as_ref(), &input)
}

/// Serves the client of a ticket on a grid that it configures.
fn serve(
    dialled: ClientConnection,
    keys: Option<&TicketKeys>,
    input: &Input,
) -> Result<(), AgentError> {
    let mut examining = Examination::new(&dialled);
    let system = |what| move |error| AgentError::System { what, error };
    let opened = Connection::new(dialled.transport, MAX_PAYLOAD);
    let mut connection = opened.map_err(system("making an event descriptor"))?;
    let answers = Arc::clone(&connection.answers);
    let mut spreading =
        Broadcast::new(keys, &connection.places, &answers).map_err(system("opening a port"))?;
    handshake::greet(&answers, handshake::processors() as u32, spreading.port());
    let Some(wanted) = handshake::wait_for_request(&mut connection, &mut examining)? else {
        return Ok(());
    };
    spreading.compression = wanted.compression;
    let parent: Arc<dyn Parent> = Arc::clone(&answers) as _;
    let config = match wanted.config() {
        Ok(config) => config,
        Err(why) => {
            let why = format!("{NOT_PRELOADED}{why}");
            let cause = HostLoss::FAILED;
            answers.tell(&Message::NoWorkers(HostLoss { cause, why: &why, ..HostLoss::default() }));
            answers.send();
            return Err(AgentError::NoWorkers(why));
        }
    };
    let grid = Arc::new(Grid::open_for(config, None, Some(parent))?);
    let unwanted = Arc::new(AtomicBool::new(false));
    let (flag, to_wake) = (Arc::clone(&unwanted), Arc::clone(&answers));
    input.tell(move || {
        flag.store(true, Ordering::Release);
        let _ = to_wake.wake.write(1);
    });
    let terms = Terms {
        owner: Owner::SELF,
        access: None,
        takes_code: true,
        heartbeat: wanted.heartbeat,
        heartbeats: Arc::default(),
        compression: wanted.compression,
        modules: wanted.modules,
        spreading: Some(spreading),
        numbers: Arc::default(),
        unwanted,
    };
    let served = serving::serve(&grid, connection, terms);
    grid.close();
    served
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
