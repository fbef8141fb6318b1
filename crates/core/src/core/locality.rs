//! Calls that need results which have stayed on a host: they go to that host, where their arguments are.

use crate::calls::{CallState, Near};
use crate::core::Core;
use crate::host::Host;
use crate::ids::{CallId, FunctionId, GroupId, Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::queue::Entry;
use crate::workers::Phase;

/// Time to move a byte from one host to another through the client, ns: twice that of a 1 Gbit/s link.
const WAY: u64 = 16;

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

    /// The arguments of a call have been assembled as for [`Core::gathered`], and some of their bytes lie on a host.
    /// Returns whether the call waits for that host. If not, fetch those bytes from there first.
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
        // A worker that waits for the call could run it, and may hold the place that the call would need. A wide call
        // goes where its place is.
        let bound_elsewhere = call.task.options.on.is_some() || call.task.options.is_wide();
        if bound_elsewhere || self.wanted.contains_key(&id) || !self.may_run(at, id) {
            return false;
        }
        let near = Near { host: at, bytes };
        if self.is_better_off_elsewhere(call.task.function, call.task.options.group, near) {
            return false;
        }
        self.calls.unblock(id);
        self.calls.wait_for(id, at);
        let Some(call) = self.calls.get_mut(id) else { return true };
        call.near = Some(near);
        let (priority, entry) = (call.task.options.priority, Entry { serial: call.serial, id });
        if let Some(host) = &mut self.workers[at.index()].host {
            host.nearby.insert(priority, entry);
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
        near: Near,
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
        wait > near.bytes.saturating_mul(WAY) + 2 * host.round_trip
            && self.free_elsewhere(near.host, line) > 0
    }

    /// Idle workers outside a host that could run a call of this line.
    fn free_elsewhere(&self, host: WorkerId, line: Option<GroupId>) -> usize {
        let hosts = line.map_or(&self.hosts, |group| &self.groups[group.index()].hosts);
        let others = hosts.iter().filter(|id| **id != host);
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
            let ahead =
                if host.nests { 0 } else { self.pace.ahead(function, host.slots, host.round_trip) };
            if !ready || host.collects || taken >= host.slots + ahead {
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

    /// Reassembles the arguments of calls that were bound for a host that is gone.
    pub(crate) fn lose_nearby(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        let Some(host) = &mut self.workers[id.index()].host else { return };
        let mut waiting = std::mem::take(&mut host.nearby);
        while let Some(call) = waiting.pop_front() {
            if self.calls.get(call).is_some_and(|call| call.state == CallState::Waiting(id)) {
                self.gather_again(call, out);
            }
        }
    }
}
