//! Launcher for Slurm: `sbatch` submits jobs, or `srun` starts agents in the current job.

mod error_hints;
mod jobs;
mod state_names;
mod state_reasons;
mod step;

use std::path::Path;

use gridrpc_config::{HostGroup, RequestForm};

use crate::batch::{Batch, FilePlacement, check_skip, printed};
use crate::launcher::{Launcher, Report};
use jobs::{OPTIONS, Slurm};

/// The launcher of a group.
pub(super) fn open(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
    report: Report,
) -> Box<dyn Launcher> {
    let placing = FilePlacement::new(group, own_program);
    let slurm = Slurm::new(group, batch);
    if batch.is_step() || batch.request == RequestForm::Direct {
        return Box::new(step::Step::new(group, slurm, placing, report));
    }
    Box::new(Batch::new(slurm, placing, group.stop_timeout, report))
}

/// The job script of a group, as it would be submitted for all agents.
///
/// # Errors
/// When the user's template cannot be used, or there is no folder for the program.
pub(super) fn script(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
) -> Result<String, String> {
    check_skip(&batch.skip, &OPTIONS)?;
    let slurm = Slurm { name: format!("gridrpc-{}", group.name), ..Slurm::new(group, batch) };
    printed(group, own_program, |wanted| match () {
        () if batch.is_step() => Ok(format!(
            "# Nothing is submitted: this starts agents in the job that the program is part of\n{}\n",
            step::line(group, &slurm, wanted)
        )),
        () if batch.request == RequestForm::Direct => Ok(format!(
            "# No script is submitted: this waits for nodes of its own, and ends with the program\n{}\n",
            step::line(group, &slurm, wanted)
        )),
        () => slurm.script(wanted),
    })
}

#[cfg(test)]
mod tests;
