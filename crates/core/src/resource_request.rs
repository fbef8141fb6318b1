//! Requests of calls beyond the place of one worker.

use crate::end::{End, TooWide, Unfit};
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
pub(crate) enum Misfit {
    TooWide(TooWide),
    Unfit(Unfit),
}

impl Misfit {
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            Misfit::TooWide(why) => Refusal::TooWide(why),
            Misfit::Unfit(why) => Refusal::Unfit(why),
        }
    }

    pub(crate) fn end(self) -> End {
        match self {
            Misfit::TooWide(why) => End::TooWide(why),
            Misfit::Unfit(why) => End::Unfit(why),
        }
    }
}

/// Number of wide calls to check: the first ones in their line with the same request, and all together. If these
/// cannot start, later ones almost never can.
pub(crate) const SCAN: usize = 16;

pub(crate) const SCAN_ALL: usize = 256;
