//! A server of this machine that runs already: a session, which the client dials.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_config::session_socket;
use gridrpc_launch::Launcher;
use gridrpc_transport::{Transport, Unix, dial_local};

use crate::hosts::connector::{HostConnector, HostRequest, NotRequested};
use crate::hosts::inbox::{Deliver, InboxEvent};
use crate::hosts::session_hints::session_unreachable;

/// A session as the only host of a group. It outlives its clients.
#[derive(Debug)]
pub(crate) struct DialledServer {
    session: String,
    /// None: this user has no folder for sessions.
    socket: Option<PathBuf>,
    deliver: Deliver,
}

impl DialledServer {
    pub(crate) fn new(session: &str, deliver: Deliver) -> DialledServer {
        DialledServer { session: session.to_owned(), socket: session_socket(session), deliver }
    }
}

impl HostConnector for DialledServer {
    fn connect(&mut self, hosts: Vec<HostRequest>) -> Vec<NotRequested> {
        let mut failed = Vec::new();
        for HostRequest { agent, .. } in hosts {
            // The reactor cannot wait for a session that accepts nothing: the core requests the host again.
            match dial(&self.session, self.socket.clone(), Duration::ZERO) {
                Ok(unix) => self.deliver.0(InboxEvent::Connected(agent, Arc::new(unix))),
                Err(why) => failed.push(NotRequested { agent, why }),
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

/// Connects to a session of this machine within `timeout`.
///
/// # Errors
/// When it cannot be reached: why, and what to do.
pub fn dial_session(session: &str, timeout: Duration) -> Result<Arc<dyn Transport>, String> {
    Ok(Arc::new(dial(session, session_socket(session), timeout)?))
}

fn dial(session: &str, socket: Option<PathBuf>, timeout: Duration) -> Result<Unix, String> {
    let Some(socket) = socket else {
        let error = io::Error::other("neither XDG_STATE_HOME nor HOME is set");
        return Err(session_unreachable(session, None, &error));
    };
    dial_local(&socket, timeout)
        .map_err(|error| session_unreachable(session, Some(&socket), &error))
}
