//! State of a directory that its connections share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gridrpc_server::directory::{Announcement, DirectoryReply};
use gridrpc_server::log;
use gridrpc_sys::lock;
use gridrpc_transport::certificates::Revocations;

use crate::registry::{AnnouncementError, Entry, Registry};
use crate::replication::{EtcdOptions, Replication};
use crate::store::Store;

/// How a directory runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of its file.
    pub state: PathBuf,
    /// Addresses to listen at.
    pub addresses: Vec<IpAddr>,
    /// Port; 0: any.
    pub port: u16,
    /// Folder with the directory's certificate; none: connections are not encrypted.
    pub credentials: Option<PathBuf>,
    /// List of revoked certificates.
    pub revoked: Option<PathBuf>,
    /// The group of users who announce servers; none: all users may.
    pub announcers: Option<String>,
    /// Whether everyone may read, without a certificate.
    pub is_public: bool,
    /// The etcd that directories share; none: this directory is independent.
    pub etcd: Option<EtcdOptions>,
}

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) revocations: Revocations,
    pub(crate) replication: Option<Replication>,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    registry: Registry,
    store: Store,
    /// Whether the last change was not written.
    has_failed: bool,
    /// Interfaces that no server has any more, until etcd has forgotten them, too.
    unused: Vec<String>,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        revocations: Revocations,
        registry: Registry,
        store: Store,
        replication: Option<Replication>,
    ) -> Shared {
        let state = State { registry, store, has_failed: false, unused: Vec::new() };
        let state = Mutex::new(state);
        Shared { options, revocations, replication, started: Instant::now(), state }
    }

    /// Time since the directory started.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Reads from the registry.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Registry, Duration) -> T) -> T {
        read(&lock(&self.state).registry, self.now())
    }

    /// A server announces its state.
    pub(crate) fn announce(
        &self,
        announcement: Announcement,
        user: &str,
    ) -> Result<DirectoryReply, AnnouncementError> {
        let address = announcement.address.clone();
        let left = (announcement.is_leaving && self.replication.is_some()).then(|| Entry {
            announcement: Announcement { modules: Vec::new(), ..announcement.clone() },
            owner: user.to_owned(),
            heard: self.now(),
            is_direct: true,
        });
        let mut state = lock(&self.state);
        let announced =
            state.change(announcement, |registry, one| registry.announce(one, user, self.now()))?;
        if let Some(replication) = &self.replication {
            match left {
                Some(entry) => replication.left(entry),
                None => replication.announced(&address),
            }
        }
        Ok(announced)
    }

    /// Another directory has accepted an announcement.
    pub(crate) fn replicate(
        &self,
        announcement: Announcement,
        owner: &str,
    ) -> Result<DirectoryReply, AnnouncementError> {
        let now = self.now();
        lock(&self.state).change(announcement, |registry, one| registry.replicate(one, owner, now))
    }

    /// Interfaces that no server has any more. Each is returned once.
    pub(crate) fn unused_interfaces(&self) -> Vec<String> {
        let mut state = lock(&self.state);
        let mut unused = std::mem::take(&mut state.unused);
        unused.retain(|hash| state.registry.interface(hash).is_none());
        unused
    }

    /// Forgets old servers, and reads the list of revoked certificates again.
    pub(crate) fn check(&self) {
        self.revocations.refresh();
        let mut state = lock(&self.state);
        let (addresses, hashes) = state.registry.expire(self.now());
        if !addresses.is_empty() || !hashes.is_empty() {
            let written = state.store.forget(&addresses, &hashes);
            state.report(written);
            if self.replication.is_some() {
                state.unused.extend(hashes);
            }
        }
    }
}

impl State {
    /// Changes the registry. The file is written when the modules of a server have changed.
    fn change(
        &mut self,
        announcement: Announcement,
        change: impl FnOnce(
            &mut Registry,
            Announcement,
        ) -> Result<(DirectoryReply, bool), AnnouncementError>,
    ) -> Result<DirectoryReply, AnnouncementError> {
        let (address, is_leaving) = (announcement.address.clone(), announcement.is_leaving);
        let has_interfaces = !announcement.interfaces.is_empty();
        let (announced, has_changed) = change(&mut self.registry, announcement)?;
        if has_changed || has_interfaces {
            let State { registry, store, .. } = self;
            let written = match registry.entry(&address) {
                Some(entry) => store.keep(entry, registry),
                None => store.forget(std::slice::from_ref(&address), &[]),
            };
            self.report(written);
            let what =
                if is_leaving { "a server has left" } else { "a server announces functions" };
            log::info(what, &[("address", &address)]);
        }
        Ok(announced)
    }

    /// Logs the first failure of several: without its file the directory continues.
    fn report(&mut self, written: rusqlite::Result<()>) {
        if let Err(error) = &written
            && !self.has_failed
        {
            let what = "cannot write the file of the directory: a restart forgets the changes";
            log::warning(what, &[("reason", error)]);
        }
        self.has_failed = written.is_err();
    }
}
