//! Launchers: what starts agents on hosts, and ends them.

mod agents;
mod batch;
mod child;
mod conversation;
mod gridengine;
mod htcondor;
mod lines;
mod local;
mod mpi;
mod permits;
mod program;
mod refusals;
mod slurm;
mod ssh;
mod ssh_process;
mod staging;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) use child::tie;

use crate::agent::Ticket;
use crate::servers::{BatchSystem, LauncherKind, Server};

/// An agent that is to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The client's number for it: events name it.
    pub agent: u32,
    /// The host, as the configuration names it.
    pub host: String,
    /// What the agent is to be given. A launcher that opens another way to the client adds its address.
    pub ticket: Ticket,
}

/// How far the start of an agent has come whose host does not have the program.
pub(crate) const COPIES: &str = "copies the program";

/// How what a launcher tells begins of an agent that waits in a queue.
pub(crate) const QUEUED: &str = "is queued";

/// The same of an agent whose batch system has not said yet that it takes its job.
pub(crate) const SUBMITTED: &str = "is being submitted";

/// The same of an agent after whose job the batch system could not be asked.
pub(crate) const UNANSWERED: &str = "cannot be asked after";

/// What has become of an agent that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// How far its start has come, for people: "waits in the queue", "copies the program".
    State(String),
    /// Its process will be ended in so long, as that of a job that reaches its wall time.
    EndsIn(Duration),
    /// It could not be started: why, with what to do about it.
    Failed(String),
    /// It was started, and its process has ended: how.
    Ended(String),
    /// It has written this to its standard error, or its launcher has: a line, with its end if it has one.
    Said(Vec<u8>),
}

/// Where events go: the agent's number, and what has happened. Called in any thread; returns at once, and
/// does not call the launcher.
#[derive(Clone)]
pub struct Report(pub Arc<dyn Fn(u32, Event) + Send + Sync>);

impl Report {
    /// Tells what has become of an agent.
    pub fn tell(&self, agent: u32, event: Event) {
        (self.0)(agent, event);
    }
}

/// Closes launchers side by side.
pub(crate) fn close_all(launchers: Vec<Box<dyn Launcher>>) {
    let count = launchers.len();
    let left = Mutex::new(launchers);
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let close = || {
        while let Some(mut launcher) = next() {
            launcher.close();
        }
    };
    thread::scope(|scope| {
        for _ in 1..count {
            // If the system refuses a thread, the others close more.
            let _ = thread::Builder::new().spawn_scoped(scope, close);
        }
        close();
    });
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

/// Starts agents and ends them. No method waits: what takes time happens in threads of its own, and what
/// comes of it goes to the [`Report`] that the launcher was made with. After `Failed` or `Ended` nothing
/// more is told of an agent, and its number may be used again.
pub trait Launcher: fmt::Debug + Send {
    /// Asks for agents, all in one request.
    fn start(&mut self, starts: Vec<Start>);

    /// Ends an agent that is there, or on its way; the event says when it has ended.
    fn stop(&mut self, agent: u32);

    /// An agent is gone that had reached its client. Whether `Ended` will say soon how that came, which its
    /// connection cannot tell.
    fn lost(&mut self, _agent: u32) -> bool {
        false
    }

    /// Ends all agents, and waits for that, at most as long as the server's `stop_timeout`.
    fn close(&mut self);
}

/// The launcher of a server. `own_program` is this installation's `gridrpc`, which runs on hosts
/// whose server names no other; `report` hears what comes of the agents.
#[must_use]
pub fn open(server: &Server, own_program: &Path, report: Report) -> Box<dyn Launcher> {
    match &server.launcher {
        LauncherKind::Local { prefix } => {
            Box::new(local::Local::new(server, prefix, own_program, report))
        }
        LauncherKind::Ssh { command } => {
            Box::new(ssh::Ssh::new(server, command, own_program, report))
        }
        LauncherKind::Program { command } => {
            Box::new(program::Program::new(command, server.stop_timeout, report))
        }
        LauncherKind::Batch(batch) => match batch.system {
            BatchSystem::Slurm => slurm::open(server, batch, own_program, report),
            BatchSystem::GridEngine => gridengine::open(server, batch, own_program, report),
            BatchSystem::HtCondor => htcondor::open(server, batch, own_program, report),
            BatchSystem::Mpi => mpi::open(server, batch, own_program, report),
        },
    }
}

/// The job script by which a batch system would start all agents of a server. Nothing in it is secret. None:
/// its launcher has none.
///
/// # Errors
/// When there can be none: why.
pub fn script(server: &Server, own_program: &Path) -> Option<Result<String, String>> {
    match &server.launcher {
        LauncherKind::Batch(batch) => match batch.system {
            BatchSystem::Slurm => Some(slurm::script(server, batch, own_program)),
            BatchSystem::GridEngine => Some(gridengine::script(server, batch, own_program)),
            BatchSystem::HtCondor => Some(htcondor::script(server, batch, own_program)),
            BatchSystem::Mpi => None,
        },
        LauncherKind::Local { .. } | LauncherKind::Ssh { .. } | LauncherKind::Program { .. } => {
            None
        }
    }
}
