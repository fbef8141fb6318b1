//! What the core knows of each worker.

use std::collections::VecDeque;
use std::sync::Arc;

use thiserror::Error;

use crate::elastic::Stay;
use crate::end::Loss;
use crate::host::Host;
use crate::ids::{CallId, FunctionId, GroupId, Owner, Time, WorkerId};
use crate::pace::{AHEAD, Load, MAX_AHEAD, MAX_UNANSWERED};
use crate::resources::Resources;

/// A worker sent a reply to something it was not asked: it breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("worker {worker} answered {call:?}, which is not the one it is to run next")]
pub struct UnexpectedReply {
    /// The worker.
    pub worker: u32,
    /// The call that it named.
    pub call: CallId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No process, none asked for.
    Absent,
    /// A process has been asked for.
    Starting,
    /// It has answered.
    Ready,
    /// It is being ended; nothing more is sent.
    Ending,
}

/// A call that a worker has been sent and has not answered.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) call: CallId,
    /// Counts the calls that this process has been sent: it begins them in this order.
    pub(crate) serial: u64,
    /// Keeps what the worker still reads, also when the call itself has ended.
    pub(crate) payload: T,
    /// The call has ended meanwhile: what comes of it is thrown away.
    pub(crate) abandoned: bool,
    /// Its host has been asked for it.
    pub(crate) retracting: bool,
    pub(crate) function: FunctionId,
    pub(crate) cost: u64,
    pub(crate) group: Option<GroupId>,
    /// Workers' places that it takes.
    pub(crate) owner: Owner,
    /// What its owner was charged for it when it was sent, ns.
    pub(crate) charged: u64,
    pub(crate) slots: u32,
    /// What else it takes of its host.
    pub(crate) resources: Resources,
}

#[derive(Debug)]
pub(crate) struct Worker<T> {
    pub(crate) phase: Phase,
    /// Counts the processes that have held this place.
    pub(crate) generation: u64,
    /// In the order in which it runs and answers them.
    pub(crate) sent: VecDeque<Sent<T>>,
    /// How many at the front of `sent` it has done, though their answers are still to come.
    pub(crate) finished: usize,
    /// Whether it is heard of between its answers.
    pub(crate) reports: bool,
    /// The function that it runs makes calls itself.
    pub(crate) nests: bool,
    /// How many calls this process has been sent, and how many it may be sent.
    pub(crate) sent_ever: u64,
    pub(crate) most_sent: u64,
    /// Whether a timer looks after the calls that wait behind its first.
    pub(crate) watched: bool,
    /// A call that nobody waits for, and that has had its grace: this process is to be ended if it is
    /// at it when those behind have been taken back.
    pub(crate) overdue: Option<u64>,
    /// Places of other workers that its calls take.
    pub(crate) held: usize,
    /// Expected time for those of `sent` that are not finished, ns.
    pub(crate) cost: u64,
    /// Since when the first of those may have been running.
    pub(crate) head_since: Time,
    /// Functions that it has been told, by number: which one that number meant then; 0: none.
    pub(crate) taught: Vec<u32>,
    /// Calls that its processes have answered.
    pub(crate) answered: u64,
    /// Processes that were lost though they were to go on; of a host, its workers that were lost with a call.
    pub(crate) losses: u64,
    /// Starts in a row that failed.
    pub(crate) failed_starts: u32,
    /// Processes in a row that were lost before they had begun a call.
    pub(crate) useless: u32,
    /// Some process of this place has answered.
    pub(crate) has_worked: bool,
    /// No further start is tried.
    pub(crate) given_up: bool,
    /// Under which number it lies among the idle ones.
    pub(crate) idle: Option<u64>,
    /// Whom it is reserved for, if not for all.
    pub(crate) reserved: Option<Reserved>,
    /// It is no process but a host, with workers of its own.
    pub(crate) host: Option<Host>,
    /// A host: groups that it belongs to.
    pub(crate) groups: Vec<GroupId>,
    /// A reserved worker: the host that it lives on, if not this machine.
    pub(crate) home: Option<WorkerId>,
}

/// What a worker has that works for one owner alone.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// Names this reservation among all that the place has had.
    pub(crate) ticket: u64,
    /// Calls that wait for it, in order; some may have ended.
    pub(crate) queue: VecDeque<CallId>,
    /// The owner has given it up.
    pub(crate) released: bool,
    /// How its process was lost; there is no other.
    pub(crate) lost: Option<Arc<Loss>>,
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
            idle: None,
            reserved: None,
            host: None,
            groups: Vec::new(),
            home: None,
        }
    }

    /// Whether it is a process of this machine that works for all.
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
        self.sent_ever >= self.most_sent
    }

    /// Whether a call of that expected cost may be sent behind what it already has.
    /// Not behind a call that runs much longer than was expected, or that its process may be ended for.
    pub(crate) fn has_room(&self, cost: u64, now: Time) -> bool {
        self.phase == Phase::Ready
            && !self.is_spent()
            && self.overdue.is_none()
            && !self.nests
            && self.held == 0
            // It may be about to be ended, and is to have nothing then that it could begin.
            && self.overdue.is_none()
            && self.sent.len() - self.finished < MAX_AHEAD
            && self.sent.len() < MAX_UNANSWERED
            && self.cost.saturating_add(cost) <= AHEAD
            && now.since(self.head_since) <= 4 * AHEAD
    }

    /// Whether it is at work, getting on, and has little to do, so that such a call is better
    /// given to it than to one that would have to be woken.
    pub(crate) fn is_awake(&self, load: Load, now: Time) -> bool {
        self.reports
            && !self.nests
            && self.phase == Phase::Ready
            && !self.is_spent()
            && self.overdue.is_none()
            && !self.sent.is_empty()
            // One that has done all is about to answer.
            && self.sent.get(self.finished).is_none_or(|head| !head.abandoned)
            && self.cost.saturating_add(load.cost) <= load.awake
            && now.since(self.head_since) <= load.awake
    }

    /// The serial number of the call that it runs or runs next.
    pub(crate) fn head(&self) -> Option<u64> {
        self.sent.get(self.finished).map(|sent| sent.serial)
    }

    /// It has begun so many calls (the low bits of the count): it has done those before the last.
    pub(crate) fn progressed(&mut self, now: Time, begun: u32) {
        while let Some(sent) = self.sent.get(self.finished)
            && has_begun(begun, sent.serial + 1)
        {
            self.cost -= sent.cost;
            self.finished += 1;
            self.head_since = now;
        }
    }

    /// Takes out the call that it answers next, if this is it; a host answers in any order.
    pub(crate) fn answered(&mut self, now: Time, call: CallId) -> Option<Sent<T>> {
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
        self.held -= sent.slots as usize - 1;
        if self.finished > 0 {
            self.finished -= 1;
        } else {
            self.cost -= sent.cost;
            self.head_since = now;
        }
        Some(sent)
    }

    /// Marks what a function's number means now as told; says whether it was new.
    pub(crate) fn teach(&mut self, function: FunctionId, version: u32) -> bool {
        let index = function.0 as usize;
        if index >= self.taught.len() {
            self.taught.resize(index + 1, 0);
        }
        std::mem::replace(&mut self.taught[index], version) != version
    }

    /// Forgets all that belonged to the process that is gone; returns what it had been sent.
    pub(crate) fn reset(&mut self) -> VecDeque<Sent<T>> {
        self.phase = Phase::Absent;
        self.generation += 1;
        self.sent_ever = 0;
        self.finished = 0;
        self.reports = false;
        self.nests = false;
        self.watched = false;
        self.overdue = None;
        self.held = 0;
        self.cost = 0;
        self.taught.clear();
        std::mem::take(&mut self.sent)
    }
}

/// Whether a worker that has begun `begun` calls has begun the one with this serial number. Counts
/// are compared by their low 32 bits: far fewer calls than that are under way.
pub(crate) fn has_begun(begun: u32, serial: u64) -> bool {
    (begun.wrapping_sub(serial as u32)).cast_signed() > 0
}

/// Idle workers, the one used last on top: its caches are warm, and it has memory for results. At the
/// bottom are those that were never used.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// With the number that each was put here under. What is taken out of the middle stays, and counts no
    /// more.
    stack: VecDeque<(WorkerId, u64)>,
    /// How many count.
    count: usize,
    puts: u64,
    /// So many of them keep their places free for calls of others that ask for several cores.
    pub(crate) held: usize,
}

impl Idle {
    pub(crate) fn push<T>(&mut self, id: WorkerId, worker: &mut Worker<T>) {
        if let Some(put) = self.put(worker) {
            self.stack.push_back((id, put));
        }
    }

    /// Adds one that has just started.
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

    /// The one on top.
    pub(crate) fn last(&self) -> Option<WorkerId> {
        self.stack.back().map(|(id, _)| *id)
    }

    /// Takes one out, if it is here.
    pub(crate) fn remove<T>(&mut self, id: WorkerId, workers: &mut [Worker<T>]) {
        if workers[id.index()].idle.take().is_none() {
            return;
        }
        self.count -= 1;
        let counts = |(id, put): &(WorkerId, u64)| workers[id.index()].idle == Some(*put);
        // The one on top always counts.
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

/// So many that count no more may lie among the idle ones.
const SWEEP_FLOOR: usize = 64;

impl<T> Worker<T> {
    /// An executor for a host that is to have so many workers; 0: it is not known yet.
    pub(crate) fn for_host(wanted: u32) -> Worker<T> {
        let wanted = wanted.max(1) as usize;
        Worker { host: Some(Host { wanted, ..Host::default() }), ..Worker::new(u64::MAX) }
    }

    /// Calls that it has been sent and that its workers cannot all be at.
    pub(crate) fn surplus(&self) -> usize {
        self.host.as_ref().map_or(0, |host| self.taken().saturating_sub(host.slots))
    }

    /// Workers of a host that have nothing to do and may be sent calls.
    pub(crate) fn free_slots(&self) -> usize {
        let open = self.host.as_ref().is_some_and(|host| !host.collects);
        if open { self.vacant_slots() } else { 0 }
    }

    /// The same, also if other calls have to wait for a wide one.
    pub(crate) fn vacant_slots(&self) -> usize {
        let ready = self.phase == Phase::Ready;
        self.host
            .as_ref()
            .filter(|_| ready)
            .map_or(0, |host| host.slots.saturating_sub(self.taken()))
    }
}

impl<T> Worker<T> {
    pub fn stay(&self) -> Option<&Stay> {
        self.host.as_ref().map(|host| &host.stay)
    }

    pub fn stay_mut(&mut self) -> Option<&mut Stay> {
        self.host.as_mut().map(|host| &mut host.stay)
    }

    /// Whether it is a host that is not wanted now.
    pub(crate) fn is_asleep(&self) -> bool {
        self.stay().is_some_and(|stay| stay.asleep)
    }
}
