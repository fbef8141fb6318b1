//! The document that a grid tells of itself. Fields that another version does not know are passed over, and
//! those that it does not tell are zero.

use serde::{Deserialize, Serialize};

/// How a grid is getting on. What is counted is counted since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// The version of gridrpc.
    pub gridrpc: String,
    /// Its process.
    pub pid: u32,
    /// Which grid of its process it is, from 1 on.
    pub grid: u32,
    /// The command line of its process.
    pub program: String,
    /// The machine that it is on.
    pub host: String,
    /// How long it has been open, s.
    pub uptime: f64,
    /// Workers that there are to be, those of hosts as far as they have told.
    pub workers: u64,
    /// Workers that have answered.
    pub ready: u64,
    /// Workers that run a call.
    pub busy: u64,
    /// Calls that wait for a worker, or for the results of others.
    pub queued: u64,
    /// Bytes of their arguments.
    pub queued_bytes: u64,
    /// Calls that have been sent to a worker and have not ended.
    pub running: u64,
    /// Workers that were lost.
    pub losses: u64,
    /// All calls.
    pub calls: CallCounts,
    /// Those of each function, the one that has run longest first; beyond some hundreds, the rest are one.
    pub functions: Vec<FunctionStats>,
    /// Where the workers are: this machine first, if it has some.
    pub hosts: Vec<HostStats>,
}

impl Stats {
    /// The document, in one line.
    #[must_use]
    pub fn json(&self) -> String {
        // It is made of numbers and texts: there is nothing in it that JSON has not.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What has become of calls. Those that have not ended are in `submitted` alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCounts {
    /// Taken by the grid.
    pub submitted: u64,
    /// The function returned.
    pub returned: u64,
    /// It raised an error.
    pub raised: u64,
    /// Cancelled, or ended as the grid was closed.
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
    /// Bytes of results that came.
    pub result_bytes: u64,
    /// How long functions ran, s.
    pub seconds: f64,
}

impl CallCounts {
    /// Calls that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.outcomes().iter().map(|(_, count)| count).sum()
    }

    /// How many have ended in which way.
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

    /// Those that have ended without a result and that nobody has cancelled.
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
    /// What has become of them.
    #[serde(flatten)]
    pub calls: CallCounts,
}

/// The workers of one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostStats {
    /// The server that it belongs to; `localhost`: this machine's own workers.
    pub server: String,
    /// Its name.
    pub host: String,
    /// `unwanted`, `queued`, `starting`, `ready`, `ending` or `lost`.
    pub state: String,
    /// What else is known, for people.
    pub detail: String,
    /// Workers that there are to be; 0: it has not told yet.
    pub workers: u64,
    /// Workers that have answered.
    pub ready: u64,
    /// Workers that run a call, or keep their place for one that uses several.
    pub busy: u64,
    /// Further workers, each of which works for one remote object alone.
    pub reserved: u64,
    /// Calls that were answered there.
    pub calls: u64,
    /// Workers that were lost there; of a host, those that were lost with a call.
    pub losses: u64,
}
