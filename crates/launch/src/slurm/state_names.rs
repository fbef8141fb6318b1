//! Output of Slurm's commands, and its names for jobs and times.

use std::time::Duration;

use super::state_reasons::{end, reason};
use crate::batch::{JobState, Task};

/// A line of `squeue`.
#[derive(Debug)]
pub(super) struct Row<'a> {
    job: &'a str,
    number: Option<usize>,
    state: &'a str,
    reason: &'a str,
    nodes: &'a str,
    left: &'a str,
}

/// The lines of `squeue`.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().filter_map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next();
        let (job, number) = (next()?, next()?);
        let (state, reason) = (next()?, next()?);
        // Only array jobs have a task number.
        let number = number.parse().ok();
        let (nodes, left) = (next().unwrap_or_default(), next().unwrap_or_default());
        Some(Row { job, number, state, reason, nodes, left })
    })
}

impl Row<'_> {
    pub(super) fn task(&self) -> Task {
        Task { job: self.job.to_owned(), number: self.number }
    }

    /// Remaining time, written as `D-HH:MM:SS` without leading zero parts; none: unlimited.
    pub(super) fn left(&self) -> Option<Duration> {
        let (days, clock) = self.left.split_once('-').unwrap_or(("0", self.left));
        let parts = clock.split(':').map(|part| part.parse::<u64>().ok());
        let parts: Vec<u64> = parts.collect::<Option<_>>()?;
        let seconds = match parts[..] {
            [hours, minutes, seconds] => (hours * 60 + minutes) * 60 + seconds,
            [minutes, seconds] => minutes * 60 + seconds,
            _ => return None,
        };
        Some(Duration::from_secs(days.parse::<u64>().ok()? * 86_400 + seconds))
    }

    /// Its state; none if it has ended and the result has to be queried.
    pub(super) fn job_state(&self) -> Option<JobState> {
        let nodes = || self.nodes.to_owned();
        match self.state {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD" => Some(JobState::Queued(reason(self.reason))),
            "CONFIGURING" => Some(JobState::Queued(format!("{} is being made ready", self.nodes))),
            "SUSPENDED" | "STOPPED" => Some(JobState::Runs(format!("{}, suspended", self.nodes))),
            "RUNNING" | "COMPLETING" | "RESIZING" | "SIGNALING" | "STAGE_OUT" => {
                Some(JobState::Runs(nodes()))
            }
            _ => None,
        }
    }
}

/// The final state of a job. `details`: the output of `scontrol show job`.
pub(super) fn ended(row: &Row<'_>, details: &str) -> JobState {
    let field = |name: &str| {
        let mut words = details.split_ascii_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
    };
    let name = name(&row.task());
    let state = match field("JobState") {
        "" | "COMPLETING" => row.state,
        state => state,
    };
    let why = match field("Reason") {
        "" | "None" => row.reason,
        why => why,
    };
    let has_run = !matches!(field("NodeList"), "" | "(null)") || !row.nodes.is_empty();
    let how = end(state, why, field("ExitCode"), field("TimeLimit"));
    let on = match row.nodes {
        "" => String::new(),
        nodes => format!(" on {nodes}"),
    };
    let text = format!("its job {name}{on} {how}");
    if has_run { JobState::Ended(text) } else { JobState::Refused(text) }
}

/// The task's name for Slurm's commands.
pub(super) fn name(task: &Task) -> String {
    match task.number {
        None => task.job.clone(),
        Some(number) => format!("{}_{number}", task.job),
    }
}

/// A time in Slurm's format.
pub(super) fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days == 0 { clock } else { format!("{days}-{clock}") }
}

/// Parses `srun`'s message about its own job: the job, and whether it waits.
pub(super) fn allocating(line: &str) -> Option<(&str, bool)> {
    let (job, rest) = line.strip_prefix("srun: job ")?.split_once(' ')?;
    let waits = rest.starts_with("queued");
    (waits || rest.starts_with("has been allocated")).then_some((job, waits))
}

/// Parses a line of `srun --label`: the task, and its output.
pub(super) fn labelled(line: &str) -> Option<(usize, &str)> {
    let (label, rest) = line.trim_start().split_once(": ")?;
    Some((label.parse().ok()?, rest))
}

/// Parses `srun`'s message about tasks that have ended, and how: `srun: error: n2: tasks 1,3-4: Killed`.
pub(super) fn exited(line: &str) -> Option<(Vec<usize>, String)> {
    let rest = line.strip_prefix("srun: error: ")?;
    let (_, rest) = rest.split_once(": task")?;
    let (numbers, how) = rest.trim_start_matches('s').split_once(": ")?;
    let mut tasks = Vec::new();
    for part in numbers.trim().trim_matches(['[', ']']).split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // An unrelated line could contain any number.
        tasks.extend(first..=last.min(first.saturating_add(100_000)));
    }
    let status = how.strip_prefix("Exited with exit code ");
    let text = match status {
        Some(status) => end("FAILED", "None", &format!("{status}:0"), ""),
        None => format!("has ended: {how}"),
    };
    Some((tasks, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job_state(line: &str) -> Option<JobState> {
        rows(line).next().unwrap().job_state()
    }

    #[test]
    fn lines_of_squeue_tell_how_tasks_stand() {
        let text =
            "5|3|PENDING|Resources|\n5|1|RUNNING|None|n1\n\n8|N/A|FAILED|NonZeroExitCode|n2\n";
        let names: Vec<String> = rows(text).map(|row| name(&row.task())).collect();
        assert_eq!(names, ["5_3", "5_1", "8"]);
        let queued = JobState::Queued("waiting for resources: Resources".into());
        assert_eq!(job_state("5|3|PENDING|Resources|"), Some(queued));
        assert_eq!(job_state("5|3|PENDING|None|"), Some(JobState::Queued(String::new())));
        assert_eq!(job_state("5|1|RUNNING|None|n1"), Some(JobState::Runs("n1".into())));
        assert_eq!(job_state("8|N/A|FAILED|NonZeroExitCode|n2"), None);
    }

    #[test]
    fn how_long_a_job_may_still_run_is_read_as_squeue_writes_it() {
        let left = |text: &str| {
            let line = format!("5|3|RUNNING|None|n1|{text}");
            let left = rows(&line).next().unwrap().left();
            left.map(|left| left.as_secs())
        };
        assert_eq!(left("0:09"), Some(9));
        assert_eq!(left("59:59"), Some(3599));
        assert_eq!(left("1:00:01"), Some(3601));
        assert_eq!(left("2-00:00:01"), Some(172_801));
        for unknown in ["UNLIMITED", "NOT_SET", "INVALID", "", "-1:00"] {
            assert_eq!(left(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn how_a_job_has_ended_is_reported_with_its_node() {
        let of = |line, details| match ended(&rows(line).next().unwrap(), details) {
            JobState::Ended(how) => how,
            other => panic!("{other:?}"),
        };
        let details = "JobId=9 JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=n2";
        let how = of("8|2|FAILED|NonZeroExitCode|n2", details);
        assert_eq!(how, "its job 8_2 on n2 ended with status 3");
        let how = of("8|N/A|NODE_FAIL|None|n2", "");
        assert!(how.starts_with("its job 8 on n2 ended since its node failed"), "{how}");
        let details =
            "JobState=TIMEOUT Reason=TimeLimit TimeLimit=00:01:00 ExitCode=0:15 NodeList=n2";
        let how = of("8|N/A|TIMEOUT|TimeLimit|n2", details);
        assert!(how.contains("its wall time, 00:01:00"), "{how}");
    }

    #[test]
    fn one_that_was_cancelled_in_the_queue_has_not_run() {
        let row = "8|1|CANCELLED|None|";
        let details = "JobState=CANCELLED Reason=None ExitCode=0:0 NodeList=(null)";
        let job_state = ended(&rows(row).next().unwrap(), details);
        let JobState::Refused(why) = job_state else { panic!("{job_state:?}") };
        assert!(why.starts_with("its job 8_1 was cancelled"), "{why}");
    }

    #[test]
    fn lines_of_srun_tell_which_task_has_ended() {
        assert_eq!(labelled("12: gridrpc: no way"), Some((12, "gridrpc: no way")));
        assert_eq!(labelled(" 1: x"), Some((1, "x")));
        assert_eq!(labelled("srun: Job step creation"), None);
        let waits = "srun: job 12 queued and waiting for resources";
        assert_eq!(allocating(waits), Some(("12", true)));
        assert_eq!(allocating("srun: job 12 has been allocated resources"), Some(("12", false)));
        assert_eq!(allocating("srun: error: no"), None);
        let (tasks, how) = exited("srun: error: n2: task 1: Exited with exit code 127").unwrap();
        assert_eq!(tasks, [1]);
        assert!(how.starts_with("ended with status 127: the program"), "{how}");
        let (tasks, how) = exited("srun: error: n[2-4]: tasks 1,3-4: Killed").unwrap();
        assert_eq!((tasks, &*how), (vec![1, 3, 4], "has ended: Killed"));
        assert_eq!(exited("srun: error: Unable to create step"), None);
    }

    #[test]
    fn times_are_written_as_slurm_reads_them() {
        assert_eq!(time(59), "00:00:59");
        assert_eq!(time(5405), "01:30:05");
        assert_eq!(time(172_801), "2-00:00:01");
    }
}
