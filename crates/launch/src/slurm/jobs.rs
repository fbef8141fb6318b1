//! Slurm jobs, each with one or more agents.

use std::process::Command;
use std::sync::LazyLock;

use gridrpc_config::{HostGroup, RequestForm};

use super::error_hints::refusal;
use super::state_names::{self, Row, ended, rows};
use crate::batch::{
    Commands, Failure, JobRequest, JobState, Parts, StatusQuery, Submission, System, Task,
    TaskStatus, check_skip, filled, is_left_out, job_name, prefixed, processors_of_agent, quoted,
    timeout_option,
};

/// All groups of this process share one queue of jobs.
static STATUS_QUERY: LazyLock<StatusQuery> = LazyLock::new(StatusQuery::default);

/// Columns to query from `squeue`: job, array task, state, reason, nodes, remaining time.
const COLUMNS: &str = "%F|%K|%T|%r|%N|%L";

/// The options that a job may set; `skip` removes them.
pub(super) const OPTIONS: [&str; 15] = [
    "--job-name",
    "--array",
    "--nodes",
    "--no-kill",
    "--output",
    "--ntasks-per-node",
    "--cpus-per-task",
    "--requeue",
    "--no-requeue",
    "--partition",
    "--account",
    "--mem",
    "--constraint",
    "--time",
    "--exclusive",
];

/// Slurm, configured for the jobs of one group.
#[derive(Debug)]
pub(super) struct Slurm {
    pub batch: gridrpc_config::Batch,
    /// Workers of each agent; 0: one per processor of its node.
    pub(super) workers: u32,
    pub(super) name: String,
}

impl Slurm {
    pub(super) fn new(group: &HostGroup, batch: &gridrpc_config::Batch) -> Slurm {
        Slurm { batch: batch.clone(), workers: group.workers, name: job_name(group) }
    }

    /// The options of a job, without the `#SBATCH` prefix.
    pub(super) fn options(&self, agents: usize, folder: &str) -> Vec<String> {
        let batch = &self.batch;
        let array = self.is_array(agents);
        let mut options = vec![format!("--job-name={}", self.name)];
        let mut set = |option: String| options.push(option);
        let nodes = batch.nodes_per_host.max(1);
        // Slurm expands `%` in file names.
        let output = folder.replace('%', "%%");
        match (array, agents) {
            (true, _) => {
                set(format!("--array=0-{}", agents - 1));
                set(format!("--nodes={nodes}"));
                set(format!("--output={}", quoted(&format!("{output}/%a.out"))));
            }
            (false, 1) => {
                set(format!("--nodes={nodes}"));
                set(format!("--output={}", quoted(&format!("{output}/0.out"))));
            }
            (false, _) => {
                set(format!("--nodes={agents}"));
                // A failing node takes down only its own agent.
                set("--no-kill".to_owned());
                set(format!("--output={}", quoted(&format!("{output}/job.out"))));
            }
        }
        if nodes > 1 {
            // `mpirun` gives each task a rank.
            set(format!("--ntasks-per-node={}", batch.cores.max(1)));
        } else {
            set("--ntasks-per-node=1".to_owned());
            if let Some(cores) = processors_of_agent(batch, self.workers) {
                set(format!("--cpus-per-task={cores}"));
            }
        }
        // Without requeueing, a new job replaces a lost one.
        set(if batch.requeue { "--requeue" } else { "--no-requeue" }.to_owned());
        options.extend(self.limits().iter().map(|(name, value)| match &**value {
            "" => format!("--{name}"),
            value => format!("--{name}={}", quoted(value)),
        }));
        options.retain(|option| !is_left_out(&batch.skip, option));
        // Last: the last option of a kind wins.
        options.extend(batch.options.iter().cloned());
        options
    }

    /// Options of an `srun` that waits for its own nodes.
    pub fn direct_options(&self) -> Vec<String> {
        let limits = self.limits();
        let limits = limits.iter().map(|(name, value)| match &**value {
            "" => format!("--{name}"),
            value => format!("--{name}={value}"),
        });
        let mut options: Vec<String> =
            [format!("--job-name={}", self.name)].into_iter().chain(limits).collect();
        options.retain(|option| !is_left_out(&self.batch.skip, option));
        let own = self.batch.options.iter();
        // In a script, Slurm splits the line into words.
        options.extend(own.flat_map(|own| shlex::split(own).unwrap_or_else(|| vec![own.clone()])));
        options
    }

    /// Resources and limits of a job: option names, each with a value or an empty string.
    pub(super) fn limits(&self) -> Vec<(&'static str, String)> {
        let batch = &self.batch;
        let mut limits = Vec::new();
        let mut say = |name, value: &Option<String>| {
            limits.extend(value.iter().map(|value| (name, value.clone())));
        };
        say("partition", &batch.queue);
        say("account", &batch.account);
        say("mem", &batch.memory);
        say("constraint", &batch.constraint);
        say("time", &batch.wall_time.map(|time| state_names::time(time.as_secs())));
        say("exclusive", &batch.exclusive.then(String::new));
        limits
    }

    fn is_array(&self, agents: usize) -> bool {
        agents > 1 && self.batch.request != RequestForm::Job
    }

    pub(super) fn script(&self, wanted: &JobRequest<'_>) -> Result<String, String> {
        let JobRequest { agents, program, folder } = *wanted;
        check_skip(&self.batch.skip, &OPTIONS)?;
        let options = self.options(agents, folder);
        let options = options.iter().map(|option| format!("#SBATCH {option}")).collect();
        let (program, tickets) = (quoted(program), quoted(folder));
        let timeout_option = timeout_option(self.batch.requeue);
        let begin = |program: &str, tickets: &str, name: &str| {
            start(program, tickets, name, timeout_option)
        };
        let agent = match (self.is_array(agents), agents) {
            (true, _) => begin(&program, &tickets, "$SLURM_ARRAY_TASK_ID"),
            (false, 1) => begin(&program, &tickets, "0"),
            (false, _) => {
                let start = begin("\"$0\"", "\"$1\"", "$SLURM_PROCID");
                let cores = processors_of_agent(&self.batch, self.workers);
                let cores =
                    cores.map(|cores| format!(" --cpus-per-task={cores}")).unwrap_or_default();
                format!(
                    "srun --nodes={agents} --ntasks={agents} --ntasks-per-node=1{cores} \\\n    \
                     --no-kill --kill-on-bad-exit=0 --wait=0 --output={} \\\n    \
                     sh -c {} {program} {tickets}",
                    quoted(&format!("{}/%t.out", folder.replace('%', "%%"))),
                    quoted(&start),
                )
            }
        };
        filled(
            self.batch.template.as_deref(),
            &Parts { head: "#!/bin/sh\n", options, options_lead: true, agent },
        )
    }
}

/// The command that becomes the agent with this ticket.
pub(super) fn start(program: &str, tickets: &str, name: &str, timeout_option: &str) -> String {
    format!(
        "exec {program} agent --ticket {tickets}/\"{name}\"{timeout_option} \\\n    \
         --processors \"$SLURM_CPUS_ON_NODE\""
    )
}

impl System for Slurm {
    fn submit(
        &mut self,
        submission: &Submission<'_>,
        wanted: &JobRequest<'_>,
    ) -> Result<String, Failure> {
        let script = self.script(wanted).map_err(Failure::Refused)?;
        let said = submission.run(self.command("sbatch").arg("--parsable"), &script);
        let said = said.map_err(refusal)?;
        // The cluster follows a semicolon.
        let job = said.lines().last().and_then(|line| line.split(';').next());
        let job = job.map(str::trim).filter(|job| job.bytes().all(|byte| byte.is_ascii_digit()));
        match job.filter(|job| !job.is_empty()) {
            Some(job) => Ok(job.to_owned()),
            None => Err(Failure::Refused(format!("sbatch names no job: {said}"))),
        }
    }

    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure> {
        let mut squeue = self.command("squeue");
        squeue.args(["--noheader", "--array", "--states=all", "--format", COLUMNS]);
        squeue.arg(format!("--jobs={}", jobs.join(",")));
        let said = match commands.run(&mut squeue, "") {
            Ok(said) => said,
            // Slurm knows none of the jobs.
            Err(Failure::Refused(words)) if words.contains("Invalid job id") => String::new(),
            Err(Failure::Refused(words)) => return Err(Failure::Silent(words)),
            Err(failure) => return Err(failure),
        };
        let seen = rows(&said).map(|row| {
            let job_state = match row.job_state() {
                Some(job_state) => job_state,
                None => self.end_of(commands, &row),
            };
            TaskStatus { task: row.task(), job_state, left: row.left(), run: String::new() }
        });
        Ok(seen.collect())
    }

    fn status_query(&self) -> Option<&'static StatusQuery> {
        // Behind a prefix there may be another Slurm.
        self.batch.prefix.is_empty().then(|| &*STATUS_QUERY)
    }

    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Failure> {
        let mut scancel = self.command("scancel");
        scancel.arg("--quiet");
        scancel.args(tasks.iter().map(state_names::name));
        commands.run(&mut scancel, "").map(|_| ())
    }

    fn requeued(&self) -> &'static str {
        "was requeued, to make room or by `scontrol requeue`"
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
        "\"$@\" scancel --quiet --user=\"$(id -un)\" --name=\"$name\" &&\n    \
         { [ -z \"$jobs\" ] || \"$@\" scancel --quiet $jobs; }"
    }
}

impl Slurm {
    /// A Slurm command. Removes the variables that a job sets for its steps, which must not leak into submitted
    /// jobs.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = prefixed(&self.batch.prefix, name);
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            let is_the_sites = matches!(&*text, "SLURM_CONF" | "SLURM_JWT" | "SLURM_CLUSTERS");
            if text.starts_with("SLURM_") && !is_the_sites {
                command.env_remove(&variable);
            }
        }
        command
    }

    /// How a job has ended.
    fn end_of(&self, commands: &Commands, row: &Row<'_>) -> JobState {
        let mut scontrol = self.command("scontrol");
        scontrol.args(["--oneliner", "show", "job"]).arg(state_names::name(&row.task()));
        // Without an answer, the state alone has to do.
        let details = commands.run(&mut scontrol, "").unwrap_or_default();
        ended(row, &details)
    }
}
