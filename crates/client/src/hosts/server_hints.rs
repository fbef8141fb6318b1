//! Reasons why a server that many clients share does not serve this client, with hints.

use std::io;
use std::path::Path;
use std::time::Duration;

use gridrpc_config::ServerAddress;
use gridrpc_core::Loss;
use gridrpc_transport::certificates::{CredentialKeysError, CredentialsError};
use gridrpc_transport::dial::ServerDialError;
use thiserror::Error;

use crate::hosts::error_hints::last_line;

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
        /// What is wrong.
        error: CredentialsError,
    },
    /// TLS cannot be set up with the client's certificate.
    #[error("the credentials for server `{server}` cannot be used: {error}")]
    Keys {
        /// Its address.
        server: ServerAddress,
        /// What is wrong.
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

/// A server whose connection ended unexpectedly.
pub(crate) fn server_gone(server: &ServerAddress, how: &str) -> String {
    format!(
        "server `{server}` is gone ({how}): it has been stopped or restarted, or it has refused this client; its \
         log has the reason. The client connects again by itself"
    )
}

/// A server from which nothing has arrived for as long as `heartbeat`.
pub(crate) fn server_silent(server: &ServerAddress, heartbeat: Duration) -> String {
    format!(
        "server `{server}` was silent for {} s: the network is interrupted, or its process is stopped; see whether it \
         can be reached, or wait longer (see `heartbeat` in the configuration of the server)",
        heartbeat.as_secs_f64()
    )
}

/// A server with another message format. `version`: of its gridrpc, if it sent one.
pub(crate) fn server_of_other_version(server: &ServerAddress, version: Option<&str>) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let theirs =
        version.map_or("another version".to_owned(), |version| format!("gridrpc {version}"));
    format!(
        "server `{server}` runs {theirs}, which does not understand this client, gridrpc {own}: install the \
         server's version, or ask its operators for an update"
    )
}

/// A server that serves no calls of this client.
pub(crate) fn server_without_workers(server: &ServerAddress, loss: &Loss) -> String {
    let last = last_line(&loss.stderr).map(|line| format!(": {line}")).unwrap_or_default();
    format!("server `{server}` has no workers for this client: {}{last}", loss.cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_of_a_socket_has_its_remedy() {
        let told = |kind: io::ErrorKind| {
            let path = Path::new("/run/server.sock").into();
            ServerUnreachable::Socket { path, error: kind.into() }.to_string()
        };
        let start = "server `/run/server.sock` does not run: nothing listens at this socket; start it by \
                     `gridrpc server start`, or see how the path is written";
        assert_eq!(told(io::ErrorKind::NotFound), start);
        assert_eq!(told(io::ErrorKind::ConnectionRefused), start);
        assert!(told(io::ErrorKind::TimedOut).contains("`gridrpc server status`"));
        let refused = told(io::ErrorKind::PermissionDenied);
        assert!(refused.contains("permission denied") && refused.contains("group"), "{refused}");
    }
}
