//! Hosts that run already and that the client dials: their kinds, and why they do not serve.

use std::time::Duration;

use gridrpc_config::{LauncherKind, ServerAddress};
use gridrpc_core::Loss;

use crate::hosts::server_hints::{
    server_gone, server_of_other_version, server_silent, server_without_workers,
};
use crate::hosts::session_hints::{
    session_gone, session_of_other_version, session_silent, session_without_workers,
};

/// A host that the client dials.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DialTarget<'a> {
    /// A session with this name.
    Session(&'a str),
    /// A server with this address.
    Server(&'a ServerAddress),
}

impl<'a> DialTarget<'a> {
    /// The host of a group; none: it has an agent, which is started.
    pub(crate) fn of(launcher: &'a LauncherKind) -> Option<DialTarget<'a>> {
        match launcher {
            LauncherKind::Session { name } => Some(DialTarget::Session(name)),
            LauncherKind::Server { address, .. } => Some(DialTarget::Server(address)),
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Batch(_) => None,
        }
    }

    /// Its connection ended unexpectedly.
    pub(crate) fn gone(self, how: &str) -> String {
        match self {
            DialTarget::Session(name) => session_gone(name, how),
            DialTarget::Server(address) => server_gone(address, how),
        }
    }

    /// Nothing has arrived from it for as long as `heartbeat`.
    pub(crate) fn silent(self, heartbeat: Duration) -> String {
        match self {
            DialTarget::Session(name) => session_silent(name, heartbeat),
            DialTarget::Server(address) => server_silent(address, heartbeat),
        }
    }

    /// It has another message format. `version`: of its gridrpc, if it sent one.
    pub(crate) fn of_other_version(self, version: Option<&str>) -> String {
        match self {
            DialTarget::Session(name) => session_of_other_version(name, version),
            DialTarget::Server(address) => server_of_other_version(address, version),
        }
    }

    /// It has no workers.
    pub(crate) fn without_workers(self, loss: &Loss) -> String {
        match self {
            DialTarget::Session(name) => session_without_workers(name, loss),
            DialTarget::Server(address) => server_without_workers(address, loss),
        }
    }
}
