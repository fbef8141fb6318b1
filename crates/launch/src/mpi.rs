//! Agents that `mpirun` starts, one for all that are asked for together, in the allocation that this process
//! is part of: whichever batch system has given it, if Open MPI knows that.
//!
//! Agents are no programs of MPI. They read from a shared folder, under their number, whom to connect to.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gridrpc_config::HostGroup;
use gridrpc_sys::lock;
use gridrpc_sys::process::end_with_parent;

use super::batch::{
    Batch, Commands, Failure, JobRequest, JobState, Placing, Submission, System, Task, TaskStatus,
    job_name, quoted,
};
use super::child::{Child, how};
use crate::launcher::{Launcher, Report};

/// How long `mpirun` may take to end its agents before it is killed.
const LEAVING: Duration = Duration::from_secs(5);
/// How much of what `mpirun` has said is told, bytes from the end.
const TOLD: usize = 2000;

/// What a client that is a rank has in its environment, or one that has called MPI by itself: with it, `mpirun`
/// ends at once. What users have set, such as `OMPI_MCA_rmaps_base_oversubscribe`, stays.
const OF_RANKS: [&str; 4] = ["PMIX_", "OMPI_COMM_WORLD_", "OMPI_MCA_ess", "OMPI_UNIVERSE_SIZE"];

/// `mpirun`, as the agents of one group need it.
#[derive(Debug)]
struct Mpi {
    batch: gridrpc_config::Batch,
    name: String,
    patience: Duration,
    runs: Mutex<HashMap<String, Run>>,
}

/// A running `mpirun`, or one that has ended.
#[derive(Debug)]
struct Run {
    child: Arc<Child>,
    folder: PathBuf,
    /// How it has ended.
    ended: Option<JobState>,
}

/// The launcher of a group.
pub(super) fn open(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
    report: Report,
) -> Box<dyn Launcher> {
    let placing = Placing::new(group, own_program);
    let mpi = Mpi {
        batch: batch.clone(),
        name: job_name(group),
        patience: group.stop_timeout,
        runs: Mutex::default(),
    };
    Box::new(Batch::new(mpi, placing, group.stop_timeout, report))
}

impl Mpi {
    fn command(&self, wanted: &JobRequest<'_>) -> Command {
        let JobRequest { agents, program, folder } = *wanted;
        let folder = quoted(folder);
        let agent = format!(
            "exec {} agent --ticket {folder}/\"$OMPI_COMM_WORLD_RANK\" \
             >{folder}/\"$OMPI_COMM_WORLD_RANK\".out 2>&1",
            quoted(program)
        );
        let mut command = Command::new("mpirun");
        command.args(["-n", &agents.to_string(), "--map-by", "node", "--bind-to", "none"]);
        // An agent that is lost takes no other with it.
        command.arg("--enable-recovery");
        for option in &self.batch.options {
            // With its value behind it, as one writes them in a shell.
            command.args(shlex::split(option).unwrap_or_else(|| vec![option.clone()]));
        }
        command.args(["sh", "-c", &agent]);
        let is_of_ranks = |name: &str| OF_RANKS.iter().any(|start| name.starts_with(start));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_ranks) {
                command.env_remove(name);
            }
        }
        // Whoever is root here is so by intention.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }
}

impl Run {
    /// How it stands.
    fn job_state(&mut self) -> JobState {
        if !self.child.has_ended() {
            return JobState::Runs(String::new());
        }
        let Run { child, folder, ended } = self;
        ended
            .get_or_insert_with(|| {
                let how = how(child.wait());
                let said = fs::read_to_string(folder.join("job.out")).unwrap_or_default();
                let has_begun = folder.join("0.out").exists();
                if has_begun || said.trim().is_empty() {
                    JobState::Ended(format!("its `mpirun` ended with {how}"))
                } else {
                    JobState::Refused(refusal(&said))
                }
            })
            .clone()
    }
}

/// What `mpirun` says that has started nothing, and what to do about it.
fn refusal(said: &str) -> String {
    let start = said.len().saturating_sub(TOLD);
    let start = (start..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
    let lines = said[start..].lines().filter(|line| !line.trim_start_matches('-').is_empty());
    let said: Vec<&str> = lines.map(str::trim_end).collect();
    let remedy = if said.iter().any(|line| line.contains("not enough slots")) {
        ": ask for fewer `nodes`, or write `--oversubscribe` among the `options`"
    } else {
        ""
    };
    format!("`mpirun` has started nothing: {}{remedy}", said.join("\n"))
}

impl System for Mpi {
    fn submit(&mut self, _: &Submission<'_>, wanted: &JobRequest<'_>) -> Result<String, Failure> {
        let folder = PathBuf::from(wanted.folder);
        let said = File::create(folder.join("job.out"))
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|error| Failure::Refused(format!("`{}`: {error}", wanted.folder)))?;
        let mut command = self.command(wanted);
        command.stdin(Stdio::null()).stdout(said.0).stderr(said.1);
        // Agents end with their client, and this with them.
        end_with_parent(&mut command);
        let (child, _) = Child::spawn(&mut command).map_err(|error| {
            Failure::Absent(format!(
                "`mpirun` could not be started: {error}; install Open MPI, or load its module"
            ))
        })?;
        let mut runs = lock(&self.runs);
        let job = (runs.len() + 1).to_string();
        runs.insert(job.clone(), Run { child, folder, ended: None });
        Ok(job)
    }

    fn look(&self, _: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure> {
        let mut runs = lock(&self.runs);
        let seen = jobs.iter().filter_map(|job| {
            let job_state = runs.get_mut(*job)?.job_state();
            let task = Task { job: (*job).to_owned(), number: None };
            Some(TaskStatus { task, job_state, left: None, run: String::new() })
        });
        Ok(seen.collect())
    }

    fn cancel(&self, _: &Commands, tasks: &[Task]) -> Result<(), Failure> {
        let runs = lock(&self.runs);
        for run in tasks.iter().filter_map(|task| runs.get(&task.job)) {
            Arc::clone(&run.child).end_soon(Duration::ZERO, self.patience.min(LEAVING));
        }
        Ok(())
    }

    fn has_tasks(&self) -> bool {
        false
    }

    fn job_name(&self) -> &str {
        &self.name
    }

    fn cancelling(&self) -> &'static str {
        // It has ended with the client.
        ":"
    }
}
