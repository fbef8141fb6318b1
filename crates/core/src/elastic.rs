//! Elastic hosts, which come and go with the load: how many are useful, and how long each one stays.

use crate::ids::{Time, WorkerId};

/// How long calls wait before more hosts are requested, ns, and how much work the ready workers may have ahead of
/// them. Without any worker, the first hosts are requested at once.
pub(crate) const PATIENCE: u64 = 1_000_000_000;

/// How long before its end a host is sent nothing more, ns. For a short-lived host, a fraction of its lifetime.
pub(crate) const MARGIN: u64 = 2_000_000_000;

pub(crate) const LEAST_PART: u64 = 8;

/// An elastic host group: a minimum of its hosts always runs, and the others only while calls wait.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) hosts: Vec<WorkerId>,
    /// Number of hosts that are always wanted.
    pub(crate) least: usize,
    /// How long a host may be idle before it is given back, ns.
    pub(crate) idle: u64,
    /// Since when every check has found waiting calls.
    pub(crate) waits_since: Option<Time>,
}

/// All elastic groups, and whether to check them.
#[derive(Debug, Default)]
pub(crate) struct Elastic {
    pub(crate) groups: Vec<Group>,
    /// Whether there is a group, or a host with a known end.
    pub(crate) used: bool,
    /// Whether a timer is set.
    pub(crate) watched: bool,
}

/// Lifetime of a host. It starts when its first worker is ready, once one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) began: Time,
    pub(crate) ends: Time,
}

/// Total time that a host is available to calls, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(u64);

/// State of a host that may come and go.
#[derive(Debug, Default)]
pub(crate) struct ElasticState {
    /// Whether it is not wanted now.
    pub(crate) asleep: bool,
    /// Its lifetime, if known.
    pub(crate) life: Option<Lifetime>,
    /// Its last available time, or that of another host of its group since, if known.
    pub(crate) span: Option<Span>,
    /// Whether results of calls that may be needed lie there.
    pub(crate) keeps: bool,
    /// Since when it has been idle, if seen, and how many calls it had been sent by then.
    pub(crate) idle_since: Option<(Time, u64)>,
    /// Time until which it is not requested again.
    pub(crate) rests_until: Time,
}

impl Lifetime {
    /// Whether a call with this estimated cost, if known, finishes before the end. A call that takes longer than half
    /// a lifetime goes to a host that is young enough; otherwise it would wait forever.
    pub(crate) fn has_time_for(self, now: Time, cost: Option<u64>) -> bool {
        let span = self.span();
        let needed = cost.unwrap_or(0).saturating_add(span.margin()).min(span.0 / 2);
        self.ends.since(now) >= needed.max(1)
    }

    /// Whether a call with this declared time finishes before the end. There is no exception: the declaration is
    /// taken literally, and a call longer than every lifetime is rejected ([`Span::has_time_for`]).
    pub(crate) fn has_time_for_all_of(self, now: Time, expected: u64) -> bool {
        self.ends.since(now) >= expected.saturating_add(self.span().margin()).max(1)
    }

    pub(crate) fn span(self) -> Span {
        Span(self.ends.since(self.began))
    }
}

impl Span {
    /// How long before its end a host is sent nothing more, ns.
    pub(crate) fn margin(self) -> u64 {
        MARGIN.min(self.0 / LEAST_PART)
    }

    /// Whether a call with this declared time fits if it starts at once.
    pub(crate) fn has_time_for(self, expected: u64) -> bool {
        self.0 >= expected.saturating_add(self.margin())
    }

    /// The span in ns.
    pub(crate) fn whole(self) -> u64 {
        self.0
    }
}

/// Load of a group of hosts, and its capacity.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    /// Number of waiting calls.
    pub(crate) queued: u64,
    /// How long calls have been waiting at every check, ns.
    pub(crate) waited: u64,
    /// Estimated run time of one of them, if known.
    pub(crate) cost: Option<u64>,
    /// Ready workers, and workers of hosts that are starting.
    pub(crate) ready: u64,
    pub(crate) coming: u64,
    /// Workers per host.
    pub(crate) each: u64,
}

impl Demand {
    /// How many more hosts are useful.
    pub(crate) fn hosts(self) -> usize {
        let Demand { queued, waited, cost, ready, coming, each } = self;
        let workers = ready + coming;
        let mut wanted = queued.saturating_sub(coming);
        if workers > 0 {
            if waited < PATIENCE {
                return 0;
            }
            if let Some(cost) = cost {
                // Work that finishes before another host would be useful needs none.
                let work = u128::from(queued) * u128::from(cost) / u128::from(PATIENCE);
                let useful = u64::try_from(work).unwrap_or(u64::MAX).saturating_sub(workers);
                wanted = wanted.min(useful);
            }
        }
        usize::try_from(wanted.div_ceil(each.max(1))).unwrap_or(usize::MAX)
    }
}
