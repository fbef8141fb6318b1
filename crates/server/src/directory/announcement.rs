//! What a server announces to directories.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of a server, which it posts to directories again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// Name of the server, for people.
    pub name: String,
    /// Where clients connect: `HOST:PORT`.
    pub address: String,
    /// URL of its Open Inference Protocol, if it serves HTTP to other machines.
    #[serde(default)]
    pub http: Option<String>,
    /// Version of gridrpc.
    pub version: String,
    /// Time until the next announcement, s.
    pub interval: f64,
    /// Number of cores for calls.
    pub cores: u32,
    /// Calls that run or wait, for each core.
    pub load: f64,
    /// Calls that wait.
    pub queued: u64,
    /// Operations per second of a call that runs alone.
    pub speed: f64,
    /// Whether it takes new calls.
    pub accepts: bool,
    /// Whether it ends now.
    #[serde(default)]
    pub is_leaving: bool,
    /// The modules that all its users may call.
    pub modules: Vec<AnnouncedModule>,
    /// Interfaces that a directory has requested, by hash.
    #[serde(default)]
    pub interfaces: BTreeMap<String, String>,
}

/// A module that a server announces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedModule {
    /// Its name.
    pub name: String,
    /// Hash of its interface; none: it is in Python and has no interface.
    #[serde(default)]
    pub hash: Option<String>,
    /// Names of its functions, if it has no interface.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Whether its queue is full.
    #[serde(default)]
    pub is_full: bool,
}

/// What a directory answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryReply {
    /// Hashes of interfaces that the directory does not have.
    pub missing: Vec<String>,
}
