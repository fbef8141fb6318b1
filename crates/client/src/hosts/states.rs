//! States of hosts, for programs and people.

use std::sync::Arc;

use gridrpc_core::{HostStage, HostStatus, WorkerId};
use gridrpc_launch::QUEUED;

use crate::common::Common;
use crate::config::Config;
use crate::state::State;

/// A host with its names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) id: WorkerId,
    pub(crate) group: Arc<str>,
    pub(crate) host: Arc<str>,
}

/// State of a host.
#[derive(Clone, Debug)]
pub struct HostState {
    /// Its host group.
    pub group: Arc<str>,
    /// Its name in the configuration.
    pub host: Arc<str>,
    /// `unwanted`, `queued`, `starting`, `ready`, `ending` or `lost`.
    pub state: &'static str,
    /// Ready workers on it.
    pub ready: usize,
    /// Number of workers that it is to have; 0: not reported yet.
    pub workers: usize,
    /// Details for people: `is queued as job 3 (waiting for resources: Resources)`.
    pub detail: String,
}

/// The hosts of a grid, in the order of its groups.
pub(crate) fn named(config: &Config) -> Arc<[Named]> {
    let groups = config.groups.iter().flat_map(|groups| &groups.list);
    let hosts = groups.flat_map(|group| {
        let name: Arc<str> = group.name.as_str().into();
        group.hosts.iter().map(move |host| (Arc::clone(&name), host.name.as_str().into()))
    });
    let named = hosts.zip(config.settings.workers..);
    named.map(|((group, host), number)| Named { id: WorkerId(number), group, host }).collect()
}

/// The states of these hosts.
pub(crate) fn states(common: &Common, hosts: &[Named]) -> Vec<HostState> {
    let state = common.lock();
    hosts.iter().filter_map(|named| state_of(&state, named)).collect()
}

/// The state of a host.
pub(crate) fn state_of(state: &State, named: &Named) -> Option<HostState> {
    let status = state.core.host_status(named.id)?;
    Some(host_state(named, &status, state.hosts.state(named.id)))
}

/// `far`: progress of its start.
fn host_state(named: &Named, status: &HostStatus, far: &str) -> HostState {
    let detail = match (status.stage, &status.loss) {
        (HostStage::GivenUp | HostStage::Starting, Some(loss)) => loss.to_string(),
        (HostStage::Starting | HostStage::GivenUp, None) => far.to_owned(),
        (HostStage::Unwanted, _) => "is not asked for, as there is no work for it".to_owned(),
        (HostStage::Ending, _) => "is given back".to_owned(),
        (HostStage::Ready, _) => String::new(),
    };
    let state = match status.stage {
        HostStage::Unwanted => "unwanted",
        HostStage::Starting if far.starts_with(QUEUED) => "queued",
        HostStage::Starting => "starting",
        HostStage::Ready => "ready",
        HostStage::Ending => "ending",
        HostStage::GivenUp => "lost",
    };
    let (group, host) = (Arc::clone(&named.group), Arc::clone(&named.host));
    let HostStatus { ready, workers, .. } = *status;
    HostState { group, host, state, ready, workers, detail }
}
