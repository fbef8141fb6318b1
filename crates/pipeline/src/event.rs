//! What happens to a task or worker in a run.

/// What happens to a task or worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RunEvent {
    Wanted,
    Made,
    CameUp,
    Adopted,
    WorkerFree,
    Shared,
    Copies,
    LeavesClient,
    ReachesManager,
    SharedReachesHost,
    ReachesHost,
    HandedOn,
    ReachesWorker,
    Taken,
    Slept,
    Computed,
    LeavesWorker,
    Noticed,
    ReachesClient,
    Retrieved,
    Written,
    ReadBack,
}
