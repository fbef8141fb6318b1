//! Host groups. Calls may be bound to one, and then wait in a separate line until one of its executors has room.
//! Lines share executors, with each other and with the calls that any executor may run, so an executor takes calls in
//! the order of priority and submission. A call that waits in one line never blocks an executor outside its group.

use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::end::{End, Loss};
use crate::group::HostGroup;
use crate::ids::{CallId, FunctionId, GroupId, Time, WorkerId};
use crate::interface::{Action, Refusal};
use crate::policy::{Policy, View};
use crate::queue::Order;
use crate::timers::Timer;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Makes a group of one or more hosts, and of the workers of this machine if `here`. Calls can be bound to it
    /// from now on. An executor may belong to several groups. Errors show the name.
    pub fn add_group(&mut self, name: &str, here: bool, mut hosts: Vec<WorkerId>) -> GroupId {
        let id = GroupId(self.groups.len() as u32);
        hosts.retain(|host| self.hosts.contains(host));
        for host in &hosts {
            self.workers[host.index()].groups.push(id);
        }
        self.groups.push(HostGroup { name: name.into(), here, hosts, lost: None });
        self.calls.add_group();
        if here {
            self.here.push(id);
        }
        self.groups[id.index()].lost = self.loss_of(id);
        id
    }

    /// Whether an executor, or a reserved worker on it, belongs to the group.
    pub(crate) fn belongs(&self, id: WorkerId, group: GroupId) -> bool {
        let worker = &self.workers[id.index()];
        match worker.home {
            Some(home) => self.workers[home.index()].groups.contains(&group),
            None if worker.host.is_some() => worker.groups.contains(&group),
            None => self.groups[group.index()].here,
        }
    }

    /// Whether a host belongs to a group.
    pub fn is_member(&self, host: WorkerId, group: GroupId) -> bool {
        self.workers.get(host.index()).is_some_and(|worker| worker.groups.contains(&group))
    }

    /// Whether all common workers of this machine have been given up.
    pub(crate) fn is_given_up_here(&self) -> bool {
        self.workers.iter().all(|worker| !worker.is_common() || worker.given_up)
    }

    /// Whether this executor may run the call.
    pub(crate) fn may_run(&self, id: WorkerId, call: CallId) -> bool {
        let group = self.calls.get(call).and_then(|call| call.task.options.group);
        group.is_none_or(|group| self.belongs(id, group))
    }

    /// The loss of one executor of a group, if all are given up.
    fn loss_of(&self, id: GroupId) -> Option<Arc<Loss>> {
        let mut hosts = self.groups[id.index()].hosts.iter().map(|id| &self.workers[id.index()]);
        let last = hosts.clone().next_back()?;
        let loss = last.host.as_ref().and_then(|host| host.loss.clone());
        let lost_here = !self.groups[id.index()].here || self.is_given_up_here();
        loss.filter(|_| hosts.all(|host| host.given_up) && lost_here)
    }

    /// The name of a group.
    pub(crate) fn name_of(&self, id: GroupId) -> Arc<str> {
        Arc::clone(&self.groups[id.index()].name)
    }

    /// The error of calls bound to a group whose executors are all given up.
    pub(crate) fn no_group(&self, id: GroupId) -> Option<(Arc<str>, Arc<Loss>)> {
        let group = &self.groups[id.index()];
        Some((Arc::clone(&group.name), Arc::clone(group.lost.as_ref()?)))
    }

    /// Number of ready workers of a group.
    ///
    /// # Errors
    /// When the group is given up: the loss of its last executor.
    pub fn ready_on(&self, id: GroupId) -> Result<usize, Refusal> {
        if let Some((name, loss)) = self.no_group(id) {
            return Err(Refusal::NoServer(name, loss));
        }
        let group = &self.groups[id.index()];
        let slots = group.hosts.iter().filter_map(|id| self.workers[id.index()].host.as_ref());
        let here = if group.here { self.ready } else { 0 };
        Ok(here + slots.map(|host| host.slots).sum::<usize>())
    }

    /// Handles an executor that is given up: if it was the last of a group, the calls bound to the group end.
    pub(crate) fn lose_groups(
        &mut self,
        now: Time,
        id: WorkerId,
        loss: &Arc<Loss>,
        out: &mut Vec<Action<T>>,
    ) {
        let mut groups = self.workers[id.index()].groups.clone();
        if self.workers[id.index()].is_common() {
            groups.extend_from_slice(&self.here);
        }
        for group in groups {
            let HostGroup { here, hosts, .. } = &self.groups[group.index()];
            let lost_here = !here || self.is_given_up_here();
            if lost_here && hosts.iter().all(|host| self.workers[host.index()].given_up) {
                self.lose_group(now, group, loss, out);
            }
        }
    }

    fn lose_group(&mut self, now: Time, id: GroupId, loss: &Arc<Loss>, out: &mut Vec<Action<T>>) {
        let group = &mut self.groups[id.index()];
        group.lost = Some(Arc::clone(loss));
        let end = End::NoServer(Arc::clone(&group.name), Arc::clone(loss));
        let bound = self.calls.iter().filter(|(_, call)| call.task.options.group == Some(id));
        let bound: Vec<CallId> = bound.map(|(call, _)| call).collect();
        for call in bound {
            self.end(now, call, end.clone(), out);
        }
    }

    /// Whether the removal of this waiting call may let others start: it is the first of its line, or places are
    /// collected for it. In that case pump the lines, as perhaps no running call would do so later.
    pub(crate) fn may_hold_up_others(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.get(id) else { return false };
        let (state, line) = (call.state, call.task.options.group);
        match state {
            CallState::QueuedWide => true,
            CallState::Queued => self.calls.front(line).is_some_and(|(_, first)| first == id),
            CallState::Blocked { .. } | CallState::Waiting(_) | CallState::Sent(_) => false,
        }
    }

    /// Sends calls of one line to executors that have room, in order. Returns whether there was one.
    pub(crate) fn pump_line(
        &mut self,
        now: Time,
        line: Option<GroupId>,
        out: &mut Vec<Action<T>>,
    ) -> bool {
        let mut sent = false;
        while self.calls.queued(line) > 0 {
            if self.calls.multicore() > 0 {
                // A call ahead of it may now be the first of the line.
                self.pump_multicore(now, out);
            }
            let Some((order, id)) = self.calls.front(line) else { break };
            let Some(function) = self.calls.get(id).map(|call| call.task.function) else { break };
            let Some(worker) = self.choose(now, line, order, function) else {
                self.hold(now);
                break;
            };
            self.calls.pop_sent(line, worker);
            self.send(now, id, worker, out);
            sent = true;
        }
        sent
    }

    /// Makes sure that calls do not wait longer for busy hosts than expected.
    fn hold(&mut self, now: Time) {
        let until = self.policy.holds_until().filter(|until| now < *until);
        if let Some(until) = until.filter(|_| until != self.held_until) {
            self.held_until = Some(until);
            self.set_timer(until, Timer::Held);
        }
    }

    /// Pumps the line of a new call. A call that waits by the policy's choice may no longer be allowed to, because
    /// others wait with it.
    pub(crate) fn pump_new(
        &mut self,
        now: Time,
        id: CallId,
        line: Option<GroupId>,
        out: &mut Vec<Action<T>>,
    ) {
        let is_here = line.is_none_or(|group| self.groups[group.index()].here);
        if self.calls.multicore() > 0 || is_here && self.calls.bound() > 0 {
            self.pump(now, out);
        } else if self.ready > 0
            || self.policy.holds_until().is_some()
            || self.calls.front(line).is_none_or(|(_, first)| first == id)
        {
            self.pump_line(now, line, out);
        }
        // Behind another call it waits as that one does.
    }

    /// Whether only this host, which has just answered, can have room for waiting calls.
    pub(crate) fn has_room_only_on(&self, host: WorkerId) -> bool {
        let no_others = self.calls.bound() > 0 || self.ready == 0;
        let answers = self.workers[host.index()].host.is_some();
        answers && no_others && self.calls.multicore() == 0 && self.policy.holds_until().is_none()
    }

    /// Pumps all lines.
    pub(crate) fn pump(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        loop {
            self.pump_lines(now, out);
            if self.calls.multicore() > 0 || self.collects {
                self.pump_multicore(now, out);
            }
            if !std::mem::take(&mut self.opened) {
                return self.relieve(now, out);
            }
            // Other calls may have been excluded from places that are no longer collected.
        }
    }

    fn pump_lines(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        self.pump_line(now, None, out);
        while self.calls.bound() > 0 {
            let mut sent = false;
            for group in self.calls.waited_for() {
                sent |= self.pump_line(now, Some(group), out);
            }
            if !sent {
                return;
            }
            // Calls just sent may have excluded others from executors that have more room.
            self.pump_line(now, None, out);
        }
    }

    /// Sends a host that has just answered its next calls, when no other one has room.
    pub(crate) fn refill_host(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        while let Some((line, call)) = self.next_for(id) {
            let Some(function) = self.calls.get(call).map(|call| call.task.function) else {
                return;
            };
            let (policy, view) = self.view(now);
            let rivals = if line.is_none() { view.rivals } else { &[] };
            let view = View { hosts: &[id], rivals, here: false, ..view };
            if policy.choose(&view, function).is_none() {
                if line.is_none() && self.policy.holds_until().is_some() {
                    // Calls of other lines do not wait with it.
                    self.pump(now, out);
                }
                return;
            }
            self.calls.pop_sent(line, id);
            self.send(now, call, id, out);
        }
    }

    /// The first call that this executor may run, and its line.
    pub(crate) fn next_for(&mut self, id: WorkerId) -> Option<(Option<GroupId>, CallId)> {
        let first = self.calls.front(None).map(|(order, call)| (order, None, call));
        if self.calls.bound() == 0 {
            return first.map(|(_, line, call)| (line, call));
        }
        let Core { calls, workers, here, .. } = self;
        let worker = &workers[id.index()];
        let here = if worker.is_common() { here.as_slice() } else { &[] };
        let bound = worker.groups.iter().chain(here).copied().filter_map(|group| {
            let (order, call) = calls.front(Some(group))?;
            Some((order, Some(group), call))
        });
        let first = bound.chain(first).min_by_key(|(order, _, _)| *order);
        first.map(|(_, line, call)| (line, call))
    }

    /// The executor for the call at the front of a line; `None`: it waits.
    fn choose(
        &mut self,
        now: Time,
        line: Option<GroupId>,
        order: Order,
        function: FunctionId,
    ) -> Option<WorkerId> {
        let bound = self.calls.bound() > 0;
        if !bound {
            let (policy, view) = self.view(now);
            let chosen = policy.choose(&view, function);
            return self.chosen(chosen);
        }
        let Core { policy, workers, idle, hosts, pace, calls, groups, .. } = self;
        let (open, here_lines) = (!self.collects_here, &self.here);
        let before = |calls: &mut crate::calls::Calls<T>, other: Option<GroupId>| {
            other != line && calls.front(other).is_some_and(|(first, _)| first < order)
        };
        let queued_here = here_lines.iter().map(|group| calls.queued(Some(*group)));
        let queued = calls.queued(None) + queued_here.sum::<usize>();
        // A call that any executor may run, but none has room for, takes the next free place.
        let ahead = line.is_none() || !before(calls, None);
        let here = open
            && line.is_none_or(|group| groups[group.index()].here)
            && !here_lines.iter().any(|other| before(calls, Some(*other)));
        let hosts = line.map_or(hosts.as_slice(), |group| &groups[group.index()].hosts);
        let is_open = |host: &WorkerId| {
            let mut lines = workers[host.index()].groups.iter();
            !lines.any(|other| before(calls, Some(*other)))
        };
        let open: Vec<WorkerId> = hosts.iter().copied().filter(is_open).collect();
        let view = View {
            now,
            workers,
            idle,
            ready: self.ready,
            hosts: &open,
            rivals: if line.is_none() { hosts } else { &[] },
            host_slots: self.host_slots,
            pace,
            queued,
            waiting: calls.queued(None) + calls.bound(),
            here,
            ahead,
        };
        let chosen = policy.choose(&view, function);
        debug_assert!(chosen.is_none_or(|id| view.can_take(id, function)), "it cannot take it");
        self.chosen(chosen)
    }

    fn chosen(&mut self, id: Option<WorkerId>) -> Option<WorkerId> {
        self.idle.remove(id?, &mut self.workers);
        id
    }
}
