//! Launcher for Grid Engine: `qsub` submits jobs, or agents start in the current job.

mod error_hints;
mod jobs;
mod script;
mod state_names;
mod state_reasons;
mod step;

use std::path::Path;

use gridrpc_config::HostGroup;

use crate::batch::{Batch, FilePlacement, printed};
use crate::launcher::{Launcher, Report};
use jobs::GridEngine;

/// The launcher of a group.
pub(super) fn open(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
    report: Report,
) -> Box<dyn Launcher> {
    let placing = FilePlacement::new(group, own_program);
    if batch.is_step() {
        return Box::new(step::Step::new(group, placing, report));
    }
    Box::new(Batch::new(GridEngine::new(group, batch), placing, group.stop_timeout, report))
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
    let name = format!("gridrpc-{}", group.name);
    let system = GridEngine { name, ..GridEngine::new(group, batch) };
    if batch.is_step() {
        return Ok("# Nothing is submitted: agents start in the job that the program is part of, on other hosts \
                   by `qrsh -inherit`\n"
            .to_owned());
    }
    printed(group, own_program, |wanted| system.script(wanted))
}

#[cfg(test)]
mod tests;
