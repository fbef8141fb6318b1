//! The interface to a batch system.

use std::fmt;
use std::time::Duration;

use super::commands::{Commands, Failure, Submission};
use super::status_query::StatusQuery;
use super::task::{JobRequest, JobState, Task, TaskStatus, VanishedTask};

/// A batch system. The tracker's thread calls these methods, which run commands and wait for them.
pub(crate) trait System: fmt::Debug + Send + 'static {
    /// Submits one request for this many agents, whose tickets are in the folder, numbered from 0. Returns
    /// the job's identifier.
    fn submit(
        &mut self,
        submission: &Submission<'_>,
        what: &JobRequest<'_>,
    ) -> Result<String, Failure>;

    /// The state of these jobs. Omits jobs that the system no longer knows.
    fn look(&self, commands: &Commands, jobs: &[&str]) -> Result<Vec<TaskStatus>, Failure>;

    /// The query that several groups share; none if each group queries for itself.
    fn status_query(&self) -> Option<&'static StatusQuery> {
        None
    }

    /// Cancels jobs, or tasks of them.
    fn cancel(&self, commands: &Commands, tasks: &[Task]) -> Result<(), Failure>;

    /// The wall time of a job, if the system does not report the remaining time.
    fn wall_time(&self) -> Option<Duration> {
        None
    }

    /// The state of a task that the system no longer lists.
    fn gone(&self, _commands: &Commands, gone: &VanishedTask<'_>) -> JobState {
        let job = &gone.task.job;
        JobState::Ended(format!("the batch system knows nothing of job {job} any longer"))
    }

    /// Whether a job that lost its node runs again. Otherwise it is cancelled and replaced.
    fn requeues(&self) -> bool {
        true
    }

    /// How a job that will run again lost its node, as the predicate of a sentence.
    fn requeued(&self) -> &'static str {
        "was requeued"
    }

    /// Whether the agents of one request start and end independently.
    fn has_tasks(&self) -> bool;

    /// The name of all its jobs, unique to this client.
    fn job_name(&self) -> &str;

    /// The words before each of its commands.
    fn prefix(&self) -> &[String] {
        &[]
    }

    /// Commands for `sh` that cancel the jobs in `$jobs` and all jobs named `$name`, behind the prefix in
    /// `"$@"`. They fail if the batch system does not answer.
    fn cancelling(&self) -> &'static str;
}
