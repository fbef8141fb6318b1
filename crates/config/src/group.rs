//! Host groups: places with workers, as a configuration names them.

use std::time::Duration;

use gridrpc_core::{MEMORY, Resources};
use gridrpc_wire::Compression;

use super::batch_systems::BatchSystem;
use super::host_list::Host;
use super::values::memory_of;

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

/// A group: hosts that are started alike.
#[derive(Clone, Debug, PartialEq)]
pub struct HostGroup {
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
    pub output: WorkerOutput,
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

impl HostGroup {
    /// A group of which nothing else is said.
    #[must_use]
    pub fn new(name: impl Into<String>, launcher: LauncherKind, hosts: Vec<Host>) -> HostGroup {
        let waits = matches!(launcher, LauncherKind::Batch(_));
        HostGroup {
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
            output: WorkerOutput::default(),
            encryption: true,
            trusted: true,
            compression: Compression::default(),
            min_hosts: None,
            idle: IDLE,
        }
    }

    /// The same group, whose workers load these modules as well while they start.
    #[must_use]
    pub fn with_preload(&self, modules: &[String]) -> HostGroup {
        HostGroup { preload: [modules, &self.preload].concat(), ..self.clone() }
    }

    /// What each host has for calls. `memory`: what it says that it has, once it has said so; 0: that is not known.
    pub fn offers(&self, memory: Option<u64>) -> Resources {
        let said = match &self.launcher {
            LauncherKind::Batch(batch) => batch.memory.as_deref().and_then(memory_of),
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. } => self.memory,
        };
        let named = self.resources.iter().map(|(name, amount)| (name.as_str().into(), *amount));
        let memory = said.or(memory).map(|bytes| (MEMORY.into(), bytes));
        Resources::new(named.chain(memory))
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
    pub fn cores_of_worker(&self) -> u32 {
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

/// Where the output of a group's workers goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WorkerOutput {
    /// To the client, each line with host and worker before it.
    #[default]
    Labelled,
    /// To the client as it comes.
    Plain,
    /// Nowhere; the last lines are kept for error messages.
    Kept,
}

/// How a batch system is asked for agents, and what for. What is not said, the site decides.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Batch {
    /// Which batch system that is.
    pub system: BatchSystem,
    /// In what form agents are asked for.
    pub request: RequestForm,
    /// The queue, which Slurm calls a partition.
    pub queue: Option<String>,
    /// Whose account, or what project, is charged.
    pub account: Option<String>,
    /// What gives a job of Grid Engine more than one slot.
    pub parallel_environment: Option<String>,
    /// Memory of each node, as the batch system writes it: `16G`.
    pub memory: Option<String>,
    /// How long a job may run.
    pub wall_time: Option<Duration>,
    /// Processors of each worker; 0: one.
    pub cores: u32,
    /// Whether nodes are not shared with other jobs.
    pub exclusive: bool,
    /// What nodes have to have, as the batch system writes it.
    pub constraint: Option<String>,
    /// Further options of the job, as they are.
    pub options: Vec<String>,
    /// Options that are left out though gridrpc would set them.
    pub skip: Vec<String>,
    /// A file with the job script, in the place of the usual one.
    pub template: Option<String>,
    /// Whether a job that the system has taken its nodes from waits for others, and goes on.
    pub requeue: bool,
}

/// In what form agents are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RequestForm {
    /// As a step where there is an allocation already, else as an array.
    #[default]
    Auto,
    /// An array of jobs, one for each node: each starts when there is room for it.
    Array,
    /// One job of all nodes, which start together.
    Job,
    /// A step of the job that the client is part of.
    Step,
    /// One command that waits for nodes of its own, and ends with the client.
    Direct,
}

impl Batch {
    /// Whether agents are started within the job that this process is part of.
    #[must_use]
    pub fn is_step(&self) -> bool {
        match self.request {
            RequestForm::Auto => self.system.has_this(),
            RequestForm::Step => true,
            RequestForm::Array | RequestForm::Job | RequestForm::Direct => false,
        }
    }
}
