//! Reasons for jobs that wait or failed to start, from `qstat -j`.

use std::collections::HashMap;

/// Parts of a "scheduling info" line and their meaning. The first one found in any line applies: a line about
/// one queue says less than one about the job.
const REASONS: [(&str, &str); 16] = [
    ("user limitations", "this user's limit on running jobs is reached"),
    ("max_aj_instances", "its array's limit on running tasks is reached"),
    ("exceeds limit", "a resource quota is reached, which `qquota` shows"),
    ("does not exist", "something that it needs is not there"),
    ("only offers", "its parallel environment has fewer free slots than it needs"),
    ("because it is full", "waiting for a free slot"),
    ("overload or full", "waiting for a free slot"),
    ("offers only", "no host has what it wants now: see `constraint`, `memory`, `exclusive`"),
    ("overloaded", "hosts have too much to do"),
    ("temporarily not available", "a host of its queue does not answer"),
    ("in error state", "its queue is in an error state: `qmod -cq` clears it"),
    ("suspended", "its queue is suspended"),
    ("calendar", "its queue is closed at this time"),
    ("permission", "its queue is not for this user"),
    ("disabled", "its queue is disabled"),
    ("dropped because", "its queue takes no jobs now"),
];
/// Part of the lines about queues that the job did not request.
const OTHER_QUEUES: &str = "hard queue list";

/// Why each waiting job waits, followed by Grid Engine's own message. Omits jobs without a reason.
pub(super) fn reasons(output: &str) -> HashMap<&str, String> {
    let mut all: HashMap<&str, Vec<&str>> = HashMap::new();
    let (mut job, mut is_reason) = ("", false);
    for line in output.lines() {
        let text = match line.split_once(':') {
            Some(("job_number", number)) => {
                (job, is_reason) = (number.trim(), false);
                continue;
            }
            Some(("scheduling info", first)) => {
                is_reason = true;
                first
            }
            // Continuation lines are indented.
            _ if is_reason && line.starts_with(' ') => line,
            _ => {
                is_reason = false;
                continue;
            }
        };
        all.entry(job).or_default().push(text.trim());
    }
    let output = all.into_iter().filter_map(|(job, lines)| Some((job, reason(&lines)?)));
    output.collect()
}

fn reason(lines: &[&str]) -> Option<String> {
    let about_it: Vec<&&str> = lines.iter().filter(|line| !line.contains(OTHER_QUEUES)).collect();
    let known = REASONS.iter().find_map(|(part, words)| {
        about_it.iter().find(|line| line.contains(part)).map(|line| format!("{words}: {line}"))
    });
    known.or_else(|| {
        // A site may have this turned off.
        let first =
            about_it.iter().find(|line| !line.is_empty() && !line.contains("turned off"))?;
        Some(format!("Grid Engine says {first}"))
    })
}

/// Why tasks failed to start, by job and task number.
pub(super) fn errors(output: &str) -> HashMap<(&str, usize), &str> {
    let mut job = "";
    let mut errors = HashMap::new();
    for line in output.lines() {
        if let Some(number) = line.strip_prefix("job_number:") {
            job = number.trim();
        }
        let error = line.strip_prefix("error reason").and_then(|rest| rest.split_once(':'));
        if let Some((Ok(number), why)) = error.map(|(number, why)| (number.trim().parse(), why)) {
            errors.insert((job, number), why.trim());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
==============================================================
job_number:                 7
hard_queue_list:            closed.q
error reason    2:          11/25/2026 17:40:01 [0:12]: can't open output file \"/a/job.out\": no
scheduling info:            queue instance \"closed.q@n1\" dropped because it is disabled
                            cannot run in queue \"all.q\" because it is not contained in its hard queue list (-q)
==============================================================
job_number:                 8
scheduling info:            queue instance \"closed.q@n1\" dropped because it is disabled
                            queue instance \"all.q@n1\" dropped because it is full
==============================================================
job_number:                 9
scheduling info:            (Collecting of scheduler job information is turned off)
";

    #[test]
    fn reasons_are_reported_in_words_and_in_grid_engines_own() {
        let reasons = reasons(TOLD);
        assert_eq!(
            reasons["7"],
            "its queue is disabled: queue instance \"closed.q@n1\" dropped because it is disabled"
        );
        assert!(reasons["8"].starts_with("waiting for a free slot: queue instance \"all.q@n1\""));
        assert_eq!(reasons.get("9"), None);
    }

    #[test]
    fn errors_are_those_of_tasks() {
        let errors = errors(TOLD);
        assert!(errors[&("7", 2)].ends_with("can't open output file \"/a/job.out\": no"));
        assert_eq!(errors.len(), 1);
    }
}
