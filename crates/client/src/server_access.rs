//! Access to a server that many clients share: by TLS with a certificate, or at its Unix socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gridrpc_config::{HostGroup, LauncherKind, ServerAddress, credentials_folder};
use gridrpc_transport::certificates::{
    CredentialFiles, CredentialKeysError, Credentials, CredentialsError, UserKeys,
};
use gridrpc_transport::dial::{ServerDialError, dial_server};
use gridrpc_transport::{Transport, dial_local_server};
use thiserror::Error;

/// Why a server cannot be dialled.
#[derive(Debug, Error)]
pub enum ServerUnreachable {
    /// There is no folder for credentials.
    #[error(
        "there is no folder for credentials: neither GRIDRPC_CREDENTIALS, XDG_CONFIG_HOME nor HOME is set; name one \
         by `credentials` in the configuration of the server"
    )]
    NoFolder,
    /// The client's certificate or key cannot be used.
    #[error("the credentials for server `{server}` cannot be used: {error}")]
    Credentials {
        /// Its address.
        server: ServerAddress,
        /// The problem.
        error: CredentialsError,
    },
    /// TLS cannot be set up with the client's certificate.
    #[error("the credentials for server `{server}` cannot be used: {error}")]
    Keys {
        /// Its address.
        server: ServerAddress,
        /// The problem.
        error: CredentialKeysError,
    },
    /// No connection by TLS.
    #[error("server `{}:{}` cannot be reached: {}; {}", .0.host, .0.port, .0.failure, .0.hint())]
    Tls(Box<ServerDialError>),
    /// No connection to its Unix socket.
    #[error("server `{}` {}", .path.display(), socket_hint(.error))]
    Socket {
        /// The socket.
        path: Box<Path>,
        /// The system's error.
        error: io::Error,
    },
}

fn socket_hint(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "does not run: nothing listens at this socket; start it by `gridrpc server start`, or \
             see how the path is written"
                .to_owned()
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "does not accept connections: its process is \
             stopped or overloaded; see `gridrpc server status`"
                .to_owned()
        }
        _ => format!(
            "cannot be reached: {error}; see who owns the folder of the socket, and whether you are in its group"
        ),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_of_a_socket_has_its_remedy() {
        let explain = |kind: io::ErrorKind| {
            let path = Path::new("/run/server.sock").into();
            ServerUnreachable::Socket { path, error: kind.into() }.to_string()
        };
        let start = "server `/run/server.sock` does not run: nothing listens at this socket; start it by \
                     `gridrpc server start`, or see how the path is written";
        assert_eq!(explain(io::ErrorKind::NotFound), start);
        assert_eq!(explain(io::ErrorKind::ConnectionRefused), start);
        assert!(explain(io::ErrorKind::TimedOut).contains("`gridrpc server status`"));
        let refused = explain(io::ErrorKind::PermissionDenied);
        assert!(refused.contains("permission denied") && refused.contains("group"), "{refused}");
    }
}
