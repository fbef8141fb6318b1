//! Why HTCondor refused a request or holds a job, and how to fix it.

use crate::batch::{ErrorHints, Failure, each_line_has};

/// Parts of `condor_submit`'s messages, in lower case, each with a remedy. The first match applies.
const REMEDIES: [(&[&str], &str); 6] = [
    (
        &["requirements", "constraint"],
        "see `constraint` in grid.toml: it is an expression such as \"Arch == \\\"X86_64\\\"\"",
    ),
    (&["request_memory", "request_cpus"], "see `memory`, `workers` and `cores` in grid.toml"),
    (&["accounting"], "see `accounting_group` in grid.toml"),
    (
        &["max_jobs", "would exceed", "limit"],
        "the limit on jobs is reached: ask for fewer `nodes`, or wait until some have ended",
    ),
    (&["parse", "syntax", "invalid", "not a valid"], "see `options` in grid.toml, and `template`"),
    (
        &["failed to commit"],
        "its scheduler could not keep it: the disk may be full on which that has its SPOOL, as its log tells",
    ),
];

const WORDS: ErrorHints = ErrorHints {
    system: "HTCondor",
    silent: &[
        "can't find address",
        "failed to connect",
        "unable to locate",
        "failed to fetch ads",
        "secman:",
    ],
    silence: "see by `condor_status -schedd` whether its scheduler answers",
    remedies: &REMEDIES,
    message_of,
};

/// The failure of a refused request, as users see it.
pub(super) fn refusal(failure: Failure) -> Failure {
    WORDS.explain(failure)
}

/// Whether this output of `condor_rm` says that all jobs have ended.
pub(super) fn is_unknown(words: &str) -> bool {
    each_line_has(words, &["not found", "Couldn't find", "marked for removal", "already"])
}

/// Message for a job that HTCondor holds. `why`: HTCondor's message.
pub(super) fn held(job: &str, why: &str) -> String {
    let why = if why.is_empty() { "it does not say why" } else { why };
    let low = why.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| low.contains(part));
    let remedy = match () {
        () if has(&["no such file", "executable", "cannot access", "failed to open"]) => {
            "the folder that `staging` names, and the one that this program runs in, have to be some that \
             the machines share"
        }
        () if has(&["memory"]) => "more `memory`",
        () => "`gridrpc script` shows what it was given",
    };
    format!("HTCondor holds its job {job}: {why}; {remedy}")
}

/// The output of `condor_submit` on one line.
fn message_of(words: &str) -> String {
    let lines = words.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix("ERROR:").unwrap_or(line).trim().trim_end_matches('.')
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_condor_submit_says_becomes_advice() {
        let words = "ERROR: Parse error in expression: \n\tRequirements = (Arch ==)";
        let text = refusal(Failure::Refused(words.to_owned())).to_string();
        assert!(text.contains("HTCondor has refused the job: Parse error"), "{text}");
        assert!(text.contains("see `constraint`"), "{text}");
        let words = "ERROR: Failed to commit job submission into the queue.\n";
        let text = refusal(Failure::Refused(words.to_owned())).to_string();
        assert!(text.contains("into the queue; its scheduler could not keep it"), "{text}");
        let words = "ERROR: Can't find address of local schedd";
        let failure = refusal(Failure::Refused(words.to_owned()));
        assert!(matches!(failure, Failure::Silent(_)), "{failure}");
        let words = "SECMAN:2007:Read failure during security negotiation.\n\
                     Couldn't find/remove all jobs in cluster 12";
        assert!(!is_unknown(words));
        assert!(matches!(refusal(Failure::Refused(words.to_owned())), Failure::Silent(_)));
    }

    #[test]
    fn what_is_held_is_reported_with_a_remedy() {
        let text = held("12.0", "Failed to execute '/no/gridrpc': No such file or directory");
        assert!(text.starts_with("HTCondor holds its job 12.0: Failed to execute"), "{text}");
        assert!(text.contains("`staging`"), "{text}");
    }
}
