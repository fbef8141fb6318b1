//! Why Grid Engine refused a request or failed to start a job, and how to fix it.

use crate::batch::{ErrorHints, Failure, each_line_has};

/// Parts of `qsub`'s messages, in lower case, each with a remedy. The first match applies.
const REMEDIES: [(&[&str], &str); 12] = [
    (
        &["no space left"],
        "the disk on which its master keeps jobs is full: the site's administrators have to make room",
    ),
    (
        &["unknown queue"],
        "see by `qconf -sql` what queues there are, and name one by `queue`, or none",
    ),
    (
        &["parallel environment"],
        "see by `qconf -spl` what there is, and name it by `parallel_environment`",
    ),
    (&["project"], "see by `qconf -sprjl` what projects there are, and name one by `project`"),
    (
        &["unknown resource", "unknown attribute"],
        "see by `qconf -sc` what resources hosts have, and name them by `constraint`; where there is no \
         `exclusive` or `mem_free`, leave out `exclusive` or `memory`",
    ),
    (
        &["no suitable queues"],
        "no host and no queue gives that: ask for fewer `workers` or `cores`, less `memory` or `wall_time`, \
         or another `queue` or `parallel_environment`; `qsub -w v` of what `gridrpc script` prints says \
         which; skip = [\"-w\"] has it wait nevertheless",
    ),
    (
        &["tasks"],
        "the site does not take arrays as large as that: ask for fewer `nodes`, or write request = \"job\"",
    ),
    (
        &["jobs are allowed", "allowed per user", "allowed per cluster"],
        "the limit on jobs is reached: wait until some have ended, or write request = \"job\"",
    ),
    (&["no submit host"], "start this program on a host that `qconf -ss` shows"),
    (
        &["unknown option", "invalid option"],
        "see `options` in grid.toml: this Grid Engine has no such option",
    ),
    (
        &["wrong value", "not a", "must be in range", "parsing"],
        "see `options`, `constraint` and `memory` in grid.toml",
    ),
    (&["denied", "not allowed", "access"], "ask the site's administrators what this user may have"),
];

const WORDS: ErrorHints = ErrorHints {
    system: "Grid Engine",
    silent: &["unable to send message to qmaster", "unable to contact qmaster", "commlib error"],
    silence: "see by `qconf -sh` whether its master answers, and that SGE_ROOT and SGE_CELL are set",
    remedies: &REMEDIES,
    message_of,
};

/// The failure of a refused request, as users see it.
pub(super) fn refusal(failure: Failure) -> Failure {
    WORDS.explain(failure)
}

/// Whether this output of `qdel` says that all jobs have ended.
pub(super) fn is_unknown(words: &str) -> bool {
    let parts = ["does not exist", "has registered", "has deleted", "is already in deletion"];
    each_line_has(words, &parts)
}

/// Message for a job that Grid Engine failed to start. `why`: Grid Engine's message.
pub(super) fn not_started(job: &str, why: &str) -> String {
    let why = if why.is_empty() { "it does not say why" } else { why };
    let is_of_files =
        ["can't open", "can't chdir", "can't stat"].iter().any(|part| why.contains(part));
    let remedy = match is_of_files {
        true => {
            "the folder that `staging` names, and the one that this program runs in, have to be some that \
             the nodes share"
        }
        false => "`gridrpc script` shows what it was given",
    };
    format!("Grid Engine could not start its job {job}: {why}; {remedy}")
}

/// The output of `qsub` on one line, without the command's name.
fn message_of(words: &str) -> String {
    let lines = words.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("Unable to run job: ").unwrap_or(line);
        let line = line.strip_prefix("qsub: ").unwrap_or(line);
        line.strip_prefix("error: ").unwrap_or(line).trim_end_matches('.')
    });
    let lines: Vec<&str> = lines.filter(|line| !matches!(*line, "" | "Exiting")).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &str) -> String {
        refusal(Failure::Refused(words.to_owned())).to_string()
    }

    #[test]
    fn what_qsub_says_becomes_advice() {
        let text = refused(
            "Unable to run job: Job was rejected because job requests unknown queue \"nope\".\nExiting.",
        );
        assert!(text.contains("refused the job: Job was rejected because"), "{text}");
        assert!(text.contains("unknown queue \"nope\"; see by `qconf -sql`"), "{text}");
        let text = refused("Unable to run job: error: no suitable queues.\nExiting.");
        assert!(text.contains("refused the job: no suitable queues; no host"), "{text}");
        let full = "Unable to run job: job 3 was rejected because it can't be written: No space left on device.";
        assert!(refused(full).contains("No space left on device; the disk on which"));
        assert!(refused("Something new").contains("Something new; `gridrpc script`"));
    }

    #[test]
    fn a_master_that_is_down_is_not_a_refusal() {
        let words = "error: commlib error: got select error (Connection refused)\n\
                     Unable to run job: unable to send message to qmaster using port 6444 on host \"a\"";
        let failure = refusal(Failure::Refused(words.to_owned()));
        assert!(matches!(failure, Failure::Silent(_)));
        assert!(failure.to_string().contains("`qconf -sh`"), "{failure}");
    }

    #[test]
    fn what_has_ended_needs_no_end() {
        assert!(is_unknown("denied: job \"7\" does not exist\n"));
        assert!(!is_unknown("denied: job \"7\" does not exist\ndenied: \"ann\" must be manager"));
    }

    #[test]
    fn jobs_that_could_not_start_are_reported_with_a_remedy() {
        let text = not_started("7.2", "can't open output file \"/a\"");
        assert!(text.contains("job 7.2: can't open output file") && text.contains("`staging`"));
        assert!(not_started("7", "").contains("does not say why"));
    }
}
