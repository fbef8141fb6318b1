//! Wide calls: each needs more of one host than the place of a worker. A call with several cores takes the places of
//! several workers there: one of them runs it, and the others keep their places free until it has ended. A call with
//! resources takes that amount from its host. A call with a long expected time runs only on a host that does not end
//! before it.
//!
//! Wide calls wait beside their line, so that they block no call that can run elsewhere. When all earlier calls have
//! been sent, it is a wide call's turn. If no host has enough free at that moment, it waits for the one that lacks
//! least. While a resource is lacking there, the requested resources are *claimed*: other calls that request them
//! come later, and calls that need none of them continue. When only places are lacking, they are *collected*: the
//! host is sent nothing else until there are enough. So a stream of small calls does not starve a wide one, and each
//! host collects for one call at a time.
//!
//! A running function may wait for a call that another worker has to run. While one does, nothing is collected,
//! because that call may need the very place that would be withheld.

use std::collections::HashMap;
use std::sync::Arc;

use crate::calls::CallState;
use crate::core::Core;
use crate::elastic::Span;
use crate::end::{self, NoFittingHost, TooManyCores};
use crate::group::HostGroup;
use crate::ids::{CallId, FunctionId, GroupId, Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::queue::Order;
use crate::resource_request::{NeverRuns, ResourceRequest, SCAN, SCAN_ALL};
use crate::resources::{Available, Claims, Resources};
use crate::workers::{Phase, SentCall};

/// The workers of this machine, or those of a host.
type Site = Option<WorkerId>;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Sets the number of processors of each worker of a host.
    pub fn host_has_cores(&mut self, id: WorkerId, cores: u32) {
        if let Some(host) = &mut self.workers[id.index()].host {
            host.cores = cores;
        }
    }

    /// Sets the resources of this host, which belongs to the group with this name.
    pub fn host_offers(&mut self, id: WorkerId, group: &str, resources: &Resources) {
        if let Some(host) = &mut self.workers[id.index()].host {
            host.group = group.into();
            host.available.offer(resources);
        }
    }

    /// Number of workers' places that a call with this many cores takes on an executor.
    pub(crate) fn slots(&self, cores: u32, at: WorkerId) -> usize {
        cores.div_ceil(self.cores_of(Some(at))).max(1) as usize
    }

    fn cores_of(&self, site: Site) -> u32 {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        host.map_or(1, |host| host.cores.max(1))
    }

    /// Idle workers of this machine that may be sent calls.
    pub(crate) fn free_here(&self) -> usize {
        if self.collects_here { 0 } else { self.idle.free() }
    }

    /// Removes a call that a worker has answered or given back, if that is a valid answer.
    pub(crate) fn take_out(
        &mut self,
        now: Time,
        id: WorkerId,
        call: CallId,
    ) -> Option<SentCall<T>> {
        let sent = self.workers[id.index()].answered(now, call)?;
        self.gives_back(id, &sent);
        Some(sent)
    }

    /// Releases the places and resources that a call has taken in addition to its worker's place.
    pub(crate) fn gives_back(&mut self, id: WorkerId, sent: &SentCall<T>) {
        self.calls.owners.back(sent.owner);
        let worker = &mut self.workers[id.index()];
        if sent.slots > 1 && worker.is_common() {
            self.idle.held -= sent.slots as usize - 1;
        }
        if !sent.resources.is_empty() {
            let available =
                worker.host.as_mut().map_or(&mut self.available, |host| &mut host.available);
            available.give_back(&sent.resources);
        }
    }

    pub(crate) fn available(&self, site: Site) -> &Available {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        host.map_or(&self.available, |host| &host.available)
    }

    /// Whether a site has reported all that it will have.
    fn has_reported(&self, site: Site) -> bool {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        host.is_none_or(|host| host.known)
    }

    /// Whether a call would find all its resources, except places, on a site where nothing else runs.
    pub(crate) fn could_have(&self, request: &ResourceRequest, site: Site) -> bool {
        let stays = || {
            let life = self.life_of(site).zip(request.expected);
            life.is_none_or(|(life, expected)| life.has_time_for(expected))
        };
        self.available(site).could_give(&request.resources, self.has_reported(site)) && stays()
    }

    /// The last known lifetime of a host.
    fn life_of(&self, site: Site) -> Option<Span> {
        site.and_then(|id| self.workers[id.index()].host.as_ref())?.stay.span
    }

    /// Sites where calls of a line may run.
    pub(crate) fn sites(&self, line: Option<GroupId>) -> Vec<Site> {
        let others = self.hosts.len() + self.reserved_places.len();
        let here = || (self.workers.len() > others).then_some(None);
        match line {
            None => here().into_iter().chain(self.hosts.iter().copied().map(Some)).collect(),
            Some(group) => {
                let HostGroup { here, hosts, .. } = &self.groups[group.index()];
                let hosts = hosts.iter().copied().map(Some);
                here.then_some(None).into_iter().chain(hosts).collect()
            }
        }
    }

    /// Ready workers, and those of them that have no call and hold no place.
    pub(crate) fn present(&self, site: Site) -> (usize, usize) {
        match site {
            None => (self.ready, self.idle.free()),
            Some(id) => {
                let worker = &self.workers[id.index()];
                let slots = worker.host.as_ref().filter(|_| worker.phase == Phase::Ready);
                (slots.map_or(0, |host| host.slots), worker.vacant_slots())
            }
        }
    }

    /// Number of workers that there can be; `None`: not known yet.
    fn possible(&self, site: Site) -> Option<usize> {
        match site {
            None => {
                let common = self.workers.iter().filter(|worker| worker.is_common());
                Some(common.filter(|worker| !worker.given_up).count())
            }
            Some(id) => {
                let worker = &self.workers[id.index()];
                let host = worker.host.as_ref()?;
                match (worker.given_up, host.known) {
                    (true, _) => Some(0),
                    (false, true) => Some(host.wanted),
                    (false, false) => None,
                }
            }
        }
    }

    /// Number of processors of the workers that there can be; `None`: not known yet.
    fn possible_cores(&self, site: Site) -> Option<u32> {
        let workers = u32::try_from(self.possible(site)?).unwrap_or(u32::MAX);
        Some(workers.saturating_mul(self.cores_of(site)))
    }

    /// Checks that a call can find its resources at some time.
    pub(crate) fn check_request(&self, request: &ResourceRequest) -> Result<(), NeverRuns> {
        let sites = self.sites(request.group);
        let is_wide_enough =
            |site: &Site| self.possible_cores(*site).is_none_or(|most| request.cores <= most);
        if !sites.iter().any(is_wide_enough) {
            let most = sites.iter().filter_map(|site| self.possible_cores(*site)).max();
            let group = request.group.map(|group| self.name_of(group));
            let (cores, most) = (request.cores, most.unwrap_or(0));
            return Err(NeverRuns::TooManyCores(TooManyCores { cores, most, group }));
        }
        if sites.iter().any(|site| is_wide_enough(site) && self.could_have(request, *site)) {
            return Ok(());
        }
        let mut there: Vec<end::Site> = Vec::new();
        for site in sites {
            let site_resources = self.resources_of(site);
            if self.possible(site) != Some(0) && !there.contains(&site_resources) {
                there.push(site_resources);
            }
        }
        let ResourceRequest { cores, resources, expected, .. } = request.clone();
        Err(NeverRuns::NoFittingHost(NoFittingHost { cores, resources, expected, there }))
    }

    /// Description of a site in errors.
    fn resources_of(&self, site: Site) -> end::Site {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        let here = || self.name_of(GroupId::HERE);
        end::Site {
            group: host.map_or_else(here, |host| Arc::clone(&host.group)),
            cores: self.possible_cores(site),
            resources: self.available(site).all(),
            life: self.life_of(site).map(Span::whole),
        }
    }

    /// Sends wide calls whose turn it is, and collects places for those that find too few.
    pub(crate) fn pump_multicore(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        let collected = self.collecting();
        self.stop_collecting();
        let (open_here, open) = loop {
            let (sent, open_here, open) = self.send_first_multicore(now, out);
            if !sent {
                // Which places are open to others is known when no more wide calls can be sent.
                break (open_here, open);
            }
        };
        self.collects_here = !open_here;
        self.collects = !open_here || open.len() < self.hosts.len();
        for index in 0..self.hosts.len() {
            let id = self.hosts[index];
            if let Some(host) = &mut self.workers[id.index()].host {
                host.collects = !open.contains(&id);
            }
        }
        let still = self.collecting();
        for site in collected.into_iter().filter(|site| !still.contains(site)) {
            self.opened = true;
            if let Some(host) = site {
                self.pump_nearby(now, host, out);
            }
        }
    }

    /// Sends those of the first wide calls that fit. Returns whether there was one, whether other calls may use the
    /// remaining places of this machine, and the hosts whose places they may use.
    fn send_first_multicore(
        &mut self,
        now: Time,
        out: &mut Vec<Action<T>>,
    ) -> (bool, bool, Vec<WorkerId>) {
        let (mut open_here, mut open) = (true, self.hosts.clone());
        let mut sent = false;
        let mut claims: HashMap<Site, Claims> = HashMap::new();
        let unclaimed = Claims::default();
        let has_workers_here = self.sites(None).contains(&None);
        for (_, id) in self.calls.first_multicore(SCAN_ALL, SCAN) {
            if open.is_empty() && !(open_here && has_workers_here) {
                // All places are for earlier calls.
                break;
            }
            // The call just sent counts for its owner.
            let Some(order) = self.calls.order(id) else { continue };
            let Some(task) = self.task(id) else { continue };
            let (owner, function, request) = (task.owner, task.function, ResourceRequest::of(task));
            if !self.calls.owners.may_run(owner) {
                continue;
            }
            // Lacking resources and places.
            let mut best: Option<((u64, usize), Site)> = None;
            let mut is_there = false;
            for site in self.sites(request.group) {
                let wanted = request.cores.div_ceil(self.cores_of(site)) as usize;
                let (present, vacant) = self.present(site);
                if present < wanted || !self.could_have(&request, site) {
                    continue;
                }
                is_there = true;
                let is_open = site.map_or(open_here, |host| open.contains(&host));
                let claimed = claims.get(&site).unwrap_or(&unclaimed);
                let missing = self.available(site).lacks(&request.resources, claimed);
                let lacking = (missing, wanted.saturating_sub(vacant));
                let is_best = best.is_none_or(|(least, _)| lacking < least);
                let stays = self.stays_for(now, site, function, request.expected);
                if is_open && is_best && stays && self.has_turn(order, site) {
                    best = Some((lacking, site));
                }
            }
            match best {
                Some(((0, 0), site)) => {
                    self.send_wide(now, id, site, out);
                    sent = true;
                }
                Some(((missing, _), site)) if self.wanted.is_empty() => {
                    claims.entry(site).or_default().add(&request.resources);
                    match site {
                        _ if missing > 0 => {}
                        None => open_here = false,
                        Some(host) => open.retain(|other| *other != host),
                    }
                }
                None if !is_there => {
                    if let Err(why) = self.check_request(&request) {
                        self.end(now, id, why.end(), out);
                    }
                }
                Some(_) | None => {}
            }
        }
        (sent, open_here, open)
    }

    /// Sites that collect places.
    fn collecting(&self) -> Vec<Site> {
        if !self.collects {
            return Vec::new();
        }
        let collects = |id: &&WorkerId| {
            self.workers[id.index()].host.as_ref().is_some_and(|host| host.collects)
        };
        let hosts = self.hosts.iter().filter(collects).copied().map(Some);
        self.collects_here.then_some(None).into_iter().chain(hosts).collect()
    }

    pub(crate) fn stop_collecting(&mut self) {
        (self.collects, self.collects_here) = (false, false);
        for index in 0..self.hosts.len() {
            let id = self.hosts[index];
            if let Some(host) = &mut self.workers[id.index()].host {
                host.collects = false;
            }
        }
    }

    /// Whether a call would finish before the host ends, if that end is known.
    fn stays_for(
        &self,
        now: Time,
        site: Site,
        function: FunctionId,
        expected: Option<u64>,
    ) -> bool {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        let Some(life) = host.and_then(|host| host.stay.life) else { return true };
        match expected {
            Some(expected) => life.has_time_for_all_of(now, expected),
            None => life.has_time_for(now, self.pace.known_cost(function)),
        }
    }

    /// Whether all that a call needs is free somewhere, even if some earlier calls get their resources and places
    /// there, and no call has to go there first.
    pub(crate) fn has_vacant_site(
        &self,
        request: &ResourceRequest,
        before: &Claims,
        places: usize,
    ) -> bool {
        self.sites(request.group).into_iter().any(|site| {
            let nearby = site.and_then(|id| self.workers[id.index()].host.as_ref());
            let vacant = self.present(site).1.saturating_sub(places);
            nearby.is_none_or(|host| host.nearby.len() == 0 && host.stay.life.is_none())
                && vacant >= request.cores.div_ceil(self.cores_of(site)) as usize
                && self.available(site).lacks(&request.resources, before) == 0
        })
    }

    fn send_wide(&mut self, now: Time, id: CallId, site: Site, out: &mut Vec<Action<T>>) {
        let Some(worker) = site.or_else(|| self.idle.last()) else { return };
        self.idle.remove(worker, &mut self.workers);
        self.calls.sent_wide(id, worker);
        self.send(now, id, worker, out);
    }

    /// Whether no earlier call waits that may run there.
    fn has_turn(&mut self, order: Order, site: Site) -> bool {
        let mut waits =
            |line: Option<GroupId>| self.calls.front(line).is_some_and(|(other, _)| other < order);
        if waits(None) {
            return false;
        }
        let Some(id) = site else { return !self.here.iter().any(|line| waits(Some(*line))) };
        let groups = &self.workers[id.index()].groups;
        if groups.iter().any(|group| waits(Some(*group))) {
            return false;
        }
        let Core { calls, workers, .. } = self;
        let Some(host) = &mut workers[id.index()].host else { return false };
        while let Some(call) = host.nearby.front() {
            if calls.get(call).is_some_and(|call| call.state == CallState::Waiting(id)) {
                return calls.order(call) > Some(order);
            }
            host.nearby.pop_front();
        }
        true
    }
}
