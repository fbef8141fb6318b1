//! Configuration of a grid.

use std::ffi::OsString;
use std::path::PathBuf;

use gridrpc_config::HostGroup;
use gridrpc_core::Settings;
use gridrpc_sys::status_line::Progress;
use gridrpc_sys::worker_limits::WorkerLimits;

use crate::output::Output;

/// Settings that the spawner receives before it starts a worker.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// Working directory; empty: the client's.
    pub directory: String,
    /// Module search path.
    pub path: Vec<String>,
    /// Modules loaded before workers start.
    pub preload: Preload,
}

/// Modules that are loaded before workers are forked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preload {
    /// Python modules, by name.
    pub modules: Vec<String>,
    /// Compiled modules, by file.
    pub libraries: Vec<String>,
}

/// The program that starts workers.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Program file.
    pub program: PathBuf,
    /// Program arguments.
    pub arguments: Vec<OsString>,
    /// Additional environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Limits of each worker, and the user that it runs as.
    pub limits: WorkerLimits,
    /// Settings sent to it first.
    pub preparation: Preparation,
    /// Hint for the error message if the program cannot run or ends before it has started a worker; empty: none.
    pub advice: String,
}

impl Launch {
    /// The command line, for messages.
    pub(crate) fn command(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,/:@%".contains(c);
        let quoted = |word: String| match word.chars().all(is_plain) && !word.is_empty() {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        };
        let words =
            [self.program.as_os_str()].into_iter().chain(self.arguments.iter().map(|a| a.as_ref()));
        let words: Vec<_> = words.map(|word| quoted(word.to_string_lossy().into_owned())).collect();
        words.join(" ")
    }

    /// The hint as the end of a sentence.
    pub(crate) fn advised(&self) -> String {
        if self.advice.is_empty() { String::new() } else { format!(": {}", self.advice) }
    }
}

/// Configuration of a grid.
#[derive(Clone, Debug)]
pub struct Config {
    /// Program that starts the workers.
    pub launch: Launch,
    /// Limits of the core.
    pub settings: Settings,
    /// Minimum size of sections that go through shared memory, bytes.
    pub shared_threshold: usize,
    /// Free shared memory kept for later calls, bytes.
    pub keep_free: u64,
    /// Destination of the workers' output.
    pub output: Output,
    /// Host groups with more workers.
    pub groups: Option<HostGroups>,
    /// How to report hosts that the program waits for.
    pub progress: Progress,
    /// Whether it is the grid of an agent, whose client shows and traces it.
    pub is_of_agent: bool,
}

impl Config {
    /// A grid on this machine only.
    #[must_use]
    pub fn here(launch: Launch, settings: Settings) -> Config {
        Config {
            launch,
            settings,
            shared_threshold: 32 << 10,
            keep_free: 512 << 20,
            output: Output::Plain,
            groups: None,
            progress: Progress::default(),
            is_of_agent: false,
        }
    }
}

/// Host groups of a grid.
#[derive(Clone, Debug)]
pub struct HostGroups {
    /// The groups.
    pub list: Vec<HostGroup>,
    /// The `gridrpc` program of this machine, which is copied to hosts.
    pub program: PathBuf,
    /// Workers on the hosts.
    pub workers: RemoteWorkers,
}

/// Configuration of workers on hosts.
#[derive(Clone, Debug, Default)]
pub struct RemoteWorkers {
    /// Python workers; `None`: native ones.
    pub python: Option<PythonWorkers>,
    /// Environment variables; those of a group take precedence.
    pub environment: Vec<(String, String)>,
    /// Working directory on this machine, for groups without one; empty: the agent's.
    pub directory: String,
    /// Modules loaded before workers start, for each group.
    pub preload: Vec<Preload>,
}

/// Command lines of Python workers.
#[derive(Clone, Debug, Default)]
pub struct PythonWorkers {
    /// The client's interpreter, for agents on this machine.
    pub here: String,
    /// Interpreter arguments on another host.
    pub arguments: Vec<String>,
    /// Interpreter arguments on this machine.
    pub arguments_here: Vec<String>,
    /// Module search path on this machine.
    pub path: Vec<String>,
    /// Modules to import before workers are started.
    pub modules: Vec<String>,
    /// Environment variables; those of a group take precedence.
    pub environment: Vec<(String, String)>,
}
