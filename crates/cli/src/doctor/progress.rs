//! Progress display: a changing line on a terminal, otherwise one line per step.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::text;
use crate::doctor::{HostReport, Watch};

/// Width of a terminal that does not report one.
const COLUMNS: usize = 80;

/// Prints progress to standard error, and each host's results to standard output.
#[derive(Debug)]
pub(super) struct Progress {
    hosts: usize,
    /// Whether to show the changing line.
    live: bool,
    /// Whether to print a line per step.
    steps: bool,
    /// Whether to print results as they arrive.
    found: bool,
    details: bool,
    now: Mutex<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    done: usize,
    /// The current step of each host, by number.
    states: Vec<(usize, String)>,
}

impl Progress {
    /// `quiet`: nothing goes to standard error. `json`: standard output is reserved for the document.
    pub(super) fn new(hosts: usize, quiet: bool, json: bool, details: bool) -> Progress {
        let live = !quiet && io::stderr().is_terminal();
        let steps = !quiet && !json && !live;
        Progress { hosts, live, steps, found: !json, details, now: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the changing line.
    pub(super) fn end(&self) {
        self.wipe();
    }

    fn wipe(&self) {
        if self.live {
            // If this fails, there is nowhere to report it.
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }

    fn show(&self, now: &ProgressState) {
        if !self.live {
            return;
        }
        let mut line = format!("{} of {} hosts", now.done, self.hosts);
        for (at, (_, state)) in now.states.iter().enumerate() {
            let _ = write!(line, "{} {state}", if at == 0 { ":" } else { ";" });
        }
        let columns = terminal_columns().unwrap_or(COLUMNS).saturating_sub(1);
        let line: String = line.chars().take(columns).collect();
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }
}

impl Watch for Progress {
    fn state(&self, host: usize, label: &str, state: &str) {
        let mut now = self.lock();
        let text = format!("{label} {state}");
        if self.steps {
            let _ = writeln!(io::stderr(), "{text}");
        }
        now.states.retain(|(known, _)| *known != host);
        now.states.push((host, text));
        self.show(&now);
    }

    fn done(&self, host: usize, report: &HostReport) {
        let mut now = self.lock();
        now.done += 1;
        now.states.retain(|(known, _)| *known != host);
        if self.found {
            let text = if self.details { text::details(report) } else { text::complaints(report) };
            self.wipe();
            let mut output = io::stdout().lock();
            // If this fails, printing the table fails too.
            let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
        }
        self.show(&now);
    }
}

fn terminal_columns() -> Option<usize> {
    // SAFETY: an all-zero value is valid and may be written to.
    let (status, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size), size)
    };
    (status == 0 && size.ws_col > 0).then(|| size.ws_col.into())
}
