//! State that directories share through etcd: changes to write, and the state of etcd. replicator.rs
//! writes and reads.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use gridrpc_http::{HttpClient, Trust};
use gridrpc_sys::{host_name, lock};
use gridrpc_transport::certificates::CredentialFiles;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::etcd::{EtcdClient, EtcdMember};
use crate::registry::Entry;

/// Where etcd is.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Its members.
    pub members: Vec<EtcdMember>,
    /// What all keys begin with.
    pub prefix: String,
    /// Certificates of the authorities that sign members'; none: those that the system trusts.
    pub authority: Option<PathBuf>,
    /// The certificate and the private key of the directory, if etcd requires one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Announcements that this directory shares with others.
pub(crate) struct Replication {
    pub(crate) prefix: String,
    pub(crate) members: Vec<EtcdClient>,
    /// How this directory is called in etcd.
    pub(crate) name: String,
    /// By address.
    pub(crate) changes: Mutex<BTreeMap<String, Change>>,
    pub(crate) has_changes: Notify,
    pub(crate) status: Mutex<EtcdStatus>,
}

impl std::fmt::Debug for Replication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replication").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// An event of a server.
#[derive(Debug)]
pub(crate) enum Change {
    /// It has announced itself: its entry counts.
    Announced,
    /// It has left.
    Left(Box<Entry>),
}

#[derive(Debug)]
pub(crate) struct EtcdStatus {
    /// The member in use; none: no member answers.
    pub(crate) connected: Option<String>,
    pub(crate) since: Instant,
    /// Why no member is in use.
    pub(crate) reason: String,
    /// Other directories, by their leases.
    pub(crate) directories: BTreeMap<String, String>,
    /// The lease of this directory, and the member that knows it.
    pub(crate) lease: Option<(usize, i64)>,
}

impl Replication {
    /// Reads the certificates. `port`: where this directory listens.
    pub(crate) fn new(options: &EtcdOptions, port: u16) -> io::Result<Replication> {
        let EtcdOptions { members, prefix, authority, certificate } = options;
        let files = certificate
            .clone()
            .zip(authority.clone())
            .map(|((certificate, key), authority)| CredentialFiles { certificate, key, authority });
        let trust = match (&files, authority) {
            (Some(files), _) => Trust::Files(files),
            (None, Some(authority)) => Trust::Authority(authority),
            (None, None) => Trust::System,
        };
        let client = |member: &EtcdMember| Ok(EtcdClient::new(HttpClient::new(&member.0, trust)?));
        let members: Vec<EtcdClient> = members.iter().map(client).collect::<io::Result<_>>()?;
        let status = EtcdStatus {
            connected: None,
            since: Instant::now(),
            reason: "it has not answered yet".into(),
            directories: BTreeMap::new(),
            lease: None,
        };
        Ok(Replication {
            prefix: format!("{}/", prefix.trim_end_matches('/')),
            members,
            name: format!("{}:{port}", host_name()),
            changes: Mutex::default(),
            has_changes: Notify::new(),
            status: Mutex::new(status),
        })
    }

    /// A server has announced itself to this directory.
    pub(crate) fn announced(&self, address: &str) {
        lock(&self.changes).insert(address.to_owned(), Change::Announced);
        self.has_changes.notify_one();
    }

    /// A server has left.
    pub(crate) fn left(&self, entry: Entry) {
        let address = entry.announcement.address.clone();
        lock(&self.changes).insert(address, Change::Left(Box::new(entry)));
        self.has_changes.notify_one();
    }

    /// The state of etcd, for people.
    pub(crate) fn status(&self) -> Value {
        let status = lock(&self.status);
        json!({
            "is_connected": status.connected.is_some(),
            "member": status.connected,
            "reason": if status.connected.is_none() { Some(&status.reason) } else { None },
            "seconds": status.since.elapsed().as_secs_f64(),
            "members": self.members.iter().map(EtcdClient::url).collect::<Vec<_>>(),
            "directories": status.directories.values().collect::<Vec<_>>(),
        })
    }
}
