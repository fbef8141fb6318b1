//! Options of a call, the same in all languages and down to here.

use std::time::Duration;

use crate::ids::{GroupId, Reservation};
use crate::resources::Resources;

/// How a call is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallOptions {
    /// Time from its submission after which it fails.
    pub deadline: Option<Duration>,
    /// Whether it may run again when its worker is lost.
    pub idempotent: bool,
    /// Of the calls that wait for a worker, those with a higher priority go first.
    pub priority: i32,
    /// Number of processors that it uses, all of one host: as many workers as have so many keep their places free
    /// for it. A reserved worker has what it has.
    pub cores: u32,
    /// Number of threads that its function uses; 0: as many as it has cores.
    pub threads: u32,
    /// Resources that it takes of its host, memory among them. A reserved worker has what it has.
    pub resources: Resources,
    /// How long its function is expected to run: it does not begin on a host that ends before it would be done.
    pub expected: Option<Duration>,
    /// The host group that runs it; none: any that has room. A reserved worker has its own.
    pub group: Option<GroupId>,
    /// The reserved worker that runs it, in the order of submission; none: any that is not reserved.
    pub on: Option<Reservation>,
}

impl CallOptions {
    /// Those of a call that asks for nothing.
    pub const DEFAULT: CallOptions = CallOptions {
        deadline: None,
        idempotent: false,
        priority: 0,
        cores: 1,
        threads: 0,
        resources: Resources::NONE,
        expected: None,
        group: None,
        on: None,
    };

    /// Whether the call asks for more than the place of one worker.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.cores > 1 || !self.resources.is_empty() || self.expected.is_some()
    }
}

impl Default for CallOptions {
    fn default() -> CallOptions {
        CallOptions::DEFAULT
    }
}
