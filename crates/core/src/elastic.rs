//! Hosts that come and go with the work: how many are of use, and for how long each is there.

use crate::ids::{Time, WorkerId};

/// How long calls wait before more hosts are asked for, ns, and how much work the workers at hand may have
/// before them. Where there are no workers at all, the first hosts are asked for at once.
pub(crate) const PATIENCE: u64 = 1_000_000_000;

/// How long before its end a host is given nothing more, ns; of one that lives for less than some times that, a
/// part of its life.
pub(crate) const MARGIN: u64 = 2_000_000_000;

pub(crate) const LEAST_PART: u64 = 8;

/// Hosts of which only some are wanted always.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) hosts: Vec<WorkerId>,
    /// So many are.
    pub(crate) least: usize,
    /// How long a host may have nothing to do before it is given back, ns.
    pub(crate) idle: u64,
    /// Since when calls have waited each time that it was looked.
    pub(crate) waits_since: Option<Time>,
}

/// All such groups, and whether it is to be looked at them.
#[derive(Debug, Default)]
pub(crate) struct Elastic {
    pub(crate) groups: Vec<Group>,
    /// There is a group, or a host whose end is known.
    pub(crate) used: bool,
    /// A timer is set.
    pub(crate) watched: bool,
}

/// From when until when a host is there: from when its first worker has answered, once one has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) began: Time,
    pub(crate) ends: Time,
}

/// How long calls have a host in all, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(u64);

/// What a host has that may come and go.
#[derive(Debug, Default)]
pub(crate) struct Stay {
    /// It is not wanted now.
    pub(crate) asleep: bool,
    /// From when to when it is there, if that is known.
    pub(crate) life: Option<Life>,
    /// How long calls had it the last time, or another host of its group since, as far as that is known.
    pub(crate) span: Option<Span>,
    /// Results of calls lie there that somebody may need.
    pub(crate) keeps: bool,
    /// Since when it has had nothing to do, as far as that was seen, and how many calls it had been sent then.
    pub(crate) idle_since: Option<(Time, u64)>,
    /// Until when it is not asked for again.
    pub(crate) rests_until: Time,
}

impl Life {
    /// Whether a call that is expected to take so long, if that is known, is done before the end. What takes
    /// longer than half a life is given to a host that is young enough: else it would wait for ever.
    pub(crate) fn has_time_for(self, now: Time, cost: Option<u64>) -> bool {
        let span = self.span();
        let needed = cost.unwrap_or(0).saturating_add(span.margin()).min(span.0 / 2);
        self.ends.since(now) >= needed.max(1)
    }

    /// Whether a call that takes so long, as its caller says, is done before the end. There is no exception: who
    /// says so is taken at their word, and what takes longer than all lives is refused ([`Span::has_time_for`]).
    pub(crate) fn has_time_for_all_of(self, now: Time, expected: u64) -> bool {
        self.ends.since(now) >= expected.saturating_add(self.span().margin()).max(1)
    }

    pub(crate) fn span(self) -> Span {
        Span(self.ends.since(self.began))
    }
}

impl Span {
    /// How long before its end a host is given nothing more, ns.
    pub(crate) fn margin(self) -> u64 {
        MARGIN.min(self.0 / LEAST_PART)
    }

    /// Whether a call that takes so long is done in it, if it begins at once.
    pub(crate) fn has_time_for(self, expected: u64) -> bool {
        self.0 >= expected.saturating_add(self.margin())
    }

    /// In ns.
    pub(crate) fn whole(self) -> u64 {
        self.0
    }
}

/// What waits for a group of hosts, and what it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    /// Calls that wait.
    pub(crate) queued: u64,
    /// How long they have waited, ns: at each look some did.
    pub(crate) waited: u64,
    /// How long one of them is expected to take, if that is known.
    pub(crate) cost: Option<u64>,
    /// Workers that have answered, and those of hosts that are on the way.
    pub(crate) ready: u64,
    pub(crate) coming: u64,
    /// Workers of a host.
    pub(crate) each: u64,
}

impl Demand {
    /// How many hosts more are of use.
    pub(crate) fn hosts(self) -> usize {
        let Demand { queued, waited, cost, ready, coming, each } = self;
        let workers = ready + coming;
        let mut wanted = queued.saturating_sub(coming);
        if workers > 0 {
            if waited < PATIENCE {
                return 0;
            }
            if let Some(cost) = cost {
                // Work that is done before another host would be of use needs none.
                let work = u128::from(queued) * u128::from(cost) / u128::from(PATIENCE);
                let useful = u64::try_from(work).unwrap_or(u64::MAX).saturating_sub(workers);
                wanted = wanted.min(useful);
            }
        }
        usize::try_from(wanted.div_ceil(each.max(1))).unwrap_or(usize::MAX)
    }
}
