//! Timers in order of time. Cancelled ones are not sought out; they are skipped when they
//! come up, and swept away when they have become the majority.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::{CallId, Time, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The call must have ended.
    Deadline(CallId),
    /// A call that nobody waits for has had its grace: is it still running in this
    /// process (`generation`), as its call with this serial number?
    Overdue { worker: WorkerId, generation: u64, serial: u64 },
    /// Calls wait behind another in this process: has that one (`head`) gone on?
    Stuck { worker: WorkerId, generation: u64, head: u64 },
    /// This process has served enough calls, and should have ended by now.
    Retired { worker: WorkerId, generation: u64 },
    /// Try again to start this worker.
    Restart(WorkerId),
    /// Look whether hosts are to come or to go.
    Look,
}

/// Something that is due, as [`crate::Core::next_due`] tells it.
#[derive(Debug)]
pub struct Due(pub(crate) Timer);

impl Due {
    /// Whether hosts may be given back: what they keep is to be told before ([`crate::Core::host_keeps`]).
    #[must_use]
    pub fn is_look(&self) -> bool {
        matches!(self.0, Timer::Look)
    }

    /// The worker that it is about, if how far that has come matters.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerId> {
        match self.0 {
            Timer::Overdue { worker, .. } | Timer::Stuck { worker, .. } => Some(worker),
            Timer::Deadline(_) | Timer::Retired { .. } | Timer::Restart(_) | Timer::Look => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
    /// Sweep when there are more than this many.
    sweep_at: usize,
}

const SWEEP_FLOOR: usize = 1024;

impl Timers {
    pub(crate) fn set(&mut self, at: Time, timer: Timer, live: impl Fn(&Timer) -> bool) {
        if self.heap.len() >= self.sweep_at.max(SWEEP_FLOOR) {
            self.heap.retain(|Reverse((_, timer))| live(timer));
            self.sweep_at = self.heap.len() * 2;
        }
        self.heap.push(Reverse((at, timer)));
    }

    /// When the next timer is due. It may be one that no longer matters.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, timer))| timer)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}
