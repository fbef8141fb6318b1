//! Scheduling policy: selects the worker or host for the call at the front of the queue. It reads the state and
//! changes only its own data; the state machine does the rest.

use std::fmt;

use crate::elastic::Lifetime;
use crate::ids::{FunctionId, Time, WorkerId};
use crate::pace::Pace;
use crate::workers::{Idle, Phase, Worker};

/// Selects executors for calls. Whatever it selects, each call ends once and none waits forever, as long as it
/// follows the rules of its methods.
pub trait Policy: fmt::Debug {
    /// Selects the executor of the call at the front of the queue, which is of this function. The executor must
    /// satisfy [`View::can_take`]. `None`: the call waits. It must not wait if no busy worker would end the wait, or
    /// with more than [`Policy::may_wait`] others.
    fn choose<T>(&mut self, view: &View<'_, T>, function: FunctionId) -> Option<WorkerId>;

    /// Whether a worker of this machine that has just answered, and can take the call at the front, gets it.
    /// Otherwise the call goes through [`Policy::choose`].
    fn goes_on<T>(&mut self, _: &View<'_, T>, _: WorkerId, _: FunctionId) -> bool {
        true
    }

    /// A worker of this machine was sent a call.
    fn sent(&mut self, _: WorkerId) {}

    /// The worker whose progress matters most for the next choice.
    fn watched(&self) -> Option<WorkerId> {
        None
    }

    /// Maximum number of calls that may wait although a worker of this machine is idle.
    fn may_wait(&self) -> usize {
        0
    }

    /// Until when calls wait for busy hosts although another one has room, if they do since the last choice.
    fn holds_until(&self) -> Option<Time> {
        None
    }
}

/// State for a choice.
#[derive(Debug)]
pub struct View<'a, T> {
    pub(crate) now: Time,
    pub(crate) workers: &'a [Worker<T>],
    pub(crate) idle: &'a Idle,
    pub(crate) ready: usize,
    pub(crate) hosts: &'a [WorkerId],
    /// All hosts, with room or not, that the call may wait for; none if it is bound to a group. And their ready workers.
    pub(crate) rivals: &'a [WorkerId],
    pub(crate) host_slots: usize,
    pub(crate) pace: &'a Pace,
    pub(crate) queued: usize,
    /// Number of waiting calls in all lines.
    pub(crate) waiting: usize,
    /// Whether workers of this machine may take the call.
    pub(crate) here: bool,
    /// Whether executors may take it before they are free.
    pub(crate) ahead: bool,
}

impl<T> View<'_, T> {
    /// The current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of calls that wait for any worker.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Number of worker and host ids, from 0, in any state.
    #[must_use]
    pub fn executors(&self) -> usize {
        self.workers.len()
    }

    /// The hosts that may take the call.
    #[must_use]
    pub fn hosts(&self) -> &[WorkerId] {
        self.hosts
    }

    /// The worker of this machine that became idle last.
    #[must_use]
    pub fn idle(&self) -> Option<WorkerId> {
        self.idle.last().filter(|_| self.here && self.idle.has_free())
    }

    /// Number of busy workers of this machine that may take the call.
    #[must_use]
    pub fn busy(&self) -> usize {
        let at_work = self.ready.saturating_sub(self.idle.len());
        // Without a busy worker, places are only held for a worker that is being ended.
        if self.here && at_work > 0 { at_work + self.idle.held } else { 0 }
    }

    /// Number of unanswered calls of a worker or host.
    #[must_use]
    pub fn load(&self, id: WorkerId) -> usize {
        self.workers.get(id.index()).map_or(0, |worker| worker.sent.len())
    }

    /// Whether a worker or host can be sent a call of this function: it is ready, not reserved, belongs to the call's
    /// group, and is idle or so lightly loaded that such a call does not wait for long.
    #[must_use]
    pub fn can_take(&self, id: WorkerId, function: FunctionId) -> bool {
        let Some(worker) = self.workers.get(id.index()) else { return false };
        if worker.host.is_some() {
            return self.host_has_room(id, function) && self.hosts.contains(&id);
        }
        let has_room = || self.ahead && worker.has_room(self.pace.cost(function), self.now);
        let is_free = worker.idle.is_some() && self.idle.has_free();
        self.here && worker.is_common() && (is_free || has_room())
    }

    /// Whether a host can be sent a call of this function. It gets more calls than it has workers only if those would
    /// otherwise wait for the next message.
    pub(crate) fn host_has_room(&self, id: WorkerId, function: FunctionId) -> bool {
        let worker = &self.workers[id.index()];
        let Some(host) = worker.host.as_ref().filter(|_| worker.phase == Phase::Ready) else {
            return false;
        };
        if host.collects {
            return false;
        }
        let ahead = if self.ahead { host.ahead(function) } else { 0 };
        let stays = |life: Lifetime| life.has_time_for(self.now, self.pace.known_cost(function));
        worker.taken() < host.slots + ahead && host.stay.life.is_none_or(stays)
    }
}
