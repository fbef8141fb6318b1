//! Servers: places with workers, as a configuration names them.
//!
//! They are read from a file ([`read_file`]; docs/grid-toml.md is its reference) or made of a URL ([`from_url`]).

mod batch;
mod chosen;
mod hosts;
mod keys;
mod problems;
mod read;
mod system;
#[cfg(test)]
mod tests;
mod url;
mod values;
mod write;

use std::time::Duration;

use gridrpc_core::{MEMORY, Resources};

pub use batch::{Batch, RequestForm};
pub use chosen::chosen;
pub use hosts::HostFault;
pub(crate) use problems::listed;
pub use problems::{Fault, Part, Problem, Problems};
pub(crate) use read::small_text;
pub use read::{read, read_file};
pub use system::BatchSystem;
pub(crate) use system::Node;
pub use url::from_url;
pub use write::write;

/// How long an agent may take to dial, unless something else is said.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The same of one that a batch system starts, which may let it wait.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(86_400);
/// How long it may take to end.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a host that is not wanted always may have nothing to do.
pub const IDLE: Duration = Duration::from_secs(60);
/// As good as for ever: the longest time that can be given for any of these.
pub const FOREVER: Duration = Duration::from_secs(1_000_000_000);
/// After how long a silent one is lost.
pub const HEARTBEAT: Duration = Duration::from_secs(6);

/// A server: hosts that are started alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name, unique in a grid.
    pub name: String,
    /// What starts the agents.
    pub launcher: LauncherKind,
    /// Its hosts; each gets one agent.
    pub hosts: Vec<Host>,
    /// Workers of a host that does not say so itself; 0: as many as it has processors.
    pub workers: u32,
    /// The Python that Python workers run; none: `python3`, and on this machine the client's own.
    pub python: Option<String>,
    /// The `gridrpc` program on the hosts; none: this one is copied there.
    pub program: Option<String>,
    /// Working directory of the workers; none: what the launcher gives.
    pub directory: Option<String>,
    /// Environment variables of the workers.
    pub environment: Vec<(String, String)>,
    /// Modules that its workers load while they start, beside those of the grid: names, and files of compiled ones.
    pub preload: Vec<String>,
    /// Memory of each host that calls may ask for, bytes; none: what the host says. Not of a batch system, which is
    /// asked for it.
    pub memory: Option<u64>,
    /// What else each host has that calls may ask for, by name.
    pub resources: Vec<(String, u64)>,
    /// Names or addresses that agents dial, instead of those that this machine has.
    pub addresses: Vec<String>,
    /// The ports that the client may listen on, first and last; none: any that is free.
    pub ports: Option<(u16, u16)>,
    /// How long an agent has from when it was asked for until it has dialled.
    pub start_timeout: Duration,
    /// How long it has to end.
    pub stop_timeout: Duration,
    /// After how long without a sign of life it is taken for lost.
    pub heartbeat: Duration,
    /// The folder on the hosts where programs and modules are kept; none: `~/.cache/gridrpc`.
    pub staging: Option<String>,
    /// Where its workers' output goes.
    pub output: ServerOutput,
    /// Whether connections are encrypted and authenticated (TLS 1.3).
    pub encryption: bool,
    /// Whether data is compressed on the way.
    pub compression: Compression,
    /// Whether its hosts may be given Python, and what they answer be unpickled; if not, they run only functions of
    /// compiled modules.
    pub trusted: bool,
    /// How many of its hosts, which come and go with the work, there always are; none: they all are, always.
    pub min_hosts: Option<u32>,
    /// How long one of the others may have nothing to do before it is given back.
    pub idle: Duration,
}

impl Server {
    /// A server of which nothing else is said.
    #[must_use]
    pub fn new(name: impl Into<String>, launcher: LauncherKind, hosts: Vec<Host>) -> Server {
        let waits = matches!(launcher, LauncherKind::Batch(_));
        Server {
            name: name.into(),
            launcher,
            hosts,
            workers: 0,
            python: None,
            program: None,
            directory: None,
            environment: Vec::new(),
            preload: Vec::new(),
            memory: None,
            resources: Vec::new(),
            addresses: Vec::new(),
            ports: None,
            start_timeout: if waits { QUEUE_TIMEOUT } else { START_TIMEOUT },
            stop_timeout: STOP_TIMEOUT,
            heartbeat: HEARTBEAT,
            staging: None,
            output: ServerOutput::default(),
            encryption: true,
            trusted: true,
            compression: Compression::default(),
            min_hosts: None,
            idle: IDLE,
        }
    }

    /// The same server, whose workers load these modules as well while they start.
    #[must_use]
    pub fn with_preload(&self, modules: &[String]) -> Server {
        Server { preload: [modules, &self.preload].concat(), ..self.clone() }
    }

    /// What each host has for calls. `memory`: what it says that it has, once it has said so; 0: that is not known.
    pub(crate) fn offers(&self, memory: Option<u64>) -> Resources {
        let said = match &self.launcher {
            LauncherKind::Batch(batch) => batch.memory.as_deref().and_then(batch::memory_of),
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. } => self.memory,
        };
        let named = self.resources.iter().map(|(name, amount)| (name.as_str().into(), *amount));
        let memory = said.or(memory).map(|bytes| (MEMORY.into(), bytes));
        Resources::new(named.chain(memory))
    }
}

/// A host of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// As the launcher knows it: a name, an address, `user@name`, an alias of ssh's configuration.
    pub name: String,
    /// How many workers; none: as the server says.
    pub workers: Option<u32>,
}

impl Host {
    /// A host with as many workers as its server says.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Host {
        Host { name: name.into(), workers: None }
    }
}

/// What starts agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LauncherKind {
    /// This machine: the agent is a child of the client.
    Local {
        /// A command to put before the agent's, such as `ip netns exec NAME`; usually none.
        prefix: Vec<String>,
    },
    /// The system's ssh.
    Ssh {
        /// The command, and options for it: `ssh -F my_config`.
        command: Vec<String>,
    },
    /// A program that speaks the launchers' protocol.
    Program {
        /// The command.
        command: Vec<String>,
    },
    /// A batch system.
    Batch(Box<Batch>),
}

impl LauncherKind {
    /// How many processors each worker is to have.
    pub(crate) fn cores_of_worker(&self) -> u32 {
        match self {
            LauncherKind::Batch(batch) => batch.cores.max(1),
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. } => 1,
        }
    }

    /// Whether the files of this machine are there as well, its Python among them.
    #[must_use]
    pub fn shares_files(&self) -> bool {
        matches!(self, LauncherKind::Local { .. } | LauncherKind::Batch(_))
    }
}

/// Where the output of a server's workers goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ServerOutput {
    /// To the client, each line with host and worker before it.
    #[default]
    Labelled,
    /// To the client as it comes.
    Plain,
    /// Nowhere; the last lines are kept for error messages.
    Kept,
}

/// Whether data is compressed on its way over a network (zstd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Where the link is slower than the compressor.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}
