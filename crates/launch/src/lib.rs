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

use gridrpc_config::{BatchSystem, HostGroup, LauncherKind};

pub use launcher::{
    COPIES, Event, Launcher, QUEUED, Report, SUBMITTED, Start, UNANSWERED, close_all,
};

/// The launcher of a group. `own_program` is this installation's `gridrpc`, which runs on hosts
/// whose group names no other; `report` hears what comes of the agents.
#[must_use]
pub fn open(group: &HostGroup, own_program: &Path, report: Report) -> Box<dyn Launcher> {
    match &group.launcher {
        LauncherKind::Local { prefix } => {
            Box::new(local::Local::new(group, prefix, own_program, report))
        }
        LauncherKind::Ssh { command } => {
            Box::new(ssh::Ssh::new(group, command, own_program, report))
        }
        LauncherKind::Program { command } => {
            Box::new(program::Program::new(command, group.stop_timeout, report))
        }
        LauncherKind::Batch(batch) => match batch.system {
            BatchSystem::Slurm => slurm::open(group, batch, own_program, report),
            BatchSystem::GridEngine => gridengine::open(group, batch, own_program, report),
            BatchSystem::HtCondor => htcondor::open(group, batch, own_program, report),
            BatchSystem::Mpi => mpi::open(group, batch, own_program, report),
        },
    }
}

/// The job script by which a batch system would start all agents of a group. Nothing in it is secret. None:
/// its launcher has none.
///
/// # Errors
/// When there can be none: why.
pub fn script(group: &HostGroup, own_program: &Path) -> Option<Result<String, String>> {
    match &group.launcher {
        LauncherKind::Batch(batch) => match batch.system {
            BatchSystem::Slurm => Some(slurm::script(group, batch, own_program)),
            BatchSystem::GridEngine => Some(gridengine::script(group, batch, own_program)),
            BatchSystem::HtCondor => Some(htcondor::script(group, batch, own_program)),
            BatchSystem::Mpi => None,
        },
        LauncherKind::Local { .. } | LauncherKind::Ssh { .. } | LauncherKind::Program { .. } => {
            None
        }
    }
}
