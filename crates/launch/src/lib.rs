//! Launchers: what starts agents on hosts, and ends them.

mod agents;
mod batch;
mod child;
mod error_hints;
mod gridengine;
mod htcondor;
mod launcher;
mod lines;
mod local;
mod mpi;
mod permits;
mod program;
mod program_protocol;
mod slurm;
mod ssh;
mod ssh_command;
mod ssh_process;
mod staging;

use std::path::Path;

use gridrpc_config::{BatchSystem, LauncherKind, Server};

pub use launcher::{
    COPIES, Event, Launcher, QUEUED, Report, SUBMITTED, Start, UNANSWERED, close_all,
};

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
