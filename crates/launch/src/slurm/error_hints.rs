//! Why Slurm refused a request, and how to fix it.

use crate::batch::{ErrorHints, Failure};

/// Parts of `sbatch`'s messages, in lower case, each with a remedy. The first match applies.
const REMEDIES: [(&[&str], &str); 15] = [
    (
        &["temporarily unable to accept"],
        "it keeps as many jobs as it may (`MaxJobCount` of `scontrol show config`): wait until some have ended",
    ),
    (
        &["invalid partition"],
        "see by `sinfo` what partitions there are, and name one by `partition`, or none",
    ),
    (
        &["partition not available", "partition is down", "inactive or drain"],
        "see by `sinfo --summarize` which partitions are up, and name one of these by `partition`",
    ),
    (
        &["generic resource", "invalid gres"],
        "see by `sinfo --format='%N %G'` what nodes have, and name that in `options`, as in \
         `options = [\"--gres=gpu:1\"]`",
    ),
    (
        &["error writing script", "no space left"],
        "the disk on which its controller keeps jobs (`StateSaveLocation` of `scontrol show config`) is \
         full, or cannot be written to: tell the administrators of the cluster",
    ),
    (
        &["configuration source", "dns srv"],
        "Slurm's commands find no configuration here: set `SLURM_CONF` to the cluster's slurm.conf, or \
         start this program on a login node of the cluster",
    ),
    (
        &["invalid account", "account/partition"],
        "see by `sacctmgr show associations user=$USER` what accounts there are, and name one by `account`",
    ),
    (
        &["invalid qos"],
        "see by `sacctmgr show qos` what there is, and name one by `options = [\"--qos=NAME\"]`",
    ),
    (
        &["invalid feature", "invalid constraint"],
        "see by `sinfo --format='%N %f'` what nodes have, and name it by `constraint`",
    ),
    (
        &["time limit", "invalid wall time", "time specification"],
        "ask for less by `wall_time`: `sinfo` shows what partitions give",
    ),
    (
        &["memory specification", "memory required"],
        "ask for less by `memory`: `sinfo --format='%N %m'` shows what nodes have",
    ),
    (
        &["node count", "too many nodes", "job violates", "policy limit", "job submit limit"],
        "ask for fewer `nodes`, `workers` or less `wall_time`: `sacctmgr show associations` shows what \
         one may have",
    ),
    (
        &["node configuration is not available", "cpu count per node", "more processors"],
        "no node is as large as that: ask for fewer `workers` or `cores`, or less `memory`",
    ),
    (
        &["invalid job array"],
        "the site does not take arrays as large as that: ask for fewer `nodes`, or write \
         request = \"job\"",
    ),
    (
        &["unrecognized option", "invalid option", "unrecognised option"],
        "see `options` in grid.toml: this Slurm has no such option",
    ),
];

const WORDS: ErrorHints = ErrorHints {
    system: "Slurm",
    silent: &[
        "unable to contact",
        "connection refused",
        "timed out",
        "zero bytes were transmitted",
    ],
    silence: "see by `scontrol ping` whether its controller is up",
    remedies: &REMEDIES,
    message_of,
};

/// The failure of a refused request, as users see it.
pub(super) fn refusal(failure: Failure) -> Failure {
    WORDS.explain(failure)
}

/// Whether this output of `srun` says that it got no nodes or no step.
pub(super) fn is_refusal(words: &str) -> bool {
    let parts =
        ["Unable to allocate", "Unable to create step", "unrecognized option", "Invalid --"];
    parts.iter().any(|part| words.contains(part))
}

/// The output of `sbatch` or `srun` on one line, without the command's name.
fn message_of(words: &str) -> String {
    let lines = words.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("sbatch: ").or(line.strip_prefix("srun: ")).unwrap_or(line);
        line.strip_prefix("error: ").or(line.strip_prefix("fatal: ")).unwrap_or(line)
    });
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("Try \"s")).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &str) -> String {
        refusal(Failure::Refused(words.to_owned())).to_string()
    }

    #[test]
    fn what_sbatch_says_becomes_advice() {
        let text = refused(
            "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: \
             Invalid partition name specified",
        );
        assert!(
            text.contains("refused the job: invalid partition specified: nope; Batch"),
            "{text}"
        );
        assert!(text.contains("`sinfo`") && text.contains("`partition`"), "{text}");
        let text =
            refused("sbatch: unrecognized option '--bogus=9'\nTry \"sbatch --help\" for more");
        assert!(text.contains("'--bogus=9'; see `options`"), "{text}");
        for (words, advice) in [
            ("Required partition not available (inactive or drain)", "`sinfo --summarize`"),
            ("Invalid generic resource (gres) specification", "`options = [\"--gres=gpu:1\"]`"),
            ("I/O error writing script/environment to file", "`StateSaveLocation`"),
            ("Slurm temporarily unable to accept job, sleeping and retrying", "`MaxJobCount`"),
            (
                "resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n\
                 sbatch: error: fetch_config: DNS SRV lookup failed\n\
                 sbatch: fatal: Could not establish a configuration source",
                "set `SLURM_CONF`",
            ),
        ] {
            let text = refused(&format!("sbatch: error: {words}"));
            assert!(text.contains(advice), "{text}");
        }
        let text = refused("sbatch: error: Something new");
        assert!(text.contains("Something new; `gridrpc script`"), "{text}");
    }

    #[test]
    fn a_controller_that_is_down_is_not_a_refusal() {
        let words = "sbatch: error: Batch job submission failed: Unable to contact slurm controller \
                     (connect failure)";
        let failure = refusal(Failure::Refused(words.to_owned()));
        assert!(matches!(failure, Failure::Silent(_)));
        assert!(failure.to_string().contains("`scontrol ping`"), "{failure}");
        let words =
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation";
        assert!(matches!(refusal(Failure::Refused(words.to_owned())), Failure::Silent(_)));
    }
}
