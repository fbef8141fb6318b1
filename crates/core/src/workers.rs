//! State of each worker in the core.

use std::collections::VecDeque;
use std::sync::Arc;

use thiserror::Error;

use crate::elastic::ElasticState;
use crate::end::Loss;
use crate::host::Host;
use crate::ids::{CallId, FunctionId, GroupId, Owner, Reservation, Time, WorkerId};
use crate::pace::{AHEAD, Load, MAX_AHEAD, MAX_UNANSWERED};
use crate::resources::Resources;

/// A worker answered a call that it was not sent: a protocol violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("worker {worker} answered {call:?}, which is not the one it is to run next")]
pub struct UnexpectedReply {
    /// The worker.
    pub worker: u32,
    /// The call in its reply.
    pub call: CallId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No process, and none requested.
    Absent,
    /// A process has been requested.
    Starting,
    /// The process is ready.
    Ready,
    /// The process is being ended; nothing more is sent.
    Ending,
}

/// An unanswered call that a worker has been sent.
#[derive(Debug)]
pub(crate) struct SentCall<T> {
    pub(crate) call: CallId,
    /// Number of the call in this process, which begins calls in this order.
    pub(crate) serial: u64,
    /// When it was sent, and whether a worker was free then.
    pub(crate) at: Time,
    pub(crate) was_free: bool,
    /// Keeps the data that the worker still reads, even after the call has ended.
    pub(crate) payload: T,
    /// The call has ended; its answer will be discarded.
    pub(crate) abandoned: bool,
    /// Its host has been asked to give it back.
    pub(crate) retracting: bool,
    pub(crate) function: FunctionId,
    pub(crate) cost: u64,
    pub(crate) group: Option<GroupId>,
    pub(crate) owner: Owner,
    /// Its owner's charge when it was sent, ns.
    pub(crate) charged: u64,
    /// Processor time of its process when it was measured first, ns.
    pub(crate) cpu_before: Option<u64>,
    /// Workers' places that it takes.
    pub(crate) slots: u32,
    /// The other resources that it takes of its host.
    pub(crate) resources: Resources,
}

#[derive(Debug)]
pub(crate) struct Worker<T> {
    pub(crate) phase: Phase,
    /// Number of processes that have held this place.
    pub(crate) generation: u64,
    /// In the order of execution.
    pub(crate) sent: VecDeque<SentCall<T>>,
    /// Number of calls at the front of `sent` that are done but not answered.
    pub(crate) finished: usize,
    /// Whether its progress is visible between its answers.
    pub(crate) reports: bool,
    /// The function that it runs makes calls.
    pub(crate) nests: bool,
    /// Number of its functions that wait for calls that a client of the grid serves.
    pub(crate) away: usize,
    /// Number of calls sent to this process, and the maximum.
    pub(crate) sent_ever: u64,
    pub(crate) most_sent: u64,
    /// Whether a timer watches the calls that wait behind its first.
    pub(crate) watched: bool,
    /// An abandoned call past its grace period. This process is ended if it still runs that call when the calls
    /// behind it have been taken back.
    pub(crate) overdue: Option<u64>,
    /// Places of other workers that its calls hold.
    pub(crate) held: usize,
    /// Expected time for the unfinished calls of `sent`, ns.
    pub(crate) cost: u64,
    /// Earliest start time of the first of those.
    pub(crate) head_since: Time,
    /// Functions sent to it, by number: the version of the function; 0: none.
    pub(crate) taught: Vec<u32>,
    /// Calls that its processes have answered.
    pub(crate) answered: u64,
    /// Processes lost unexpectedly. For a host: its workers lost with a call.
    pub(crate) losses: u64,
    /// Consecutive failed starts.
    pub(crate) failed_starts: u32,
    /// Consecutive processes lost before they had begun a call.
    pub(crate) useless: u32,
    /// Whether a process of this place has ever been ready.
    pub(crate) has_worked: bool,
    /// Whether it is no longer started.
    pub(crate) given_up: bool,
    /// Whether this place of a common worker is not wanted now. It gets no calls, and its process ends after those
    /// that it has begun.
    pub(crate) unwanted: bool,
    /// Its number in the stack of idle workers.
    pub(crate) idle: Option<u64>,
    /// Its reservation, if it is reserved.
    pub(crate) reserved: Option<Reserved>,
    /// Set if it is a host, with workers of its own.
    pub(crate) host: Option<Host>,
    /// For a host: its groups.
    pub(crate) groups: Vec<GroupId>,
    /// For a reserved worker: its host, if not this machine.
    pub(crate) home: Option<WorkerId>,
}

/// State of a reserved worker.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// Distinguishes this reservation from others of the place.
    pub(crate) ticket: u64,
    /// Calls that wait for it, in order; some may have ended.
    pub(crate) queue: VecDeque<CallId>,
    /// Whether the owner has released it.
    pub(crate) released: bool,
    /// The loss of its process, which is not replaced.
    pub(crate) lost: Option<Arc<Loss>>,
}

/// A reserved worker for a call that a function waits for.
#[derive(Debug)]
pub(crate) struct Relief {
    pub(crate) reservation: Reservation,
    /// The group that the call is bound to.
    pub(crate) group: Option<GroupId>,
}

impl<T> Worker<T> {
    pub(crate) fn new(most_sent: u64) -> Self {
        Worker {
            phase: Phase::Absent,
            generation: 0,
            sent: VecDeque::new(),
            finished: 0,
            reports: false,
            nests: false,
            away: 0,
            sent_ever: 0,
            most_sent,
            watched: false,
            overdue: None,
            held: 0,
            cost: 0,
            head_since: Time(0),
            taught: Vec::new(),
            answered: 0,
            losses: 0,
            failed_starts: 0,
            useless: 0,
            has_worked: false,
            given_up: false,
            unwanted: false,
            idle: None,
            reserved: None,
            host: None,
            groups: Vec::new(),
            home: None,
        }
    }

    /// Whether it is a process of this machine that is not reserved.
    pub(crate) fn is_common(&self) -> bool {
        self.reserved.is_none() && self.host.is_none()
    }

    /// Places that its calls take, its own and those of others.
    pub(crate) fn taken(&self) -> usize {
        self.sent.len() + self.held
    }

    /// Whether it is a process of this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.host.is_none() && self.home.is_none()
    }

    /// Whether this process has been sent all the calls that it may serve.
    pub(crate) fn is_spent(&self) -> bool {
        self.unwanted || self.sent_ever >= self.most_sent
    }

    /// Whether it counts as a ready worker of this machine.
    pub(crate) fn is_ready_here(&self) -> bool {
        self.phase == Phase::Ready && self.is_common() && !self.unwanted
    }

    /// Whether a call with this expected cost may be queued behind its calls. Not behind a call that runs much longer
    /// than expected, or that its process may be ended for.
    pub(crate) fn has_room(&self, cost: u64, now: Time) -> bool {
        self.phase == Phase::Ready
            && !self.is_spent()
            && self.overdue.is_none()
            && !self.nests
            && self.held == 0
            // It may be about to be ended, and must then have no call that it could begin.
            && self.overdue.is_none()
            && self.sent.len() - self.finished < MAX_AHEAD
            && self.sent.len() < MAX_UNANSWERED
            && self.cost.saturating_add(cost) <= AHEAD
            && now.since(self.head_since) <= 4 * AHEAD
    }

    /// Whether it is busy, makes progress and is lightly loaded, so that it should get such a call before another
    /// worker is woken.
    pub(crate) fn is_awake(&self, load: Load, now: Time) -> bool {
        self.reports
            && !self.nests
            && self.phase == Phase::Ready
            && !self.is_spent()
            && self.overdue.is_none()
            && !self.sent.is_empty()
            // A worker that has done all its calls is about to answer.
            && self.sent.get(self.finished).is_none_or(|head| !head.abandoned)
            && self.cost.saturating_add(load.cost) <= load.awake
            && now.since(self.head_since) <= load.awake
    }

    /// The serial number of the call that it runs or runs next.
    pub(crate) fn head(&self) -> Option<u64> {
        self.sent.get(self.finished).map(|sent| sent.serial)
    }

    /// Records that it has begun this many calls (the low bits of the count): those before the last are done.
    pub(crate) fn progressed(&mut self, now: Time, begun: u32) {
        while let Some(sent) = self.sent.get(self.finished)
            && has_begun(begun, sent.serial + 1)
        {
            self.cost -= sent.cost;
            self.finished += 1;
            self.head_since = now;
        }
    }

    /// Removes the call that it answers next, if this is it; a host answers in any order.
    pub(crate) fn answered(&mut self, now: Time, call: CallId) -> Option<SentCall<T>> {
        if self.host.is_some() {
            let index = self.sent.iter().position(|sent| sent.call == call)?;
            let sent = self.sent.remove(index)?;
            self.cost -= sent.cost;
            self.held -= sent.slots as usize - 1;
            return Some(sent);
        }
        if self.sent.front()?.call != call {
            return None;
        }
        let sent = self.sent.pop_front()?;
        self.nests = false;
        self.away = 0;
        self.held -= sent.slots as usize - 1;
        if self.finished > 0 {
            self.finished -= 1;
        } else {
            self.cost -= sent.cost;
            self.head_since = now;
        }
        Some(sent)
    }

    /// Marks the current version of a function as sent. Returns whether it was new.
    pub(crate) fn teach(&mut self, function: FunctionId, version: u32) -> bool {
        let index = function.0 as usize;
        if index >= self.taught.len() {
            self.taught.resize(index + 1, 0);
        }
        std::mem::replace(&mut self.taught[index], version) != version
    }

    /// Clears the state of the process that is gone. Returns the calls that it had been sent.
    pub(crate) fn reset(&mut self) -> VecDeque<SentCall<T>> {
        self.phase = Phase::Absent;
        self.generation += 1;
        self.sent_ever = 0;
        self.finished = 0;
        self.reports = false;
        self.nests = false;
        self.away = 0;
        self.watched = false;
        self.overdue = None;
        self.held = 0;
        self.cost = 0;
        self.taught.clear();
        std::mem::take(&mut self.sent)
    }
}

/// Whether a worker that has begun `begun` calls has begun the one with this serial number. Counts are compared by
/// their low 32 bits: far fewer calls than that are in flight.
pub(crate) fn has_begun(begun: u32, serial: u64) -> bool {
    (begun.wrapping_sub(serial as u32)).cast_signed() > 0
}

/// Idle workers, the most recently used on top: its caches are warm, and it has memory for results. At the bottom are
/// those that were never used.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// Workers, with the number under which each was pushed. A worker removed from the middle stays as a stale entry.
    stack: VecDeque<(WorkerId, u64)>,
    /// Number of valid entries.
    count: usize,
    puts: u64,
    /// Number of idle workers that hold their places for multi-core calls.
    pub(crate) held: usize,
}

impl Idle {
    pub(crate) fn push<T>(&mut self, id: WorkerId, worker: &mut Worker<T>) {
        if let Some(put) = self.put(worker) {
            self.stack.push_back((id, put));
        }
    }

    /// Adds a worker that has just started.
    pub(crate) fn push_new<T>(&mut self, id: WorkerId, worker: &mut Worker<T>) {
        if let Some(put) = self.put(worker) {
            self.stack.push_front((id, put));
        }
    }

    fn put<T>(&mut self, worker: &mut Worker<T>) -> Option<u64> {
        if worker.idle.is_some() {
            return None;
        }
        self.puts += 1;
        self.count += 1;
        worker.idle = Some(self.puts);
        worker.idle
    }

    /// The worker on top.
    pub(crate) fn last(&self) -> Option<WorkerId> {
        self.stack.back().map(|(id, _)| *id)
    }

    /// Removes a worker, if it is here.
    pub(crate) fn remove<T>(&mut self, id: WorkerId, workers: &mut [Worker<T>]) {
        if workers[id.index()].idle.take().is_none() {
            return;
        }
        self.count -= 1;
        let counts = |(id, put): &(WorkerId, u64)| workers[id.index()].idle == Some(*put);
        // The top entry is always valid.
        while self.stack.back().is_some_and(|top| !counts(top)) {
            self.stack.pop_back();
        }
        if self.stack.len() > 2 * self.count + SWEEP_FLOOR {
            self.stack.retain(counts);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether one of them may be sent a call.
    pub(crate) fn has_free(&self) -> bool {
        self.count > self.held
    }

    /// How many of them may be sent calls.
    pub(crate) fn free(&self) -> usize {
        self.count.saturating_sub(self.held)
    }
}

/// Number of stale entries that is always tolerated.
const SWEEP_FLOOR: usize = 64;

impl<T> Worker<T> {
    /// Creates an executor for a host that is to have this many workers; 0: not known yet.
    pub(crate) fn for_host(wanted: u32) -> Worker<T> {
        let wanted = wanted.max(1) as usize;
        Worker { host: Some(Host { wanted, ..Host::default() }), ..Worker::new(u64::MAX) }
    }

    /// Calls sent to it beyond its number of workers.
    pub(crate) fn surplus(&self) -> usize {
        self.host.as_ref().map_or(0, |host| self.taken().saturating_sub(host.slots))
    }

    /// Idle workers of a host that may be sent calls.
    pub(crate) fn free_slots(&self) -> usize {
        let open = self.host.as_ref().is_some_and(|host| !host.collects);
        if open { self.vacant_slots() } else { 0 }
    }

    /// Free workers of a host, even if other calls have to wait for a wide one.
    pub(crate) fn vacant_slots(&self) -> usize {
        let ready = self.phase == Phase::Ready;
        self.host
            .as_ref()
            .filter(|_| ready)
            .map_or(0, |host| host.slots.saturating_sub(self.taken()))
    }
}

impl<T> Worker<T> {
    pub fn stay(&self) -> Option<&ElasticState> {
        self.host.as_ref().map(|host| &host.stay)
    }

    pub fn stay_mut(&mut self) -> Option<&mut ElasticState> {
        self.host.as_mut().map(|host| &mut host.stay)
    }

    /// Whether it is a host or a place that is not wanted now.
    pub(crate) fn is_asleep(&self) -> bool {
        self.unwanted || self.stay().is_some_and(|stay| stay.asleep)
    }
}
