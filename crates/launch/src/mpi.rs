//! Launcher that runs `mpirun`, once per request, in the allocation of the current process. Works with any
//! batch system that Open MPI supports.
//!
//! Agents are not MPI programs. Each reads its ticket from a shared folder, under its number.

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
    Batch, Commands, Failure, FilePlacement, JobRequest, JobState, Submission, System, Task,
    TaskStatus, job_name, quoted,
};
use super::child::{Child, how};
use crate::launcher::{Launcher, Report};

/// How long `mpirun` may take to end its agents before it is killed.
const LEAVING: Duration = Duration::from_secs(5);
/// How much of the end of `mpirun`'s output is reported, bytes.
const TOLD: usize = 2000;

/// Environment variables of a client that is a rank or has initialized MPI: with them, `mpirun` fails at
/// once. Variables that users set, such as `OMPI_MCA_rmaps_base_oversubscribe`, stay.
const OF_RANKS: [&str; 4] = ["PMIX_", "OMPI_COMM_WORLD_", "OMPI_MCA_ess", "OMPI_UNIVERSE_SIZE"];

/// `mpirun`, configured for the agents of one group.
#[derive(Debug)]
struct Mpi {
    batch: gridrpc_config::Batch,
    name: String,
    stop_timeout: Duration,
    runs: Mutex<HashMap<String, Run>>,
}

/// An `mpirun` process, running or ended.
#[derive(Debug)]
struct Run {
    child: Arc<Child>,
    folder: PathBuf,
    /// Its final state.
    ended: Option<JobState>,
}

/// The launcher of a group.
pub(super) fn open(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
    report: Report,
) -> Box<dyn Launcher> {
    let placing = FilePlacement::new(group, own_program);
    let mpi = Mpi {
        batch: batch.clone(),
        name: job_name(group),
        stop_timeout: group.stop_timeout,
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
        // The loss of one agent does not end the others.
        command.arg("--enable-recovery");
        for option in &self.batch.options {
            // The value follows, as in a shell.
            command.args(shlex::split(option).unwrap_or_else(|| vec![option.clone()]));
        }
        command.args(["sh", "-c", &agent]);
        let is_of_ranks = |name: &str| OF_RANKS.iter().any(|start| name.starts_with(start));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_ranks) {
                command.env_remove(name);
            }
        }
        // Running as root is a deliberate choice here.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }
}

impl Run {
    /// Its current state.
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

/// Output of an `mpirun` that started nothing, with a remedy.
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
        // Agents end with their client, and this process with them.
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
            Arc::clone(&run.child).end_soon(Duration::ZERO, self.stop_timeout.min(LEAVING));
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
        // `mpirun` has ended with the client.
        ":"
    }
}
