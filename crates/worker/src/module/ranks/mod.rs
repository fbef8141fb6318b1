//! Functions on several MPI ranks: the worker's side, which starts the ranks and sends them calls.
//!
//! Ranks are separate processes, started once by `mpirun` and kept for the next call of the same module with the same
//! number of ranks. Each has a connection to its worker, so that idle ranks use no processor time, as they would if
//! they waited in MPI. Communication between ranks is up to the function.

mod cancellation;
mod command;
mod listener;
mod protocol;
mod rank;
mod stage;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_shm::segment::Pool;
use gridrpc_wire::Ranks;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::link::WorkerLink;
use crate::module::arguments::Arguments;
use crate::module::error::{CallError, LostRanks};
use crate::module::raised::Raised;
use command::{Nodes, Running, chosen, how};
use listener::Listener;
use protocol::{Connection, RankMessage};
use stage::{Stage, check_for_nodes};

pub(super) use cancellation::is_cancelled;
pub use command::{environment, options_for_nodes};
pub use listener::hosts;
pub use rank::run_rank;

/// Time within which all ranks must have connected.
const START_TIME: Duration = Duration::from_secs(120);
/// How often to check in the meantime whether they can still connect.
const LOOK_EVERY: u16 = 100;
/// How long other ranks may continue when one has failed: they may wait for it forever.
const GRACE: Duration = Duration::from_secs(1);
/// Free memory shared with ranks that is kept for later calls, bytes.
const KEEP_FREE: u64 = 64 << 20;

/// Locates the program `gridrpc`, which each rank runs.
pub type Program = Box<dyn Fn() -> Result<PathBuf, String> + Send>;

/// Running ranks.
#[derive(Debug)]
pub(super) struct Group {
    module: PathBuf,
    requested: Ranks,
    /// The command that started them.
    command: String,
    running: Running,
    connections: Vec<Connection>,
    pool: Arc<Pool>,
}

impl Group {
    /// Whether it can run functions of that module for a call with this request.
    pub(super) fn serves(&mut self, module: &Path, requested: &Ranks) -> bool {
        self.module == module && self.requested == *requested && self.running.ended().is_none()
    }

    /// Starts ranks for functions of a module.
    pub(super) fn start(
        module: &Path,
        requested: &Ranks,
        program: &Program,
    ) -> Result<Group, CallError> {
        let ranks = requested.ranks;
        let not_started =
            |why: String| LostRanks::at_start(format!("{ranks} ranks could not be started: {why}"));
        let program = program().map_err(not_started)?;
        let command = chosen(&requested.command);
        let nodes = Nodes::of_this_host();
        // Nothing is left behind, however this process ends: a socket loses its name when all ranks have connected.
        let listener = if nodes.is_some() { Listener::remote() } else { Listener::local() };
        let listener = listener.map_err(|error| not_started(format!("its socket: {error}")))?;
        let running = Running::start(&command, requested, nodes, &program, &listener);
        let running = running.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_started(format!(
                "`{}` is not there: install Open MPI (openmpi-bin), or name the command by `mpirun` in the grid's \
                 configuration, or on one host by GRIDRPC_MPIRUN in the environment of its workers",
                command.split_whitespace().next().unwrap_or_default()
            )),
            _ => not_started(format!("`{command}`: {error}")),
        })?;
        let pool = Pool::new(KEEP_FREE);
        let (module, requested) = (module.to_owned(), requested.clone());
        let mut group =
            Group { module, requested, command, running, connections: Vec::new(), pool };
        group.gather(&listener)?;
        Ok(group)
    }

    /// Waits for all ranks.
    fn gather(&mut self, listener: &Listener) -> Result<(), CallError> {
        let wanted = self.requested.ranks as usize;
        let mut coming: Vec<Connection> = Vec::new();
        let mut here: Vec<Option<Connection>> = (0..wanted).map(|_| None).collect();
        let end = Instant::now() + START_TIME;
        while here.iter().any(Option::is_none) {
            let mut events: Vec<PollFd<'_>> = [listener.as_fd()]
                .into_iter()
                .chain(coming.iter().map(Connection::as_fd))
                .map(|socket| PollFd::new(socket, PollFlags::POLLIN))
                .collect();
            // The result does not matter: the events are checked below.
            let _ = poll(&mut events, LOOK_EVERY);
            let ready: Vec<bool> = events.iter().map(|event| event.any() == Some(true)).collect();
            drop(events);
            for at in (0..coming.len()).rev().filter(|at| ready[at + 1]) {
                let connection = coming.swap_remove(at);
                match connection.receive() {
                    Ok((RankMessage::Here { rank, ranks }, ..)) => {
                        if ranks as usize != wanted {
                            return Err(self.lost(&format!(
                                "could not be started: they are {ranks} for MPI. The module was built with another \
                                 MPI than that of `{}`", self.command
                            ), None));
                        }
                        if let Some(place) = here.get_mut(rank as usize) {
                            *place = Some(connection);
                        }
                    }
                    Ok((RankMessage::Failed(why), ..)) => return Err(CallError::Module(why)),
                    // It has ended, and so will the command.
                    Ok(_) | Err(_) => {}
                }
            }
            if let Ok(connection) = listener.accept() {
                let module = self.module.to_string_lossy().into_owned();
                if connection.send(&RankMessage::Serve(module), [&[], &[]], None).is_ok() {
                    coming.push(connection);
                }
                continue;
            }
            if self.running.ended().is_some() {
                return Err(self.lost("could not be started", None));
            }
            if Instant::now() > end {
                let what = format!("have not come within {} s", START_TIME.as_secs());
                return Err(self.lost(&what, None));
            }
        }
        self.connections = here.into_iter().flatten().collect();
        Ok(())
    }

    /// Calls a function, `module/function`. Returns the processor time that all ranks have used for it, ns. After an
    /// error the ranks are unusable.
    pub(super) fn call(
        &mut self,
        link: &mut WorkerLink,
        function: &str,
        arguments: &mut Arguments,
    ) -> Result<u64, CallError> {
        if self.connections.iter().any(|connection| !connection.passes_memory) {
            check_for_nodes(arguments)?;
        }
        let stage = Stage::fill(&self.pool, arguments)?;
        let file = stage.lent.segment().file();
        let (_, own_name) = function.split_once('/').unwrap_or(("", function));
        for (rank, connection) in self.connections.iter().enumerate() {
            let describe_end = if rank == 0 { &stage.first } else { &stage.others };
            let passes = connection.passes_memory;
            let content = if passes { &[] } else { stage.content(rank)? };
            let run = RankMessage::Run {
                function: own_name.to_owned(),
                stage: stage.layout,
                content: content.len(),
                places: describe_end.places.clone(),
            };
            let file = passes.then(|| file.as_fd());
            if connection.send(&run, [&describe_end.texts, content], file).is_err() {
                return Err(self.lost(&format!("were lost before they ran {function}"), Some(rank)));
            }
        }
        let (processor, mut texts) = self.wait(link, function)?;
        if self.connections.first().is_some_and(|first| !first.passes_memory) {
            stage.take_content(&mut texts)?;
        }
        stage.take_results(arguments, &texts)?;
        Ok(processor)
    }

    /// Waits for all ranks' answers, and notifies the ranks if the call is cancelled.
    fn wait(&mut self, link: &mut WorkerLink, function: &str) -> Result<(u64, Vec<u8>), CallError> {
        let mut waiting: Vec<usize> = (0..self.connections.len()).collect();
        let (mut processor, mut results) = (0, Vec::new());
        let mut failed: Option<(Instant, CallError)> = None;
        let mut is_cancelled = false;
        while !waiting.is_empty() {
            let left = match &failed {
                None => PollTimeout::NONE,
                Some((end, _)) => {
                    let left = end.saturating_duration_since(Instant::now());
                    PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO)
                }
            };
            let mut events: Vec<PollFd<'_>> = waiting
                .iter()
                .map(|rank| self.connections[*rank].as_fd())
                .chain((!is_cancelled).then(|| link.socket()))
                .map(|socket| PollFd::new(socket, PollFlags::POLLIN))
                .collect();
            let polled = poll(&mut events, left);
            let ready: Vec<bool> = events.iter().map(|event| event.any() == Some(true)).collect();
            drop(events);
            if polled == Ok(0) {
                // The other ranks wait for the one that has failed.
                break;
            }
            if ready.get(waiting.len()) == Some(&true) && link.is_cancelled() {
                is_cancelled = true;
                for rank in &waiting {
                    // One that is lost is noticed below.
                    let _ = self.connections[*rank].send(&RankMessage::Cancel, [&[], &[]], None);
                }
            }
            for at in (0..waiting.len()).rev().filter(|at| ready[*at]) {
                let rank = waiting.swap_remove(at);
                match self.connections[rank].receive() {
                    Ok((RankMessage::Returned { processor: used }, texts, _)) => {
                        processor += used;
                        if rank == 0 {
                            results = texts;
                        }
                    }
                    Ok((RankMessage::Failed(why), ..)) => {
                        let error = CallError::Memory(format!("{why} on rank {rank}"));
                        failed.get_or_insert((Instant::now() + GRACE, error));
                    }
                    Ok((RankMessage::Raised { kind, message }, ..)) => {
                        let message = format!("{message} (on rank {rank})");
                        let error = CallError::Raised(Box::new(Raised::new(kind, message)));
                        failed.get_or_insert((Instant::now() + GRACE, error));
                    }
                    Ok(_) | Err(_) => {
                        return Err(
                            self.lost(&format!("were lost that ran {function}"), Some(rank))
                        );
                    }
                }
            }
        }
        match failed {
            Some((_, error)) => Err(error),
            None => Ok((processor, results)),
        }
    }

    /// The error for lost ranks; `first`: the rank that ended first.
    fn lost(&mut self, what: &str, first: Option<usize>) -> CallError {
        // The command ends the others when one has died, and reports the reason.
        let ended = self.running.wait();
        let first = first.map(|rank| format!("; rank {rank} ended first"));
        let (describe_end, status, signal) = match ended {
            None => (String::new(), None, None),
            Some(ended) => self.describe_end(ended),
        };
        CallError::Lost(Box::new(LostRanks {
            what: format!(
                "{} ranks {what}{}{describe_end}",
                self.requested.ranks,
                first.unwrap_or_default()
            ),
            pid: Some(self.running.pid()),
            status,
            signal,
            stderr: self.running.tail(),
        }))
    }

    fn describe_end(&self, ended: ExitStatus) -> (String, Option<i32>, Option<i32>) {
        let (how, status, signal) = how(ended);
        (format!(": `{}` ended {how}", self.command), status, signal)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Ranks end as soon as their connections close.
        self.connections.clear();
        self.running.end();
    }
}
