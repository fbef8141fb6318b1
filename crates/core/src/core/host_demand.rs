//! Elastic hosts, which come and go with the load. Only some hosts of a group are always wanted; the others are
//! requested while calls wait, and given back after some idle time. A host with a known end, such as that of a batch
//! job, gets no call that would not finish before it.
//!
//! The core checks all of this periodically, not on each call. The path of a call only checks whether there is
//! anything to check.

use std::sync::Arc;

use crate::core::Core;
use crate::elastic::{Demand, Group, Lifetime, Span};
use crate::ids::{CallId, GroupId, Time, WorkerId, ns};
use crate::interface::Action;
use crate::policy::Policy;
use crate::resource_request::{ResourceRequest, SCAN_ALL};
use crate::timers::Timer;
use crate::workers::Phase;

/// Check interval, ns.
const LOOK: u64 = 1_000_000_000;
/// How long a host that was unavailable is not requested again, ns, if others of its group are available.
const REST: u64 = 30_000_000_000;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Makes all but the first `least` of these hosts elastic: each of the others is given back after `idle` ns
    /// without work. Call before [`Core::open`].
    pub fn make_elastic(&mut self, hosts: Vec<WorkerId>, least: usize, idle: u64) {
        for id in hosts.iter().skip(least) {
            if let Some(host) = &mut self.workers[id.index()].host
                && !std::mem::replace(&mut host.stay.asleep, true)
            {
                self.places -= host.wanted;
            }
        }
        self.elastic.used = true;
        self.elastic.groups.push(Group { hosts, least, idle, waits_since: None });
    }

    /// Sets the end time of a connected host.
    pub fn host_ends(&mut self, now: Time, id: WorkerId, ends: Time) {
        let Some(host) = &mut self.workers[id.index()].host else { return };
        let began = host.stay.life.map_or(now, |life| life.began);
        let life = Lifetime { began, ends };
        let is_new = host.stay.life.replace(life).is_none();
        if host.serves {
            self.learn_span(id, life.span(), is_new);
        }
        self.elastic.used = true;
        self.look_soon(now);
    }

    /// Handles the first ready worker of a host: calls can use the rest of its lifetime.
    pub(crate) fn begins_to_serve(&mut self, now: Time, id: WorkerId) {
        let stay = self.workers[id.index()].stay_mut();
        if let Some(life) = stay.and_then(|stay| stay.life.as_mut()) {
            life.began = now;
            let span = life.span();
            self.learn_span(id, span, true);
        }
    }

    /// Records the lifetime of a host and of others of its group. The host's own last lifetime counts, even if an
    /// earlier one was longer. Otherwise a call that needs more time would restart the host forever.
    fn learn_span(&mut self, id: WorkerId, span: Span, is_new: bool) {
        let Some(host) = &mut self.workers[id.index()].host else { return };
        if is_new {
            host.stay.span = None;
        }
        let group = Arc::clone(&host.group);
        for index in 0..self.hosts.len() {
            let other = self.hosts[index];
            let Some(host) = &mut self.workers[other.index()].host else { continue };
            if other == id || !group.is_empty() && host.group == group {
                host.stay.span = host.stay.span.max(Some(span));
            }
        }
    }

    /// Whether results of calls lie on a host. Report it before the check that may give it back.
    pub fn host_keeps(&mut self, id: WorkerId, keeps: bool) {
        if let Some(stay) = self.workers[id.index()].stay_mut() {
            stay.keeps = keeps;
        }
    }

    /// The elastic hosts.
    pub fn elastic_hosts(&self) -> impl Iterator<Item = WorkerId> {
        self.elastic.groups.iter().flat_map(|group| group.hosts.iter().copied())
    }

    /// Number of workers that the hosts of elastic groups would add to those that are ready, once calls wait for them.
    /// If no host can be started any more, it is that of all: the next calls learn why.
    #[must_use]
    pub fn workers_on_demand(&self) -> usize {
        let missing = |id: WorkerId| {
            let worker = &self.workers[id.index()];
            let is_lost = worker.given_up && self.broken.is_none();
            let host = worker.host.as_ref().filter(|_| !is_lost);
            host.map_or(0, |host| host.wanted.saturating_sub(host.slots))
        };
        self.elastic_hosts().map(missing).sum()
    }

    /// Whether there are elastic groups.
    #[must_use]
    pub fn is_elastic(&self) -> bool {
        !self.elastic.groups.is_empty()
    }

    /// Whether a host is not wanted now.
    #[must_use]
    pub fn is_asleep(&self, id: WorkerId) -> bool {
        self.workers[id.index()].is_asleep()
    }

    /// Requests hosts until there are `wanted` workers, of a group if one is named, or as many as possible.
    pub fn want_workers(
        &mut self,
        now: Time,
        count: usize,
        group: Option<GroupId>,
        out: &mut Vec<Action<T>>,
    ) {
        if self.elastic.groups.is_empty() {
            return;
        }
        let hosts = match group {
            None => self.hosts.clone(),
            Some(group) => self.groups[group.index()].hosts.clone(),
        };
        let counts = |core: &Self, id: &WorkerId| {
            let worker = &core.workers[id.index()];
            let host = worker.host.as_ref().filter(|host| !host.stay.asleep && !worker.given_up);
            host.map_or(0, |host| host.wanted)
        };
        let is_here = group.is_none_or(|group| self.groups[group.index()].here);
        let here = if is_here { self.places - self.wanted_on_hosts() } else { 0 };
        let mut there = here + hosts.iter().map(|id| counts(self, id)).sum::<usize>();
        for id in hosts {
            if there >= count {
                break;
            }
            if self.wake(id, out) {
                there += counts(self, &id);
            }
        }
        self.look_soon(now);
    }

    /// Schedules a check of the load, if any host could come or go.
    pub(crate) fn look_soon(&mut self, now: Time) {
        if self.elastic.used && !std::mem::replace(&mut self.elastic.watched, true) {
            self.set_timer(now, Timer::Look);
        }
    }

    /// Checks the load: requests hosts, and gives some back.
    pub(crate) fn look(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        self.elastic.watched = false;
        if self.closed || self.broken.is_some() {
            return;
        }
        for index in 0..self.elastic.groups.len() {
            self.fit(now, index, out);
        }
        self.end_old_hosts(now, out);
        let extra = |group: &Group| {
            group.hosts.iter().filter(|id| !self.workers[id.index()].is_asleep()).count()
                > group.least
        };
        let has_life =
            |id: &WorkerId| self.workers[id.index()].stay().is_some_and(|stay| stay.life.is_some());
        let watched = self.calls.live() > 0
            || self.elastic.groups.iter().any(extra)
            || self.hosts.iter().any(has_life);
        if watched {
            self.elastic.watched = true;
            self.set_timer(now + LOOK, Timer::Look);
        }
    }

    /// Adjusts the number of hosts of a group to its load.
    fn fit(&mut self, now: Time, index: usize, out: &mut Vec<Action<T>>) {
        let demand = self.demand(index);
        let group = &mut self.elastic.groups[index];
        group.waits_since = (demand.queued > 0).then(|| group.waits_since.unwrap_or(now));
        let waited = group.waits_since.map_or(0, |since| now.since(since));
        let (least, idle, hosts) = (group.least, group.idle, group.hosts.clone());
        let more = Demand { waited, ..demand }.hosts();
        let rested = |core: &Self, id: WorkerId| {
            core.workers[id.index()].stay().is_some_and(|stay| stay.rests_until <= now)
        };
        let mut woken = 0;
        for id in &hosts {
            if woken < more && rested(self, *id) && self.wake(*id, out) {
                woken += 1;
            }
        }
        let mut awake = hosts.iter().filter(|id| !self.workers[id.index()].is_asleep()).count();
        // Start with the last host, so that the same ones stay each time.
        for id in hosts.iter().rev() {
            let unused = self.unused_for(now, *id, demand.queued > 0);
            if awake > least && unused.is_some_and(|time| time >= idle) {
                self.put_to_sleep(*id, out);
                awake -= 1;
            }
        }
    }

    /// Load of a group of hosts.
    fn demand(&mut self, index: usize) -> Demand {
        let hosts = &self.elastic.groups[index].hosts;
        let mut groups: Vec<GroupId> = Vec::new();
        let mut demand = Demand::default();
        let mut each = None;
        for id in hosts {
            let worker = &self.workers[id.index()];
            let Some(host) = &worker.host else { continue };
            for group in &worker.groups {
                if !groups.contains(group) {
                    groups.push(*group);
                }
            }
            if host.known || each.is_none() {
                each = Some(host.wanted as u64);
            }
            match worker.phase {
                _ if host.stay.asleep || worker.given_up => {}
                Phase::Ready => {
                    demand.ready += host.slots as u64;
                    demand.coming += host.wanted.saturating_sub(host.slots) as u64;
                }
                Phase::Starting | Phase::Absent => demand.coming += host.wanted as u64,
                Phase::Ending => {}
            }
        }
        demand.each = each.unwrap_or(1);
        let mut front = None;
        for line in groups.into_iter().map(Some).chain([None]) {
            demand.queued += self.calls.queued(line) as u64;
            if self.calls.multicore() > 0 {
                demand.queued += self.multicore_slots(line, &self.elastic.groups[index].hosts);
            }
            front = self.calls.front(line).or(front);
        }
        let function = front.and_then(|(_, id)| self.calls.get(id)).map(|call| call.task.function);
        demand.cost = function.and_then(|function| self.pace.known_cost(function));
        demand
    }

    /// Places that the wide calls of a line need on these hosts, which are alike.
    fn multicore_slots(&self, line: Option<GroupId>, hosts: &[WorkerId]) -> u64 {
        let places = |(request, count): (&ResourceRequest, usize)| {
            let could = |id: &&WorkerId| self.could_have(request, Some(**id));
            let id = hosts.iter().find(could)?;
            let all = self.workers[id.index()].host.as_ref().map_or(1, |host| host.wanted);
            let share = self.available(Some(*id)).share(&request.resources, all as u64);
            Some(share.max(self.slots(request.cores, *id) as u64).saturating_mul(count as u64))
        };
        self.calls.requests(line).filter_map(places).fold(0, u64::saturating_add)
    }

    /// Requests a host that is asleep. Returns whether it could be requested.
    pub(crate) fn wake(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) -> bool {
        let worker = &mut self.workers[id.index()];
        let absent = worker.phase == Phase::Absent && !worker.given_up;
        let Some(host) = worker.host.as_mut().filter(|host| host.stay.asleep && absent) else {
            return false;
        };
        (host.stay.asleep, host.stay.idle_since) = (false, None);
        self.places += host.wanted;
        self.start(id, out);
        true
    }

    /// How long a host has been unused, ns; `None`: it is in use. `calls_wait`: calls wait that it may serve.
    fn unused_for(&mut self, now: Time, id: WorkerId, calls_wait: bool) -> Option<u64> {
        let has_guests = !self.guests(id).is_empty();
        let worker = &mut self.workers[id.index()];
        let (sent, sent_ever) = (worker.sent.len(), worker.sent_ever);
        let (given_up, ending) = (worker.given_up, worker.phase == Phase::Ending);
        let host = worker.host.as_mut().filter(|host| !host.stay.asleep)?;
        let used = sent > 0 || calls_wait || host.nearby.len() > 0 || host.stay.keeps || has_guests;
        if used || given_up || ending {
            host.stay.idle_since = None;
            return None;
        }
        match host.stay.idle_since {
            Some((since, then)) if then == sent_ever => Some(now.since(since)),
            _ => {
                host.stay.idle_since = Some((now, sent_ever));
                Some(0)
            }
        }
    }

    /// Puts a host to sleep that is no longer wanted.
    fn put_to_sleep(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        let Some(host) = &mut worker.host else { return };
        host.stay.asleep = true;
        host.stay.idle_since = None;
        (host.loss, host.absent_since) = (None, None);
        worker.failed_starts = 0;
        self.places -= host.wanted;
        self.retire(id, out);
    }

    /// Ends an idle host.
    fn retire(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        self.lost_slots(id);
        let worker = &mut self.workers[id.index()];
        if matches!(worker.phase, Phase::Starting | Phase::Ready) {
            worker.phase = Phase::Ending;
            out.push(Action::Dismiss(id));
        }
    }

    /// Ends idle hosts that have too little time left for the waiting calls, to make room for others.
    fn end_old_hosts(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        for index in 0..self.hosts.len() {
            let id = self.hosts[index];
            let worker = &self.workers[id.index()];
            let (Some(host), true) = (&worker.host, worker.phase == Phase::Ready) else { continue };
            let Some(life) = host.stay.life else { continue };
            let busy = !worker.sent.is_empty() || host.nearby.len() > 0 || host.stay.keeps;
            // Until a host serves, its remaining time for calls is unknown.
            if busy || !host.serves || !self.guests(id).is_empty() {
                continue;
            }
            let mut lines: Vec<Option<GroupId>> =
                self.workers[id.index()].groups.iter().copied().map(Some).collect();
            lines.push(None);
            // The first waiting call is the one that it would get next.
            let next = lines.into_iter().find_map(|line| self.calls.front(line));
            let could_run = |call: CallId| {
                let task = self.calls.get(call).map(|call| &call.task);
                self.may_run(id, call)
                    && task
                        .is_some_and(|task| self.could_have(&ResourceRequest::of(task), Some(id)))
            };
            let multicore = self
                .calls
                .first_multicore(SCAN_ALL, 1)
                .into_iter()
                .find(|(_, call)| could_run(*call));
            let next =
                next.or(multicore).and_then(|(_, id)| self.calls.get(id)).map(|call| &call.task);
            let is_done = match next.map(|task| (task.options.expected.map(ns), task.function)) {
                Some((Some(expected), _)) => life.has_time_for_all_of(now, expected),
                Some((None, function)) => life.has_time_for(now, self.pace.known_cost(function)),
                None => life.has_time_for(now, None),
            };
            if is_done {
                continue;
            }
            let mut groups = self.elastic.groups.iter();
            let group = groups.find(|group| group.hosts.contains(&id));
            let is_extra = group.is_some_and(|group| {
                let asleep = |id: &&WorkerId| self.workers[id.index()].is_asleep();
                group.hosts.len() - group.hosts.iter().filter(asleep).count() > group.least
            });
            if is_extra {
                self.put_to_sleep(id, out);
            } else {
                self.retire(id, out);
            }
        }
    }

    /// Pauses requests for a host that is unavailable while others of its group are available.
    pub(crate) fn rests(&mut self, now: Time, id: WorkerId) -> bool {
        let mut groups = self.elastic.groups.iter();
        let Some(group) = groups.find(|group| group.hosts.contains(&id)) else { return false };
        let can_be_had = |other: &WorkerId| {
            let worker = &self.workers[other.index()];
            *other != id && !worker.given_up && worker.has_worked
        };
        let awake = |id: &&WorkerId| !self.workers[id.index()].is_asleep();
        let extra = group.hosts.iter().filter(awake).count() > group.least;
        if !extra || !group.hosts.iter().any(can_be_had) {
            return false;
        }
        let worker = &mut self.workers[id.index()];
        worker.failed_starts = 0;
        let Some(host) = &mut worker.host else { return false };
        (host.stay.asleep, host.stay.rests_until) = (true, now + REST);
        self.places -= host.wanted;
        true
    }

    /// Number of workers on the hosts that are wanted now.
    fn wanted_on_hosts(&self) -> usize {
        let hosts = self.hosts.iter().filter_map(|id| self.workers[id.index()].host.as_ref());
        hosts.filter(|host| !host.stay.asleep).map(|host| host.wanted).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elastic::PATIENCE;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_first_hosts_are_requested_at_once_and_no_more_than_calls_wait_for() {
        let first = |queued, each| Demand { queued, each, ..Demand::default() }.hosts();
        assert_eq!((first(0, 4), first(1, 4), first(4, 4), first(5, 4)), (0, 1, 1, 2));
    }

    #[test]
    fn more_are_requested_when_calls_have_waited_and_those_on_the_way_are_too_few() {
        let some = Demand { queued: 20, ready: 4, each: 4, ..Demand::default() };
        assert_eq!(some.hosts(), 0, "they may be done at once");
        let waited = Demand { waited: PATIENCE, ..some };
        assert_eq!(waited.hosts(), 5);
        assert_eq!(Demand { coming: 16, ..waited }.hosts(), 1);
        assert_eq!(Demand { coming: 20, ..waited }.hosts(), 0);
    }

    #[test]
    fn short_work_needs_no_other_host() {
        let short = Demand { queued: 1000, waited: S, ready: 4, each: 4, ..Demand::default() };
        assert_eq!(Demand { cost: Some(S / 1000), ..short }.hosts(), 0, "1 s of work for four");
        assert_eq!(Demand { cost: Some(S / 100), ..short }.hosts(), 2, "10 s: for ten workers");
        assert_eq!(Demand { cost: Some(S), ..short }.hosts(), 249);
        assert_eq!(Demand { cost: Some(u64::MAX), ..short }.hosts(), 250);
    }

    #[test]
    fn what_is_not_done_before_the_end_is_not_begun() {
        let life = Lifetime { began: Time(0), ends: Time(100 * S) };
        let has_time = |at, cost| life.has_time_for(Time(at * S), cost);
        assert!(has_time(50, Some(40 * S)) && !has_time(59, Some(40 * S)));
        assert!(has_time(97, None) && !has_time(99, None) && !has_time(101, None));
        let says = |at, expected| life.has_time_for_all_of(Time(at * S), expected);
        assert!(says(50, 40 * S) && !says(59, 40 * S) && !says(60, 300 * S));
        assert!(life.span().has_time_for(98 * S) && !life.span().has_time_for(99 * S));
        assert!(!life.span().has_time_for(u64::MAX));
        // No host could complete it, and the estimate may be wrong.
        assert!(has_time(40, Some(300 * S)) && !has_time(60, Some(300 * S)));
    }
}
