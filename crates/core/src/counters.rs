//! Counters of calls by outcome.

use crate::end::End;
use crate::ids::FunctionId;
use crate::workers::{Phase, Worker};

/// Counts of calls by outcome, of one function or of all. Live calls count in `submitted` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounters {
    /// Accepted.
    pub submitted: u64,
    /// Their function returned.
    pub returned: u64,
    /// It raised an error.
    pub raised: u64,
    /// Cancelled by the caller, or when the grid closed.
    pub cancelled: u64,
    /// Their deadline passed.
    pub expired: u64,
    /// Lost with their worker.
    pub lost: u64,
    /// Ended for another reason: there are no workers, their resources do not exist, or a call whose result they need
    /// has failed.
    pub failed: u64,
    /// Run by the worker that waited for them, as part of its own call. Their outcome is not counted.
    pub inside: u64,
    /// Bytes of their arguments.
    pub argument_bytes: u64,
    /// Bytes of results received by the caller.
    pub result_bytes: u64,
    /// Total run time of their functions, ns.
    pub ran: u64,
}

impl CallCounters {
    /// Adds other counters.
    pub fn add(&mut self, other: &CallCounters) {
        let pairs = [
            (&mut self.submitted, other.submitted),
            (&mut self.returned, other.returned),
            (&mut self.raised, other.raised),
            (&mut self.cancelled, other.cancelled),
            (&mut self.expired, other.expired),
            (&mut self.lost, other.lost),
            (&mut self.failed, other.failed),
            (&mut self.inside, other.inside),
            (&mut self.argument_bytes, other.argument_bytes),
            (&mut self.result_bytes, other.result_bytes),
            (&mut self.ran, other.ran),
        ];
        pairs.into_iter().for_each(|(mine, its)| *mine += its);
    }

    /// Number of calls that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        let CallCounters { returned, raised, cancelled, expired, lost, failed, inside, .. } = self;
        returned + raised + cancelled + expired + lost + failed + inside
    }

    pub(crate) fn ended_by(&mut self, end: &End) {
        *match end {
            End::Cancelled | End::Closed => &mut self.cancelled,
            End::DeadlineExceeded(_) | End::RunLimit(_) => &mut self.expired,
            End::WorkerLost(_) => &mut self.lost,
            End::NoWorkers(_)
            | End::NoServer(..)
            | End::DependencyFailed(_)
            | End::TooManyCores(_)
            | End::NoFittingHost(_)
            | End::NestedCallLimit(_)
            | End::NotGathered(_) => &mut self.failed,
        } += 1;
    }
}

/// Counters of all functions, by number.
#[derive(Debug, Default)]
pub(crate) struct CountersByFunction(pub(crate) Vec<CallCounters>);

impl CountersByFunction {
    pub(crate) fn of(&mut self, function: FunctionId) -> &mut CallCounters {
        let index = function.0 as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, CallCounters::default());
        }
        &mut self.0[index]
    }
}

/// Activity of the workers of this machine or of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Number of workers that it is to have.
    pub workers: usize,
    /// Ready workers.
    pub ready: usize,
    /// Workers that run a call, or hold their place for a multi-core call.
    pub busy: usize,
    /// Additional workers that serve one owner each.
    pub reserved: usize,
    /// Calls that were answered there.
    pub answered: u64,
    /// Workers lost on this machine. On a host: workers lost with a call, and the host itself with all of its
    /// workers.
    pub losses: u64,
}

impl Activity {
    pub(crate) fn add<T>(&mut self, worker: &Worker<T>) {
        self.answered += worker.answered;
        self.losses += worker.losses;
        if let Some(host) = &worker.host {
            self.ready = host.slots;
            self.workers = if host.known { host.wanted } else { 0 };
            self.busy = worker.taken().min(host.slots);
        } else if worker.reserved.is_some() {
            self.reserved += usize::from(worker.phase == Phase::Ready);
        } else {
            self.workers += usize::from(!worker.given_up && !worker.unwanted);
            self.ready += usize::from(worker.phase == Phase::Ready && !worker.unwanted);
            self.busy += usize::from(worker.sent.len() > worker.finished) + worker.held;
        }
    }
}
