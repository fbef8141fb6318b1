//! Statistics document of a grid. Readers ignore unknown fields, and missing fields are zero.

use serde::{Deserialize, Serialize};

/// Statistics of a grid. Counters start when it opens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// The version of gridrpc.
    pub gridrpc: String,
    /// Its process.
    pub pid: u32,
    /// Number of the grid in its process, from 1.
    pub grid: u32,
    /// The command line of its process.
    pub program: String,
    /// Its machine.
    pub host: String,
    /// Time since it was opened, s.
    pub uptime: f64,
    /// Number of workers that it is to have. Hosts count once they have reported theirs.
    pub workers: u64,
    /// Ready workers.
    pub ready: u64,
    /// Workers that run a call.
    pub busy: u64,
    /// Calls that wait for a worker or for the results of other calls.
    pub queued: u64,
    /// Bytes of their arguments.
    pub queued_bytes: u64,
    /// Calls that have been sent to a worker and have not ended.
    pub running: u64,
    /// Workers that were lost.
    pub losses: u64,
    /// Results that went from host to host, or are on the way.
    pub results_moved: u64,
    /// Results that could not, and went through the client.
    pub results_not_moved: u64,
    /// All calls.
    pub calls: CallCounts,
    /// Calls by function, the one with the longest run time first. Beyond some hundreds, the rest are merged.
    pub functions: Vec<FunctionStats>,
    /// Workers by host: this machine first, if it has any.
    pub hosts: Vec<HostStats>,
}

impl Stats {
    /// The document, in one line.
    #[must_use]
    pub fn json(&self) -> String {
        // The document consists of numbers and strings, which JSON can always represent.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Counts of calls by outcome. Calls that have not ended count in `submitted` only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCounts {
    /// Accepted by the grid.
    pub submitted: u64,
    /// The function returned.
    pub returned: u64,
    /// It raised an error.
    pub raised: u64,
    /// Cancelled, or ended when the grid closed.
    pub cancelled: u64,
    /// Their deadline passed.
    pub expired: u64,
    /// Lost with their worker.
    pub lost: u64,
    /// Ended for another reason.
    pub failed: u64,
    /// Run by the worker that waited for them, as part of another call.
    pub inside: u64,
    /// Bytes of arguments.
    pub argument_bytes: u64,
    /// Bytes of results received.
    pub result_bytes: u64,
    /// Total run time of functions, s.
    pub seconds: f64,
}

impl CallCounts {
    /// Calls that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.outcomes().iter().map(|(_, count)| count).sum()
    }

    /// Number of ended calls by outcome.
    #[must_use]
    pub fn outcomes(&self) -> [(&'static str, u64); 7] {
        [
            ("returned", self.returned),
            ("raised", self.raised),
            ("cancelled", self.cancelled),
            ("expired", self.expired),
            ("lost", self.lost),
            ("failed", self.failed),
            ("inside", self.inside),
        ]
    }

    /// Calls that ended without a result and were not cancelled.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.raised + self.expired + self.lost + self.failed
    }
}

/// The calls of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionStats {
    /// Its name.
    pub name: String,
    /// Counts of its calls.
    #[serde(flatten)]
    pub calls: CallCounts,
}

/// The workers of one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostStats {
    /// Its host group; `localhost`: this machine's own workers.
    pub server: String,
    /// Its name.
    pub host: String,
    /// `unwanted`, `queued`, `starting`, `ready`, `ending` or `lost`.
    pub state: String,
    /// Details for people.
    pub detail: String,
    /// Number of workers that it is to have; 0: not reported yet.
    pub workers: u64,
    /// Ready workers.
    pub ready: u64,
    /// Workers that run a call, or are reserved for a multi-core call.
    pub busy: u64,
    /// Additional workers that serve one remote object each.
    pub reserved: u64,
    /// Calls that were answered there.
    pub calls: u64,
    /// Workers lost on this machine; on a host, only workers lost with a call.
    pub losses: u64,
}
