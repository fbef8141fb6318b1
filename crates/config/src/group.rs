//! Host groups: the machines with workers that a configuration names.

use std::time::Duration;

use gridrpc_core::{MEMORY, Resources};
use gridrpc_wire::Compression;

use super::batch_systems::BatchSystem;
use super::host_list::Host;
use super::server::ServerAddress;
use super::values::memory_of;

/// Default time for an agent to connect.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Default time for a lost host to come back.
pub const RECONNECT_TIMEOUT: Duration = Duration::from_secs(900);

/// Default time for a batch system's agent to connect, including its time in the queue.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Default time for an agent to stop.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Default idle time before an optional host is released.
pub const IDLE: Duration = Duration::from_secs(60);

/// Practically unlimited: the longest time that any of these settings accepts.
pub const FOREVER: Duration = Duration::from_secs(1_000_000_000);

/// Default time without a heartbeat after which an agent is considered lost.
pub const HEARTBEAT: Duration = Duration::from_secs(6);

/// A group of hosts with the same launcher and settings.
#[derive(Clone, Debug, PartialEq)]
pub struct HostGroup {
    /// Its name, unique in a grid.
    pub name: String,
    /// Launcher of the agents, or the session or server that is its host.
    pub launcher: LauncherKind,
    /// Its hosts, with one agent each.
    pub hosts: Vec<Host>,
    /// Workers of a host that does not set its own number; 0: one per processor.
    pub workers: u32,
    /// The interpreter of Python workers; none: `python3`, and on this machine the client's own.
    pub python: Option<String>,
    /// The `gridrpc` program on the hosts; none: this one is copied there.
    pub program: Option<String>,
    /// Working directory of the workers; none: the launcher's default.
    pub directory: Option<String>,
    /// Environment variables of the workers.
    pub environment: Vec<(String, String)>,
    /// Modules that its workers preload in addition to the grid's: names, and files of compiled modules.
    pub preload: Vec<String>,
    /// Memory of each host for calls to request, bytes; none: as the host reports. For a batch system,
    /// `memory` is part of the job request instead.
    pub memory: Option<u64>,
    /// Other resources of each host for calls to request, by name.
    pub resources: Vec<(String, u64)>,
    /// Names or addresses that agents dial, instead of this machine's own.
    pub addresses: Vec<String>,
    /// The range of ports that the client may listen on, first and last; none: any free port.
    pub ports: Option<(u16, u16)>,
    /// How long an agent may take to connect after it has been requested.
    pub start_timeout: Duration,
    /// How long a lost host may stay away; then its calls end.
    pub reconnect_timeout: Duration,
    /// How long it may take to stop.
    pub stop_timeout: Duration,
    /// How long it may be silent before it is considered lost.
    pub heartbeat: Duration,
    /// The folder for programs and modules on the hosts; none: `~/.cache/gridrpc`.
    pub staging: Option<String>,
    /// Destination of its workers' output.
    pub output: WorkerOutput,
    /// Whether connections are encrypted and authenticated (TLS 1.3).
    pub encryption: bool,
    /// Whether data is compressed in transit.
    pub compression: Compression,
    /// Whether its hosts may receive Python code and the client unpickles their results. Untrusted hosts run
    /// only functions of compiled modules.
    pub trusted: bool,
    /// Minimum number of hosts if they come and go with demand; none: all hosts run all the time.
    pub min_hosts: Option<u32>,
    /// How long one of the other hosts may be idle before it is released.
    pub idle: Duration,
}

impl HostGroup {
    /// A group with default settings.
    #[must_use]
    pub fn new(name: impl Into<String>, launcher: LauncherKind, hosts: Vec<Host>) -> HostGroup {
        let waits = matches!(launcher, LauncherKind::Batch(_));
        // The bytes stay within this machine.
        let is_socket = matches!(
            launcher,
            LauncherKind::Session { .. }
                | LauncherKind::Server { address: ServerAddress::Socket(_), .. }
        );
        let is_shared = matches!(launcher, LauncherKind::Server { .. });
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
            reconnect_timeout: RECONNECT_TIMEOUT,
            stop_timeout: STOP_TIMEOUT,
            heartbeat: HEARTBEAT,
            staging: None,
            output: WorkerOutput::default(),
            encryption: !is_socket,
            trusted: !is_shared,
            compression: if is_socket { Compression::Off } else { Compression::default() },
            min_hosts: None,
            idle: IDLE,
        }
    }

    /// The same group with additional modules to preload.
    #[must_use]
    pub fn with_preload(&self, modules: &[String]) -> HostGroup {
        HostGroup { preload: [modules, &self.preload].concat(), ..self.clone() }
    }

    /// Resources that each host offers to calls. `memory`: the memory that it reports, if it has done so; 0:
    /// unknown.
    pub fn offers(&self, memory: Option<u64>) -> Resources {
        let said = match &self.launcher {
            LauncherKind::Batch(batch) => batch.memory.as_deref().and_then(memory_of),
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Session { .. }
            | LauncherKind::Server { .. } => self.memory,
        };
        let named = self.resources.iter().map(|(name, amount)| (name.as_str().into(), *amount));
        let memory = said.or(memory).map(|bytes| (MEMORY.into(), bytes));
        Resources::new(named.chain(memory))
    }
}

/// How agents are started, or the server that takes their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LauncherKind {
    /// On this machine: the agent is a child of the client.
    Local {
        /// A command prefix, such as `ip netns exec NAME`; usually empty.
        prefix: Vec<String>,
    },
    /// The system's ssh.
    Ssh {
        /// The command with its options: `ssh -F my_config`.
        command: Vec<String>,
    },
    /// A program that speaks the launcher protocol.
    Program {
        /// The command.
        command: Vec<String>,
    },
    /// A batch system.
    Batch(Box<Batch>),
    /// Nothing: a session that runs on this machine is the only host.
    Session {
        /// Its name.
        name: String,
    },
    /// Nothing: a server that many clients share is the only host.
    Server {
        /// Where it listens.
        address: ServerAddress,
        /// The folder with the client's certificate and private key; none: see
        /// [`credentials_folder`](crate::credentials_folder).
        credentials: Option<String>,
    },
}

impl LauncherKind {
    /// Number of processors per worker, on all nodes of its host.
    pub fn cores_of_worker(&self) -> u32 {
        match self {
            LauncherKind::Batch(batch) => {
                batch.cores.max(1).saturating_mul(batch.nodes_per_host.max(1))
            }
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Session { .. }
            | LauncherKind::Server { .. } => 1,
        }
    }

    /// Number of nodes, and processors of each, if a host is a job of several nodes.
    pub fn nodes(&self) -> Option<(u32, u32)> {
        match self {
            LauncherKind::Batch(batch) if batch.nodes_per_host > 1 => {
                Some((batch.nodes_per_host, batch.cores.max(1)))
            }
            LauncherKind::Batch(_)
            | LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Session { .. }
            | LauncherKind::Server { .. } => None,
        }
    }

    /// Whether the hosts share this machine's files, including its Python.
    #[must_use]
    pub fn shares_files(&self) -> bool {
        match self {
            LauncherKind::Local { .. } | LauncherKind::Batch(_) | LauncherKind::Session { .. } => {
                true
            }
            LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Server { .. } => false,
        }
    }
}

/// Destination of the output of a group's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WorkerOutput {
    /// To the client, each line prefixed with host and worker.
    #[default]
    Labelled,
    /// To the client, unchanged.
    Plain,
    /// Discarded, except the last lines, which are kept for error messages.
    Kept,
}

/// A batch system's request for agents. The site's defaults apply to values that are not set.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Batch {
    /// The batch system.
    pub system: BatchSystem,
    /// Put before each of the system's commands: `env SLURM_CONF=FILE`; usually empty.
    pub prefix: Vec<String>,
    /// The form of the request.
    pub request: RequestForm,
    /// The queue; Slurm calls it a partition.
    pub queue: Option<String>,
    /// The account or project to charge.
    pub account: Option<String>,
    /// The parallel environment that gives a Grid Engine job more than one slot.
    pub parallel_environment: Option<String>,
    /// Memory of each node in the batch system's syntax: `16G`.
    pub memory: Option<String>,
    /// Wall time of a job.
    pub wall_time: Option<Duration>,
    /// Processors of each worker; 0: one.
    pub cores: u32,
    /// Whether nodes are exclusive to the job.
    pub exclusive: bool,
    /// Node constraint in the batch system's syntax.
    pub constraint: Option<String>,
    /// Additional options of the job, verbatim.
    pub options: Vec<String>,
    /// Options that gridrpc would set and should omit.
    pub skip: Vec<String>,
    /// The file with a job script template that replaces the default one.
    pub template: Option<String>,
    /// Whether a job that loses its nodes is requeued and resumes on others.
    pub requeue: bool,
    /// Nodes of each host, whose agent runs on the first of them; 0: one.
    pub nodes_per_host: u32,
}

/// How agents are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RequestForm {
    /// A step inside an existing allocation, an array otherwise.
    #[default]
    Auto,
    /// An array of jobs, one per node; each starts as soon as it fits.
    Array,
    /// One job with all nodes, which start together.
    Job,
    /// A step of the client's own job.
    Step,
    /// One command that waits for its own nodes and ends with the client.
    Direct,
}

impl Batch {
    /// Whether agents start inside the current job.
    #[must_use]
    pub fn is_step(&self) -> bool {
        match self.request {
            RequestForm::Auto => self.system.has_this() && self.nodes_per_host < 2,
            RequestForm::Step => true,
            RequestForm::Array | RequestForm::Job | RequestForm::Direct => false,
        }
    }
}
