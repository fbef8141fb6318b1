//! How a call ends when no result comes, and how a worker was lost.

use std::fmt;
use std::sync::Arc;

use crate::ids::CallId;

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
    /// It was bound to a server, by this name, of which no worker could be started. Tells how the last
    /// attempt failed.
    NoServer(Arc<str>, Arc<Loss>),
    /// A call that it needs the result of has ended without one.
    DependencyFailed(CallId),
    /// It asks for more cores than any host can have.
    TooWide(TooWide),
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
    /// The server that it is bound to, if it is bound to one.
    pub server: Option<Arc<str>>,
}

impl fmt::Display for TooWide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooWide { cores, most, server } = self;
        write!(f, "the call asks for {cores} cores of one host, and the largest host ")?;
        if let Some(server) = server {
            write!(f, "of server \"{server}\" ")?;
        }
        write!(f, "has workers for {most}")
    }
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
