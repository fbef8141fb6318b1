//! PBS: OpenPBS and PBS Professional, and Torque, which shares their commands' names and output.
//!
//! From the manual pages qsub(1B), qstat(1B), qselect(1B), qdel(1B) and pbs_messages.c of OpenPBS 23.06, and from
//! the Torque 6.1 administrator guide.

use std::collections::HashMap;

use super::{Dialect, JobDescription, Row, State, clock, size};
use crate::batch::{ErrorHints, ended_with};

pub(super) const PBS: Dialect = Dialect {
    hints: ErrorHints { system: "PBS", ..HINTS },
    directive: "#PBS ",
    known: &["-N", "-V", "-j", "-o", "-m", "-r", "-J", "-l", "-q", "-P"],
    longest_name: 230,
    options,
    number: "$PBS_ARRAY_INDEX",
    before: START,
    submit: &["qsub"],
    takes_words: false,
    submitted,
    // With jobs that have ended, where the server remembers them, and the members of arrays.
    status: &["qstat", "-x", "-f", "-t"],
    rows,
    over: OVER,
    cancel: &["qdel"],
    names,
    cancelling: CANCELLING,
    requeued: Some("was requeued, to make room or by `qrerun`"),
    history: "qstat -xf",
};

pub(super) const TORQUE: Dialect = Dialect {
    hints: ErrorHints { system: "Torque", ..HINTS },
    known: &["-N", "-V", "-j", "-o", "-m", "-r", "-t", "-l", "-n", "-q", "-A"],
    // `qsub` refuses a longer one: "illegal -N value".
    longest_name: 15,
    options: torque_options,
    number: "$PBS_ARRAYID",
    // `-x` means XML here. A completed job stays in the list for a while.
    status: &["qstat", "-f", "-t"],
    history: "qstat -f",
    ..PBS
};

/// Jobs start in the home folder.
const START: &str = "cd \"${PBS_O_WORKDIR:-.}\"\n";

const OVER: &[&str] = &[
    "Unknown Job Id",
    "Unknown Job ID",
    "Job has finished",
    "Request invalid for state of job",
    "Request invalid for finished array subjob",
];

const CANCELLING: &str = "named=$(\"$@\" qselect -N \"$name\" 2>/dev/null) || return 1\n\
     [ -n \"$jobs$named\" ] || return 0\n\
     said=$(\"$@\" qdel $jobs $named 2>&1) && return 0\n\
     case $said in\n    \
     *onnect*|*'not found'*|*'efault server'*|*ommunicat*) return 1 ;;\n\
     esac";

const HINTS: ErrorHints = ErrorHints {
    system: "PBS",
    silent: &[
        "cannot connect to server",
        "connection refused",
        "server shutting down",
        "no default server",
        "communication failure",
        "trqauthd",
        "timed out",
    ],
    silence: "see by `qstat -B` whether its server answers",
    remedies: &[
        (
            &["no space left", "cannot write job", "unable to write script"],
            "the disk on which its server keeps jobs is full: tell the administrators of the cluster",
        ),
        (
            &["unknown queue", "no default queue"],
            "see by `qstat -Q` what queues there are, and name one by `queue`",
        ),
        (
            &["queue is not enabled", "access to queue"],
            "see by `qstat -Q` which queues take jobs, and name one of these by `queue`",
        ),
        (
            &["array job exceeds", "max_array_size"],
            "the site does not take arrays as large as that: ask for fewer `nodes`",
        ),
        (
            &["maximum number of jobs", "would exceed"],
            "the limit on jobs is reached: wait until some have ended, or ask for fewer `nodes`",
        ),
        (
            &["resource limits", "exceeds", "feasible nodes", "all possible destinations"],
            "ask for fewer `workers` or `cores`, or less `memory` or `wall_time`: `qstat -Qf` shows what queues give, and `pbsnodes -a` what nodes have",
        ),
        (
            &[
                "unknown resource",
                "invalid in \"select\"",
                "illegal attribute or resource",
                "node(s) specification",
            ],
            "see `constraint` and `options` in grid.toml",
        ),
        (
            &["invalid account", "project", "unauthorized request", "not permitted"],
            "ask the site's administrators what this user may have, and name what the jobs are charged to by `project` (PBS) or `account` (Torque)",
        ),
        (
            &["illegal -", "invalid option", "directive error"],
            "see `options` in grid.toml: this system has no such option",
        ),
    ],
    message_of,
};

fn options(wanted: &JobDescription<'_>) -> Vec<String> {
    let JobDescription { batch, agents, cores, .. } = *wanted;
    let mut chunk = match batch.nodes_per_host {
        0 | 1 => format!("-l select=1:ncpus={cores}"),
        nodes => format!("-l select={nodes}:ncpus={cores}:mpiprocs={cores}"),
    };
    let memory = batch.memory.as_deref().map(|memory| format!("mem={}", memory_size(memory)));
    for part in memory.iter().chain(&batch.constraint) {
        chunk.push_str(&format!(":{part}"));
    }
    let mut options = common(wanted);
    // `qsub` refuses arrays that may not run again: "cannot submit non-rerunable Array Job".
    options.push(format!("-r {}", if batch.requeue || agents > 1 { "y" } else { "n" }));
    if agents > 1 {
        options.push(format!("-J 0-{}", agents - 1));
    }
    options.push(chunk);
    let mut say = |option: Option<String>| options.extend(option);
    let place = match (batch.exclusive, batch.nodes_per_host > 1) {
        (true, true) => Some("scatter:exclhost"),
        (true, false) => Some("exclhost"),
        (false, true) => Some("scatter"),
        (false, false) => None,
    };
    say(place.map(|place| format!("-l place={place}")));
    say(batch.account.as_ref().map(|project| format!("-P {project}")));
    options
}

fn torque_options(wanted: &JobDescription<'_>) -> Vec<String> {
    let JobDescription { batch, agents, cores, .. } = *wanted;
    let mut nodes = format!("-l nodes={}:ppn={cores}", batch.nodes_per_host.max(1));
    nodes.extend(batch.constraint.iter().map(|constraint| format!(":{constraint}")));
    let mut options = common(wanted);
    options.push(format!("-r {}", if batch.requeue { "y" } else { "n" }));
    if agents > 1 {
        options.push(format!("-t 0-{}", agents - 1));
    }
    options.push(nodes);
    let mut say = |option: Option<String>| options.extend(option);
    say(batch.memory.as_deref().map(|memory| format!("-l mem={}", memory_size(memory))));
    say(batch.exclusive.then(|| "-n".to_owned()));
    say(batch.account.as_ref().map(|account| format!("-A {account}")));
    options
}

fn common(wanted: &JobDescription<'_>) -> Vec<String> {
    let JobDescription { batch, name, .. } = *wanted;
    let mut options = vec![
        format!("-N {name}"),
        "-V".to_owned(),
        // The agent's output goes to the tickets' folder. PBS would copy its own file when that is gone.
        "-j oe".to_owned(),
        "-o /dev/null".to_owned(),
        "-m n".to_owned(),
    ];
    let mut say = |option: Option<String>| options.extend(option);
    say(batch.wall_time.map(|time| format!("-l walltime={}", clock(time))));
    say(batch.queue.as_ref().map(|queue| format!("-q {queue}")));
    options
}

fn memory_size(memory: &str) -> String {
    size(memory, ["kb", "mb", "gb", "tb"])
}

/// `123.server`, or `123[].server` for an array.
fn submitted(said: &str) -> Option<String> {
    let job = said.lines().last()?.trim();
    let is_job = job.starts_with(|c: char| c.is_ascii_digit()) && !job.contains(' ');
    is_job.then(|| job.to_owned())
}

fn names(job: &str, number: Option<usize>) -> Vec<String> {
    vec![match number {
        Some(number) => job.replacen("[]", &format!("[{number}]"), 1),
        None => job.to_owned(),
    }]
}

/// The entries of `qstat -f`: a line `Job Id: ...`, then indented lines `name = value`. Long values continue in
/// lines that begin with a tab.
fn rows(said: &str) -> Vec<Row> {
    let joined = said.replace("\n\t", "");
    let mut rows = Vec::new();
    for entry in joined.split("Job Id:").skip(1) {
        let mut lines = entry.lines();
        let name = lines.next().unwrap_or_default().trim().to_owned();
        // The entry of the array itself.
        if name.contains("[]") {
            continue;
        }
        let values = lines.filter_map(|line| line.trim().split_once(" = "));
        let all: HashMap<&str, &str> = values.collect();
        let of = |key: &str| all.get(key).copied().unwrap_or_default();
        let state = state(of("job_state"), of("comment"), of("exec_host"), || {
            all.get("Exit_status").or(all.get("exit_status")).copied().unwrap_or_default()
        });
        let run = [of("run_count"), of("start_count")].concat();
        rows.push(Row { name, state, run, left: None });
    }
    rows
}

fn state<'a>(letter: &str, comment: &str, hosts: &str, exit: impl Fn() -> &'a str) -> State {
    let node = hosts.split(['/', '+']).next().unwrap_or_default().to_owned();
    match letter {
        // With the reason of its scheduler, such as "Not Running: Insufficient amount of resource: ncpus".
        "Q" | "T" | "W" => State::Queued(comment.to_owned()),
        "H" if comment.is_empty() => State::Queued("it is held: `qrls` lets it go".to_owned()),
        "H" => State::Queued(format!("it is held: `qrls` lets it go: {comment}")),
        "S" | "U" => State::Runs(format!("{node}, suspended")),
        "R" | "E" | "B" => State::Runs(node),
        _ => State::Ended(ended(exit(), comment)),
    }
}

/// How a job has ended. A status of 256 and more means a signal; a negative one, that PBS ended it.
fn ended(status: &str, comment: &str) -> String {
    match status.parse::<i64>() {
        Ok(status @ 0..=255) => ended_with(status as u32),
        Ok(status @ 256..) => format!("was ended by signal {}", status - 256),
        // JOB_EXEC_KILL_WALLTIME
        Ok(-29) => "has reached its wall time: see `wall_time`".to_owned(),
        Ok(status) => format!("was ended with Exit_status {status}: {comment}"),
        Err(_) if comment.is_empty() => String::new(),
        Err(_) => format!("is over: {comment}"),
    }
}

/// The output of `qsub` on one line, without the command's name.
fn message_of(words: &str) -> String {
    let lines = words.lines().map(|line| line.trim().trim_start_matches("qsub: "));
    let lines: Vec<&str> = lines
        .take_while(|line| !line.starts_with("usage:"))
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}
