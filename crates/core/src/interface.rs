//! Inputs and outputs of the core.

use std::sync::Arc;

use thiserror::Error;

use crate::end::{End, Loss, NoFittingHost, TooManyCores};
use crate::ids::{BlobId, CallId, FunctionId, Owner, WorkerId};
use crate::options::CallOptions;
use crate::resources::Resources;

/// Settings and limits of a grid.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of workers on this machine.
    pub workers: u32,
    /// Number of workers of each host; 0 if only the host knows.
    pub hosts: Vec<u32>,
    /// Resources of this machine for calls that request them.
    pub resources: Resources,
    /// Cores of this machine: at most this many workers are woken for microsecond calls.
    pub cores: usize,
    /// Maximum number of calls that wait for a worker.
    pub max_queued: usize,
    /// Maximum number of nested calls that wait in addition to these.
    pub max_nested: usize,
    /// Maximum number of extra workers, which run calls that functions on other executors wait for.
    pub max_relief: usize,
    /// Maximum number of payload bytes that wait for a worker. A single call may always wait, however large.
    pub max_queued_bytes: u64,
    /// How long an abandoned call may continue before its worker is ended, ns.
    pub grace: u64,
    /// Number of workers that an idempotent call may lose before it fails.
    pub retries: u32,
    /// Consecutive failed starts after which a place is given up.
    pub max_failed_starts: u32,
    /// Number of calls after which a worker's process is replaced.
    pub calls_per_process: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            workers: 1,
            hosts: Vec::new(),
            resources: Resources::NONE,
            cores: 1,
            max_queued: 100_000,
            max_nested: 100_000,
            max_relief: 64,
            max_queued_bytes: 256 << 20,
            grace: 100_000_000,
            retries: 3,
            max_failed_starts: 3,
            calls_per_process: u64::MAX,
        }
    }
}

/// A call to submit.
#[derive(Clone, Debug)]
pub struct Task<T> {
    /// Owner of the call.
    pub owner: Owner,
    /// Function to run.
    pub function: FunctionId,
    /// Length of its payload, for the limit on waiting bytes.
    pub bytes: u64,
    /// Shared data that it refers to.
    pub blobs: Vec<BlobId>,
    /// Options of the call.
    pub options: CallOptions,
    /// The caller's payload.
    pub payload: T,
}

impl<T> Task<T> {
    /// A call of this process without data or options.
    pub fn new(function: FunctionId, payload: T) -> Self {
        let (blobs, options) = (Vec::new(), CallOptions::DEFAULT);
        Task { owner: Owner::SELF, function, bytes: 0, blobs, options, payload }
    }

    /// The same call with another payload.
    pub fn with<U>(self, payload: U) -> Task<U> {
        let Task { owner, function, bytes, blobs, options, .. } = self;
        Task { owner, function, bytes, blobs, options, payload }
    }
}

/// Time that a call has occupied its worker, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupiedTime {
    /// Run time of its function.
    pub ran: u64,
    /// Time from its arrival, before its arguments are received, until its function returned.
    pub whole: u64,
}

/// State of a reserved worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// Its process has not answered yet.
    Starting,
    /// It is ready.
    Ready,
    /// Its process is gone.
    Lost(Arc<Loss>),
    /// It was released, or the grid is closed.
    Released,
}

/// Instruction to a worker that waits for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim<T> {
    /// Run it as part of the call that it runs. The core forgets it.
    Run(T),
    /// Wait until it has ended, or until [`Action::Run`].
    Wait,
    /// Nothing: it has ended.
    Ended,
}

/// Something to do now. Actions for one worker must be performed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<T> {
    /// Start a process for this place; for a host, an agent.
    Start(WorkerId),
    /// Send a function to a worker, before its first call of it.
    Teach {
        /// The worker.
        worker: WorkerId,
        /// The function.
        function: FunctionId,
    },
    /// Send shared data to a worker, before its first call that refers to it.
    Share {
        /// The worker.
        worker: WorkerId,
        /// The data.
        blob: BlobId,
    },
    /// Announce that the next call sent to this worker or host uses several cores.
    Widen {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
        /// Number of workers' places that it takes.
        slots: u32,
        /// Number of threads that its function may use.
        threads: u32,
    },
    /// Send a call to a worker.
    Send {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
        /// The function to run.
        function: FunctionId,
        /// Whether the reply may wait for those of the calls behind it.
        batch: bool,
        /// The caller's payload.
        payload: T,
    },
    /// Make a worker run this call itself, as part of the call that it runs: it waits for it, and no other worker has
    /// begun it. The core forgets it.
    Run {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
        /// The caller's payload.
        payload: T,
    },
    /// Assemble the arguments of this call, because the calls whose results it needs have ended. Report with
    /// [`crate::Core::gathered`] or [`crate::Core::dependency_failed`].
    Gather {
        /// The call.
        call: CallId,
        /// The caller's payload.
        payload: T,
    },
    /// The call has ended without an answer.
    End {
        /// The call.
        call: CallId,
        /// The caller's payload.
        payload: T,
        /// The reason.
        end: End,
    },
    /// No worker holds this call any more, which had ended before.
    Forget(T),
    /// Tell a worker that no call will refer to this data any more. Report with [`crate::Core::blob_dropped`] when it
    /// has released it.
    Unshare {
        /// The worker.
        worker: WorkerId,
        /// The data.
        blob: BlobId,
    },
    /// Free this data, because nobody needs it any more.
    Free {
        /// The data.
        blob: BlobId,
        /// Whether no reader remains, so that its memory may be overwritten.
        unread: bool,
    },
    /// Take back the calls below `below` that this worker has not begun, where possible: if it has begun its call
    /// with serial number `head`, or in any case if `head` is `None`. Report with [`crate::Core::taken_back`].
    TakeBack {
        /// The worker.
        worker: WorkerId,
        /// The call that runs much longer than expected.
        head: Option<u64>,
        /// Number of calls that it had been sent.
        below: u64,
    },
    /// Ask a host to give back calls that it may not have begun. Report those that it gives back with
    /// [`crate::Core::retracted`].
    Retract {
        /// The host.
        host: WorkerId,
        /// The calls.
        calls: Vec<CallId>,
    },
    /// Tell a host that other calls need the result of this one, which may stay there.
    Keep {
        /// The host.
        host: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Collect answers from this worker, if possible. It may hold them back while it runs a call that takes long.
    Collect(WorkerId),
    /// Measure the processor time of this worker's process, which runs this call or begins it now. Report it with
    /// [`crate::Core::cpu_used`].
    MeasureCpu {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Tell a worker that this call has been abandoned.
    Cancel {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Tell this worker to end when it has run the calls that it was sent. Report its loss when it is gone.
    Dismiss(WorkerId),
    /// End this worker at once. Report its loss when it is gone.
    Kill(WorkerId),
}

/// Reason to reject a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its owner has used up its quota of live calls.
    #[error(
        "the quota of {alive} calls that have not ended is used up: wait until some have ended"
    )]
    Quota {
        /// The quota.
        alive: usize,
    },
    /// The grid has been closed.
    #[error("the grid is closed")]
    Closed,
    /// No worker could be started.
    #[error("no worker could be started: {0}")]
    NoWorkers(Arc<Loss>),
    /// No worker of the group that it is bound to could be started.
    #[error("no worker of server \"{0}\" could be started: {1}")]
    NoServer(Arc<str>, Arc<Loss>),
    /// It needs more cores than any host can have.
    #[error("{0}")]
    TooManyCores(TooManyCores),
    /// It needs more of some resource, or more time, than any host can have.
    #[error("{0}")]
    NoFittingHost(NoFittingHost),
    /// The call refers to data that was never shared or has been dropped.
    #[error("shared data {} is not there: it was dropped, or belongs to another grid", .0.0)]
    UnknownBlob(BlobId),
    /// The reserved worker that it is for is lost.
    #[error("the worker that held the object was lost: {0}")]
    ReservedLost(Arc<Loss>),
    /// The reserved worker that it is for was released.
    #[error("the worker that it is for was given up")]
    Released,
}
