//! Launchers: start and stop agents on hosts.

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
mod schedulers;
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

/// Opens the launcher of a group. `own_program` is this installation's `gridrpc`, for hosts whose group names
/// no other; `report` receives the agents' events. None: its host is a session or a server, which runs
/// already.
#[must_use]
pub fn open(group: &HostGroup, own_program: &Path, report: Report) -> Option<Box<dyn Launcher>> {
    Some(match &group.launcher {
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
            BatchSystem::Pbs | BatchSystem::Torque | BatchSystem::Lsf | BatchSystem::Flux => {
                schedulers::open(group, batch, own_program, report)
            }
            BatchSystem::Mpi => mpi::open(group, batch, own_program, report),
        },
        LauncherKind::Session { .. } | LauncherKind::Server { .. } => return None,
    })
}

/// Job script that starts all agents of a group. It contains no secrets. None
/// if the group's launcher uses no script.
///
/// # Errors
/// When the script cannot be made, with the reason.
pub fn script(group: &HostGroup, own_program: &Path) -> Option<Result<String, String>> {
    match &group.launcher {
        LauncherKind::Batch(batch) => match batch.system {
            BatchSystem::Slurm => Some(slurm::script(group, batch, own_program)),
            BatchSystem::GridEngine => Some(gridengine::script(group, batch, own_program)),
            BatchSystem::HtCondor => Some(htcondor::script(group, batch, own_program)),
            BatchSystem::Pbs | BatchSystem::Torque | BatchSystem::Lsf | BatchSystem::Flux => {
                Some(schedulers::script(group, batch, own_program))
            }
            BatchSystem::Mpi => None,
        },
        LauncherKind::Local { .. }
        | LauncherKind::Ssh { .. }
        | LauncherKind::Program { .. }
        | LauncherKind::Session { .. }
        | LauncherKind::Server { .. } => None,
    }
}
