//! Job script for Grid Engine: its options, and the lines that start agents.

use gridrpc_config::RequestForm;

use super::jobs::GridEngine;
use crate::batch::{
    JobRequest, Parts, check_skip, filled, is_left_out, processors_of_agent, quoted, recorded,
    shell, timeout_option,
};

/// The options that a job may set; `skip` removes them.
const OPTIONS: [&str; 13] =
    ["-N", "-S", "-cwd", "-V", "-j", "-o", "-r", "-w", "-t", "-pe", "-q", "-P", "-l"];

impl GridEngine {
    pub(super) fn script(&self, wanted: &JobRequest<'_>) -> Result<String, String> {
        check_skip(&self.batch.skip, &OPTIONS)?;
        let options = self.options(wanted)?;
        let options = options.iter().map(|option| format!("#$ {option}")).collect();
        let agent = match self.is_one_job(wanted.agents) {
            true => self.agents(wanted),
            false => self.agent(wanted),
        };
        filled(
            self.batch.template.as_deref(),
            &Parts { head: "#!/bin/sh\n", options, options_lead: false, agent },
        )
    }

    /// Whether several agents share one job.
    fn is_one_job(&self, agents: usize) -> bool {
        agents > 1 && self.batch.request == RequestForm::Job
    }

    /// Number of slots per agent.
    fn slots(&self) -> u64 {
        processors_of_agent(&self.batch, self.workers).unwrap_or(1)
    }

    /// The options of a job, without the `#$` prefix.
    fn options(&self, wanted: &JobRequest<'_>) -> Result<Vec<String>, String> {
        let (batch, agents) = (&self.batch, wanted.agents);
        let shell = batch.template.as_deref().and_then(shell);
        let output = format!(":{}/job.out", wanted.folder);
        let mut options = vec![
            format!("-N {}", self.name),
            format!("-S {}", quoted(&shell.unwrap_or_else(|| "/bin/sh".to_owned()))),
            "-cwd".to_owned(),
            "-V".to_owned(),
            "-j y".to_owned(),
            format!("-o {}", quoted(&output)),
            // Without requeueing, a new job replaces a lost one.
            format!("-r {}", if batch.requeue { "y" } else { "n" }),
            // Refuse jobs that can never run right away.
            "-w e".to_owned(),
        ];
        let is_one_job = self.is_one_job(agents);
        if agents > 1 && !is_one_job {
            options.push(format!("-t 1-{agents}"));
        }
        let slots = if is_one_job { self.slots() * agents as u64 } else { self.slots() };
        if let Some(name) = &batch.parallel_environment {
            options.push(format!("-pe {} {slots}", quoted(name)));
        }
        let mut say = |option: &str, value: &Option<String>| {
            options.extend(value.iter().map(|value| format!("-{option} {}", quoted(value))));
        };
        say("q", &batch.queue);
        say("P", &batch.account);
        say("l", &batch.constraint);
        let mut limit = |name: &str, value: Option<String>| {
            options.extend(value.map(|value| format!("-l {name}={value}")));
        };
        limit("mem_free", batch.memory.as_deref().map(memory));
        limit("h_rt", batch.wall_time.map(|time| time.as_secs().to_string()));
        limit("exclusive", batch.exclusive.then(|| "true".to_owned()));
        options.retain(|option| !is_left_out(&batch.skip, option));
        // Last: the last option of a kind wins.
        options.extend(batch.options.iter().cloned());
        let says_it = |option: &String| option.split(' ').next() == Some("-pe");
        let is_said = options.iter().any(says_it) || batch.skip.iter().any(says_it);
        if slots > 1 && !is_said {
            return Err(format!(
                "a job of Grid Engine has one slot, and {slots} are needed: name by \
                 `parallel_environment` one of those that `qconf -spl` shows, or ask for as many `nodes` \
                 as workers, with workers = 1; skip = [\"-pe\"] starts them in one slot nevertheless"
            ));
        }
        Ok(options)
    }

    /// The option with an agent's number of processors; empty: the agent detects it.
    fn processors(&self, count: &str) -> String {
        let is_all_of_the_host = self.batch.exclusive && self.workers == 0;
        if is_all_of_the_host { String::new() } else { format!(" --processors {count}") }
    }

    /// Lines that run the single agent of a job or task.
    fn agent(&self, wanted: &JobRequest<'_>) -> String {
        let JobRequest { agents, program, folder } = *wanted;
        let number = if agents > 1 { "$((SGE_TASK_ID - 1))" } else { "0" };
        let processors = self.processors("\"$slots\"");
        let options = format!("{}{processors}", timeout_option(self.batch.requeue));
        // The first line is the host that the script runs on.
        let before = "slots=${NSLOTS:-1} status=0\n\
                      [ ! -r \"${PE_HOSTFILE:-}\" ] || read -r host slots rest <\"$PE_HOSTFILE\"\n";
        recorded(program, folder, number, before, &options)
    }

    /// Lines that run all agents of a job, on the hosts of its slots.
    fn agents(&self, wanted: &JobRequest<'_>) -> String {
        let JobRequest { agents, program, folder } = *wanted;
        let slots = self.slots();
        let options = format!(
            "{}{}",
            timeout_option(self.batch.requeue),
            self.processors(&slots.to_string())
        );
        let run = run(program, folder, "\"$2\"", &options);
        let folder = quoted(folder);
        format!(
            r#"tickets={folder}
start() {{  # on the host $1, the agent $2
    run={run}
    case $1 in
        "${{HOSTNAME:-}}") sh -c "$run" ;;
        *) qrsh -inherit -nostdin -V "$1" "$run" ;;
    esac >"$tickets/$2.out" 2>&1
    echo "$?" >"$tickets/$2.end"
}}
agent=0
while read -r host slots rest && [ "$agent" -lt {agents} ]; do
    while [ "$slots" -ge {slots} ] && [ "$agent" -lt {agents} ]; do
        start "$host" "$agent" &
        agent=$((agent + 1)) slots=$((slots - {slots}))
    done
done <"$PE_HOSTFILE"
while [ "$agent" -lt {agents} ]; do  # what is left has its slots on several hosts
    while read -r host rest && [ "$agent" -lt {agents} ]; do
        start "$host" "$agent" &
        agent=$((agent + 1))
    done <"$PE_HOSTFILE"
done
wait"#
        )
    }
}

/// A shell word whose value is the command line of an agent; `qrsh` passes it to a shell on the other host.
/// `number`: a word, for its ticket. `options`: additional ones.
fn run(program: &str, folder: &str, number: &str, options: &str) -> String {
    let begin = format!("exec {} agent --ticket {}/", quoted(program), quoted(folder));
    let end = if options.is_empty() { String::new() } else { quoted(options) };
    format!("{}{number}{end}", quoted(&begin))
}

/// Converts a memory size: Grid Engine has no unit T, and a size without a unit is bytes there, megabytes
/// here.
fn memory(size: &str) -> String {
    match size.strip_suffix('T').map(str::parse::<u64>) {
        Some(Ok(number)) => format!("{}G", number.saturating_mul(1024)),
        _ if size.ends_with(|c: char| c.is_ascii_alphabetic()) => size.to_owned(),
        _ => format!("{size}M"),
    }
}
