//! Flux.
//!
//! From the manual pages flux-submit(1), flux-jobs(1) and flux-cancel(1) of flux-core, and its Python commands.
//! Flux has no arrays: `flux submit --cc` submits as many jobs, and prints an identifier for each. Together they
//! are one job here, whose identifier has theirs, separated by commas.

use std::time::Duration;

use super::{Dialect, JobDescription, Row, State};
use crate::batch::{ErrorHints, ended_with};

pub(super) const FLUX: Dialect = Dialect {
    hints: HINTS,
    directive: "#flux: ",
    known: &[
        "--job-name",
        "--cc",
        "--nodes",
        "--ntasks",
        "--cores-per-task",
        "--output",
        "--time-limit",
        "--queue",
        "--bank",
        "--exclusive",
        "--requires",
    ],
    longest_name: 4000,
    options,
    number: "$FLUX_JOB_CC",
    before: "",
    submit: &["flux", "submit"],
    takes_words: true,
    submitted,
    status: &["flux", "jobs", "-a", "--no-header", "-o", COLUMNS],
    rows,
    over: &["unknown", "inactive"],
    cancel: &["flux", "cancel"],
    names,
    cancelling: "named=$(\"$@\" flux jobs --no-header --name=\"$name\" -o '{id.f58}' 2>/dev/null) || return 1\n\
         set -- \"$@\" flux cancel $(echo $jobs $named | tr , ' ')\n\
         [ -n \"$jobs$named\" ] || return 0\n\
         said=$(\"$@\" 2>&1) && return 0\n\
         case $said in *'nable to connect'*|*'not found'*) return 1 ;; esac",
    // A job whose node fails has failed.
    requeued: None,
    history: "flux job eventlog",
};

/// Columns to query; the last two may contain anything.
const COLUMNS: &str = "{id.f58}|{status}|{nodelist}|{t_remaining}|{returncode}|\
                       {annotations.sched.reason_pending}|{exception.note}";

const HINTS: ErrorHints = ErrorHints {
    system: "Flux",
    silent: &[
        "unable to connect to flux",
        "connection refused",
        "timed out",
        "host is unreachable",
    ],
    silence: "see by `flux uptime` whether it answers here, and that FLUX_URI is set",
    remedies: &[
        (
            &["queue", "submission is disabled", "submission to"],
            "see by `flux queue status` what queues take jobs, and name one by `queue`",
        ),
        (
            &["bank", "association"],
            "see by `flux account view-user $USER` what banks there are, and name one by `bank`",
        ),
        (
            &["unsatisfiable", "match error", "constraint"],
            "no node has that: ask for fewer `workers` or `cores`, or see `constraint`; `flux resource list` shows what there is",
        ),
        (&["duration", "limit"], "ask for less by `wall_time`, or for fewer `nodes`"),
        (
            &["unrecognized arguments", "invalid"],
            "see `options` in grid.toml: this Flux has no such option",
        ),
    ],
    message_of,
};

fn options(wanted: &JobDescription<'_>) -> Vec<String> {
    let JobDescription { batch, name, agents, cores } = *wanted;
    let mut options = vec![format!("--job-name={name}")];
    if agents > 1 {
        options.push(format!("--cc=0-{}", agents - 1));
    }
    options.push("--nodes=1".to_owned());
    options.push("--ntasks=1".to_owned());
    options.push(format!("--cores-per-task={cores}"));
    // The agent's output goes to the tickets' folder.
    options.push("--output=/dev/null".to_owned());
    let mut say = |option: Option<String>| options.extend(option);
    say(batch.wall_time.map(|time| format!("--time-limit={}s", time.as_secs())));
    say(batch.queue.as_ref().map(|queue| format!("--queue={queue}")));
    say(batch.account.as_ref().map(|bank| format!("--bank={bank}")));
    say(batch.exclusive.then(|| "--exclusive".to_owned()));
    say(batch
        .constraint
        .as_ref()
        .map(|constraint| format!("--requires={}", crate::batch::quoted(constraint))));
    options
}

/// An identifier per line, such as `f2Bk7Yd`. In UTF-8, Flux begins it with `ƒ`.
fn submitted(said: &str) -> Option<String> {
    let jobs: Vec<String> = said
        .split_ascii_whitespace()
        .map(|job| job.replacen('ƒ', "f", 1))
        .filter(|job| {
            job.strip_prefix('f').is_some_and(|id| id.bytes().all(|b| b.is_ascii_alphanumeric()))
        })
        .collect();
    (!jobs.is_empty()).then(|| jobs.join(","))
}

fn names(job: &str, number: Option<usize>) -> Vec<String> {
    let all = job.split(',').map(str::to_owned);
    match number {
        Some(number) => all.skip(number).take(1).collect(),
        None => all.collect(),
    }
}

fn rows(said: &str) -> Vec<Row> {
    let row = |line: &str| {
        let columns: Vec<&str> = line.splitn(7, '|').map(str::trim).collect();
        let [job, status, nodes, left, code, pending, note] = columns[..] else { return None };
        let node = nodes.to_owned();
        let state = match status {
            "DEPEND" | "PRIORITY" | "SCHED" | "PENDING" => State::Queued(pending.to_owned()),
            "RUN" | "CLEANUP" | "RUNNING" => State::Runs(node),
            "TIMEOUT" => State::Ended("has reached its wall time: see `wall_time`".to_owned()),
            "CANCELED" if note.is_empty() => State::Ended("was cancelled".to_owned()),
            "CANCELED" => State::Ended(format!("was cancelled: {note}")),
            _ => State::Ended(match code.parse::<i64>() {
                Ok(code @ 0..) if note.is_empty() => ended_with(code as u32),
                Ok(code) if code > -128 && note.is_empty() => {
                    format!("was ended by signal {}", -code)
                }
                _ if note.is_empty() => String::new(),
                _ => format!("has failed: {note}"),
            }),
        };
        let seconds = left.parse().ok().filter(|left: &f64| *left > 0.0);
        let left = seconds.and_then(|left| Duration::try_from_secs_f64(left).ok());
        let name = job.replacen('ƒ', "f", 1);
        Some(Row { name, state, run: String::new(), left })
    };
    said.lines().filter_map(row).collect()
}

/// The output of `flux submit` on one line, without its name and the number of the error.
fn message_of(words: &str) -> String {
    let lines = words.lines().map(|line| {
        let line = line.trim().trim_start_matches("flux-submit: ").trim_start_matches("ERROR: ");
        match line.strip_prefix("[Errno ").and_then(|rest| rest.split_once("] ")) {
            Some((_, rest)) => rest,
            None => line,
        }
    });
    let mut lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.to_lowercase().starts_with("usage:"))
        .collect();
    // Each job of a request says the same.
    lines.dedup_by_key(|line| {
        line.split_once(": ").filter(|(a, _)| a.starts_with("cc=")).map_or(*line, |(_, b)| b)
    });
    lines.join("; ")
}
