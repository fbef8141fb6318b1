//! Sessions: servers that run already, and where they listen.

use std::path::PathBuf;

use gridrpc_sys::safe_path;

use super::problems::Fault;
use super::values::shown;

/// Longest name, bytes.
const LONGEST: usize = 100;

/// The Unix socket of the session with this name; none: this user has no folder for sessions. gridrpc/_session/registry.py
/// is the same in Python.
#[must_use]
pub fn session_socket(name: &str) -> Option<PathBuf> {
    Some(safe_path::states()?.join("gridrpc/sessions").join(name).join("socket"))
}

/// Whether a key has a meaning for a session. The others are about starting agents and reaching them by network.
pub(super) fn takes(key: &str) -> bool {
    matches!(key, "launcher" | "session" | "memory" | "resources" | "heartbeat" | "output")
}

/// Checks the name of a session, which is also that of its folder.
pub(super) fn check_name(name: &str) -> Result<(), Fault> {
    let is_valid = name.len() <= LONGEST
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    is_valid.then_some(()).ok_or_else(|| Fault::Value {
        key: "session".into(),
        found: shown(name),
        expected: format!(
            "the name of a session: letters, digits, `.`, `_` and `-`, first a letter or a digit, \
             {LONGEST} at most"
        ),
    })
}
