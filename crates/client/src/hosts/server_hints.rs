//! Reasons why a server that many clients share does not serve this client, with hints.

use std::time::Duration;

use gridrpc_config::ServerAddress;
use gridrpc_core::Loss;

use crate::hosts::error_hints::last_line;

/// A server whose connection ended unexpectedly.
pub(crate) fn server_gone(server: &ServerAddress, how: &str) -> String {
    format!(
        "server `{server}` is gone ({how}): it has been stopped or restarted, or it has refused this client; its \
         log has the reason. The client connects again by itself"
    )
}

/// A server that has been silent for `heartbeat`.
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
