//! Reasons why a session does not serve its client, with hints.

use std::io;
use std::path::Path;
use std::time::Duration;

use gridrpc_core::Loss;

use crate::hosts::error_hints::last_line;

/// A session that cannot be dialled. `socket`: none: this user has no folder for sessions.
pub(crate) fn session_unreachable(name: &str, socket: Option<&Path>, error: &io::Error) -> String {
    let Some(socket) = socket else {
        return format!(
            "session `{name}` cannot be found: {error}; set XDG_STATE_HOME as it is where the session was \
             started"
        );
    };
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            format!("session `{name}` does not run: start it by `gridrpc session start {name}`")
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
            "session `{name}` does not accept connections: its process is stopped, or too many programs \
             connect at once; see `gridrpc session show {name}`"
        ),
        _ => format!(
            "session `{name}` cannot be reached at `{}`: {error}; see who owns this folder and may write \
             to it",
            socket.display()
        ),
    }
}

/// A session whose connection ended unexpectedly.
pub(crate) fn session_gone(name: &str, how: &str) -> String {
    format!(
        "session `{name}` is gone ({how}): it has been stopped or killed; `gridrpc session show {name}` says \
         how it ended, and `gridrpc session start {name}` starts it again"
    )
}

/// A session that has been silent for `heartbeat`.
pub(crate) fn session_silent(name: &str, heartbeat: Duration) -> String {
    format!(
        "session `{name}` was silent for {} s: its process is stopped or overloaded; see `gridrpc session \
         show {name}`, or wait longer (see `heartbeat` in the configuration of the server)",
        heartbeat.as_secs_f64()
    )
}

/// A session with another message format. `version`: of its gridrpc, if it sent one.
pub(crate) fn session_of_other_version(name: &str, version: Option<&str>) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let theirs =
        version.map_or("another version".to_owned(), |version| format!("gridrpc {version}"));
    format!(
        "session `{name}` runs {theirs}, which does not understand this client, gridrpc {own}: end it by \
         `gridrpc session stop {name}`, and start it with this version"
    )
}

/// A session whose workers cannot start.
pub(crate) fn session_without_workers(name: &str, loss: &Loss) -> String {
    let last = last_line(&loss.stderr).map(|line| format!(": {line}")).unwrap_or_default();
    format!(
        "session `{name}` cannot start its workers: the last one {}{last}; see `gridrpc session show {name}`",
        loss.cause
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_remedy() {
        let socket = Path::new("/state/gridrpc/sessions/work/socket");
        let explain = |kind: io::ErrorKind| session_unreachable("work", Some(socket), &kind.into());
        let start = "session `work` does not run: start it by `gridrpc session start work`";
        assert_eq!(explain(io::ErrorKind::NotFound), start);
        assert_eq!(explain(io::ErrorKind::ConnectionRefused), start);
        let busy = explain(io::ErrorKind::WouldBlock);
        assert!(busy.contains("does not accept") && busy.ends_with("show work`"), "{busy}");
        let refused = explain(io::ErrorKind::PermissionDenied);
        assert!(refused.contains("at `/state/gridrpc/sessions/work/socket`: "), "{refused}");
        let homeless = session_unreachable("work", None, &io::ErrorKind::Other.into());
        assert!(homeless.contains("set XDG_STATE_HOME"), "{homeless}");
    }
}
