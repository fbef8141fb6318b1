//! Hosts: executors with many workers, managed by an agent. A host receives calls for all of its workers at once and
//! answers them in any order.

use std::sync::Arc;

use crate::core::Core;
use crate::end::{End, Loss};
use crate::group::HostGroup;
use crate::host::{HostRetry, HostStage, HostStatus};
use crate::ids::{CallId, GroupId, Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::workers::{Phase, SentCall, UnexpectedReply};

impl<T: Clone, P: Policy> Core<T, P> {
    /// An agent has connected and is starting this many workers.
    pub fn host_joined(&mut self, id: WorkerId, wanted: u32, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        let Some(host) = &mut worker.host else { return };
        if worker.phase != Phase::Starting {
            return;
        }
        worker.phase = Phase::Ready;
        host.slots = 0;
        (host.known, host.serves) = (true, false);
        self.count_places(id, wanted);
        let guests = self.guests(id);
        out.extend(guests.into_iter().map(Action::Start));
    }

    /// Updates the number of ready workers of a host, and of those that it is to have.
    pub fn host_has(
        &mut self,
        now: Time,
        id: WorkerId,
        ready: u32,
        wanted: u32,
        out: &mut Vec<Action<T>>,
    ) {
        let worker = &mut self.workers[id.index()];
        if worker.phase != Phase::Ready {
            return;
        }
        let Some(host) = &mut worker.host else { return };
        self.host_slots -= host.slots;
        host.slots = ready as usize;
        self.host_slots += host.slots;
        if ready > 0 {
            // Only now: a host that connects and cannot start a worker counts as a failed start.
            let is_first = !std::mem::replace(&mut host.serves, true);
            (host.loss, host.absent_since) = (None, None);
            worker.failed_starts = 0;
            worker.has_worked = true;
            if is_first {
                self.begins_to_serve(now, id);
            }
        }
        self.count_places(id, wanted);
        self.uneven = true;
        self.pump_nearby(now, id, out);
        self.pump(now, out);
        self.even_out(out);
    }

    /// A host's agent is gone, and the reason is not known yet. Nothing more is sent there, as if no worker were
    /// ready.
    pub fn host_leaves(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        let host = self.workers[id.index()].host.as_ref();
        let wanted = host.map_or(0, |host| host.wanted as u32);
        self.host_has(now, id, 0, wanted, out);
    }

    /// Sets how this host is requested again after a loss.
    pub fn set_retry(&mut self, id: WorkerId, retry: HostRetry) {
        if let Some(host) = &mut self.workers[id.index()].host {
            host.retry = retry;
        }
    }

    /// A host has tried and cannot start workers, so do not request it again at once.
    pub fn host_has_failed(&mut self, id: WorkerId) {
        let most = self.settings.max_failed_starts;
        let worker = &mut self.workers[id.index()];
        worker.failed_starts = worker.failed_starts.max(most.saturating_sub(1));
    }

    /// Hosts without a ready worker, and the last loss or failure of each.
    pub fn absent_hosts(&self) -> impl Iterator<Item = (WorkerId, Option<&Arc<Loss>>)> {
        let hosts = self.hosts.iter().map(|id| (*id, self.workers[id.index()].host.as_ref()));
        let absent = hosts.filter_map(|(id, host)| {
            Some((id, host.filter(|host| host.slots == 0 && !host.stay.asleep)?))
        });
        absent.map(|(id, host)| (id, host.loss.as_ref()))
    }

    /// The status of a host.
    #[must_use]
    pub fn host_status(&self, id: WorkerId) -> Option<HostStatus> {
        let worker = self.workers.get(id.index())?;
        let host = worker.host.as_ref()?;
        let stage = match worker.phase {
            _ if worker.given_up => HostStage::GivenUp,
            Phase::Ready if host.slots > 0 => HostStage::Ready,
            Phase::Ending => HostStage::Ending,
            Phase::Absent if host.stay.asleep => HostStage::Unwanted,
            Phase::Absent | Phase::Starting | Phase::Ready => HostStage::Starting,
        };
        let workers = if host.known { host.wanted } else { 0 };
        Some(HostStatus { stage, ready: host.slots, workers, loss: host.loss.clone() })
    }

    /// The losses of hosts that are given up.
    pub(crate) fn hosts_given_up(&self) -> Vec<&Arc<Loss>> {
        let workers = self.hosts.iter().map(|id| &self.workers[id.index()]);
        let given_up = workers.filter(|worker| worker.given_up);
        given_up.filter_map(|worker| worker.host.as_ref()?.loss.as_ref()).collect()
    }

    /// Sets the round-trip time of a host, ns.
    pub fn host_is_away(&mut self, id: WorkerId, round_trip: u64) {
        if let Some(host) = &mut self.workers[id.index()].host {
            host.round_trip = round_trip;
        }
    }

    /// A host has ended a call without an answer of its function. Returns the caller's payload, and whether the call
    /// was still alive.
    ///
    /// # Errors
    /// When the host does not have this call.
    pub fn host_ended(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
        end: End,
        out: &mut Vec<Action<T>>,
    ) -> Result<(T, bool), UnexpectedReply> {
        let sent = self.take_out(now, id, call);
        let sent = sent.ok_or(UnexpectedReply { worker: id.0, call })?;
        let executor = &mut self.workers[id.index()];
        // A reserved worker is reported separately.
        let was_lost = matches!(end, End::WorkerLost(_)) && executor.host.is_some();
        executor.losses += u64::from(was_lost);
        if !sent.abandoned {
            self.end(now, call, end, out);
        }
        self.refill(now, id, out);
        self.relieve(now, out);
        Ok((sent.payload, !sent.abandoned))
    }

    /// A host continues with a call for itself: it is not a call of this grid any more. Returns the caller's payload, and
    /// whether the call was still alive.
    ///
    /// # Errors
    /// When the host does not have this call.
    pub fn detached(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
        out: &mut Vec<Action<T>>,
    ) -> Result<(T, bool), UnexpectedReply> {
        let sent = self.take_out(now, id, call);
        let sent = sent.ok_or(UnexpectedReply { worker: id.0, call })?;
        if !sent.abandoned
            && let Some(left) = self.calls.remove(call)
        {
            self.forget_wanted(call);
            self.count_out(&left.task);
            self.release_blobs(&left.task.blobs, out);
            self.fail_dependents(now, call, out);
        }
        self.refill(now, id, out);
        Ok((sent.payload, !sent.abandoned))
    }

    /// A host has given back calls: none of its workers has begun them, and none will.
    pub fn retracted(
        &mut self,
        now: Time,
        id: WorkerId,
        calls: &[CallId],
        out: &mut Vec<Action<T>>,
    ) {
        for call in calls {
            let Some(sent) = self.take_out(now, id, *call) else { continue };
            if sent.abandoned {
                out.push(Action::Forget(sent.payload));
            } else {
                self.put_back(sent.call, out);
            }
        }
        self.pump_nearby(now, id, out);
        self.pump(now, out);
    }

    /// Removes the ready workers of a host.
    pub(crate) fn lost_slots(&mut self, id: WorkerId) {
        if let Some(host) = &mut self.workers[id.index()].host {
            self.host_slots -= std::mem::take(&mut host.slots);
            host.nests = false;
            host.stay.life = None;
        }
    }

    /// Home of the next reserved worker: this machine, or the host with the fewest of them. A bound worker lives in
    /// its group.
    pub(crate) fn next_home(&self, group: Option<GroupId>) -> Option<WorkerId> {
        let hosts = match group {
            None if self.settings.workers > 0 => return None,
            None => &self.hosts,
            Some(group) => {
                let group = &self.groups[group.index()];
                if group.here && self.settings.workers > 0 {
                    return None;
                }
                &group.hosts
            }
        };
        let usable = |id: &&WorkerId| !self.workers[id.index()].given_up;
        let hosts = hosts.iter().filter(usable);
        let is_asleep = |id: WorkerId| self.workers[id.index()].is_asleep();
        let is_ready = |id: WorkerId| self.workers[id.index()].phase == Phase::Ready;
        let rank = |id: WorkerId| (is_asleep(id), !is_ready(id), self.guests(id).len());
        hosts.min_by_key(|id| rank(**id)).copied()
    }

    /// Whether a reserved worker can be started now: its home is this machine, or a connected host.
    pub(crate) fn home_is_ready(&self, id: WorkerId) -> bool {
        let home = self.workers[id.index()].home;
        home.is_none_or(|home| self.workers[home.index()].phase == Phase::Ready)
    }

    /// The host of a reserved worker; `None`: this machine.
    #[must_use]
    pub fn home(&self, id: WorkerId) -> Option<WorkerId> {
        self.workers.get(id.index())?.home
    }

    /// Reserved workers that live on a host, or will.
    pub(crate) fn guests(&self, host: WorkerId) -> Vec<WorkerId> {
        let lives = |id: &&WorkerId| {
            let worker = &self.workers[id.index()];
            worker.home == Some(host) && worker.phase != Phase::Absent
        };
        self.reserved_places.iter().filter(lives).copied().collect()
    }

    /// Handles the loss of a host's reserved workers.
    pub(crate) fn lose_guests(
        &mut self,
        now: Time,
        host: WorkerId,
        loss: &Loss,
        out: &mut Vec<Action<T>>,
    ) {
        for guest in self.guests(host) {
            self.worker_lost(now, guest, None, loss.clone(), out);
        }
    }

    /// Stops sending ahead to a host whose functions make calls, and retracts what was sent ahead.
    pub(crate) fn host_nests(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        if let Some(host) = &mut worker.host
            && !std::mem::replace(&mut host.nests, true)
            && worker.surplus() > 0
        {
            self.retract(id, usize::MAX, |_| true, out);
        }
    }

    /// Retracts the last calls sent to a host while workers are free elsewhere.
    pub(crate) fn even_out(&mut self, out: &mut Vec<Action<T>>) {
        if !self.uneven {
            return;
        }
        let has_too_many = |id: &WorkerId| {
            let worker = &self.workers[id.index()];
            worker.surplus() > 0 || worker.host.as_ref().is_some_and(|host| host.nearby.len() > 0)
        };
        self.uneven = self.hosts.iter().any(has_too_many);
        if !self.uneven {
            return;
        }
        if self.calls.queued(None) == 0 {
            let free = self.free_here() + self.free_slots(&self.hosts);
            self.even_out_among(None, free, out);
        }
        for index in 0..self.groups.len() {
            let group = GroupId(index as u32);
            let HostGroup { here, hosts, .. } = &self.groups[index];
            let several = hosts.len() + usize::from(*here) > 1;
            if several && self.calls.queued(Some(group)) == 0 {
                let here = if *here { self.free_here() } else { 0 };
                let free = here + self.free_slots(hosts);
                self.even_out_among(Some(group), free, out);
            }
        }
        if self.calls.queued(None) == 0 {
            for index in 0..self.hosts.len() {
                self.even_out_nearby(self.hosts[index], out);
            }
        }
    }

    fn free_slots(&self, hosts: &[WorkerId]) -> usize {
        hosts.iter().map(|id| self.workers[id.index()].free_slots()).sum()
    }

    /// Does the same for calls bound to one group, or to none, with `free` free workers.
    fn even_out_among(&mut self, line: Option<GroupId>, mut free: usize, out: &mut Vec<Action<T>>) {
        let count = |core: &Self| {
            line.map_or(core.hosts.len(), |group| core.groups[group.index()].hosts.len())
        };
        for index in 0..count(self) {
            let id = line
                .map_or_else(|| self.hosts[index], |group| self.groups[group.index()].hosts[index]);
            let surplus = self.workers[id.index()].surplus();
            if free > 0 && surplus > 0 {
                free -= self.retract(id, surplus.min(free), |sent| sent.group == line, out);
            }
        }
    }

    /// Requests at most `most` of the calls sent last back from a host; with `usize::MAX` also those that would better
    /// stay. Returns how many.
    pub(crate) fn retract(
        &mut self,
        host: WorkerId,
        most: usize,
        which: impl Fn(&SentCall<T>) -> bool,
        out: &mut Vec<Action<T>>,
    ) -> usize {
        let Core { workers, calls, .. } = self;
        let worker = &mut workers[host.index()];
        let away = worker.host.as_ref().map_or(0, |host| host.round_trip);
        // A call stays where its arguments are, unless nothing may wait there.
        let movable = |call: CallId| {
            most == usize::MAX || calls.get(call).is_some_and(|call| call.near.is_none())
        };
        // A call that would finish before it could move stays.
        let worth = |cost: u64| most == usize::MAX || cost > 4 * away;
        let wanted: Vec<CallId> = worker
            .sent
            .iter_mut()
            .rev()
            .filter(|sent| {
                !sent.retracting && !sent.abandoned && worth(sent.cost) && movable(sent.call)
            })
            .filter(|sent| which(sent))
            .take(most.min(MOST_RETRACTED))
            .map(|sent| {
                sent.retracting = true;
                sent.call
            })
            .collect();
        let count = wanted.len();
        if count > 0 {
            out.push(Action::Retract { host, calls: wanted });
        }
        count
    }

    fn count_places(&mut self, id: WorkerId, wanted: u32) {
        if let Some(host) = &mut self.workers[id.index()].host {
            self.places -= host.wanted;
            host.wanted = wanted.max(1) as usize;
            self.places += host.wanted;
        }
    }
}

/// Maximum number of calls in one message.
const MOST_RETRACTED: usize = 4096;
