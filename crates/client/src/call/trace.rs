//! Trace of a program: one line for each ended call, in the format of a gridbench run. gridbench can make a report of
//! it.
//!
//! `GRIDRPC_TRACE` names a folder. Each process that opens a grid has its own folder in it, with `run.json` and
//! `timeline.journal.jsonl`, which grow while it runs. Without a trace, each call costs one atomic read.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gridrpc_core::End;
use gridrpc_sys::{forks, monotonic_ns, processors};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use crate::call::outcome::{Outcome, Profile};

/// Environment variable with the trace folder.
const VARIABLE: &str = "GRIDRPC_TRACE";
/// How long lines may stay in memory, ns: the most that a killed program loses.
const WAIT: u64 = 500_000_000;

static TRACE: OnceLock<Option<Trace>> = OnceLock::new();

/// Trace of this process.
struct Trace {
    folder: PathBuf,
    /// t = 0: when its first grid was opened.
    begun: u64,
    generation: u64,
    lines: Mutex<Lines>,
}

struct Lines {
    /// `None` after a write error, which has been reported.
    journal: Option<BufWriter<File>>,
    count: u64,
    /// Executors of calls: host and process.
    workers: HashSet<(String, u32)>,
    flushed: u64,
}

/// Starts the trace of this process if one is requested and none exists.
///
/// # Errors
/// When the folder cannot be written to.
pub(crate) fn begin() -> io::Result<()> {
    if TRACE.get().is_some() {
        return Ok(());
    }
    let trace = match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(folder) => Some(Trace::new(folder.into())?),
        None => None,
    };
    // If two threads open grids at once, the first one wins.
    let _ = TRACE.set(trace);
    Ok(())
}

/// Flushes the trace when a grid of this process has been closed.
pub(crate) fn settle() {
    if let Some(trace) = active() {
        let mut lines = trace.lock();
        lines.flush(monotonic_ns());
        trace.write_record("complete", &lines).unwrap_or_else(complain);
    }
}

/// Records a call that has ended. `host`: where it ran, if not on this machine.
pub(super) fn record(profile: &Profile, outcome: &Outcome, host: &str) {
    if let Some(trace) = active() {
        trace.record(profile, &status(outcome), host);
    }
}

fn active() -> Option<&'static Trace> {
    let trace = TRACE.get()?.as_ref()?;
    // A forked child has the file too, but it belongs to its parent.
    (trace.generation == forks::generation()).then_some(trace)
}

impl Trace {
    fn new(folder: PathBuf) -> io::Result<Trace> {
        let folder = folder.join(format!("{}-{}", program(), std::process::id()));
        fs::create_dir_all(&folder)?;
        if fs::symlink_metadata(&folder)?.uid() != geteuid().as_raw() {
            // The folder's owner could have placed links to this user's files in it.
            let what = format!("`{}` belongs to another user", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let journal = BufWriter::new(File::create(folder.join("timeline.journal.jsonl"))?);
        let now = monotonic_ns();
        let lines =
            Lines { journal: Some(journal), count: 0, workers: HashSet::new(), flushed: now };
        let trace =
            Trace { folder, begun: now, generation: forks::generation(), lines: Mutex::new(lines) };
        trace.write_record("running", &trace.lock())?;
        Ok(trace)
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, profile: &Profile, status: &str, host: &str) {
        let host = if host.is_empty() { gridrpc_sys::host_name() } else { host.to_owned() };
        let mut lines = self.lock();
        lines.count += 1;
        let stamps = &profile.stamps;
        let ran = stamps.calc_out != 0 && stamps.calc_in != 0;
        let length = stamps.calc_out.saturating_sub(stamps.calc_in) as f64 / 1e9;
        let worker = if profile.pid == 0 { String::new() } else { profile.pid.to_string() };
        // Columns of a timeline; see the gridbench package.
        let row = json!([
            lines.count,
            Value::Null,
            ran.then_some(length),
            self.at(profile.submit),
            self.at(profile.sent),
            self.at(stamps.calc_in),
            self.at(stamps.calc_out),
            self.at(profile.retrieve),
            worker,
            host,
            profile.bytes_in,
            0,
            profile.bytes_out,
            status,
            profile.clock_error as f64 / 1e9,
        ]);
        if profile.pid != 0 {
            lines.workers.insert((host, profile.pid));
        }
        lines.write(&row, profile.retrieve);
    }

    /// Seconds since t = 0; `None` for stages that the call did not reach.
    fn at(&self, stamp: u64) -> Option<f64> {
        (stamp != 0).then(|| (stamp as i64 - self.begun as i64) as f64 / 1e9)
    }

    fn write_record(&self, status: &str, lines: &Lines) -> io::Result<()> {
        let record = json!({
            "format": 1,
            "status": status,
            "valid": true,
            "invalid_because": [],
            "command": std::env::args_os().map(|one| one.to_string_lossy().into_owned()).collect::<Vec<_>>(),
            "engine": {"name": program(), "version": env!("CARGO_PKG_VERSION"), "configuration": {}},
            "start": "cold",
            "task": "",
            "setup": {"NTasks": lines.count, "NNodes": lines.workers.len().max(1)},
            "machine": {
                "host": gridrpc_sys::host_name(),
                "cores_usable": processors::available(),
            },
        });
        let new = self.folder.join(".run.json.new");
        fs::write(&new, format!("{record:#}\n"))?;
        fs::rename(new, self.folder.join("run.json"))
    }
}

impl Lines {
    fn write(&mut self, row: &Value, now: u64) {
        let Some(journal) = &mut self.journal else { return };
        if let Err(error) = writeln!(journal, "{row}") {
            self.give_up(error);
        } else if now.saturating_sub(self.flushed) > WAIT {
            self.flush(now);
        }
    }

    fn flush(&mut self, now: u64) {
        self.flushed = now;
        if let Some(Err(error)) = self.journal.as_mut().map(BufWriter::flush) {
            self.give_up(error);
        }
    }

    /// Stops tracing; the program continues without a trace.
    fn give_up(&mut self, error: io::Error) {
        self.journal = None;
        complain(error);
    }
}

fn complain(error: io::Error) {
    eprintln!(
        "gridrpc: the trace of this program ends here: {VARIABLE} cannot be written to: {error}"
    );
}

/// The outcome in one line.
fn status(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Returned(..) => "ok".to_owned(),
        Outcome::Raised { error, message, .. } => one_line(&format!("{error}: {message}")),
        Outcome::Ended(end) => ended(end).to_owned(),
    }
}

fn ended(end: &End) -> &'static str {
    match end {
        End::Cancelled => "cancelled",
        End::DeadlineExceeded(_) => "its deadline passed",
        End::RunLimit(_) => "it ran longer than its limit",
        End::WorkerLost(_) => "the worker that ran it was lost",
        End::NoWorkers(_) | End::NoServer(..) => "no worker could be started",
        End::DependencyFailed(_) => "a call whose result it needs has failed",
        End::TooManyCores(_) | End::NoFittingHost(_) => "it asks for more than any host has",
        End::NestedCallLimit(_) => "all functions wait for calls",
        End::NotGathered(_) => "there is no memory for its arguments",
        End::Closed => "the grid was closed",
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(300).collect()
}

/// The program's name as a folder name. For an interpreter, the name of its script.
fn program() -> String {
    let mut words = std::env::args_os().map(PathBuf::from);
    let name = |path: &PathBuf| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let first = words.next().as_ref().and_then(name).unwrap_or_default();
    let script = words.find(|word| word.extension().is_some_and(|ending| ending == "py"));
    let chosen = script.as_ref().and_then(name).unwrap_or(first);
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let plain: String = chosen.chars().map(plain).take(60).collect();
    if plain.is_empty() || plain.starts_with('.') { "program".to_owned() } else { plain }
}
