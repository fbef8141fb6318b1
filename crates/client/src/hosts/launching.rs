//! Starting agents: the listener that they dial, and the launchers.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gridrpc_config::HostGroup;
use gridrpc_core::{Core, WorkerId};
use gridrpc_launch::{Event, Launcher, Report, Start};
use gridrpc_transport::listener::Admitted;

use crate::common::Common;
use crate::hosts::listeners::Listeners;
use crate::reactor_lock::Wake as _;
use crate::sync::ns;

/// News of an agent from another thread for the reactor.
#[derive(Debug)]
pub(crate) enum News {
    Launcher(u32, Event),
    Admitted(Admitted),
}

/// News that the reactor has not read yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Vec<News>>);

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<News>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Vec<News> {
        std::mem::take(&mut *self.lock())
    }
}

/// A host to start.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Index of its host group.
    pub(crate) group: usize,
    pub(crate) name: String,
    /// Number of workers; 0: as many as the host has processors.
    pub(crate) workers: u32,
}

/// The hosts of these groups, in order.
pub(crate) fn plans(groups: &[HostGroup]) -> Vec<Plan> {
    let plan = |(group, one): (usize, &HostGroup)| {
        let workers = one.workers;
        let plan = move |host: &gridrpc_config::Host| Plan {
            group,
            name: host.name.clone(),
            workers: host.workers.unwrap_or(workers),
        };
        one.hosts.iter().map(plan).collect::<Vec<_>>()
    };
    groups.iter().enumerate().flat_map(plan).collect()
}

/// Number of workers of each host; 0 where only the host knows.
pub(crate) fn expected(groups: &[HostGroup]) -> Vec<u32> {
    plans(groups).into_iter().map(|plan| plan.workers).collect()
}

/// Configures the core with the resources of the hosts, and with which hosts start and end on demand. The first host
/// has the number `first`.
pub(crate) fn describe<T: Clone>(core: &mut Core<T>, first: u32, groups: &[HostGroup]) {
    let mut next = first;
    for group in groups {
        let begin = next;
        next += group.hosts.len() as u32;
        let offers = group.offers(None);
        (begin..next).for_each(|id| core.host_offers(WorkerId(id), &group.name, &offers));
        if let Some(least) = group.min_hosts {
            let hosts = (begin..next).map(WorkerId).collect();
            core.make_elastic(hosts, least as usize, ns(group.idle));
        }
    }
}

/// Starts and ends agents.
#[derive(Debug)]
pub(crate) struct Launching {
    groups: Vec<HostGroup>,
    program: PathBuf,
    tell: Report,
    listeners: Listeners,
    launchers: Vec<Option<Box<dyn Launcher>>>,
}

impl Launching {
    pub(crate) fn new(
        groups: Vec<HostGroup>,
        program: PathBuf,
        inbox: Arc<Inbox>,
        wake: Arc<Common>,
    ) -> Launching {
        let (told, waker) = (Arc::clone(&inbox), Arc::clone(&wake));
        let tell = Report(Arc::new(move |agent, event| {
            told.lock().push(News::Launcher(agent, event));
            waker.wake();
        }));
        let launchers = groups.iter().map(|_| None).collect();
        let listeners = Listeners::new(move |admitted| {
            inbox.lock().push(News::Admitted(admitted));
            wake.wake();
        });
        Launching { groups, program, tell, listeners, launchers }
    }

    pub(crate) fn group(&self, plan: &Plan) -> &HostGroup {
        &self.groups[plan.group]
    }

    /// Requests these agents, with one request for each group. Returns those that could not be requested.
    pub(crate) fn start(&mut self, wanted: &[(u32, Plan)]) -> Vec<(u32, io::Error)> {
        let mut failed = Vec::new();
        let mut starts: HashMap<usize, Vec<Start>> = HashMap::new();
        for (agent, plan) in wanted {
            match self.listeners.ticket(*agent, &self.groups[plan.group]) {
                Ok(ticket) => {
                    let start = Start { agent: *agent, host: plan.name.clone(), ticket };
                    starts.entry(plan.group).or_default().push(start);
                }
                Err(error) => failed.push((*agent, error)),
            }
        }
        for (group, starts) in starts {
            let launcher = &mut self.launchers[group];
            launcher
                .get_or_insert_with(|| {
                    gridrpc_launch::open(&self.groups[group], &self.program, self.tell.clone())
                })
                .start(starts);
        }
        failed
    }

    /// Records that an agent is gone. Returns whether its launcher will report the reason.
    pub(crate) fn lost(&mut self, agent: u32, plan: &Plan) -> bool {
        self.launchers[plan.group].as_mut().is_some_and(|launcher| launcher.lost(agent))
    }

    /// Ends an agent, wherever it is, and revokes its ticket.
    pub(crate) fn stop(&mut self, agent: u32, plan: &Plan) {
        self.listeners.revoke(agent);
        if let Some(launcher) = &mut self.launchers[plan.group] {
            launcher.stop(agent);
        }
    }

    /// Ends all agents and waits until they are gone.
    pub(crate) fn close(&mut self) {
        self.listeners.close();
        gridrpc_launch::close_all(self.launchers.iter_mut().filter_map(Option::take).collect());
    }

    pub(crate) fn start_timeout(&self, plan: &Plan) -> Duration {
        self.group(plan).start_timeout
    }
}
