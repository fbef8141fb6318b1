//! Plans: the hosts of all groups, in order, and what the core knows of them in advance.

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_core::{Core, HostRetry, WorkerId};

use crate::sync::ns;

/// A host to connect.
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
        let retry = match group.launcher {
            LauncherKind::Session { .. } | LauncherKind::Server { .. } => HostRetry::CONNECTED,
            _ => HostRetry::STARTED,
        };
        let retry = HostRetry { timeout: ns(group.reconnect_timeout), ..retry };
        for id in (begin..next).map(WorkerId) {
            core.host_offers(id, &group.name, &offers);
            core.set_retry(id, retry);
        }
        if let Some(least) = group.min_hosts {
            let hosts = (begin..next).map(WorkerId).collect();
            core.make_elastic(hosts, least as usize, ns(group.idle));
        }
    }
}
