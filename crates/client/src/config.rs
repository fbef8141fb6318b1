//! What a grid is to be, as whoever opens it says.

use std::ffi::OsString;
use std::path::PathBuf;

use gridrpc_config::HostGroup;
use gridrpc_core::Settings;
use gridrpc_sys::status_line::Progress;

use crate::output::Output;

/// What the program that starts workers is told before it starts any.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// Working directory; empty: the client's.
    pub directory: String,
    /// Where modules are looked for.
    pub path: Vec<String>,
    /// What workers have from the beginning.
    pub preload: Preload,
}

/// Modules that are loaded before workers are forked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preload {
    /// Python modules, by name.
    pub modules: Vec<String>,
    /// Compiled ones, by file.
    pub libraries: Vec<String>,
}

/// The program that starts workers.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Its file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// What it is told first.
    pub preparation: Preparation,
    /// What to do if it cannot be run, or ends before it has started a worker; empty: nothing is known.
    pub advice: String,
}

impl Launch {
    /// The command, for messages.
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

    /// The advice, as the end of a sentence.
    pub(crate) fn advised(&self) -> String {
        if self.advice.is_empty() { String::new() } else { format!(": {}", self.advice) }
    }
}

/// What a grid is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// What starts the workers.
    pub launch: Launch,
    /// The bounds of the core.
    pub settings: Settings,
    /// Sections of so many bytes and more go through shared memory.
    pub shared_threshold: usize,
    /// Free shared memory kept for later calls, bytes.
    pub keep_free: u64,
    /// Where the workers' output goes.
    pub output: Output,
    /// Hosts with more workers.
    pub groups: Option<HostGroups>,
    /// How the user is told of hosts that are waited for.
    pub progress: Progress,
}

impl Config {
    /// A grid of this machine alone.
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
        }
    }
}

/// The groups of a grid.
#[derive(Clone, Debug)]
pub struct HostGroups {
    /// Which.
    pub list: Vec<HostGroup>,
    /// The `gridrpc` program of this machine, which hosts get a copy of.
    pub program: PathBuf,
    /// What their workers are.
    pub workers: RemoteWorkers,
}

/// What the workers on hosts are.
#[derive(Clone, Debug, Default)]
pub struct RemoteWorkers {
    /// Python workers; none: native ones.
    pub python: Option<PythonWorkers>,
    /// Environment variables, before those of each group.
    pub environment: Vec<(String, String)>,
    /// Working directory on this machine, for groups that name none; empty: where the agent is.
    pub directory: String,
    /// What they have from the beginning, for each group; none: nothing.
    pub preload: Vec<Preload>,
}

/// How Python workers are started.
#[derive(Clone, Debug, Default)]
pub struct PythonWorkers {
    /// The client's own interpreter, for agents on this machine.
    pub here: String,
    /// Arguments of an interpreter on another host.
    pub arguments: Vec<String>,
    /// Arguments of one on this machine.
    pub arguments_here: Vec<String>,
    /// Where this machine's look for modules.
    pub path: Vec<String>,
    /// Modules to import before workers are started.
    pub modules: Vec<String>,
    /// Environment variables, before those of each group.
    pub environment: Vec<(String, String)>,
}
