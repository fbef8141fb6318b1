//! How a call ends when no result comes, and how a worker was lost.

use std::fmt;
use std::sync::Arc;

use crate::ids::CallId;
use crate::resources::{Resources, listed};

/// Why a call ended without an answer of its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The caller cancelled it.
    Cancelled,
    /// Its deadline passed. Names the worker that had it, if any.
    DeadlineExceeded(Option<u32>),
    /// The worker that ran it was lost.
    WorkerLost(Arc<Loss>),
    /// No worker could be started. Tells how the last attempt failed.
    NoWorkers(Arc<Loss>),
    /// It was bound to a group, by this name, of which no worker could be started. Tells how the last
    /// attempt failed.
    NoServer(Arc<str>, Arc<Loss>),
    /// A call that it needs the result of has ended without one.
    DependencyFailed(CallId),
    /// It asks for more cores than any host can have.
    TooWide(TooWide),
    /// It asks for more of some resource, or for more time, than any host can have.
    Unfit(Unfit),
    /// Its arguments could not be put together with the results that it needs: there is no memory.
    NotGathered(Arc<str>),
    /// The grid was closed.
    Closed,
}

/// A call asks for more cores than any of the hosts that may run it can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooWide {
    /// What it asks for.
    pub cores: u32,
    /// What the largest host has.
    pub most: u32,
    /// The group that it is bound to, if it is bound to one.
    pub group: Option<Arc<str>>,
}

impl fmt::Display for TooWide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooWide { cores, most, group } = self;
        write!(f, "the call asks for {cores} cores of one host, and the largest host ")?;
        if let Some(group) = group {
            write!(f, "of server \"{group}\" ")?;
        }
        write!(f, "has workers for {most}")
    }
}

/// None of the hosts that may run a call has all that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// Processors that it asks for.
    pub cores: u32,
    /// What else it asks for.
    pub resources: Resources,
    /// How long it is expected to take, ns, if that was said.
    pub expected: Option<u64>,
    /// What there is, hosts of one group that have the same together.
    pub there: Vec<Site>,
}

/// What a host has for calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its group.
    pub group: Arc<str>,
    /// Processors of its workers; none: it is not known yet.
    pub cores: Option<u32>,
    /// What else it has.
    pub resources: Resources,
    /// How long it is there, ns, if it ends and that is known.
    pub life: Option<u64>,
}

/// Host groups that are told of.
const MOST_SITES: usize = 20;

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unfit { cores, resources, expected, there } = self;
        let mut asked: Vec<String> = Vec::new();
        if *cores > 1 {
            asked.push(format!("{cores} cores"));
        }
        if !resources.is_empty() {
            asked.push(resources.to_string());
        }
        if let Some(expected) = expected {
            asked.push(format!("{} s of time", seconds(*expected)));
        }
        write!(f, "the call asks for {}, which no host has: ", listed(asked))?;
        let told = |site: &Site| {
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
        let mut sites: Vec<String> = there.iter().take(MOST_SITES).map(told).collect();
        if there.len() > MOST_SITES {
            sites.push(format!("{} more have no more", there.len() - MOST_SITES));
        }
        if sites.is_empty() {
            sites.push("there is none".into());
        }
        f.write_str(&sites.join("; "))
    }
}

/// Nanoseconds as seconds, without a fraction that says nothing.
fn seconds(ns: u64) -> f64 {
    (ns / 1_000_000) as f64 / 1e3
}

/// How a worker was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The worker's number.
    pub worker: u32,
    /// Its process id; 0 if it never had one.
    pub pid: u32,
    /// The host it ran on.
    pub host: String,
    /// What happened.
    pub cause: Cause,
    /// The last lines that it wrote to its standard error.
    pub stderr: String,
}

/// What ended a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It ended with this exit status.
    Exit(u32),
    /// A signal ended it. `out_of_memory`: the kernel ended processes for want of memory meanwhile.
    Signal {
        /// The signal's number.
        signal: u32,
        /// Whether the kernel's out-of-memory killer was at work.
        out_of_memory: bool,
    },
    /// It broke the protocol or could not be started.
    Failed(String),
    /// It could not be started since the system was short of something, such as processes,
    /// descriptors or memory: that may pass.
    Shortage(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Exit(status) => write!(f, "exited with status {status}"),
            Cause::Signal { signal, out_of_memory } => {
                write!(f, "was ended by signal {signal}")?;
                if *out_of_memory {
                    write!(f, " (the kernel was out of memory)")?;
                }
                Ok(())
            }
            Cause::Failed(why) | Cause::Shortage(why) => write!(f, "failed: {why}"),
        }
    }
}

impl Loss {
    /// The number of a worker that stands for a host with all of its workers.
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
