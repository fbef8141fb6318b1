//! What goes into the core and what comes out of it.

use std::sync::Arc;

use thiserror::Error;

use crate::end::{End, Loss, TooWide, Unfit};
use crate::ids::{BlobId, CallId, FunctionId, Owner, WorkerId};
use crate::options::CallOptions;
use crate::resources::Resources;

/// The bounds of a grid.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many workers on this machine.
    pub workers: u32,
    /// The hosts: how many workers each is to have, 0 if only it knows.
    pub hosts: Vec<u32>,
    /// What this machine has for calls that ask for it.
    pub resources: Resources,
    /// Cores of the machine: more than so many workers are not woken for microsecond calls.
    pub cores: usize,
    /// Calls that may wait for a worker.
    pub max_queued: usize,
    /// Calls that running functions have made which may wait beside these.
    pub max_nested: usize,
    /// Payload bytes that may wait for a worker. One call may always wait, however large.
    pub max_queued_bytes: u64,
    /// How long a call that nobody waits for may go on before its worker is ended, ns.
    pub grace: u64,
    /// How many workers a call declared idempotent may lose before it fails.
    pub retries: u32,
    /// Starts in a row that may fail before a place is given up for lost.
    pub max_failed_starts: u32,
    /// Calls after which a worker's process is replaced by another.
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
            max_queued_bytes: 256 << 20,
            grace: 100_000_000,
            retries: 3,
            max_failed_starts: 3,
            calls_per_process: u64::MAX,
        }
    }
}

/// A call to be made.
#[derive(Clone, Debug)]
pub struct Task<T> {
    /// Who has made it.
    pub owner: Owner,
    /// What to run.
    pub function: FunctionId,
    /// Length of its payload, for the bound on what may wait.
    pub bytes: u64,
    /// The shared data that it refers to.
    pub blobs: Vec<BlobId>,
    /// How it is to be made.
    pub options: CallOptions,
    /// The caller's own.
    pub payload: T,
}

impl<T> Task<T> {
    /// A call of this process without data that asks for nothing.
    pub fn new(function: FunctionId, payload: T) -> Self {
        let (blobs, options) = (Vec::new(), CallOptions::DEFAULT);
        Task { owner: Owner::SELF, function, bytes: 0, blobs, options, payload }
    }

    /// The same call with something else of the caller's own.
    pub fn with<U>(self, payload: U) -> Task<U> {
        let Task { owner, function, bytes, blobs, options, .. } = self;
        Task { owner, function, bytes, blobs, options, payload }
    }
}

/// How long a call has kept its worker, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// Its function ran.
    pub ran: u64,
    /// From when it had come in, its arguments still to be taken, until its function returned.
    pub whole: u64,
}

/// How a reserved worker is getting on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its process has not answered yet.
    Starting,
    /// It is at hand.
    Ready,
    /// Its process is gone.
    Lost(Arc<Loss>),
    /// It was given up, or the grid is closed.
    Released,
}

/// What a worker is to do that waits for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim<T> {
    /// Run it itself, as part of the call that it runs. The core knows it no more.
    Run(T),
    /// Wait until it has ended, or until [`Action::Run`].
    Wait,
    /// Nothing: it has ended.
    Ended,
}

/// Something that has to be done now. Actions for one worker are in the order to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<T> {
    /// Start a process for this place; for a host, an agent.
    Start(WorkerId),
    /// Tell a worker a function, before its first call of it.
    Teach {
        /// Which worker.
        worker: WorkerId,
        /// Which function.
        function: FunctionId,
    },
    /// Give a worker shared data, before its first call that refers to it.
    Share {
        /// Which worker.
        worker: WorkerId,
        /// Which data.
        blob: BlobId,
    },
    /// The next call that this worker or host is sent asks for several cores.
    Widen {
        /// Which worker.
        worker: WorkerId,
        /// Which call.
        call: CallId,
        /// How many workers' places it takes.
        slots: u32,
        /// How many threads its function is to use.
        threads: u32,
    },
    /// Send a call to a worker.
    Send {
        /// Which worker.
        worker: WorkerId,
        /// Which call.
        call: CallId,
        /// What to run.
        function: FunctionId,
        /// Whether the reply may wait for those of the calls behind it.
        batch: bool,
        /// The caller's own.
        payload: T,
    },
    /// A worker waits for this call, which no other has begun: it is to run it itself, as part of the
    /// call that it runs. The core knows it no more.
    Run {
        /// Which worker.
        worker: WorkerId,
        /// Which call.
        call: CallId,
        /// The caller's own.
        payload: T,
    },
    /// The calls whose results this one needs have ended: put its arguments together, and report it
    /// with [`crate::Core::gathered`] or [`crate::Core::dependency_failed`].
    Gather {
        /// Which call.
        call: CallId,
        /// The caller's own.
        payload: T,
    },
    /// The call has ended without an answer.
    End {
        /// Which call.
        call: CallId,
        /// The caller's own.
        payload: T,
        /// Why.
        end: End,
    },
    /// A call that had ended before is no longer in any worker's hands.
    Forget(T),
    /// Tell a worker that no call will refer to this data any more. Report with
    /// [`crate::Core::blob_dropped`] that it has let go of it.
    Unshare {
        /// Which worker.
        worker: WorkerId,
        /// Which data.
        blob: BlobId,
    },
    /// Nobody needs this data any more.
    Free {
        /// Which data.
        blob: BlobId,
        /// Whether nobody can read it any more either, so that its memory may be written over.
        unread: bool,
    },
    /// If this worker has begun its call with serial number `head`, or in any case if that is none,
    /// take back those that it has not begun below `below`, where that can be done. Report it with
    /// [`crate::Core::taken_back`].
    TakeBack {
        /// Which worker.
        worker: WorkerId,
        /// The call that it runs much longer than was expected.
        head: Option<u64>,
        /// How many calls it had been sent.
        below: u64,
    },
    /// Ask a host for calls that it need not have begun. Report those that it gives back with
    /// [`crate::Core::retracted`].
    Retract {
        /// Which host.
        host: WorkerId,
        /// Which calls.
        calls: Vec<CallId>,
    },
    /// Tell a host that other calls need the result of this one: it may stay there.
    Keep {
        /// Which host.
        host: WorkerId,
        /// Which call.
        call: CallId,
    },
    /// This worker may hold answers back while it runs a call that takes long: take them where they
    /// are, if that can be done.
    Collect(WorkerId),
    /// Tell a worker that nobody waits for this call any more.
    Cancel {
        /// Which worker.
        worker: WorkerId,
        /// Which call.
        call: CallId,
    },
    /// Tell this worker to end when it has done what it was sent; report its loss when it is gone.
    Dismiss(WorkerId),
    /// End this worker at once; report its loss when it is gone.
    Kill(WorkerId),
}

/// Why a call was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its owner has as many calls as it may have.
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
    /// It asks for more cores than any host can have.
    #[error("{0}")]
    TooWide(TooWide),
    /// It asks for more of some resource, or for more time, than any host can have.
    #[error("{0}")]
    Unfit(Unfit),
    /// The call refers to data that was never shared or has been dropped.
    #[error("shared data {} is not there: it was dropped, or belongs to another grid", .0.0)]
    UnknownBlob(BlobId),
    /// The reserved worker that it is for is gone.
    #[error("the worker that held the object was lost: {0}")]
    ReservedLost(Arc<Loss>),
    /// The reserved worker that it is for was given up.
    #[error("the worker that it is for was given up")]
    Released,
}
