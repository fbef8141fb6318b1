//! IBM Spectrum LSF.
//!
//! From the command reference of LSF 10.1: bsub, bjobs (-o), bkill.

use super::{Dialect, JobDescription, Row, State, size};
use crate::batch::{ErrorHints, ended_with};

pub(super) const LSF: Dialect = Dialect {
    hints: HINTS,
    directive: "#BSUB ",
    known: &["-J", "-n", "-R", "-o", "-r", "-rn", "-W", "-q", "-P", "-x"],
    longest_name: 4000,
    options,
    // LSF counts from 1.
    number: "$((LSB_JOBINDEX - 1))",
    before: "",
    submit: &["bsub"],
    takes_words: false,
    submitted,
    status: &["bjobs", "-a", "-noheader", "-o", COLUMNS],
    rows,
    over: &[
        "is not found",
        "No matching job found",
        "Job has already finished",
        "Job has already been",
        "No job found",
    ],
    cancel: &["bkill"],
    names,
    // No such job is a success as well.
    cancelling: "said=$(\"$@\" bkill -J \"$name\" 0 2>&1; [ -z \"$jobs\" ] || \"$@\" bkill $jobs 2>&1)\n\
         case $said in\n    \
         *'LSF is down'*|*'not respond'*|*'still trying'*|*onnect*|*'command not found'*|*': not found'*) return 1 ;;\n\
         esac",
    requeued: Some("was requeued, to make room or by `brequeue`"),
    history: "bhist -l",
};

/// Columns to query; the last may contain anything.
const COLUMNS: &str =
    "jobid jobindex stat exec_host exit_code start_time exit_reason pend_reason delimiter='|'";

const HINTS: ErrorHints = ErrorHints {
    system: "LSF",
    silent: &[
        "lsf is down",
        "not responding",
        "cannot connect",
        "connection refused",
        "failed in an lsf library call",
        "timed out",
    ],
    silence: "see by `lsid` whether its master answers, and that LSF_ENVDIR is set",
    remedies: &[
        (
            &["no space left", "cannot create job info"],
            "the disk on which its master keeps jobs is full: tell the administrators of the cluster",
        ),
        (
            &["no such queue", "cannot use the queue", "queue has been closed", "queue is"],
            "see by `bqueues -u $USER` what queues there are, and name one by `queue`",
        ),
        (
            &["project"],
            "see by `bugroup` and the site's pages what projects there are, and name one by `project`",
        ),
        (
            &["run limit", "runlimit", "rununtil"],
            "ask for less by `wall_time`: `bqueues -l` shows what queues give",
        ),
        (
            &["rusage", "memory", "mem_limit", "memlimit"],
            "ask for less by `memory`: `bqueues -l` shows what queues give, and `lshosts` what hosts have",
        ),
        (
            &["resource requirement", "bad resource", "select section"],
            "see `constraint` in grid.toml: it becomes the selection of `-R`",
        ),
        (
            &["array", "too many jobs", "pending job", "job slot limit", "maximum number"],
            "the site does not take as many jobs as that: ask for fewer `nodes`",
        ),
        (
            &["too many processors", "number of tasks", "processors requested", "slots"],
            "ask for fewer `workers` or `cores`: `bqueues -l` shows what queues give",
        ),
        (
            &["illegal option", "unknown option", "bad argument"],
            "see `options` in grid.toml: this LSF has no such option",
        ),
    ],
    message_of,
};

fn options(wanted: &JobDescription<'_>) -> Vec<String> {
    let JobDescription { batch, name, agents, cores } = *wanted;
    let nodes = u64::from(batch.nodes_per_host.max(1));
    let array = if agents > 1 { format!("[1-{agents}]") } else { String::new() };
    let mut options = vec![
        format!("-J \"{name}{array}\""),
        format!("-n {}", cores * nodes),
        match nodes {
            1 => "-R \"span[hosts=1]\"".to_owned(),
            _ => format!("-R \"span[ptile={cores}]\""),
        },
        // The agent's output goes to the tickets' folder; LSF would mail its own report.
        "-o /dev/null".to_owned(),
        if batch.requeue { "-r" } else { "-rn" }.to_owned(),
    ];
    let mut say = |option: Option<String>| options.extend(option);
    // In hours and minutes.
    say(batch.wall_time.map(|time| {
        let minutes = time.as_secs().div_ceil(60).max(1);
        format!("-W {:02}:{:02}", minutes / 60, minutes % 60)
    }));
    say(batch.queue.as_ref().map(|queue| format!("-q {queue}")));
    say(batch.account.as_ref().map(|project| format!("-P {project}")));
    say(batch.exclusive.then(|| "-x".to_owned()));
    say(batch
        .memory
        .as_deref()
        .map(|memory| format!("-R \"rusage[mem={}]\"", size(memory, ["KB", "MB", "GB", "TB"]))));
    say(batch.constraint.as_ref().map(|constraint| format!("-R \"select[{constraint}]\"")));
    options
}

/// `Job <123> is submitted to queue <normal>.`
fn submitted(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("is submitted to"))?;
    let job = line.split_once("Job <")?.1.split_once('>')?.0;
    (!job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit())).then(|| job.to_owned())
}

fn names(job: &str, number: Option<usize>) -> Vec<String> {
    vec![match number {
        Some(number) => format!("{job}[{}]", number + 1),
        None => job.to_owned(),
    }]
}

fn rows(said: &str) -> Vec<Row> {
    let known = |text: &str| if text == "-" { String::new() } else { text.to_owned() };
    let row = |line: &str| {
        let columns: Vec<&str> = line.splitn(8, '|').map(str::trim).collect();
        let [job, index, stat, hosts, exit, begun, reason, pending] = columns[..] else {
            return None;
        };
        let name = if matches!(index, "0" | "-") { job.into() } else { format!("{job}[{index}]") };
        // `16*hostA:4*hostB`
        let host = known(hosts).split(':').next().unwrap_or_default().to_owned();
        let node = host.rsplit('*').next().unwrap_or_default().to_owned();
        let state = match stat {
            "PEND" | "WAIT" => State::Queued(known(pending)),
            "PSUSP" => State::Queued("it is held: `bresume` lets it go".to_owned()),
            "RUN" | "PROV" => State::Runs(node),
            "USUSP" | "SSUSP" => State::Runs(format!("{node}, suspended")),
            "UNKWN" | "ZOMBI" => State::Runs(format!("{node}, which does not answer")),
            "DONE" => State::Ended(ended_with(0)),
            _ => State::Ended(ended(&known(exit), &known(reason))),
        };
        Some(Row { name, state, run: known(begun), left: None })
    };
    said.lines().filter_map(row).collect()
}

/// How a job has ended. `reason`: such as `TERM_RUNLIMIT: job killed after reaching LSF run time limit`.
fn ended(status: &str, reason: &str) -> String {
    match (reason, status.parse()) {
        (reason, _) if reason.contains("TERM_RUNLIMIT") => {
            "has reached its wall time: see `wall_time`".to_owned()
        }
        ("", Ok(status)) => ended_with(status),
        ("", Err(_)) => String::new(),
        (reason, _) => format!("was ended: {reason}"),
    }
}

/// The output of `bsub` on one line.
fn message_of(words: &str) -> String {
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_end_matches('.').trim_end_matches(". Job not submitted").to_owned()
}
