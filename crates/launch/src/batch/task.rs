//! Jobs of batch systems, their tasks and states.

use std::time::Duration;

/// A job to submit.
#[derive(Debug)]
pub(crate) struct JobRequest<'a> {
    pub(crate) agents: usize,
    /// The program that becomes the agent.
    pub(crate) program: &'a str,
    /// The folder for tickets and agents' output.
    pub(crate) folder: &'a str,
}

/// A job, or one task of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) job: String,
    /// The task, from 0; none: the whole job.
    pub(crate) number: Option<usize>,
}

/// A task that the system no longer lists, with the local information about it.
#[derive(Debug)]
pub(crate) struct VanishedTask<'a> {
    pub(crate) task: &'a Task,
    /// Its node; empty if it was never seen running.
    pub(crate) node: &'a str,
    /// The exit status of its agent, if the job script recorded one.
    pub(crate) status: Option<u32>,
    /// Whether its wall time is known to have expired.
    pub(crate) is_over: bool,
}

/// The system's status of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskStatus {
    pub(crate) task: Task,
    pub(crate) job_state: JobState,
    /// Remaining wall time, if known.
    pub(crate) left: Option<Duration>,
    /// Distinguishes the runs of a requeued task, for example by start time; empty if unknown or if the task
    /// does not run.
    pub(crate) run: String,
}

/// State of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It waits: the state and the reason.
    Queued(String),
    /// It runs or is starting, on this node.
    Runs(String),
    /// It ran and has ended, and how.
    Ended(String),
    /// It will never run, and why.
    Refused(String),
}
