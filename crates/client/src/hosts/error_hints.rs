//! Reasons why a host has no workers although its agent is there, with hints.

use std::io;
use std::time::Duration;

use gridrpc_core::{Cause, Loss};
use gridrpc_launch::{QUEUED, SUBMITTED, UNANSWERED};
use gridrpc_link::NOT_PRELOADED;

/// Part of the error of a Python installation with another minor version: _versions.py.
const OTHER_PYTHON: &str = "is of another minor version than the client's Python";

/// Prefix of the messages of the program `gridrpc`.
const OWN: &str = "gridrpc: ";

/// Why no worker can start on a host, for people. `python`: the interpreter of its workers; empty: they are native.
pub(crate) fn no_workers(python: &str, loss: &Loss) -> String {
    let said = |words: &str| loss.stderr.lines().rev().find(|line| line.contains(words));
    if let Some(line) = said(OTHER_PYTHON) {
        let line = line.trim_start_matches("gridrpc: ");
        return format!(
            "{line}: name a Python of the client's version there by `python` in the configuration of the \
             server"
        );
    }
    if said("No module named 'gridrpc'").is_some() || said("No module named gridrpc").is_some() {
        return format!(
            "`{python}` there has no gridrpc: install it there (`{python} -m pip install gridrpc`), or name \
             another Python by `python` in the configuration of the server"
        );
    }
    match &loss.cause {
        Cause::Failed(why) if why.starts_with("could not run `") && !python.is_empty() => format!(
            "{why}: see that this Python is there, or name another one by `python` in the configuration of \
             the server"
        ),
        Cause::Failed(why) if why.starts_with(NOT_PRELOADED) => why.clone(),
        cause => {
            let last = last_line(&loss.stderr).map(|line| format!(": {line}")).unwrap_or_default();
            format!(
                "its workers cannot be started: the last one {cause}{last}; see `python`, `directory` and \
                 `environment` in the configuration of the server"
            )
        }
    }
}

/// The last line of an output that is not blank.
pub(crate) fn last_line(output: &str) -> Option<&str> {
    output.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

/// An agent whose connection ended unexpectedly.
pub(crate) fn agent_gone(how: &str) -> String {
    format!(
        "its agent is gone ({how}): somebody has killed it, as the kernel does where memory is short, or \
         the host goes down"
    )
}

/// An agent that is gone, with the launcher's reason.
pub(crate) fn agent_left(how: &str) -> String {
    format!("its agent is gone: {how}")
}

/// A host that has been silent for `heartbeat`.
pub(crate) fn silent(heartbeat: Duration) -> String {
    format!(
        "it was silent for {} s: its agent is stopped, or the network is cut (see `heartbeat` in the \
         configuration of the server)",
        heartbeat.as_secs_f64()
    )
}

/// An agent that has not dialled. `state`: progress of its start.
pub(crate) fn not_come(timeout: Duration, state: &str) -> String {
    let seconds = timeout.as_secs_f64();
    if state.starts_with(QUEUED) {
        return format!(
            "the batch system did not start its agent within {seconds} s; last heard: it {state}; ask for \
             less, or wait longer (see `start_timeout` in the configuration of the server)"
        );
    }
    if state.starts_with(SUBMITTED) || state.starts_with(UNANSWERED) {
        return format!(
            "the batch system has not answered within {seconds} s; last heard: it {state}; see whether its \
             daemons are up and whether it takes jobs, or wait longer (see `start_timeout` in the \
             configuration of the server)"
        );
    }
    let state = if state.is_empty() { String::new() } else { format!("; last heard: {state}") };
    format!(
        "its agent did not dial this client within {seconds} s{state}: a firewall may keep it from doing \
         so (see `addresses`, `ports` and `start_timeout` in the configuration of the server, and \
         `gridrpc doctor`)"
    )
}

/// An agent that ended before it connected. `said`: its output.
pub(crate) fn agent_ended(how: &str, said: &str) -> String {
    let text = format!("its agent ended before it had dialled this client ({how})");
    // The program's last message, of one or more lines, gives the reason.
    let why = said.rfind(OWN).map(|at| &said[at + OWN.len()..]);
    let lines: Vec<&str> = why.unwrap_or(said).lines().map(str::trim).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { text } else { format!("{text}: {}", lines.join("; ")) }
}

/// An agent that could not be requested because there is no listener for it.
pub(crate) fn not_requested(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "its agent could not dial this client: {error}; name other `ports` in the configuration of the \
             server, or leave them out to take any that is free"
        ),
        _ => format!("its agent cannot be requested: {error}"),
    }
}

/// An agent with another message format. `version`: of its gridrpc, if it sent one.
pub(crate) fn other_version(version: Option<&str>) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let theirs = match version {
        Some(version) => {
            format!("its agent is gridrpc {version}, which does not speak as this client")
        }
        None => "its agent does not speak as this client".to_owned(),
    };
    format!(
        "{theirs}, gridrpc {own}, does: install that version there, or take `program` out of the server's \
         table, so that this one is copied there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(cause: &str, stderr: &str) -> String {
        let (cause, stderr) = (Cause::Failed(cause.to_owned()), stderr.to_owned());
        let loss = Loss { worker: 0, pid: 0, host: "node1".to_owned(), cause, stderr };
        no_workers("/opt/python", &loss)
    }

    #[test]
    fn what_an_agent_says_last_is_reported() {
        let said = "motd\ngridrpc: no way\n  10.0.0.1:4: refused\nSee the firewall.\n";
        let text = agent_ended("exit status: 1", said);
        assert!(text.ends_with("(exit status: 1): no way; 10.0.0.1:4: refused; See the firewall."));
        assert!(agent_ended("killed", "").ends_with("dialled this client (killed)"));
    }

    #[test]
    fn a_firewall_is_blamed_only_where_a_job_has_started() {
        let explain = |state: &str| not_come(Duration::from_secs(8), state);
        let said = "sbatch: Slurm temporarily unable to accept job";
        for state in [format!("{SUBMITTED} ({said})"), format!("{UNANSWERED}: no answer")] {
            let text = explain(&state);
            assert!(text.contains("has not answered within 8 s"), "{text}");
            assert!(text.contains(&state) && !text.contains("firewall"), "{text}");
        }
        assert!(explain("is queued as job 3").contains("did not start its agent within 8 s"));
        assert!(explain("is starting on n1 (job 3)").contains("firewall"));
    }

    #[test]
    fn what_python_says_becomes_advice() {
        let line = "gridrpc: Python 3.8.1 (/x) is of another minor version than the client's Python 3.11.7";
        let text = explain("ended", &format!("hello\n{line}\n"));
        assert!(text.starts_with("Python 3.8.1") && text.contains("`python` in"), "{text}");
        let text = explain("ended", "ModuleNotFoundError: No module named 'gridrpc'");
        assert!(text.contains("`/opt/python -m pip install gridrpc`"), "{text}");
        let text = explain("could not run `/opt/python`: No such file", "");
        assert!(text.contains("No such file: see that this Python is there"), "{text}");
        let why = format!("{NOT_PRELOADED}could not load `x.so`");
        assert_eq!(explain(&why, ""), why);
        let text = explain("ended", "Traceback:\nFileNotFoundError: '/x'\n");
        assert!(text.contains("failed: ended: FileNotFoundError: '/x'; see"), "{text}");
    }
}
