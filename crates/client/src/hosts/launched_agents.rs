//! Agents that a launcher starts, and that dial a listener of the client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use gridrpc_config::HostGroup;
use gridrpc_launch::{Launcher, Report, Start};
use gridrpc_sys::lock;

use crate::hosts::connector::{HostConnector, HostRequest, NotRequested};
use crate::hosts::error_hints::not_requested;
use crate::hosts::inbox::{Deliver, InboxEvent};
use crate::hosts::listeners::Listeners;

/// The agents of a group.
#[derive(Debug)]
pub(crate) struct LaunchedAgents {
    group: Arc<HostGroup>,
    /// The `gridrpc` program of this machine.
    program: PathBuf,
    deliver: Deliver,
    /// Those of all groups.
    listeners: Arc<Mutex<Listeners>>,
    /// Opened when the first agent is requested.
    launcher: Option<Box<dyn Launcher>>,
}

impl LaunchedAgents {
    pub(crate) fn new(
        group: Arc<HostGroup>,
        program: PathBuf,
        deliver: Deliver,
        listeners: Arc<Mutex<Listeners>>,
    ) -> LaunchedAgents {
        LaunchedAgents { group, program, deliver, listeners, launcher: None }
    }
}

impl HostConnector for LaunchedAgents {
    fn connect(&mut self, hosts: Vec<HostRequest>) -> Vec<NotRequested> {
        let (mut starts, mut failed) = (Vec::with_capacity(hosts.len()), Vec::new());
        for HostRequest { agent, host } in hosts {
            match lock(&self.listeners).ticket(agent, &self.group) {
                Ok(ticket) => starts.push(Start { agent, host, ticket }),
                Err(error) => failed.push(NotRequested { agent, why: not_requested(&error) }),
            }
        }
        if self.launcher.is_none() && !starts.is_empty() {
            let deliver = self.deliver.clone();
            let report =
                Report(Arc::new(move |agent, event| deliver.0(InboxEvent::Launcher(agent, event))));
            self.launcher = gridrpc_launch::open(&self.group, &self.program, report);
        }
        if let Some(launcher) = self.launcher.as_mut().filter(|_| !starts.is_empty()) {
            launcher.start(starts);
        }
        failed
    }

    fn lost(&mut self, agent: u32) -> bool {
        self.launcher.as_mut().is_some_and(|launcher| launcher.lost(agent))
    }

    fn stop(&mut self, agent: u32) {
        lock(&self.listeners).revoke(agent);
        if let Some(launcher) = &mut self.launcher {
            launcher.stop(agent);
        }
    }

    fn owns_agents(&self) -> bool {
        true
    }

    fn close(&mut self) -> Option<Box<dyn Launcher>> {
        self.launcher.take()
    }
}
