//! Requests of calls beyond the place of one worker.

use crate::end::{End, NoFittingHost, TooManyCores};
use crate::ids::{GroupId, ns};
use crate::interface::{Refusal, Task};
use crate::options::CallOptions;
use crate::resources::Resources;

/// The request of a wide call, and where it may run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourceRequest {
    pub(crate) cores: u32,
    pub(crate) resources: Resources,
    pub(crate) expected: Option<u64>,
    pub(crate) group: Option<GroupId>,
}

impl ResourceRequest {
    pub(crate) fn of<T>(task: &Task<T>) -> ResourceRequest {
        let CallOptions { cores, resources, expected, group, .. } = &task.options;
        let (resources, expected) = (resources.clone(), expected.map(ns));
        ResourceRequest { cores: *cores, resources, expected, group: *group }
    }
}

/// Reason why a call can never find a place.
#[derive(Clone, Debug)]
pub(crate) enum NeverRuns {
    TooManyCores(TooManyCores),
    NoFittingHost(NoFittingHost),
}

impl NeverRuns {
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            NeverRuns::TooManyCores(why) => Refusal::TooManyCores(why),
            NeverRuns::NoFittingHost(why) => Refusal::NoFittingHost(why),
        }
    }

    pub(crate) fn end(self) -> End {
        match self {
            NeverRuns::TooManyCores(why) => End::TooManyCores(why),
            NeverRuns::NoFittingHost(why) => End::NoFittingHost(why),
        }
    }
}

/// Number of wide calls to check: the first ones in their line with the same request, and all together. If these
/// cannot start, later ones almost never can.
pub(crate) const SCAN: usize = 16;

pub(crate) const SCAN_ALL: usize = 256;
