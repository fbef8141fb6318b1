//! Slurm's reasons for queued jobs, and its states of ended jobs, in words.
//!
//! Reason codes are numerous and composed of parts, such as `QOSMaxCpuPerUserLimit`: who set the limit, what
//! it limits, and whose jobs count.

use crate::batch::ended_with;

/// Reasons other than limits, and their meaning.
const REASONS: [(&str, &str); 30] = [
    ("Resources", "waiting for resources"),
    ("Priority", "jobs of higher priority are before it"),
    ("Dependency", "waiting for another job"),
    ("BeginTime", "its time to begin has not come"),
    ("PartitionDown", "its partition is down"),
    ("PartitionInactive", "its partition takes no jobs"),
    ("PartitionConfig", "it is not within the limits of its partition"),
    ("PartitionNodeLimit", "it wants more nodes than its partition gives a job, or has up"),
    ("PartitionTimeLimit", "it wants more time than its partition gives a job: see `wall_time`"),
    ("ReqNodeNotAvail", "nodes that it needs are down, drained or reserved"),
    // The entries that follow are already words.
    ("Nodes", "nodes that it needs are not available"),
    ("NodeDown", "a node that it needs is down"),
    ("BadConstraints", "no node has what it wants: see `constraint`, `memory`, `cores`"),
    ("FrontEndDown", "no node can start it"),
    ("JobHeldUser", "it is held: `scontrol release` lets it go"),
    ("JobHeldAdmin", "an administrator holds it"),
    ("JobArrayTaskLimit", "its array's limit on running tasks is reached"),
    ("Licenses", "waiting for a licence"),
    ("Reservation", "waiting for its reservation"),
    ("InvalidAccount", "its account is not known: see `account`"),
    ("InvalidQOS", "its quality of service is not known: see `options`"),
    ("AccountNotAllowed", "its account may not use this partition"),
    ("QOSNotAllowed", "its quality of service may not be used here"),
    ("Cleaning", "it ran before, and is being cleared up after"),
    ("Prolog", "its node is being made ready"),
    ("Reboot", "its nodes are being started"),
    ("SchedDefer", "the scheduler has put it off"),
    ("MaxMemPerLimit", "it wants more memory than it may have: see `memory`"),
    ("MaxRequeue", "it was requeued too often"),
    ("JobLaunchFailure", "its node could not start it"),
];
/// Who set a limit.
const OWNERS: [(&str, &str); 3] =
    [("QOS", "its quality of service"), ("Assoc", "its account"), ("Partition", "its partition")];
/// What a limit restricts; longer names first.
const AMOUNTS: [(&str, &str); 10] = [
    ("SubmitJob", "waiting and running jobs"),
    ("Mem", "memory"),
    ("Cpu", "processors"),
    ("Node", "nodes"),
    ("GRES", "devices"),
    ("Gres", "devices"),
    ("Billing", "billed resources"),
    ("WallDuration", "wall time"),
    ("Wall", "wall time"),
    ("Job", "jobs"),
];

/// Why a job waits, followed by Slurm's own code; empty if Slurm has not considered the job yet.
pub(super) fn reason(code: &str) -> String {
    // Some codes carry details: `ReqNodeNotAvail, UnavailableNodes:n[1-4]`.
    let bare = code.split([',', ' ', '(']).next().unwrap_or_default();
    if matches!(bare, "" | "None") {
        return String::new();
    }
    let known = REASONS.iter().find(|(name, _)| *name == bare).map(|(_, words)| *words);
    match known.map(str::to_owned).or_else(|| limit(bare)) {
        Some(words) => format!("{words}: {code}"),
        None => format!("Slurm says {code}"),
    }
}

/// Describes a limit that has been reached.
fn limit(code: &str) -> Option<String> {
    let (rest, owner) =
        OWNERS.iter().find_map(|(name, words)| Some((code.strip_prefix(name)?, *words)))?;
    let (_, amount) = AMOUNTS.iter().find(|(name, _)| rest.contains(name))?;
    let whose = match rest {
        rest if rest.contains("PerUser") || rest.contains("PU") => " of a user",
        rest if rest.contains("PerAccount") || rest.contains("PA") => " of an account",
        rest if rest.contains("PerJob") || rest.contains("PJ") => " of a job",
        rest if rest.contains("PerNode") => " of a node",
        _ => "",
    };
    Some(format!("a limit of {owner} is reached, for the {amount}{whose}"))
}

/// How a job ended, as the predicate of "its job 8".
pub(super) fn end(state: &str, reason: &str, exit: &str, time_limit: &str) -> String {
    let (status, signal) = exit.split_once(':').unwrap_or((exit, "0"));
    match state {
        "CANCELLED" => {
            "was cancelled: by `scancel`, or by an administrator or a policy of the site".to_owned()
        }
        "TIMEOUT" if time_limit.is_empty() => {
            "has reached its wall time: see `wall_time`".to_owned()
        }
        "TIMEOUT" => format!("has reached its wall time, {time_limit}: see `wall_time`"),
        "NODE_FAIL" => "ended since its node failed, or was set down".to_owned(),
        "PREEMPTED" => "had to make room for a job that goes before it (PREEMPTED)".to_owned(),
        "OUT_OF_MEMORY" => {
            "needed more memory than it had asked for (OUT_OF_MEMORY): see `memory`".to_owned()
        }
        "BOOT_FAIL" => "ended since its node could not be started (BOOT_FAIL)".to_owned(),
        "DEADLINE" => "has reached its deadline (DEADLINE)".to_owned(),
        "REVOKED" => "was given to another cluster (REVOKED)".to_owned(),
        "COMPLETED" => "ended by itself".to_owned(),
        "FAILED" => match (status, signal) {
            ("0" | "", "0") => format!("failed: {}", self::reason(reason)),
            (status, "0") => match status.parse() {
                Ok(status @ 1..128) => ended_with(status),
                _ => format!("ended with status {status}"),
            },
            (_, signal) => format!("was ended by signal {signal}"),
        },
        state => format!("ended: Slurm says {state}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_reported_in_words_and_in_slurms_own() {
        assert_eq!(reason("Resources"), "waiting for resources: Resources");
        assert_eq!(
            reason("QOSMaxCpuPerUserLimit"),
            "a limit of its quality of service is reached, for the processors of a user: \
             QOSMaxCpuPerUserLimit"
        );
        assert_eq!(
            reason("AssocGrpSubmitJobsLimit"),
            "a limit of its account is reached, for the waiting and running jobs: \
             AssocGrpSubmitJobsLimit"
        );
        let text = reason("ReqNodeNotAvail, UnavailableNodes:n[1-4]");
        assert!(text.starts_with("nodes that it needs are down"), "{text}");
        assert!(text.ends_with("UnavailableNodes:n[1-4]"), "{text}");
        let text = reason("Nodes required for job are DOWN, DRAINED or reserved");
        assert!(
            text.starts_with("nodes that it needs are not available: Nodes required"),
            "{text}"
        );
        assert_eq!(reason("OuterSpace"), "Slurm says OuterSpace");
        assert_eq!(reason("None"), "");
    }

    #[test]
    fn ends_are_reported_with_what_to_do() {
        let describe = |state, exit| end(state, "None", exit, "");
        assert!(describe("FAILED", "127:0").contains("`staging`"));
        assert_eq!(describe("FAILED", "1:0"), "ended with status 1");
        assert_eq!(describe("FAILED", "0:9"), "was ended by signal 9");
        assert!(describe("OUT_OF_MEMORY", "0:125").contains("`memory`"));
        assert_eq!(describe("NEW_STATE", "0:0"), "ended: Slurm says NEW_STATE");
    }
}
