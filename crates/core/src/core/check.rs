//! Invariants of the core, checked after every step of the simulation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::group::HostGroup;
use crate::ids::{BlobId, CallId, GroupId, WorkerId};
use crate::pace::MAX_UNANSWERED;
use crate::policy::Policy;
use crate::resource_request::{ResourceRequest, SCAN, SCAN_ALL};
use crate::resources::{Available, Claims, Resources};
use crate::workers::{Phase, Worker};

impl<T: Clone, P: Policy> Core<T, P> {
    /// Checks that all parts of the state agree. For tests only: it is slow.
    ///
    /// # Panics
    /// When they disagree.
    pub fn check(&self) {
        let mut queued = (0, 0);
        let mut sent = HashSet::new();
        let mut waiting = HashSet::new();
        let (mut waited, mut waiting_bytes) = (0, 0);
        for (index, worker) in self.workers.iter().enumerate() {
            let id = WorkerId(index as u32);
            let most = worker.host.as_ref().map_or(MAX_UNANSWERED, |_| usize::MAX);
            assert!(worker.sent.len() <= most, "{id:?} holds too many calls");
            let unfinished = worker.sent.range(worker.finished..);
            let held = worker.sent.iter().map(|sent| sent.slots as usize - 1).sum::<usize>();
            assert_eq!(worker.held, held, "{id:?}");
            assert_eq!(worker.cost, unfinished.map(|sent| sent.cost).sum::<u64>());
            let may_hold = matches!(worker.phase, Phase::Ready | Phase::Ending);
            assert!(may_hold || worker.sent.is_empty(), "{id:?} is {:?}", worker.phase);
            if worker.idle.is_some() {
                assert!(worker.sent.is_empty() && worker.phase == Phase::Ready, "{id:?} not idle");
            }
            if worker.unwanted {
                assert!(worker.is_common() && !worker.given_up, "{id:?} is not wanted");
                let busy = worker.phase == Phase::Ready;
                assert!(!busy || !worker.sent.is_empty(), "{id:?} was not dismissed");
            }
            if worker.phase == Phase::Ready && worker.sent.is_empty() {
                assert!(worker.idle.is_some() == worker.is_common(), "{id:?} is forgotten");
            }
            if let Some(reserved) = &worker.reserved {
                let mut held_up = false;
                let waits = |call: &&CallId| self.calls.get(**call).is_some();
                for call in reserved.queue.iter().filter(waits) {
                    assert!(waiting.insert(*call), "{call:?} waits twice");
                    let state = self.calls.get(*call).map(|call| call.state);
                    if let Some(CallState::Blocked { .. }) = state {
                        held_up = true;
                        continue;
                    }
                    assert_eq!(state, Some(CallState::Waiting(id)), "{call:?}");
                    assert!(
                        held_up || worker.phase != Phase::Ready || !worker.sent.is_empty(),
                        "{call:?} waits for nobody"
                    );
                }
            }
            if let Some(host) = &worker.host {
                let waits = |call: &CallId| {
                    self.calls.get(*call).is_some_and(|call| call.state == CallState::Waiting(id))
                };
                for call in host.nearby.ids().filter(waits) {
                    assert!(waiting.insert(call), "{call:?} waits twice");
                    let near = self.calls.get(call).and_then(|call| call.near);
                    assert_eq!(
                        near.map(|near| near.host),
                        Some(id),
                        "{call:?} waits for the wrong host"
                    );
                    assert_eq!(worker.free_slots(), 0, "{call:?} waits for nobody");
                }
            }
            for call in worker.sent.iter().filter(|sent| !sent.abandoned) {
                assert!(sent.insert(call.call), "{:?} is in two places", call.call);
                let state = self.calls.get(call.call).map(|call| call.state);
                assert_eq!(state, Some(CallState::Sent(id)), "{:?}", call.call);
                let near = self.calls.get(call.call).and_then(|call| call.near);
                assert!(near.is_none_or(|near| near.host == id), "{:?} lacks arguments", call.call);
                assert!(self.may_run(id, call.call), "{:?} runs elsewhere", call.call);
            }
        }
        let mut wanted: HashMap<BlobId, usize> = Default::default();
        let mut blocked = self.blocked_by_others();
        let mut blocked_all = (0, 0);
        let mut lines: HashMap<Option<GroupId>, usize> = HashMap::new();
        let mut multicore = (0, 0);
        for (id, call) in self.calls.iter() {
            match call.state {
                CallState::Blocked { waits_for } => {
                    assert_eq!(blocked.remove(&id).unwrap_or(0), waits_for, "{id:?}");
                    blocked_all = (blocked_all.0 + 1, blocked_all.1 + call.task.bytes);
                    if let Some(on) = call.task.options.on {
                        assert!(waiting.contains(&id), "{id:?} has no place with {on:?}");
                    }
                }
                CallState::Queued => {
                    *lines.entry(call.task.options.group).or_default() += 1;
                    queued = (queued.0 + 1, queued.1 + call.task.bytes);
                }
                CallState::QueuedWide => {
                    assert!(call.task.options.is_multicore(), "{id:?} is not wide");
                    multicore = (multicore.0 + 1, multicore.1 + call.task.bytes);
                }
                CallState::Waiting(_) => {
                    assert!(waiting.contains(&id), "{id:?} is lost");
                    waited += 1;
                    waiting_bytes += call.task.bytes;
                }
                CallState::Sent(_) => assert!(sent.contains(&id), "{id:?} is lost"),
            }
            assert!(call.losses <= self.settings.retries, "{id:?} was retried too often");
            let tries = self.settings.max_failed_starts;
            assert!(call.false_starts < tries, "{id:?} was tried too often");
            call.task.blobs.iter().for_each(|blob| *wanted.entry(*blob).or_default() += 1);
        }
        self.check_lines(&lines);
        assert_eq!(queued.0, self.calls.queued(None) + self.calls.bound());
        for (id, by) in &self.wanted {
            let call = self.calls.get(*id).expect("nobody waits for a call that has ended");
            let lost = call.losses + call.false_starts > 0;
            let needed = lost || self.dependents.has(*id);
            assert!(
                needed || call.state != CallState::Queued || !self.may_run(*by, *id),
                "{id:?} waits for the one that waits for it"
            );
        }
        assert!(blocked.is_empty(), "calls that are not blocked wait for others: {blocked:?}");
        let all = (
            queued.0 + multicore.0 + waited + blocked_all.0,
            queued.1 + multicore.1 + waiting_bytes + blocked_all.1,
        );
        assert_eq!(multicore.0, self.calls.multicore());
        self.calls.check_fronts();
        self.check_wide();
        self.check_resources();
        assert_eq!(all, self.calls.all_waiting());
        let is_ready = |worker: &&Worker<T>| worker.is_ready_here();
        let ready = self.workers.iter().filter(is_ready).count();
        assert_eq!(ready, self.ready);
        let idle = self.workers.iter().filter(|worker| worker.idle.is_some()).count();
        assert_eq!(idle, self.idle.len());
        let is_given_up = |worker: &&Worker<T>| {
            assert!(!worker.given_up || worker.phase == Phase::Absent);
            worker.reserved.is_none() && worker.given_up
        };
        let wanted_of = |worker: &Worker<T>| worker.host.as_ref().map_or(1, |host| host.wanted);
        let given_up: usize = self.workers.iter().filter(is_given_up).map(wanted_of).sum();
        assert_eq!(given_up, self.given_up.as_ref().map_or(0, |(places, _)| *places));
        let is_for_all = |worker: &&Worker<T>| worker.reserved.is_none() && !worker.is_asleep();
        let for_all = self.workers.iter().filter(is_for_all);
        assert_eq!(self.places, for_all.map(wanted_of).sum::<usize>());
        let slots = self.workers.iter().filter_map(|worker| worker.host.as_ref());
        assert_eq!(self.host_slots, slots.map(|host| host.slots).sum::<usize>());
        let free = self.hosts.iter().any(|id| self.could_run_any(*id));
        let for_all = self.calls.queued(None);
        let held = self.is_held();
        assert!(!free || for_all == 0 || self.ready > 0 || held, "calls wait for nobody");
        let for_here = self.here.iter().map(|group| self.calls.queued(Some(*group)));
        let for_these = for_all + for_here.sum::<usize>();
        if self.free_here() > 0 && for_these > 0 {
            // By the policy's choice, they wait for a busy worker.
            let at_work =
                self.workers.iter().filter(is_ready).any(|worker| !worker.sent.is_empty());
            assert!(at_work && for_these <= self.policy.may_wait(), "calls wait for nobody");
        }
        for (id, blob) in &self.blobs.table {
            assert_eq!(blob.calls, wanted.remove(id).unwrap_or(0), "{id:?}");
            let leaving = blob.dropped && blob.calls == 0;
            assert_eq!(blob.leaving, leaving, "{id:?}");
            assert!(!leaving || !blob.holders.is_empty(), "{id:?} leaks");
        }
        assert!(wanted.is_empty(), "calls refer to data that is gone: {wanted:?}");
        if self.closed || self.broken.is_some() {
            assert_eq!(self.calls.live(), 0, "calls live in a closed grid");
        }
        let live: HashSet<CallId> = self.calls.iter().map(|(id, _)| id).collect();
        assert_eq!(live.len(), self.calls.live());
        self.check_tallies();
    }

    /// Whether calls may wait for busy hosts, by the policy's choice, and a timer ends that.
    fn is_held(&self) -> bool {
        let is_busy = |id: &WorkerId| !self.workers[id.index()].sent.is_empty();
        let held = self.policy.holds_until();
        held.is_some() && held == self.held_until && self.hosts.iter().any(is_busy)
    }

    /// Checks that every accepted call is alive or has exactly one outcome.
    fn check_tallies(&self) {
        let mut alive: HashMap<usize, u64> = HashMap::new();
        for (_, call) in self.calls.iter() {
            *alive.entry(call.task.function.0 as usize).or_default() += 1;
        }
        for (function, counters) in self.call_counters().iter().enumerate() {
            let counted = counters.submitted - counters.ended();
            assert_eq!(counted, alive.remove(&function).unwrap_or(0), "{counters:?}");
        }
        assert!(alive.is_empty(), "calls that were never taken: {alive:?}");
    }

    /// Checks that calls bound to a group are in its line and wait for an executor.
    fn check_lines(&self, lines: &HashMap<Option<GroupId>, usize>) {
        let all = (0..self.groups.len()).map(|index| Some(GroupId(index as u32)));
        let waited_for: HashSet<GroupId> = self.calls.waited_for().into_iter().collect();
        let mut bound = 0;
        for line in all.chain([None]) {
            let queued = self.calls.queued(line);
            assert_eq!(queued, lines.get(&line).copied().unwrap_or(0), "{line:?}");
            assert!(self.calls.queue_len(line) <= 2 * queued + 1025, "the queue leaks");
            let Some(group) = line else { continue };
            bound += queued;
            assert_eq!(waited_for.contains(&group), queued > 0, "{group:?}");
            let HostGroup { here, hosts, lost, .. } = &self.groups[group.index()];
            let free = hosts.iter().any(|id| self.could_run_any(*id));
            // By the policy's choice, they may wait for a worker of this machine, or behind calls that do.
            let may_wait_here = |other: &GroupId| {
                let has_hosts = !self.groups[other.index()].hosts.is_empty();
                has_hosts && self.calls.queued(Some(*other)) > 0
            };
            let waits_here = self.ready > 0 && self.here.iter().any(may_wait_here);
            assert!(!free || queued == 0 || waits_here, "calls for {group:?} wait for nobody");
            let mut given_up = hosts.iter().map(|id| self.workers[id.index()].given_up);
            if *here {
                let common = self.workers.iter().filter(|worker| worker.is_common());
                let mut given_up = given_up.chain(common.map(|worker| worker.given_up));
                assert!(lost.is_none() || given_up.all(|given_up| given_up));
            } else if self.broken.is_none() {
                assert_eq!(lost.is_some(), given_up.all(|given_up| given_up), "{group:?}");
            }
            assert!(lost.is_none() || queued == 0, "calls wait for {group:?}, which is lost");
        }
        assert_eq!(bound, self.calls.bound());
        assert_eq!(waited_for.len(), self.calls.waited_for().len());
    }

    /// Whether a host has a free worker for any call, regardless of its run time.
    fn could_run_any(&self, id: WorkerId) -> bool {
        let worker = &self.workers[id.index()];
        let ends = worker.host.as_ref().is_some_and(|host| host.stay.life.is_some());
        worker.free_slots() > 0 && !ends
    }

    /// Checks that places are held only for running calls, and collected only for waiting ones.
    fn check_wide(&self) {
        let here = self.workers.iter().filter(|worker| worker.is_common());
        assert_eq!(self.idle.held, here.map(|worker| worker.held).sum::<usize>());
        let collects = |id: &WorkerId| {
            self.workers[id.index()].host.as_ref().is_some_and(|host| host.collects)
        };
        let hosts = self.hosts.iter().any(collects);
        assert_eq!(self.collects, hosts || self.collects_here);
        assert!(!self.collects || self.calls.multicore() > 0, "places are collected for nobody");
        let others = self.calls.queued(None) + self.calls.bound();
        let (mut before, mut places_before) = (Claims::default(), 0);
        let first =
            if others == 0 { self.calls.first_multicore(SCAN_ALL, SCAN) } else { Vec::new() };
        for (_, id) in first {
            let Some(call) = self.calls.get(id) else { continue };
            let request = ResourceRequest::of(&call.task);
            let room = self.has_vacant_site(&request, &before, places_before);
            assert!(!room, "{id:?} waits for nobody");
            before.add(&request.resources);
            // It takes at most this many places, however many cores each worker of its host has.
            places_before += request.cores as usize;
        }
    }

    /// Checks that resources in use match the calls sent, and never exceed those available.
    fn check_resources(&self) {
        let of = |workers: &mut dyn Iterator<Item = &Worker<T>>| {
            let sent = workers.flat_map(|worker| &worker.sent);
            let taken = sent.flat_map(|sent| {
                let amounts = sent.resources.iter();
                amounts.map(|(name, amount)| (Arc::clone(name), amount)).collect::<Vec<_>>()
            });
            Resources::new(taken)
        };
        assert!(self.available.is_within(), "{:?}", self.available);
        let mut here = self.workers.iter().filter(|worker| worker.is_common());
        assert_eq!(self.available.used(), of(&mut here));
        for worker in &self.workers {
            if let Some(host) = &worker.host {
                assert!(host.available.is_within(), "{:?}", host.available);
                assert_eq!(host.available.used(), of(&mut std::iter::once(worker)));
            }
            if worker.reserved.is_some() {
                assert!(worker.sent.iter().all(|sent| sent.resources.is_empty()));
            }
        }
    }

    /// Number of calls that each call waits for.
    fn blocked_by_others(&self) -> HashMap<CallId, u32> {
        let mut blocked = HashMap::new();
        for (dependency, calls) in self.dependents.iter() {
            assert!(self.calls.get(dependency).is_some(), "{dependency:?} has ended");
            for call in calls.iter().filter(|call| self.calls.get(**call).is_some()) {
                *blocked.entry(*call).or_default() += 1;
            }
        }
        blocked
    }

    /// Resources in use by calls that were sent, on this machine and all hosts. For tests of leaks.
    #[must_use]
    pub fn resources_in_use(&self) -> Resources {
        let hosts = self.workers.iter().filter_map(|worker| worker.host.as_ref());
        let stocks = hosts.map(|host| &host.available).chain([&self.available]);
        let used = stocks.map(Available::used).collect::<Vec<_>>();
        let all = used.iter().flat_map(Resources::iter);
        Resources::new(all.map(|(name, amount)| (Arc::clone(name), amount)))
    }

    /// Number of timers, including those that no longer matter. For tests of leaks.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.timers.len()
    }
}
