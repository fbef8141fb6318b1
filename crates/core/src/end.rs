//! Reasons why calls end without a result, and causes of lost workers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::ids::CallId;
use crate::resources::{Resources, listed};

/// Reason why a call ended without an answer of its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The caller cancelled it.
    Cancelled,
    /// Its deadline passed. Contains the worker that had it, if any.
    DeadlineExceeded(Option<u32>),
    /// It ran longer than its limit, or used more processor time.
    RunLimit(TimeLimit),
    /// The worker that ran it was lost.
    WorkerLost(Arc<Loss>),
    /// No worker could be started. Contains the last failure.
    NoWorkers(Arc<Loss>),
    /// No worker of the group that it was bound to could be started. Contains the name of the group and the last
    /// failure.
    NoServer(Arc<str>, Arc<Loss>),
    /// A call whose result it needs has ended without one.
    DependencyFailed(CallId),
    /// It needs more cores than any host can have.
    TooManyCores(TooManyCores),
    /// It needs more of some resource, or more time, than any host can have.
    NoFittingHost(NoFittingHost),
    /// Its arguments could not be assembled with the results that it needs: there is no memory.
    NotGathered(Arc<str>),
    /// A function waits for it, and no worker is left.
    NestedCallLimit(NestedCallLimit),
    /// The grid was closed.
    Closed,
}

/// A call that a function waits for has no worker: all functions wait, and no extra worker is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestedCallLimit {
    /// The limit of extra workers.
    pub extra: usize,
}

impl fmt::Display for NestedCallLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extra = self.extra;
        write!(
            f,
            "all running functions wait for calls, and this one has no worker: all {extra} extra workers \
             for calls that are bound to other servers are taken"
        )
    }
}

/// A limit on the time of a call that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// The worker that ran the call.
    pub worker: u32,
    /// The limit.
    pub limit: Duration,
    /// Whether it limits the processor time, and not the run time.
    pub cpu: bool,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimeLimit { worker, limit, cpu } = self;
        let what = if *cpu { "used more processor time than" } else { "ran longer than" };
        write!(f, "it {what} its limit of {limit:?} on worker {worker}")
    }
}

impl End {
    /// Its name in records.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            End::WorkerLost(_) => "WorkerLost",
            End::NoWorkers(_) | End::NoServer(..) => "NoWorkers",
            End::Cancelled => "Cancelled",
            End::Closed => "Closed",
            End::TooManyCores(_) | End::NoFittingHost(_) => "TooLarge",
            End::NestedCallLimit(_) => "NestedCallLimit",
            End::NotGathered(_) | End::DependencyFailed(_) => "DependencyFailed",
            End::DeadlineExceeded(_) | End::RunLimit(_) => "DeadlineExceeded",
        }
    }
}

/// A call needs more cores than any of the hosts that may run it can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyCores {
    /// The requested cores.
    pub cores: u32,
    /// The cores of the largest host.
    pub most: u32,
    /// The group that it is bound to, if any.
    pub group: Option<Arc<str>>,
}

impl fmt::Display for TooManyCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyCores { cores, most, group } = self;
        write!(f, "the call asks for {cores} cores of one host, and the largest host ")?;
        if let Some(group) = group {
            write!(f, "of server \"{group}\" ")?;
        }
        write!(f, "has workers for {most}")
    }
}

/// No host that may run a call has all the resources that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFittingHost {
    /// The requested cores.
    pub cores: u32,
    /// The requested resources.
    pub resources: Resources,
    /// Its declared run time, ns, if any.
    pub expected: Option<u64>,
    /// The available resources. Equal hosts of a group are merged.
    pub there: Vec<Site>,
}

/// Resources of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its group.
    pub group: Arc<str>,
    /// Processors of its workers; `None`: not known yet.
    pub cores: Option<u32>,
    /// Its other resources.
    pub resources: Resources,
    /// Its lifetime, ns, if it ends and that is known.
    pub life: Option<u64>,
}

/// Maximum number of host groups listed.
const MOST_SITES: usize = 20;

impl fmt::Display for NoFittingHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoFittingHost { cores, resources, expected, there } = self;
        let mut requested: Vec<String> = Vec::new();
        if *cores > 1 {
            requested.push(format!("{cores} cores"));
        }
        if !resources.is_empty() {
            requested.push(resources.to_string());
        }
        if let Some(expected) = expected {
            requested.push(format!("{} s of time", seconds(*expected)));
        }
        write!(f, "the call asks for {}, which no host has: ", listed(requested))?;
        let describe = |site: &Site| {
            let mut has: Vec<String> = Vec::new();
            if let Some(number) = site.cores.filter(|_| *cores > 1) {
                has.push(format!("workers for {number} cores"));
            }
            if !resources.is_empty() {
                has.push(site.resources.to_string());
            }
            if let Some(life) = site.life.filter(|_| expected.is_some()) {
                has.push(format!("jobs of {} s", seconds(life)));
            }
            format!("\"{}\" has {}", site.group, listed(has))
        };
        let mut sites: Vec<String> = there.iter().take(MOST_SITES).map(describe).collect();
        if there.len() > MOST_SITES {
            sites.push(format!("{} more have no more", there.len() - MOST_SITES));
        }
        if sites.is_empty() {
            sites.push("there is none".into());
        }
        f.write_str(&sites.join("; "))
    }
}

/// Nanoseconds as seconds, rounded to a meaningful precision.
fn seconds(ns: u64) -> f64 {
    (ns / 1_000_000) as f64 / 1e3
}

/// Loss of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The worker's number.
    pub worker: u32,
    /// Its process id; 0 if it never had one.
    pub pid: u32,
    /// The host it ran on.
    pub host: String,
    /// Cause of the loss.
    pub cause: Cause,
    /// Last lines of its standard error.
    pub stderr: String,
}

/// Cause of a worker's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It ended with this exit status.
    Exit(u32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        signal: u32,
        /// Whether the kernel's out-of-memory killer was at work.
        out_of_memory: bool,
    },
    /// It had used all of the memory that a worker may have, bytes.
    MemoryLimit(u64),
    /// It violated the protocol or could not be started.
    Failed(String),
    /// It could not be started because the system was short of a resource such as processes, descriptors or memory.
    /// This may be temporary.
    Shortage(String),
}

// Signals by their numbers on Linux.
const SIGILL: u32 = 4;
const SIGABRT: u32 = 6;
const SIGBUS: u32 = 7;
const SIGFPE: u32 = 8;
const SIGSEGV: u32 = 11;
const SIGXCPU: u32 = 24;
const SIGXFSZ: u32 = 25;

impl Cause {
    /// What probably went wrong in a compiled function, if the signal is one that its own code causes.
    #[must_use]
    pub fn crash(&self) -> Option<&'static str> {
        let Cause::Signal { signal, out_of_memory: false } = self else { return None };
        match *signal {
            SIGSEGV | SIGBUS => Some(
                "the function used memory that it does not have: an index is wrong, an array is shorter than its \
                 interface says, or the stack is too small for local arrays (see `ulimit -s`)",
            ),
            SIGFPE => Some("the function divided by zero, or computed with traps enabled"),
            SIGABRT => Some("the function called abort, or an assertion in it failed"),
            SIGILL => Some("the module was compiled for another kind of processor"),
            _ => None,
        }
    }
}

/// A number of bytes in the largest unit that divides it.
struct MemorySize(u64);

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes % (1 << 30) == 0 => write!(f, "{} GiB", bytes >> 30),
            bytes if bytes % (1 << 20) == 0 => write!(f, "{} MiB", bytes >> 20),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Exit(status) => write!(f, "exited with status {status}"),
            Cause::Signal { signal, out_of_memory } => {
                write!(f, "was ended by signal {signal}")?;
                match *signal {
                    _ if *out_of_memory => write!(f, " (the kernel was out of memory)"),
                    SIGXCPU => write!(f, " (it had used all of its CPU time, see `ulimit -t`)"),
                    SIGXFSZ => write!(f, " (it wrote too large a file, see `ulimit -f`)"),
                    _ => Ok(()),
                }
            }
            Cause::MemoryLimit(limit) => {
                let size = MemorySize(*limit);
                write!(f, "had used all of its {size} of memory (limit `memory`)")
            }
            Cause::Failed(why) | Cause::Shortage(why) => write!(f, "failed: {why}"),
        }
    }
}

impl Loss {
    /// Worker number that stands for a host with all of its workers.
    pub const HOST: u32 = u32::MAX;
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { worker, pid, host, cause, .. } = self;
        if *worker == Loss::HOST {
            return write!(f, "host {host} {cause}");
        }
        match pid {
            0 => write!(f, "worker {worker} (on {host}) {cause}"),
            pid => write!(f, "worker {worker} (process {pid} on {host}) {cause}"),
        }
    }
}
