//! Connector of a server that many clients share.

use std::sync::Arc;
use std::thread;

use gridrpc_launch::{Event, Launcher};

use crate::hosts::connector::{HostConnector, HostRequest, NotRequested};
use crate::hosts::inbox::{Deliver, InboxEvent};
use crate::server_access::ServerAccess;

/// A shared server as the only host of a group. It outlives its clients.
#[derive(Debug)]
pub(crate) struct SharedServer {
    access: Arc<ServerAccess>,
    deliver: Deliver,
}

impl SharedServer {
    pub(crate) fn new(access: ServerAccess, deliver: Deliver) -> SharedServer {
        SharedServer { access: Arc::new(access), deliver }
    }
}

impl HostConnector for SharedServer {
    fn connect(&mut self, hosts: Vec<HostRequest>) -> Vec<NotRequested> {
        let mut failed = Vec::new();
        for HostRequest { agent, .. } in hosts {
            let (access, deliver) = (Arc::clone(&self.access), self.deliver.clone());
            let dialling = move || match access.dial() {
                Ok(transport) => deliver.0(InboxEvent::Connected(agent, transport)),
                Err(error) => {
                    deliver.0(InboxEvent::Launcher(agent, Event::Failed(error.to_string())));
                }
            };
            let thread = thread::Builder::new().name("gridrpc-dial".to_owned());
            if let Err(error) = thread.spawn(dialling) {
                let server = &self.access.address;
                let why = format!("server `{server}` cannot be dialled: no thread: {error}");
                failed.push(NotRequested { agent, why });
            }
        }
        failed
    }

    fn lost(&mut self, _agent: u32) -> bool {
        false
    }

    fn stop(&mut self, _agent: u32) {}

    fn owns_agents(&self) -> bool {
        false
    }

    fn close(&mut self) -> Option<Box<dyn Launcher>> {
        None
    }
}
