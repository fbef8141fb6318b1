//! Timers in order of time. Cancelled ones stay in place: they are skipped when they expire, and swept when they
//! become the majority.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::{CallId, Time, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Deadline of the call.
    Deadline(CallId),
    /// End of an abandoned call's grace period: is it still running in this process (`generation`), as its call with
    /// this serial number?
    Overdue { worker: WorkerId, generation: u64, serial: u64 },
    /// This process may have run its call with this serial number for as long as it may.
    RunLimit { worker: WorkerId, generation: u64, serial: u64 },
    /// Check the processor time of the call with this serial number in this process.
    CpuTime { worker: WorkerId, generation: u64, serial: u64 },
    /// Calls wait behind another in this process: has that one (`head`) made progress?
    Stuck { worker: WorkerId, generation: u64, head: u64 },
    /// This process has served enough calls and should have ended by now.
    Retired { worker: WorkerId, generation: u64 },
    /// Start this worker again.
    Restart(WorkerId),
    /// Check whether hosts should come or go.
    Look,
    /// Calls have waited long enough for busy hosts.
    Held,
}

/// A due event from [`crate::Core::next_due`].
#[derive(Debug)]
pub struct DueTimer(pub(crate) Timer);

impl DueTimer {
    /// Whether hosts may be given back. Report what they keep first ([`crate::Core::host_keeps`]).
    #[must_use]
    pub fn is_look(&self) -> bool {
        matches!(self.0, Timer::Look)
    }

    /// The worker that it concerns, if that worker's progress matters.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerId> {
        match self.0 {
            Timer::Overdue { worker, .. }
            | Timer::RunLimit { worker, .. }
            | Timer::CpuTime { worker, .. }
            | Timer::Stuck { worker, .. } => Some(worker),
            Timer::Deadline(_)
            | Timer::Retired { .. }
            | Timer::Restart(_)
            | Timer::Look
            | Timer::Held => None,
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

    /// Time of the next timer, which may no longer matter.
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
