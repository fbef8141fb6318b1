//! Wide calls: each asks for several cores of one host, and so takes the places of several workers there. One
//! of these runs it; the others keep their places free until it has ended.
//!
//! Wide calls wait beside their line, so that they hold up nobody who can be served elsewhere. When all that
//! were there before it have been sent, a wide call has its turn: if no host has as many free places at that
//! moment, those of one host are *collected*: it is sent nothing else until there are enough. So a stream of
//! small calls does not keep a wide one waiting, and each host collects for one call at a time.
//!
//! A running function may wait for a call that some other worker has to run. As long as one does, nothing is
//! collected: that call may need the very place that would be kept from it.

use crate::calls::{CallState, Line};
use crate::core::Core;
use crate::end::{End, TooWide};
use crate::ids::{CallId, FunctionId, ServerId, Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::queue::Order;
use crate::workers::{Phase, Sent};

/// Wide calls of each line that are looked at.
const SCAN: usize = 16;

/// The workers of this machine, or those of a host.
type Site = Option<WorkerId>;

impl<T: Clone, P: Policy> Core<T, P> {
    /// Each worker of a host has so many processors.
    pub fn host_has_cores(&mut self, id: WorkerId, cores: u32) {
        if let Some(host) = &mut self.workers[id.index()].host {
            host.cores = cores;
        }
    }

    /// Workers' places that a call of so many cores takes on an executor.
    pub(crate) fn slots(&self, cores: u32, at: WorkerId) -> usize {
        cores.div_ceil(self.cores_of(Some(at))).max(1) as usize
    }

    fn cores_of(&self, site: Site) -> u32 {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        host.map_or(1, |host| host.cores.max(1))
    }

    /// Workers of this machine that have nothing to do and may be sent calls.
    pub(crate) fn free_here(&self) -> usize {
        if self.collects_here { 0 } else { self.idle.free() }
    }

    /// A wide call has left its worker: the places that it has taken are free.
    pub(crate) fn gives_back(&mut self, id: WorkerId, sent: &Sent<T>) {
        if self.workers[id.index()].is_common() {
            self.idle.held -= sent.slots as usize - 1;
        }
    }

    /// Where calls of a line may run.
    fn sites(&self, line: Line) -> Vec<Site> {
        let others = self.hosts.len() + self.reserved_places.len();
        let here = || (self.workers.len() > others).then_some(None);
        match line {
            None => here().into_iter().chain(self.hosts.iter().copied().map(Some)).collect(),
            Some(ServerId::HERE) => vec![None],
            Some(server) => self.servers[server.index()].hosts.iter().copied().map(Some).collect(),
        }
    }

    /// Workers that have answered, and those of them that have no call and keep no place free.
    fn present(&self, site: Site) -> (usize, usize) {
        match site {
            None => (self.ready, self.idle.free()),
            Some(id) => {
                let worker = &self.workers[id.index()];
                let slots = worker.host.as_ref().filter(|_| worker.phase == Phase::Ready);
                (slots.map_or(0, |host| host.slots), worker.vacant_slots())
            }
        }
    }

    /// Workers that there can be; none: it is not known yet.
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

    /// Whether a call of so many cores may find a place some time.
    pub(crate) fn check_width(&self, cores: u32, line: Line) -> Result<(), TooWide> {
        let mut most = 0;
        for site in self.sites(line) {
            let Some(workers) = self.possible(site) else { return Ok(()) };
            let workers = u32::try_from(workers).unwrap_or(u32::MAX);
            most = most.max(workers.saturating_mul(self.cores_of(site)));
        }
        if cores <= most {
            return Ok(());
        }
        let server = line.map(|server| self.name_of(server));
        Err(TooWide { cores, most, server })
    }

    /// Sends wide calls that have their turn, and has places be collected for those that find too few.
    pub(crate) fn pump_wide(&mut self, now: Time, out: &mut Vec<Action<T>>) {
        let collected = self.collecting();
        self.stop_collecting();
        let mut open_here = true;
        let mut open: Vec<WorkerId> = self.hosts.clone();
        for (order, id) in self.calls.first_wide(SCAN) {
            let Some(task) = self.task(id) else { continue };
            let (function, cores, line) = (task.function, task.cores, task.server);
            let mut best: Option<(usize, Site)> = None;
            let mut is_there = false;
            for site in self.sites(line) {
                let wanted = cores.div_ceil(self.cores_of(site)) as usize;
                let (present, vacant) = self.present(site);
                if present < wanted {
                    continue;
                }
                is_there = true;
                let is_open = site.map_or(open_here, |host| open.contains(&host));
                let lacking = wanted.saturating_sub(vacant);
                let is_best = best.is_none_or(|(least, _)| lacking < least);
                let stays = self.stays_for(now, site, function);
                if is_open && is_best && stays && self.has_turn(order, site) {
                    best = Some((lacking, site));
                }
            }
            match best {
                Some((0, site)) => self.send_wide(now, id, site, out),
                Some((_, None)) => open_here = false,
                Some((_, Some(host))) => open.retain(|other| *other != host),
                None if !is_there => {
                    if let Err(why) = self.check_width(cores, line) {
                        self.end(now, id, End::TooWide(why), out);
                    }
                }
                None => {}
            }
        }
        if !self.wanted.is_empty() {
            open_here = true;
            open.clone_from(&self.hosts);
        }
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

    /// Where places are collected.
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

    /// Whether a call would be done before the host ends, if that end is known.
    fn stays_for(&self, now: Time, site: Site, function: FunctionId) -> bool {
        let host = site.and_then(|id| self.workers[id.index()].host.as_ref());
        let life = host.and_then(|host| host.stay.life);
        life.is_none_or(|life| life.has_time_for(now, self.pace.known_cost(function)))
    }

    /// Whether there are as many free places somewhere, and no call is to go there before.
    pub(crate) fn has_vacant_site(&self, cores: u32, line: Line) -> bool {
        self.sites(line).into_iter().any(|site| {
            let nearby = site.and_then(|id| self.workers[id.index()].host.as_ref());
            let vacant = self.present(site).1;
            nearby.is_none_or(|host| host.nearby.len() == 0 && host.stay.life.is_none())
                && vacant >= cores.div_ceil(self.cores_of(site)) as usize
        })
    }

    fn send_wide(&mut self, now: Time, id: CallId, site: Site, out: &mut Vec<Action<T>>) {
        let Some(worker) = site.or_else(|| self.idle.last()) else { return };
        self.idle.remove(worker, &mut self.workers);
        self.calls.sent_wide(id, worker);
        self.send(now, id, worker, out);
    }

    /// Whether no call waits that was there before, and that may run there.
    fn has_turn(&mut self, order: Order, site: Site) -> bool {
        let mut waits = |line: Line| self.calls.front(line).is_some_and(|(other, _)| other < order);
        if waits(None) {
            return false;
        }
        let Some(id) = site else { return !waits(Some(ServerId::HERE)) };
        let servers = &self.workers[id.index()].servers;
        if servers.iter().any(|server| waits(Some(*server))) {
            return false;
        }
        let Core { calls, workers, .. } = self;
        let Some(host) = &mut workers[id.index()].host else { return false };
        while let Some((other, call)) = host.nearby.front_in_order() {
            if calls.get(call).is_some_and(|call| call.state == CallState::Waiting(id)) {
                return other > order;
            }
            host.nearby.pop_front();
        }
        true
    }
}
