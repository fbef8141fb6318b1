//! What all batch systems have in common: a [`System`] says how it is asked.

use std::fmt;
use std::time::Duration;

use super::commands::{Commands, Failure, Submission};
use super::status_query::StatusQuery;
use super::task::{JobRequest, JobState, Task, TaskStatus, VanishedTask};

/// A batch system. Its methods run commands, and wait for them, in the tracker's thread.
pub(crate) trait System: fmt::Debug + Send + 'static {
    /// Submits one request for so many agents, whose tickets are in the folder under the numbers from 0 on.
    /// The job, as the system names it.
    fn submit(
        &mut self,
        submission: &Submission<'_>,
        what: &JobRequest<'_>,
    ) -> Result<String, Failure>;

    /// How these jobs stand. Nothing is said of those that the system does not know any longer.
    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure>;

    /// Asks for several groups at once, if one of them can be asked for all; none: each asks for itself.
    fn status_query(&self) -> Option<&'static StatusQuery> {
        None
    }

    /// Ends jobs, or tasks of them.
    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Failure>;

    /// How long a job may run, where the system does not say how long that still is.
    fn wall_time(&self) -> Option<Duration> {
        None
    }

    /// How a task stands that is not among those seen any longer.
    fn gone(&self, _commands: &Commands, gone: &VanishedTask<'_>) -> JobState {
        let job = &gone.task.job;
        JobState::Ended(format!("the batch system knows nothing of job {job} any longer"))
    }

    /// Whether a job that was taken from its node is to run again. Else it is cancelled, and another one is asked
    /// for.
    fn requeues(&self) -> bool {
        true
    }

    /// How a job was taken from its node that will run again, as what it did.
    fn requeued(&self) -> &'static str {
        "was requeued"
    }

    /// Whether the agents of one request start and end each for itself.
    fn has_tasks(&self) -> bool;

    /// What all its jobs are called; no other client's are.
    fn job_name(&self) -> &str;

    /// Commands for `sh` that end the jobs in `$jobs` and those that are called `$name`, and fail if they
    /// could not be told.
    fn cancelling(&self) -> &'static str;
}
