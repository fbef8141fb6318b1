//! Output of HTCondor's commands, and its job names.

use crate::batch::{JobState, Task, ended_with};

/// A line of `condor_q`.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) cluster: &'a str,
    number: usize,
    status: &'a str,
    host: &'a str,
    /// Number of starts so far.
    pub(super) starts: &'a str,
    rejected: &'a str,
    held: &'a str,
}

/// State of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    /// It runs on this machine.
    Runs(String),
    /// It is held, with the reason.
    Held(String),
    Ended,
}

/// The value printed for an attribute that a job does not have.
const NONE: &str = "undefined";

fn columns(line: &str) -> impl Iterator<Item = &str> {
    let known = |text: &'_ str| text != NONE;
    line.split('\t').map(str::trim).map(move |text| if known(text) { text } else { "" })
}

/// The lines of `condor_q -autoformat:t`.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().filter_map(|line| {
        let mut columns = columns(line);
        let mut next = || columns.next();
        let (cluster, number) = (next()?, next()?.parse().ok()?);
        let (status, host) = (next()?, next()?);
        let (starts, rejected, held) = (next()?, next()?, next()?);
        Some(Row { cluster, number, status, host, starts, rejected, held })
    })
}

impl Row<'_> {
    pub(super) fn task(&self) -> Task {
        Task { job: self.cluster.to_owned(), number: Some(self.number) }
    }

    /// Its cluster, and why it waits; none if it does not wait or the reason is unknown.
    pub(super) fn reason(&self) -> Option<(&str, String)> {
        let waits = self.status == "1" && !self.rejected.is_empty();
        waits.then(|| (self.cluster, reason(self.rejected)))
    }

    pub(super) fn state(&self) -> State {
        match self.status {
            "1" => State::Queued,
            "2" | "6" => State::Runs(machine(self.host)),
            "7" => State::Runs(format!("{}, suspended", machine(self.host))),
            "5" => State::Held(self.held.to_owned()),
            _ => State::Ended,
        }
    }
}

/// The machine of a slot: `slot1_3@n1`.
fn machine(slot: &str) -> String {
    slot.rsplit_once('@').map_or(slot, |(_, machine)| machine).to_owned()
}

/// Why a job waits, followed by HTCondor's own message.
fn reason(rejected: &str) -> String {
    let words = match rejected {
        text if text.contains("no match found") => {
            "no machine that is free has what it wants: see `constraint`, `memory`, `cores`"
        }
        text if text.contains("priority") => "others go before it",
        text if text.contains("limit") => "a limit is reached",
        text if text.contains("PREEMPTION_REQUIREMENTS") => "nobody has to make room for it",
        text => return format!("HTCondor says {text}"),
    };
    format!("{words}: {rejected}")
}

/// The job's name for HTCondor's commands.
pub(super) fn name(task: &Task) -> String {
    match task.number {
        None => task.job.clone(),
        Some(number) => format!("{}.{number}", task.job),
    }
}

/// A line of `condor_history`: a job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct History {
    status: String,
    exit: Option<u32>,
    signal: Option<u32>,
    machine: String,
    removed: String,
}

/// Parses the output of `condor_history` for one job.
pub(super) fn history(text: &str) -> Option<History> {
    let line = text.lines().next()?;
    let mut columns = columns(line).skip(1);
    let mut next = || columns.next();
    Some(History {
        status: next()?.to_owned(),
        exit: next()?.parse().ok(),
        signal: next()?.parse().ok(),
        machine: machine(next()?),
        removed: next()?.to_owned(),
    })
}

impl History {
    /// The final state of the job with this name. `is_over`: whether its wall time had expired.
    pub(super) fn job_state(&self, name: &str, is_over: bool) -> JobState {
        let on = match &*self.machine {
            "" => String::new(),
            machine => format!(" on {machine}"),
        };
        let how = match (&*self.status, self.exit, self.signal) {
            ("3", _, _) => removed(&self.removed, is_over),
            (_, _, Some(signal)) => ended_with(128 + signal),
            (_, Some(status), None) => ended_with(status),
            _ => "has ended".to_owned(),
        };
        let text = format!("its job {name}{on} {how}");
        if self.machine.is_empty() { JobState::Refused(text) } else { JobState::Ended(text) }
    }
}

/// How a job was removed. `why`: HTCondor's message.
fn removed(why: &str, is_over: bool) -> String {
    match why {
        why if is_over && why.contains("PeriodicRemove") => {
            "has reached its wall time: see `wall_time`".to_owned()
        }
        "" => {
            "was removed: by `condor_rm`, or by an administrator or a policy of the site".to_owned()
        }
        why if why.contains("PeriodicRemove") => {
            "was removed: it has reached its wall time, or had to leave its machine".to_owned()
        }
        why => format!("was removed: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_condor_q_tell_how_jobs_stand() {
        let text = "12\t0\t2\tslot1_1@n1\t1\tundefined\tundefined\n\
                    12\t1\t1\tundefined\t0\tno match found \tundefined\n\
                    12\t2\t5\tundefined\t1\tundefined\tError from slot1: no such file\n\
                    12\t3\t4\tundefined\t1\tundefined\tundefined\nodd\n";
        let states: Vec<(String, State)> =
            rows(text).map(|row| (name(&row.task()), row.state())).collect();
        assert_eq!(states[0], ("12.0".into(), State::Runs("n1".into())));
        assert_eq!(states[1].1, State::Queued);
        let all: Vec<Row<'_>> = rows(text).collect();
        let reasons: Vec<(&str, String)> = all.iter().filter_map(Row::reason).collect();
        let [("12", why)] = &reasons[..] else { panic!("{reasons:?}") };
        assert!(why.starts_with("no machine") && why.ends_with(": no match found"), "{why}");
        assert_eq!(states[2].1, State::Held("Error from slot1: no such file".into()));
        assert_eq!(states[3].1, State::Ended);
        assert_eq!(states.len(), 4);
    }

    #[test]
    fn how_a_job_has_ended_is_reported_with_its_machine() {
        let describe = |text| match history(text).unwrap().job_state("12.0", false) {
            JobState::Ended(how) => how,
            other => panic!("{other:?}"),
        };
        let how = describe("0\t4\t3\tundefined\tslot1_1@n1\tundefined");
        assert_eq!(how, "its job 12.0 on n1 ended with status 3");
        let how = describe("0\t4\tundefined\t9\tslot1_1@n1\tundefined");
        assert_eq!(how, "its job 12.0 on n1 was ended by signal 9");
        let how = describe("0\t3\tundefined\tundefined\tslot1_1@n1\tvia condor_rm (by user ann)");
        assert_eq!(how, "its job 12.0 on n1 was removed: via condor_rm (by user ann)");
        let over =
            history("0\t3\tundefined\tundefined\tn1\tThe job attribute PeriodicRemove").unwrap();
        let describe = over.job_state("12.0", true);
        assert!(
            matches!(describe, JobState::Ended(how) if how.contains("has reached its wall time"))
        );
        let job_state = history("0\t3\tundefined\tundefined\tundefined\tundefined").unwrap();
        assert!(
            matches!(job_state.job_state("12.0", false), JobState::Refused(why) if why.contains("`condor_rm`"))
        );
        assert_eq!(history(""), None);
    }
}
