//! Agents in Grid Engine jobs that `qsub` submits.

use std::collections::HashMap;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use gridrpc_config::{HostGroup, RequestForm};

use super::error_hints::{self, is_unknown, refusal};
use super::state_names::{self, State, name, rows};
use super::state_reasons::{errors, reasons};
use crate::batch::{
    Commands, Failure, JobRequest, JobState, StatusQuery, Submission, System, Task, TaskStatus,
    VanishedTask, ended_with, job_name, prefixed,
};

/// All groups of this process share one queue of jobs.
static STATUS_QUERY: LazyLock<StatusQuery> = LazyLock::new(StatusQuery::default);

/// Environment variables of a job that must not leak into jobs submitted from it.
const OF_A_JOB: [&str; 14] = [
    "ARC",
    "ENVIRONMENT",
    "JOB_ID",
    "JOB_NAME",
    "JOB_SCRIPT",
    "NHOSTS",
    "NQUEUES",
    "NSLOTS",
    "PE",
    "PE_HOSTFILE",
    "QUEUE",
    "REQNAME",
    "REQUEST",
    "RESTARTED",
];
/// The same, by prefix.
const OF_A_TASK: [&str; 4] = ["SGE_TASK_", "SGE_O_", "SGE_STD", "SGE_JOB_"];

/// Grid Engine, configured for the jobs of one group.
#[derive(Debug)]
pub(super) struct GridEngine {
    pub batch: gridrpc_config::Batch,
    /// Workers of each agent; 0: one per slot.
    pub workers: u32,
    pub name: String,
}

impl GridEngine {
    pub(super) fn new(group: &HostGroup, batch: &gridrpc_config::Batch) -> GridEngine {
        GridEngine { batch: batch.clone(), workers: group.workers, name: job_name(group) }
    }

    /// The output of `qstat -j`: why jobs wait, and which errors their tasks had.
    fn explanation(&self, commands: &Commands, jobs: &[&str]) -> String {
        if jobs.is_empty() {
            return String::new();
        }
        let mut qstat = self.command("qstat");
        qstat.args(["-j", &jobs.join(",")]);
        // Without an answer, the state alone has to do.
        commands.run(&mut qstat, "").unwrap_or_default()
    }
}

impl GridEngine {
    /// A Grid Engine command with the environment of a process outside any job.
    fn command(&self, name: &str) -> Command {
        let mut command = prefixed(&self.batch.prefix, name);
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            let is_of_a_task = OF_A_TASK.iter().any(|begin| text.starts_with(begin));
            if is_of_a_task || OF_A_JOB.contains(&&*text) {
                command.env_remove(&variable);
            }
        }
        command
    }
}

impl System for GridEngine {
    fn submit(
        &mut self,
        submission: &Submission<'_>,
        wanted: &JobRequest<'_>,
    ) -> Result<String, Failure> {
        let script = self.script(wanted).map_err(Failure::Refused)?;
        let said = submission.run(self.command("qsub").arg("-terse"), &script).map_err(refusal)?;
        // For an array, the tasks follow a dot.
        let job = said.lines().last().and_then(|line| line.trim().split('.').next());
        match job.filter(|job| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(job) => Ok(job.to_owned()),
            None => Err(Failure::Refused(format!("qsub names no job: {said}"))),
        }
    }

    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure> {
        let mut qstat = self.command("qstat");
        // One row per task of an array, and full host names.
        qstat.args(["-g", "d", "-xml"]);
        let said = match commands.run(&mut qstat, "") {
            Ok(said) => said,
            Err(Failure::Refused(words)) => return Err(Failure::Silent(words)),
            Err(failure) => return Err(failure),
        };
        let rows: Vec<_> = rows(&said).filter(|row| jobs.contains(&row.job)).collect();
        let waits =
            |row: &&state_names::Row<'_>| matches!(row.state(), State::Queued | State::Failed);
        let mut waiting_jobs: Vec<&str> = rows.iter().filter(waits).map(|row| row.job).collect();
        waiting_jobs.sort_unstable();
        waiting_jobs.dedup();
        let explanation = self.explanation(commands, &waiting_jobs);
        let (reasons, errors): (HashMap<_, _>, _) = (reasons(&explanation), errors(&explanation));
        let mut failed = Vec::new();
        let seen = rows.iter().map(|row| {
            let task = row.task();
            let job_state = match row.state() {
                State::Runs(node) => JobState::Runs(node),
                State::Held => JobState::Queued("it is held: `qrls` lets it go".to_owned()),
                State::Queued => {
                    JobState::Queued(reasons.get(row.job).cloned().unwrap_or_default())
                }
                State::Failed => {
                    failed.push(task.clone());
                    let number = task.number.map_or(1, |number| number + 1);
                    let why = errors.get(&(row.job, number)).map_or("", |why| why);
                    JobState::Refused(error_hints::not_started(&name(&task), why))
                }
            };
            TaskStatus { task, job_state, left: None, run: row.begun.to_owned() }
        });
        let seen = seen.collect();
        if !failed.is_empty() {
            // They would stay in the queue until somebody deletes them.
            let _ = self.cancel(commands, &failed);
        }
        Ok(seen)
    }

    fn status_query(&self) -> Option<&'static StatusQuery> {
        // Behind a prefix there may be another Grid Engine.
        self.batch.prefix.is_empty().then(|| &*STATUS_QUERY)
    }

    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Failure> {
        let mut qdel = self.command("qdel");
        qdel.args(tasks.iter().map(name));
        match commands.run(&mut qdel, "") {
            // They have already ended.
            Err(Failure::Refused(words)) if is_unknown(&words) => Ok(()),
            ran => ran.map(|_| ()).map_err(refusal),
        }
    }

    fn gone(&self, _commands: &Commands, gone: &VanishedTask<'_>) -> JobState {
        let VanishedTask { task, node, status, is_over } = *gone;
        let (job, name) = (&task.job, name(task));
        let on = if node.is_empty() { String::new() } else { format!(" on {node}") };
        let number = task.number.map(|number| format!(" -t {}", number + 1)).unwrap_or_default();
        let how = match status {
            Some(status) => ended_with(status),
            None if node.is_empty() => {
                format!(
                    "is not in the queue any longer: ended by `qdel`, or by a limit as soon as it had \
                     begun; `qacct -j {job}{number}` tells whether it has run"
                )
            }
            None if is_over => "has reached its wall time: see `wall_time`".to_owned(),
            None => {
                format!(
                    "was ended by Grid Engine: by `qdel`, or since it had reached its wall time or \
                     another limit; `qacct -j {job}{number}` tells which"
                )
            }
        };
        JobState::Ended(format!("its job {name}{on} {how}"))
    }

    fn wall_time(&self) -> Option<Duration> {
        self.batch.wall_time
    }

    fn requeued(&self) -> &'static str {
        "was requeued, to make room or by `qmod -rj`"
    }

    fn has_tasks(&self) -> bool {
        self.batch.request != RequestForm::Job
    }

    fn job_name(&self) -> &str {
        &self.name
    }

    fn prefix(&self) -> &[String] {
        &self.batch.prefix
    }

    fn cancelling(&self) -> &'static str {
        // No such job is a success as well.
        "said=$(\"$@\" qdel $jobs \"$name\" 2>&1) && return 0\n\
         case $said in\n    \
         *'unable to '*|*commlib*|*'not found'*|*SGE_ROOT*) return 1 ;;\n\
         esac"
    }
}
