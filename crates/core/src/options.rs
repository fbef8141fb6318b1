//! Options of a call, shared by all language bindings and the core.

use std::time::Duration;

use crate::ids::{GroupId, Reservation};
use crate::resources::Resources;

/// Options of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallOptions {
    /// Time limit after its submission.
    pub deadline: Option<Duration>,
    /// How long its function may run on a worker of this machine. Time in the queue, or behind other calls of the
    /// worker, does not count. Not sent to hosts.
    pub run_limit: Option<Duration>,
    /// Processor time that its worker's process may use for it, on this machine. It is checked ten times a second. Not
    /// sent to hosts.
    pub cpu_limit: Option<Duration>,
    /// Whether it may run again when its worker is lost.
    pub idempotent: bool,
    /// Waiting calls with a higher priority run first.
    pub priority: i32,
    /// Number of processors that it uses, all on one host. Workers with this many processors in total hold their
    /// places for it. A reserved worker uses its own.
    pub cores: u32,
    /// Number of threads that its function uses; 0: as many as it has cores.
    pub threads: u32,
    /// Resources that it takes of its host, including memory. A reserved worker has its own.
    pub resources: Resources,
    /// Expected run time of its function. The call does not start on a host that ends before it would finish.
    pub expected: Option<Duration>,
    /// The host group that runs it; `None`: any with room. A reserved worker has its own.
    pub group: Option<GroupId>,
    /// The reserved worker that runs it, in the order of submission; `None`: any that is not reserved.
    pub on: Option<Reservation>,
}

impl CallOptions {
    /// The default options.
    pub const DEFAULT: CallOptions = CallOptions {
        deadline: None,
        run_limit: None,
        cpu_limit: None,
        idempotent: false,
        priority: 0,
        cores: 1,
        threads: 0,
        resources: Resources::NONE,
        expected: None,
        group: None,
        on: None,
    };

    /// The same options without those that choose a worker: a reserved one has its own cores, resources and group.
    pub(crate) fn for_reserved(self) -> CallOptions {
        let CallOptions { cores, threads, resources, expected, group, .. } = CallOptions::DEFAULT;
        CallOptions { cores, threads, resources, expected, group, ..self }
    }

    /// Whether the call needs more than the place of one worker.
    #[must_use]
    pub fn is_multicore(&self) -> bool {
        self.cores > 1 || !self.resources.is_empty() || self.expected.is_some()
    }
}

impl Default for CallOptions {
    fn default() -> CallOptions {
        CallOptions::DEFAULT
    }
}
