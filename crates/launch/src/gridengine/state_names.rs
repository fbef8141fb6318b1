//! Output of `qstat`, and Grid Engine's task names.

use crate::batch::Task;

/// A job or array task in the output of `qstat -xml`.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) job: &'a str,
    /// Task number in an array, from 1.
    number: Option<usize>,
    /// State letters: `qw`, `r`, `Eqw`.
    state: &'a str,
    /// The queue and, behind `@`, the host; empty while the job waits.
    queue: &'a str,
    /// Start time; empty while the job waits.
    pub(super) begun: &'a str,
}

/// State of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Held,
    /// It failed to start and waits for an administrator.
    Failed,
    /// It runs on this host.
    Runs(String),
}

/// The rows of `qstat -xml`.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.split("<job_list").skip(1).filter_map(|rest| {
        let row = rest.split("</job_list>").next()?;
        let field = |name: &str| {
            let (_, behind) = row.split_once(&format!("<{name}>"))?;
            behind.split('<').next().map(str::trim)
        };
        Some(Row {
            job: field("JB_job_number")?,
            number: field("tasks").and_then(|tasks| tasks.parse().ok()),
            state: field("state")?,
            queue: field("queue_name").unwrap_or_default(),
            begun: field("JAT_start_time").unwrap_or_default(),
        })
    })
}

impl Row<'_> {
    pub(super) fn task(&self) -> Task {
        let number = self.number.and_then(|number| number.checked_sub(1));
        Task { job: self.job.to_owned(), number }
    }

    pub(super) fn state(&self) -> State {
        let has = |letter: char| self.state.contains(letter);
        if has('E') {
            return State::Failed;
        }
        if has('h') && has('q') {
            return State::Held;
        }
        let host = self.queue.split_once('@').map_or("", |(_, host)| host);
        if host.is_empty() {
            return State::Queued;
        }
        match ['s', 'S', 'T'].into_iter().any(has) {
            true => State::Runs(format!("{host}, suspended")),
            false => State::Runs(host.to_owned()),
        }
    }
}

/// The task's name for Grid Engine's commands.
pub(super) fn name(task: &Task) -> String {
    match task.number {
        None => task.job.clone(),
        Some(number) => format!("{}.{}", task.job, number + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "<?xml version='1.0'?>
<job_info  xmlns:xsd=\"http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd\">
  <queue_info>
    <job_list state=\"running\">
      <JB_job_number>12</JB_job_number>
      <JB_name>gridrpc-lab-1</JB_name>
      <state>r</state>
      <queue_name>all.q@n1.lab</queue_name>
      <slots>1</slots>
      <tasks>2</tasks>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state=\"pending\">
      <JB_job_number>12</JB_job_number>
      <state>qw</state>
      <queue_name></queue_name>
      <slots>1</slots>
      <tasks>3</tasks>
    </job_list>
    <job_list state=\"pending\">
      <JB_job_number>14</JB_job_number>
      <state>Eqw</state>
      <queue_name></queue_name>
      <slots>1</slots>
    </job_list>
  </job_info>
</job_info>";

    #[test]
    fn rows_of_qstat_tell_how_tasks_stand() {
        let rows: Vec<(String, State)> =
            rows(SAID).map(|row| (name(&row.task()), row.state())).collect();
        let expected = [
            ("12.2", State::Runs("n1.lab".into())),
            ("12.3", State::Queued),
            ("14", State::Failed),
        ];
        assert_eq!(rows, expected.map(|(name, state)| (name.to_owned(), state)));
    }

    #[test]
    fn states_are_letters() {
        let state = |state, queue| Row { job: "1", number: None, state, queue, begun: "" }.state();
        assert_eq!(state("hqw", ""), State::Held);
        assert_eq!(state("t", "a@n1"), State::Runs("n1".into()));
        assert_eq!(state("dr", "a@n1"), State::Runs("n1".into()));
        assert_eq!(state("S", "a@n1"), State::Runs("n1, suspended".into()));
        assert_eq!(state("Rq", ""), State::Queued);
    }

    #[test]
    fn the_first_task_of_an_array_is_number_1() {
        assert_eq!(name(&Task { job: "7".into(), number: Some(0) }), "7.1");
        assert_eq!(name(&Task { job: "7".into(), number: None }), "7");
    }
}
