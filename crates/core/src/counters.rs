//! Counters of calls, by what came of them.

use crate::end::End;
use crate::ids::FunctionId;
use crate::workers::{Phase, Worker};

/// What has become of calls, of one function or of all. Those that have not ended are in `submitted` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounters {
    /// Taken.
    pub submitted: u64,
    /// Their function returned.
    pub returned: u64,
    /// It raised an error.
    pub raised: u64,
    /// Cancelled by the caller, or as the grid was closed.
    pub cancelled: u64,
    /// Their deadline passed.
    pub expired: u64,
    /// Lost with their worker.
    pub lost: u64,
    /// Ended for another reason: there are no workers, what they ask for is not there, or a call that they need
    /// the result of has failed.
    pub failed: u64,
    /// Run by the worker that waited for them, as part of its own call: what came of them is not counted.
    pub inside: u64,
    /// Bytes of their arguments.
    pub argument_bytes: u64,
    /// Bytes of their results that came to the caller.
    pub result_bytes: u64,
    /// How long their functions ran, ns.
    pub ran: u64,
}

impl CallCounters {
    /// Adds those of another.
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

    /// Calls that are not under way any more.
    #[must_use]
    pub fn ended(&self) -> u64 {
        let CallCounters { returned, raised, cancelled, expired, lost, failed, inside, .. } = self;
        returned + raised + cancelled + expired + lost + failed + inside
    }

    pub(crate) fn ended_by(&mut self, end: &End) {
        *match end {
            End::Cancelled | End::Closed => &mut self.cancelled,
            End::DeadlineExceeded(_) => &mut self.expired,
            End::WorkerLost(_) => &mut self.lost,
            End::NoWorkers(_)
            | End::NoServer(..)
            | End::DependencyFailed(_)
            | End::TooWide(_)
            | End::Unfit(_)
            | End::NotGathered(_) => &mut self.failed,
        } += 1;
    }
}

/// Those of all functions, by number.
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

/// What the workers of one place are at: of this machine, or of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// How many there are to be.
    pub workers: usize,
    /// Those that have answered.
    pub ready: usize,
    /// Those that run a call, or keep their place free for one that uses several.
    pub busy: usize,
    /// Others that work for one owner alone.
    pub reserved: usize,
    /// Calls that were answered there.
    pub answered: u64,
    /// Workers that were lost there; of a host, with a call, and the host itself with all of them.
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
            self.workers += usize::from(!worker.given_up);
            self.ready += usize::from(worker.phase == Phase::Ready);
            self.busy += usize::from(worker.sent.len() > worker.finished) + worker.held;
        }
    }
}
