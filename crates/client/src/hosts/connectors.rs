//! The connectors of all host groups.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_sys::lock;

use crate::hosts::connector::{HostConnector, HostRequest, NotRequested};
use crate::hosts::dialled_server::DialledServer;
use crate::hosts::inbox::{Deliver, InboxEvent};
use crate::hosts::launched_agents::LaunchedAgents;
use crate::hosts::listeners::Listeners;
use crate::hosts::plans::Plan;
use crate::hosts::shared_server::SharedServer;
use crate::server_access::ServerAccess;

/// Connects the hosts of all groups.
#[derive(Debug)]
pub(crate) struct Connectors {
    groups: Vec<Arc<HostGroup>>,
    /// One for each group.
    connectors: Vec<Box<dyn HostConnector>>,
    listeners: Arc<Mutex<Listeners>>,
}

impl Connectors {
    /// `program`: the `gridrpc` program of this machine.
    pub(crate) fn new(groups: Vec<HostGroup>, program: &Path, deliver: &Deliver) -> Connectors {
        let admit = deliver.clone();
        let listeners = Arc::new(Mutex::new(Listeners::new(move |admitted| {
            admit.0(InboxEvent::Connected(admitted.agent, admitted.transport));
        })));
        let groups: Vec<Arc<HostGroup>> = groups.into_iter().map(Arc::new).collect();
        let connector = |group: &Arc<HostGroup>| -> Box<dyn HostConnector> {
            match &group.launcher {
                LauncherKind::Session { name } => {
                    Box::new(DialledServer::new(name, deliver.clone()))
                }
                LauncherKind::Server { address, credentials } => {
                    let access = ServerAccess::new(address, credentials.as_deref(), group);
                    Box::new(SharedServer::new(access, deliver.clone()))
                }
                LauncherKind::Local { .. }
                | LauncherKind::Ssh { .. }
                | LauncherKind::Program { .. }
                | LauncherKind::Batch(_) => {
                    let (group, listeners) = (Arc::clone(group), Arc::clone(&listeners));
                    let (program, deliver) = (program.to_owned(), deliver.clone());
                    Box::new(LaunchedAgents::new(group, program, deliver, listeners))
                }
            }
        };
        let connectors = groups.iter().map(connector).collect();
        Connectors { groups, connectors, listeners }
    }

    pub(crate) fn group(&self, plan: &Plan) -> &HostGroup {
        &self.groups[plan.group]
    }

    /// Requests these hosts, with one request for each group. Returns those that could not be requested.
    pub(crate) fn connect(&mut self, wanted: &[(u32, Plan)]) -> Vec<NotRequested> {
        let mut requests: HashMap<usize, Vec<HostRequest>> = HashMap::new();
        for (agent, plan) in wanted {
            let request = HostRequest { agent: *agent, host: plan.name.clone() };
            requests.entry(plan.group).or_default().push(request);
        }
        let requests = requests.into_iter();
        requests.flat_map(|(group, hosts)| self.connectors[group].connect(hosts)).collect()
    }

    /// Records that the connection of an agent is lost. Returns whether news will report the reason.
    pub(crate) fn lost(&mut self, agent: u32, plan: &Plan) -> bool {
        self.connectors[plan.group].lost(agent)
    }

    /// Ends an agent, wherever it is, unless it serves others as well.
    pub(crate) fn stop(&mut self, agent: u32, plan: &Plan) {
        self.connectors[plan.group].stop(agent);
    }

    /// Whether closing the grid waits for the end of this host's agent.
    pub(crate) fn owns_agent(&self, plan: &Plan) -> bool {
        self.connectors[plan.group].owns_agents()
    }

    /// Ends all agents of the grid and waits until they are gone.
    pub(crate) fn close(&mut self) {
        lock(&self.listeners).close();
        let launchers = self.connectors.iter_mut().filter_map(|connector| connector.close());
        gridrpc_launch::close_all(launchers.collect());
    }

    pub(crate) fn start_timeout(&self, plan: &Plan) -> Duration {
        self.group(plan).start_timeout
    }
}
