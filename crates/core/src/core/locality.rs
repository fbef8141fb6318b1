//! Calls that need results which have stayed on a host: they go to that host, where their arguments are. Where that is
//! not possible, or takes longer, the results go to another host, directly or through the client.

use crate::calls::{CallState, LocalArguments};
use crate::core::Core;
use crate::host::Host;
use crate::ids::{CallId, FunctionId, GroupId, Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::queue::Entry;
use crate::workers::Phase;

/// Time to move a byte from one host to another through the client, ns: twice that of a 1 Gbit/s link.
const WAY: u64 = 16;
/// The same directly.
const DIRECT_WAY: u64 = 8;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Requests the host that runs a call, if any, to keep its result, because another call needs it.
    pub(crate) fn keep_result(&self, id: CallId, out: &mut Vec<Action<T>>) {
        let Some(CallState::Sent(worker)) = self.calls.get(id).map(|call| call.state) else {
            return;
        };
        let host = self.home(worker).unwrap_or(worker);
        if self.workers[host.index()].host.is_some() {
            out.push(Action::Keep { host, call: id });
        }
    }

    /// A host that has joined can exchange data with other such hosts.
    pub fn host_exchanges(&mut self, id: WorkerId) {
        self.forget_apart(id);
        if let Some(host) = &mut self.workers[id.index()].host {
            host.exchanges = true;
        }
    }

    /// Whether a result on the first host can become an argument on the second one without the client.
    #[must_use]
    pub fn reach(&self, from: WorkerId, to: WorkerId) -> bool {
        let exchanges = |id: WorkerId| {
            let worker = &self.workers[id.index()];
            worker.host.as_ref().is_some_and(|host| host.exchanges)
        };
        from == to || (exchanges(from) && exchanges(to) && !self.apart.contains(&(from, to)))
    }

    /// The first host could not send data to the second one. The arguments of the calls that wait for that one are
    /// reassembled.
    pub fn not_exchanged(
        &mut self,
        now: Time,
        from: WorkerId,
        to: WorkerId,
        out: &mut Vec<Action<T>>,
    ) {
        self.apart.insert((from, to));
        self.gather_nearby_again(to, out);
        // Other calls waited behind them.
        self.pump(now, out);
    }

    /// The host to which a call goes whose arguments lie on hosts in part, `bytes` of them and most at `at`. `None`:
    /// those bytes have to be fetched first.
    #[must_use]
    pub fn place_of_arguments(&self, id: CallId, at: WorkerId, bytes: u64) -> Option<WorkerId> {
        let near = LocalArguments { host: at, bytes };
        let options = &self.calls.get(id)?.task.options;
        let function = self.calls.get(id)?.task.function;
        let stays = self.can_wait_for(id, at);
        if stays && !self.is_better_off_elsewhere(function, options.group, near) {
            return Some(at);
        }
        let others = self.hosts_of(options.group).iter().copied().filter(|other| {
            *other != at && self.reach(at, *other) && self.can_wait_for(id, *other)
        });
        let backlog = |id: &WorkerId| {
            let worker = &self.workers[id.index()];
            let host = worker.host.as_ref();
            let (slots, nearby) = host.map_or((0, 0), |host| (host.slots, host.nearby.len()));
            // A host without a ready worker comes last.
            (worker.free_slots() == 0, slots == 0, (worker.taken() + nearby) * 1024 / slots.max(1))
        };
        let best = others.min_by_key(backlog)?;
        let is_free = self.workers[best.index()].free_slots() > 0;
        let others_are_free = || stays || self.free_elsewhere(at, options.group) > 0;
        (is_free || !others_are_free()).then_some(best)
    }

    /// Whether a call can be sent to this host when it is its turn. A worker that waits for the call could run it, and
    /// may hold the place that the call would need. A wide call goes where its place is.
    fn can_wait_for(&self, id: CallId, host: WorkerId) -> bool {
        let Some(call) = self.calls.get(id) else { return false };
        let bound_elsewhere = call.task.options.on.is_some() || call.task.options.is_multicore();
        !bound_elsewhere
            && !self.wanted.contains_key(&id)
            && self.may_run(host, id)
            && self.workers[host.index()].phase == Phase::Ready
    }

    /// The arguments of a call have been assembled as for [`Core::gathered`], and some of their bytes lie on the host
    /// that [`Core::place_of_arguments`] has named, or come to it from other hosts. Returns whether the call waits for
    /// that host. If not, assemble them again.
    pub fn gathered_near(
        &mut self,
        now: Time,
        id: CallId,
        at: WorkerId,
        bytes: u64,
        out: &mut Vec<Action<T>>,
    ) -> bool {
        let Some(call) = self.calls.get(id) else { return true };
        debug_assert_eq!(call.state, CallState::Blocked { waits_for: 0 });
        if !self.can_wait_for(id, at) {
            return false;
        }
        let near = LocalArguments { host: at, bytes };
        self.calls.unblock(id);
        self.calls.wait_for(id, at);
        let Some(call) = self.calls.get_mut(id) else { return true };
        call.near = Some(near);
        let (priority, entry) = (call.task.options.priority, Entry { serial: call.serial, id });
        if let Some(host) = &mut self.workers[at.index()].host {
            host.nearby.insert(priority, entry);
            self.uneven = true;
            // Bounds the number of ended ids behind a long call.
            if host.nearby.len() > 2 * self.calls.all_waiting().0 + 1024 {
                host.nearby.retain(|id| self.calls.get(id).is_some());
            }
        }
        self.pump_nearby(now, at, out);
        true
    }

    /// Whether a worker of another host, or of this machine, would finish such a call sooner even though its
    /// arguments have to be moved, or the host is not connected.
    fn is_better_off_elsewhere(
        &self,
        function: FunctionId,
        line: Option<GroupId>,
        near: LocalArguments,
    ) -> bool {
        let worker = &self.workers[near.host.index()];
        let Some(host) = worker.host.as_ref().filter(|_| worker.phase == Phase::Ready) else {
            return true;
        };
        let before = (worker.taken() + host.nearby.len()) as u64;
        let slots = host.slots as u64;
        // Without a cost estimate, a move is not worthwhile.
        let (true, Some(cost)) = (before >= slots, self.pace.known_cost(function)) else {
            return false;
        };
        let wait = cost.saturating_mul(before + 1 - slots) / slots.max(1);
        let takes = |way: u64| near.bytes.saturating_mul(way).saturating_add(2 * host.round_trip);
        wait > takes(DIRECT_WAY)
            && (self.reaches_a_free_one(near.host, line)
                || (wait > takes(WAY) && self.free_elsewhere(near.host, line) > 0))
    }

    fn hosts_of(&self, line: Option<GroupId>) -> &[WorkerId] {
        line.map_or(&self.hosts, |group| &self.groups[group.index()].hosts)
    }

    /// Whether a host can send data to another one with idle workers that could run a call of this line.
    fn reaches_a_free_one(&self, from: WorkerId, line: Option<GroupId>) -> bool {
        let mut others = self.hosts_of(line).iter().filter(|id| **id != from);
        others.any(|id| self.workers[id.index()].free_slots() > 0 && self.reach(from, *id))
    }

    /// Idle workers outside a host that could run a call of this line.
    fn free_elsewhere(&self, host: WorkerId, line: Option<GroupId>) -> usize {
        let others = self.hosts_of(line).iter().filter(|id| **id != host);
        let free = others.map(|id| self.workers[id.index()].free_slots());
        let is_here = line.is_none_or(|group| self.groups[group.index()].here);
        let here = if is_here { self.free_here() } else { 0 };
        here + free.sum::<usize>()
    }

    /// Sends the last of the calls that wait for a host to free workers elsewhere, if that is worth moving their
    /// arguments.
    pub(crate) fn even_out_nearby(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        let has_some = |host: &Host| host.nearby.len() > 0;
        if !self.workers[id.index()].host.as_ref().is_some_and(has_some) {
            // The usual case: counting free workers would take longer than everything else.
            return;
        }
        for _ in 0..self.free_elsewhere(id, None) {
            let Some(host) = &mut self.workers[id.index()].host else { return };
            let Some(entry) = host.nearby.last() else { return };
            let waiting = self.calls.get(entry).filter(|call| call.state == CallState::Waiting(id));
            let Some((near, function, line)) = waiting
                .and_then(|call| Some((call.near?, call.task.function, call.task.options.group)))
            else {
                host.nearby.pop_last();
                continue;
            };
            if !self.is_better_off_elsewhere(function, line, near) {
                return;
            }
            if let Some(host) = &mut self.workers[id.index()].host {
                host.nearby.pop_last();
            }
            self.gather_again(entry, out);
        }
    }

    /// Sends a host the calls that wait for it, until it is full.
    pub(crate) fn pump_nearby(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        loop {
            let worker = &mut self.workers[id.index()];
            let (ready, taken) = (worker.phase == Phase::Ready, worker.taken());
            let Some(host) = &mut worker.host else { return };
            let Some(call) = host.nearby.front() else { return };
            let known = self.calls.get(call).filter(|call| call.state == CallState::Waiting(id));
            let Some(known) = known else {
                host.nearby.pop_front();
                continue;
            };
            let function = known.task.function;
            if !ready || host.collects || taken >= host.slots + host.ahead(function) {
                return;
            }
            host.nearby.pop_front();
            self.calls.sent_from_own_queue(call, id);
            self.send(now, call, id, out);
        }
    }

    /// Reassembles the arguments of a call that was bound for a host, or has been there.
    pub(crate) fn gather_again(&mut self, id: CallId, out: &mut Vec<Action<T>>) {
        self.calls.leave_place(id);
        if let Some(call) = self.calls.get_mut(id) {
            call.near = None;
        }
        self.calls.block(id, 0);
        self.gather(id, out);
    }

    /// The arguments of a call cannot be assembled yet: some of the calls that it needs run again.
    pub fn blocked_again(&mut self, id: CallId, after: &[CallId], out: &mut Vec<Action<T>>) {
        if self.calls.get(id).is_some() {
            self.calls.leave_place(id);
            self.block(id, after, out);
        }
    }

    /// Reassembles the arguments of calls that were bound for a host that is gone, and of those that may need results
    /// from there.
    pub(crate) fn lose_nearby(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        let exchanges = |host: &mut Host| std::mem::take(&mut host.exchanges);
        if self.workers[id.index()].host.as_mut().is_some_and(exchanges) {
            self.forget_apart(id);
            for index in 0..self.hosts.len() {
                self.gather_nearby_again(self.hosts[index], out);
            }
        } else {
            self.gather_nearby_again(id, out);
        }
    }

    fn forget_apart(&mut self, id: WorkerId) {
        self.apart.retain(|(from, to)| *from != id && *to != id);
    }

    fn gather_nearby_again(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        let Some(host) = &mut self.workers[id.index()].host else { return };
        let mut waiting = std::mem::take(&mut host.nearby);
        while let Some(call) = waiting.pop_front() {
            if self.calls.get(call).is_some_and(|call| call.state == CallState::Waiting(id)) {
                self.gather_again(call, out);
            }
        }
    }
}
