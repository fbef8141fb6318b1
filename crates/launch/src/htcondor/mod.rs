//! Launcher for HTCondor: `condor_submit` submits one cluster of jobs.

mod error_hints;
mod state_names;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use gridrpc_config::HostGroup;

use super::batch::{
    Batch, Commands, Failure, FilePlacement, JobRequest, JobState, Parts, StatusQuery, Submission,
    System, Task, TaskStatus, VanishedTask, check_skip, filled, is_left_out, job_name, prefixed,
    printed, processors_of_agent, timeout_option,
};
use crate::launcher::{Launcher, Report};
use error_hints::{is_unknown, refusal};
use state_names::{History, Row, State, name, rows};

/// All groups of this process share one queue of jobs.
static STATUS_QUERY: LazyLock<StatusQuery> = LazyLock::new(StatusQuery::default);

/// Job attributes to query.
const COLUMNS: [&str; 7] = [
    "ClusterId",
    "ProcId",
    "JobStatus",
    "RemoteHost",
    "NumJobStarts",
    "LastRejMatchReason",
    "HoldReason",
];
/// Attributes of a job that has ended.
const ENDS: [&str; 6] =
    ["ProcId", "JobStatus", "ExitCode", "ExitSignal", "LastRemoteHost", "RemoveReason"];

/// HTCondor, configured for the jobs of one group.
#[derive(Debug)]
struct HtCondor {
    batch: gridrpc_config::Batch,
    /// Workers of each agent; 0: one per processor of its job.
    workers: u32,
    name: String,
}

/// The settings that a job may make; `skip` removes them.
const OPTIONS: [&str; 11] = [
    "universe",
    "batch_name",
    "should_transfer_files",
    "transfer_executable",
    "getenv",
    "notification",
    "request_cpus",
    "request_memory",
    "requirements",
    "accounting_group",
    "periodic_remove",
];

/// The launcher of a group.
pub(super) fn open(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
    report: Report,
) -> Box<dyn Launcher> {
    let placing = FilePlacement::new(group, own_program);
    Box::new(Batch::new(HtCondor::new(group, batch), placing, group.stop_timeout, report))
}

/// The submit description of a group, as it would be submitted for all agents.
///
/// # Errors
/// When the user's template cannot be used, or there is no folder for the program.
pub(super) fn script(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
) -> Result<String, String> {
    let name = format!("gridrpc-{}", group.name);
    let system = HtCondor { name, ..HtCondor::new(group, batch) };
    printed(group, own_program, |wanted| system.script(wanted))
}

impl HtCondor {
    fn new(group: &HostGroup, batch: &gridrpc_config::Batch) -> HtCondor {
        HtCondor { batch: batch.clone(), workers: group.workers, name: job_name(group) }
    }

    /// Lines of the submit description that request resources.
    fn options(&self) -> Vec<String> {
        let batch = &self.batch;
        let cores = processors_of_agent(batch, self.workers).unwrap_or(1);
        let mut options = vec![
            "universe = vanilla".to_owned(),
            format!("batch_name = {}", self.name),
            // The machines share the folder.
            "should_transfer_files = NO".to_owned(),
            "transfer_executable = False".to_owned(),
            "getenv = True".to_owned(),
            "notification = Never".to_owned(),
            format!("request_cpus = {cores}"),
        ];
        let mut say = |name: &str, value: Option<String>| {
            options.extend(value.map(|value| format!("{name} = {value}")));
        };
        say("request_memory", batch.memory.clone());
        say("requirements", batch.constraint.clone());
        say("accounting_group", batch.account.clone());
        let mut over = Vec::new();
        if !batch.requeue {
            // A ticket is used once, so a job that has run does not run again; a new job replaces it.
            over.push("(JobStatus == 1 && NumJobStarts > 0)".to_owned());
        }
        if let Some(time) = batch.wall_time {
            let seconds = time.as_secs();
            over.push(format!("(JobStatus == 2 && time() - JobCurrentStartDate > {seconds})"));
        }
        say("periodic_remove", (!over.is_empty()).then(|| over.join(" || ")));
        options.retain(|option| !is_left_out(&batch.skip, option));
        // Last: the last setting of a kind wins.
        options.extend(batch.options.iter().cloned());
        options
    }

    fn script(&self, wanted: &JobRequest<'_>) -> Result<String, String> {
        check_skip(&self.batch.skip, &OPTIONS)?;
        let JobRequest { agents, program, folder } = *wanted;
        let cores = processors_of_agent(&self.batch, self.workers).unwrap_or(1);
        let timeout_option = timeout_option(self.batch.requeue);
        let arguments = format!(
            "agent --ticket {}{timeout_option} --processors {cores}",
            argument(&format!("{folder}/$(Process)"))
        );
        let agent = format!(
            "executable = {program}\n\
             arguments = \"{arguments}\"\n\
             output = {folder}/$(Process).out\n\
             error = {folder}/$(Process).out\n\
             queue {agents}"
        );
        let parts = Parts { head: "", options: self.options(), options_lead: false, agent };
        filled(self.batch.template.as_deref(), &parts)
    }

    /// An HTCondor command.
    fn command(&self, name: &str) -> Command {
        prefixed(&self.batch.prefix, name)
    }

    /// How a job has ended.
    fn history(&self, commands: &Commands, task: &Task) -> Option<History> {
        let mut history = self.command("condor_history");
        history.arg(name(task)).args(["-limit", "1", "-autoformat:t"]).args(ENDS);
        state_names::history(&commands.run(&mut history, "").ok()?)
    }
}

/// Quotes a word among the arguments of a submit description.
fn argument(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''").replace('"', "\"\""))
}

impl System for HtCondor {
    fn submit(
        &mut self,
        submission: &Submission<'_>,
        wanted: &JobRequest<'_>,
    ) -> Result<String, Failure> {
        let script = self.script(wanted).map_err(Failure::Refused)?;
        let said = submission.run(self.command("condor_submit").args(["-terse", "-"]), &script);
        let said = said.map_err(refusal)?;
        // The first and the last job of the cluster: `12.0 - 12.3`.
        let job = said.lines().last().and_then(|line| line.trim().split('.').next());
        match job.filter(|job| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(job) => Ok(job.to_owned()),
            None => Err(Failure::Refused(format!("condor_submit names no job: {said}"))),
        }
    }

    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure> {
        let mut condor_q = self.command("condor_q");
        condor_q.args(jobs).arg("-autoformat:t").args(COLUMNS);
        let said = match commands.run(&mut condor_q, "") {
            Ok(said) => said,
            Err(Failure::Refused(words)) => return Err(Failure::Silent(words)),
            Err(failure) => return Err(failure),
        };
        let rows: Vec<_> = rows(&said).collect();
        // Only one of several identical jobs carries the reason.
        let reasons: HashMap<&str, String> = rows.iter().filter_map(Row::reason).collect();
        let mut held = Vec::new();
        let seen = rows.iter().filter_map(|row| {
            let task = row.task();
            let job_state = match row.state() {
                State::Queued => {
                    JobState::Queued(reasons.get(row.cluster).cloned().unwrap_or_default())
                }
                State::Runs(machine) => JobState::Runs(machine),
                State::Held(why) => {
                    held.push(task.clone());
                    JobState::Refused(error_hints::held(&name(&task), &why))
                }
                // `condor_history` reports how.
                State::Ended => return None,
            };
            Some(TaskStatus { task, job_state, left: None, run: row.starts.to_owned() })
        });
        let seen = seen.collect();
        if !held.is_empty() {
            // They would stay in the queue until somebody removes them.
            let _ = self.cancel(commands, &held);
        }
        Ok(seen)
    }

    fn status_query(&self) -> Option<&'static StatusQuery> {
        // Behind a prefix there may be another pool.
        self.batch.prefix.is_empty().then(|| &*STATUS_QUERY)
    }

    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Failure> {
        let mut condor_rm = self.command("condor_rm");
        condor_rm.args(tasks.iter().map(name));
        match commands.run(&mut condor_rm, "") {
            // They have already ended.
            Err(Failure::Refused(words)) if is_unknown(&words) => Ok(()),
            ran => ran.map(|_| ()).map_err(refusal),
        }
    }

    fn gone(&self, commands: &Commands, gone: &VanishedTask<'_>) -> JobState {
        // A single job of a cluster is number 0.
        let number = Some(gone.task.number.unwrap_or(0));
        let task = Task { number, ..gone.task.clone() };
        let name = name(&task);
        match self.history(commands, &task) {
            Some(history) => history.job_state(&name, gone.is_over),
            None => {
                let on = match gone.node {
                    "" => String::new(),
                    node => format!(" on {node}"),
                };
                JobState::Ended(format!(
                    "its job {name}{on} is not in the queue any longer; `condor_history {name}` tells how it \
                     has ended"
                ))
            }
        }
    }

    fn wall_time(&self) -> Option<Duration> {
        self.batch.wall_time
    }

    fn requeues(&self) -> bool {
        self.batch.requeue
    }

    fn requeued(&self) -> &'static str {
        "was requeued, as it had to leave its machine or by `condor_vacate_job`"
    }

    fn has_tasks(&self) -> bool {
        true
    }

    fn job_name(&self) -> &str {
        &self.name
    }

    fn prefix(&self) -> &[String] {
        &self.batch.prefix
    }

    fn cancelling(&self) -> &'static str {
        // No such job is a success as well.
        "said=$(\"$@\" condor_rm -constraint \"JobBatchName == \\\"$name\\\"\" 2>&1) && return 0\n\
         case $said in\n    \
         *onnect*|*locate*|*address*|*SECMAN*|*'not found'*) return 1 ;;\n\
         esac"
    }
}

#[cfg(test)]
mod tests;
