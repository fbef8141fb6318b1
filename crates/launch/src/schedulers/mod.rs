//! Launcher for PBS, Torque, LSF and Flux. Each is a [`Dialect`]: its commands and their output. One agent is one job, or one member of an array of jobs.

mod flux;
mod lsf;
mod pbs;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use gridrpc_config::{BatchSystem, HostGroup};
use gridrpc_sys::lock;

use crate::batch::{
    Batch, Commands, ErrorHints, Failure, FilePlacement, JobRequest, JobState, Parts, StatusQuery,
    Submission, System, Task, TaskStatus, VanishedTask, check_skip, each_line_has, ended_with,
    filled, is_left_out, job_name, prefixed, printed, processors_of_agent, recorded,
    timeout_option,
};
use crate::launcher::{Launcher, Report};

/// All groups with the same system share one queue of jobs.
static STATUS_QUERIES: LazyLock<Mutex<HashMap<&'static str, &'static StatusQuery>>> =
    LazyLock::new(Mutex::default);

/// How one batch system is used.
#[derive(Debug)]
struct Dialect {
    /// Its name in messages is that of its hints.
    hints: ErrorHints,
    /// What a script's option lines begin with.
    directive: &'static str,
    /// The options that a job may set; `skip` removes them.
    known: &'static [&'static str],
    /// The longest name of a job.
    longest_name: usize,
    /// The options of a job.
    options: fn(&JobDescription<'_>) -> Vec<String>,
    /// A shell word: the number of the agent among those of an array, from 0.
    number: &'static str,
    /// Shell lines before the agent.
    before: &'static str,
    /// The command that submits.
    submit: &'static [&'static str],
    /// Whether it takes options as words and the script as a file, instead of a script on its standard input.
    takes_words: bool,
    /// The identifier of a job, or of all jobs, from what the submit command prints.
    submitted: fn(&str) -> Option<String>,
    /// The command that lists the states of jobs.
    status: &'static [&'static str],
    /// Parses what that command prints.
    rows: fn(&str) -> Vec<Row>,
    /// Parts of messages about jobs that are over.
    over: &'static [&'static str],
    /// The command that cancels.
    cancel: &'static [&'static str],
    /// The identifiers, for commands, of a job's member with this number, or of all.
    names: fn(&str, Option<usize>) -> Vec<String>,
    /// Body of a shell function, as in [`System::cancelling`].
    cancelling: &'static str,
    /// How a job that will run again lost its node; none if jobs never do.
    requeued: Option<&'static str>,
    /// Command that shows how a job has ended, for people.
    history: &'static str,
}

/// A job to describe by options.
#[derive(Debug)]
struct JobDescription<'a> {
    batch: &'a gridrpc_config::Batch,
    name: &'a str,
    agents: usize,
    /// Processors of each agent.
    cores: u64,
}

/// One job, or member of an array, in a list of states.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// Its identifier, as commands take it.
    name: String,
    state: State,
    /// Distinguishes the runs of a requeued job; empty if unknown.
    run: String,
    left: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// It waits, and why.
    Queued(String),
    /// It runs on this node.
    Runs(String),
    /// It has ended, and how, as the predicate of a sentence; empty if the system does not say.
    Ended(String),
}

impl Dialect {
    fn of(system: BatchSystem) -> &'static Dialect {
        match system {
            BatchSystem::Torque => &pbs::TORQUE,
            BatchSystem::Lsf => &lsf::LSF,
            BatchSystem::Flux => &flux::FLUX,
            _ => &pbs::PBS,
        }
    }
}

/// A batch system, configured for the jobs of one group.
#[derive(Debug)]
struct Scheduler {
    dialect: &'static Dialect,
    batch: gridrpc_config::Batch,
    /// Workers of each agent; 0: one per processor of its job.
    workers: u32,
    name: String,
}

/// The launcher of a group.
pub(super) fn open(
    group: &HostGroup,
    batch: &gridrpc_config::Batch,
    own_program: &Path,
    report: Report,
) -> Box<dyn Launcher> {
    let placing = FilePlacement::new(group, own_program);
    let scheduler = Scheduler::new(group, batch, job_name(group));
    Box::new(Batch::new(scheduler, placing, group.stop_timeout, report))
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
    let scheduler = Scheduler::new(group, batch, format!("gridrpc-{}", group.name));
    printed(group, own_program, |wanted| scheduler.script(wanted))
}

impl Scheduler {
    fn new(group: &HostGroup, batch: &gridrpc_config::Batch, name: String) -> Scheduler {
        let dialect = Dialect::of(batch.system);
        let name = match name.rsplit_once('-') {
            // The random part is what makes the name unique.
            Some((_, random)) if name.len() > dialect.longest_name => format!("gridrpc{random}"),
            _ => name,
        };
        let name = name.chars().take(dialect.longest_name).collect();
        Scheduler { dialect, batch: batch.clone(), workers: group.workers, name }
    }

    fn options(&self, agents: usize) -> Result<Vec<String>, String> {
        let Scheduler { dialect, batch, .. } = self;
        check_skip(&batch.skip, dialect.known)?;
        let cores = processors_of_agent(batch, self.workers).unwrap_or(1);
        let mut options =
            (dialect.options)(&JobDescription { batch, name: &self.name, agents, cores });
        options.retain(|option| !is_left_out(&batch.skip, option));
        // Last: the last option of a kind wins.
        options.extend(batch.options.iter().cloned());
        Ok(options)
    }

    fn script(&self, wanted: &JobRequest<'_>) -> Result<String, String> {
        let Scheduler { dialect, batch, workers, .. } = self;
        let JobRequest { agents, program, folder } = *wanted;
        let options =
            self.options(agents)?.into_iter().map(|one| format!("{}{one}", dialect.directive));
        // An agent that has the whole node counts its processors itself.
        let processors = match processors_of_agent(batch, *workers) {
            None if batch.exclusive => String::new(),
            cores => format!(" --processors {}", cores.unwrap_or(1)),
        };
        let number = if agents > 1 { dialect.number } else { "0" };
        let before = format!("{}status=0\n", dialect.before);
        let timeout_option = timeout_option(batch.requeue);
        let agent =
            recorded(program, folder, number, &before, &format!("{timeout_option}{processors}"));
        filled(
            batch.template.as_deref(),
            &Parts { head: "#!/bin/sh\n", options: options.collect(), options_lead: true, agent },
        )
    }

    fn command(&self, words: &[&str]) -> Command {
        let (first, others) = words.split_first().unwrap_or((&"", &[]));
        let mut command = prefixed(&self.batch.prefix, first);
        command.args(others);
        command
    }

    /// Submits a job. The failure names jobs that were submitted before the command failed.
    fn try_to_submit(
        &self,
        submission: &Submission<'_>,
        wanted: &JobRequest<'_>,
    ) -> Result<String, (Failure, String)> {
        let unable = |why: String| (Failure::Refused(why), String::new());
        let script = self.script(wanted).map_err(unable)?;
        let mut command = self.command(self.dialect.submit);
        if !self.dialect.takes_words {
            return submission.run_partly(&mut command, &script);
        }
        let file = format!("{}/job.sh", wanted.folder);
        std::fs::write(&file, script)
            .map_err(|error| unable(format!("the script `{file}` cannot be written: {error}")))?;
        let options = self.options(wanted.agents).map_err(unable)?;
        for option in options {
            let words = shlex::split(&option);
            command.args(words.unwrap_or_else(|| vec![option]));
        }
        submission.run_partly(command.args(["sh", &file]), "")
    }

    /// The states of jobs, including those that have ended if the system remembers them.
    fn rows(&self, commands: &Commands, names: &[String]) -> Result<Vec<Row>, Failure> {
        let mut command = self.command(self.dialect.status);
        command.args(names);
        let said = match commands.run_partly(&mut command, "") {
            Ok(said) => said,
            // Some of the jobs are over.
            Err((Failure::Refused(words), said)) if each_line_has(&words, self.dialect.over) => {
                said
            }
            Err((Failure::Refused(words), _)) => return Err(Failure::Silent(words)),
            Err((failure, _)) => return Err(failure),
        };
        Ok((self.dialect.rows)(&said))
    }

    fn names(&self, task: &Task) -> Vec<String> {
        (self.dialect.names)(&task.job, task.number)
    }
}

impl System for Scheduler {
    fn submit(
        &mut self,
        submission: &Submission<'_>,
        wanted: &JobRequest<'_>,
    ) -> Result<String, Failure> {
        let explain = |failure| self.dialect.hints.explain(failure);
        let said = self.try_to_submit(submission, wanted).map_err(|(failure, said)| {
            // Of several jobs some may have been accepted.
            if let Some(job) = (self.dialect.submitted)(&said) {
                let mut cancel = self.command(self.dialect.cancel);
                let _ = submission.run(cancel.args((self.dialect.names)(&job, None)), "");
            }
            explain(failure)
        })?;
        (self.dialect.submitted)(&said).ok_or_else(|| {
            let name = self.dialect.submit.join(" ");
            Failure::Refused(format!("`{name}` names no job: {said}"))
        })
    }

    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure> {
        let names: Vec<String> =
            jobs.iter().flat_map(|job| (self.dialect.names)(job, None)).collect();
        let rows = self.rows(commands, &names)?;
        let seen = rows.into_iter().filter_map(|row| {
            let job_state = match row.state {
                State::Queued(why) => JobState::Queued(why),
                State::Runs(node) => JobState::Runs(node),
                // `gone` reports how.
                State::Ended(_) => return None,
            };
            let task = jobs.iter().find_map(|job| task(self.dialect, job, &row.name))?;
            Some(TaskStatus { task, job_state, left: row.left, run: row.run })
        });
        Ok(seen.collect())
    }

    fn status_query(&self) -> Option<&'static StatusQuery> {
        // Behind a prefix there may be another cluster.
        self.batch.prefix.is_empty().then(|| {
            let mut all = lock(&STATUS_QUERIES);
            *all.entry(self.dialect.hints.system).or_insert_with(|| Box::leak(Box::default()))
        })
    }

    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Failure> {
        let mut command = self.command(self.dialect.cancel);
        command.args(tasks.iter().flat_map(|task| self.names(task)));
        match commands.run(&mut command, "") {
            Err(Failure::Refused(words)) if each_line_has(&words, self.dialect.over) => Ok(()),
            ran => ran.map(|_| ()).map_err(|failure| self.dialect.hints.explain(failure)),
        }
    }

    fn gone(&self, commands: &Commands, gone: &VanishedTask<'_>) -> JobState {
        let VanishedTask { task, node, status, is_over } = *gone;
        let names = self.names(task);
        let name = names.join(" ");
        let recorded_end = || {
            let rows = self.rows(commands, &names).ok()?;
            rows.into_iter().find_map(|row| match row.state {
                State::Ended(how) if !how.is_empty() && names.contains(&row.name) => Some(how),
                _ => None,
            })
        };
        let how = match status {
            Some(status) => ended_with(status),
            None if is_over => "has reached its wall time: see `wall_time`".to_owned(),
            None => recorded_end().unwrap_or_else(|| {
                format!("is over; `{} {name}` may tell how it has ended", self.dialect.history)
            }),
        };
        let on = if node.is_empty() { String::new() } else { format!(" on {node}") };
        let text = format!("its job {name}{on} {how}");
        if node.is_empty() && status.is_none() {
            return JobState::Refused(text);
        }
        JobState::Ended(text)
    }

    fn wall_time(&self) -> Option<Duration> {
        self.batch.wall_time
    }

    fn requeues(&self) -> bool {
        self.dialect.requeued.is_some() && self.batch.requeue
    }

    fn requeued(&self) -> &'static str {
        self.dialect.requeued.unwrap_or("was requeued")
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
        self.dialect.cancelling
    }
}

/// The task that a system calls by this name; none if it is not of this job.
fn task(dialect: &Dialect, job: &str, name: &str) -> Option<Task> {
    let task = |number| Some(Task { job: job.to_owned(), number });
    let all = (dialect.names)(job, None);
    match all.iter().position(|one| one == name) {
        Some(_) if all.len() == 1 && !job.contains("[]") => return task(None),
        Some(number) if all.len() > 1 => return task(Some(number)),
        _ => {}
    }
    let number = name.split_once('[')?.1.split(']').next()?.parse::<usize>().ok()?;
    // Systems count from 0 or from 1.
    [Some(number), number.checked_sub(1)]
        .into_iter()
        .flatten()
        .find(|number| (dialect.names)(job, Some(*number)) == [name])
        .and_then(|number| task(Some(number)))
}

/// A size in the unit of a batch system, such as `gb`; a plain number means megabytes. `units`: those for K, M,
/// G and T.
fn size(size: &str, units: [&str; 4]) -> String {
    let number = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[number.len()..] {
        "K" => units[0],
        "G" => units[2],
        "T" => units[3],
        _ => units[1],
    };
    format!("{number}{unit}")
}

/// Seconds as hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests;
