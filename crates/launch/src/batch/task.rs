//! Jobs of batch systems, their tasks and states.

use std::time::Duration;

/// What is to be submitted.
#[derive(Debug)]
pub(crate) struct JobRequest<'a> {
    pub(crate) agents: usize,
    /// The program that becomes the agent.
    pub(crate) program: &'a str,
    /// Where tickets are, and what agents write goes.
    pub(crate) folder: &'a str,
}

/// A job, or one task of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) job: String,
    /// Which of its tasks, from 0; none: all of it.
    pub(crate) number: Option<usize>,
}

/// A task that the system knows nothing of any longer, and what is known of it here.
#[derive(Debug)]
pub(crate) struct VanishedTask<'a> {
    pub(crate) task: &'a Task,
    /// Where it ran; empty if it was never seen to run.
    pub(crate) node: &'a str,
    /// With what status its agent has ended, if the script of its job has written that down.
    pub(crate) status: Option<u32>,
    /// Whether it had no time left, as far as that is known.
    pub(crate) is_over: bool,
}

/// What the system says of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskStatus {
    pub(crate) task: Task,
    pub(crate) job_state: JobState,
    /// How long it may still run, if that is known.
    pub(crate) left: Option<Duration>,
    /// What the runs of a task that was requeued differ in, such as when each has begun; empty if that is not
    /// known, or it does not run.
    pub(crate) run: String,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It waits: as what, and why.
    Queued(String),
    /// It runs, or begins to: where.
    Runs(String),
    /// It has run, and has ended: how.
    Ended(String),
    /// It will never run: why.
    Refused(String),
}
