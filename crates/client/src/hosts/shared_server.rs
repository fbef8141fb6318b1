//! A server that many clients share, which the client dials by TLS or at its Unix socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gridrpc_config::{HostGroup, LauncherKind, ServerAddress, credentials_folder};
use gridrpc_launch::{Event, Launcher};
use gridrpc_transport::certificates::{CredentialFiles, Credentials, UserKeys};
use gridrpc_transport::dial::dial_server;
use gridrpc_transport::{Transport, dial_local_server};

use crate::hosts::connector::{HostConnector, HostRequest, NotRequested};
use crate::hosts::inbox::{Deliver, News};
use crate::hosts::server_hints::ServerUnreachable;

/// Where a server is, and who this client is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAccess {
    /// Where it listens.
    pub address: ServerAddress,
    /// The folder with the client's certificate and private key; none: the usual one.
    pub credentials: Option<PathBuf>,
    /// How long to wait for a connection.
    pub timeout: Duration,
}

/// Share of `start_timeout` for dialling: its error comes before that of the reactor, which does not know the reason.
const DIAL_SHARE: f64 = 0.9;

impl ServerAccess {
    pub(crate) fn new(
        address: &ServerAddress,
        credentials: Option<&str>,
        group: &HostGroup,
    ) -> ServerAccess {
        ServerAccess {
            address: address.clone(),
            credentials: credentials.map(PathBuf::from),
            timeout: group.start_timeout.mul_f64(DIAL_SHARE),
        }
    }

    /// Access to the server that is the host of this group, if it is one.
    #[must_use]
    pub fn of(group: &HostGroup) -> Option<ServerAccess> {
        match &group.launcher {
            LauncherKind::Server { address, credentials } => {
                Some(ServerAccess::new(address, credentials.as_deref(), group))
            }
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Batch(_)
            | LauncherKind::Session { .. } => None,
        }
    }

    /// Connects to the server. It reads the credentials each time, as they are renewed now and then.
    ///
    /// # Errors
    /// When the server cannot be reached, or the credentials cannot be used.
    pub fn dial(&self) -> Result<Arc<dyn Transport>, ServerUnreachable> {
        match &self.address {
            ServerAddress::Socket(path) => match dial_local_server(path, self.timeout) {
                Ok(unix) => Ok(Arc::new(unix)),
                Err(error) => {
                    let path: Box<Path> = path.as_path().into();
                    Err(ServerUnreachable::Socket { path, error })
                }
            },
            ServerAddress::Tls { host, port } => {
                let folder = self.credentials.clone().or_else(credentials_folder);
                let folder = folder.ok_or(ServerUnreachable::NoFolder)?;
                let server = || self.address.clone();
                let read = Credentials::read(&CredentialFiles::in_folder(&folder))
                    .map_err(|error| ServerUnreachable::Credentials { server: server(), error })?;
                let keys = UserKeys::new(&read)
                    .map_err(|error| ServerUnreachable::Keys { server: server(), error })?;
                dial_server(host, *port, &keys, self.timeout)
                    .map_err(|error| ServerUnreachable::Tls(Box::new(error)))
            }
        }
    }
}

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
                Ok(transport) => deliver.0(News::Connected(agent, transport)),
                Err(error) => {
                    deliver.0(News::Launcher(agent, Event::Failed(error.to_string())));
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
