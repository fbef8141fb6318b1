//! State of a host in addition to that of a worker, and its public status.

use std::sync::Arc;

use crate::elastic::ElasticState;
use crate::end::Loss;
use crate::ids::{FunctionId, Time};
use crate::pace::{Flow, HostPace};
use crate::queue::Queue;
use crate::resources::Available;

/// State that a host has in addition to that of a worker process.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Ready workers.
    pub(crate) slots: usize,
    /// Number of workers that it is to have.
    pub(crate) wanted: usize,
    /// Processors of each of its workers; 0 means 1.
    pub(crate) cores: u32,
    /// Its group, for errors.
    pub(crate) group: Arc<str>,
    /// Resources that calls may take in addition to places.
    pub(crate) available: Available,
    /// Its places are collected for a multi-core call; other calls have to wait.
    pub(crate) collects: bool,
    /// Round-trip time of a message, ns.
    pub(crate) round_trip: u64,
    /// Times of functions here.
    pub(crate) pace: HostPace,
    /// Its functions make calls and may wait for them, so nothing is sent ahead.
    pub(crate) nests: bool,
    /// It has reported at least once how many workers it is to have.
    pub(crate) known: bool,
    /// A worker has been ready since it connected.
    pub(crate) serves: bool,
    /// Calls whose arguments are there, or come from other hosts.
    pub(crate) nearby: Queue,
    /// It can exchange data with other such hosts.
    pub(crate) exchanges: bool,
    /// Its last loss or failure, if no worker has been ready since.
    pub(crate) loss: Option<Arc<Loss>>,
    /// When it was lost, if no worker has been ready since.
    pub(crate) absent_since: Option<Time>,
    /// How it is requested again after a loss.
    pub(crate) retry: HostRetry,
    /// How long it is to stay.
    pub(crate) stay: ElasticState,
}

impl Host {
    /// Number of calls of this function that it is sent beyond its number of workers.
    pub(crate) fn ahead(&self, function: FunctionId) -> usize {
        if self.nests { 0 } else { self.pace.ahead(function, self.slots, self.round_trip) }
    }

    /// What it does with calls of this function, if it has run some.
    pub(crate) fn flow(&self, function: FunctionId) -> Option<Flow> {
        let ahead = self.ahead(function);
        (self.slots > 0).then(|| self.pace.flow(function, self.slots, ahead, self.round_trip))?
    }
}

/// How a host is requested again after a loss or a failed start. The pauses double with each failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRetry {
    /// How long it may stay away, ns. Then its calls end.
    pub timeout: u64,
    /// The first pause, ns.
    pub pause: u64,
    /// The longest pause, ns.
    pub longest_pause: u64,
}

impl HostRetry {
    /// For a host whose request starts something: a job of a batch system, or a program by ssh.
    pub const STARTED: HostRetry =
        HostRetry { timeout: 900_000_000_000, pause: 1_000_000_000, longest_pause: 30_000_000_000 };
    /// For a host that only has to be connected to.
    pub const CONNECTED: HostRetry =
        HostRetry { pause: 50_000_000, longest_pause: 5_000_000_000, ..HostRetry::STARTED };

    /// The pause after this many failures, ns.
    pub(crate) fn pause_after(&self, failures: u32) -> u64 {
        (self.pause << (failures - 1).min(16)).min(self.longest_pause)
    }
}

impl Default for HostRetry {
    fn default() -> HostRetry {
        HostRetry::STARTED
    }
}

/// Stage of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStage {
    /// It is not requested because there is no work for it.
    Unwanted,
    /// It has been requested, or will be again.
    Starting,
    /// Some of its workers are ready.
    Ready,
    /// It is being given back.
    Ending,
    /// It is unavailable.
    GivenUp,
}

/// Status of a host.
#[derive(Clone, Debug)]
pub struct HostStatus {
    /// Its stage.
    pub stage: HostStage,
    /// Ready workers.
    pub ready: usize,
    /// Number of workers that it is to have; 0: not reported yet.
    pub workers: usize,
    /// Its last loss or failure, if no worker has been ready since.
    pub loss: Option<Arc<Loss>>,
}
