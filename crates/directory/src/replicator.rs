//! Replication of announcements among directories, over etcd. Each directory writes what servers announce to it, and
//! takes over what others write. The age of an announcement is measured by the clock of the directory that uses it, so
//! etcd has no times, and what it deletes when a lease ends changes nothing here.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use gridrpc_server::directory::Announcement;
use gridrpc_server::log;
use gridrpc_sys::lock;
use serde::{Deserialize, Serialize};
use tokio::time::{interval, sleep, timeout};

use crate::etcd::{EtcdClient, EtcdError, Event, Header, KeyValue, Put};
use crate::replication::{Change, Replication};
use crate::shared::Shared;

/// Time after which etcd forgets what a directory wrote that is gone.
const LEASE: Duration = Duration::from_secs(15);
/// How often a lease is extended. A member that does not answer is noticed then.
const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// Pause after all members have failed.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a stop waits for etcd.
const GRACE: Duration = Duration::from_secs(1);
/// Most keys of a transaction: etcd allows 128 by default.
const MOST_PUTS: usize = 100;
/// Bytes of a transaction: etcd allows 1.5 MB by default.
const MOST_BYTES: usize = 1 << 20;

/// Writes and reads what directories share.
pub(crate) struct Replicator<'s> {
    pub(crate) replication: &'s Replication,
    pub(crate) shared: &'s Shared,
}

/// A server, as a directory writes it.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The lease of the directory.
    from: i64,
    /// The user who announces the server.
    owner: String,
    announcement: Announcement,
}

/// What outlasts a connection to a member.
#[derive(Default)]
struct Progress {
    /// The cluster.
    cluster: u64,
    /// Revisions that this directory knows, by address.
    revisions: HashMap<String, i64>,
}

/// A connection to a member.
struct Session<'s> {
    replication: &'s Replication,
    shared: &'s Shared,
    etcd: &'s EtcdClient,
    lease: i64,
    /// Hashes of the interfaces in etcd, and of those that it does not take.
    interfaces: BTreeSet<String>,
    /// Servers that this directory has written.
    written: BTreeSet<String>,
}

impl Replicator<'_> {
    /// Replicates until it is dropped. Without etcd the directory continues with its own entries.
    pub(crate) async fn run(&self) {
        let mut progress = Progress::default();
        let (mut index, mut failures) = (0, 0);
        loop {
            let etcd = &self.replication.members[index];
            let before = lock(&self.replication.status).connected.is_some();
            let Err(error) = self.follow(index, &mut progress).await;
            let was_connected = lock(&self.replication.status).connected.is_some();
            self.failed(etcd, &error, failures == 0 || before || was_connected);
            failures = if was_connected { 1 } else { failures + 1 };
            index = (index + 1) % self.replication.members.len();
            if failures % self.replication.members.len() == 0 {
                sleep(PAUSE).await;
            }
        }
    }

    /// Ends the lease of this directory, which is about to stop.
    pub(crate) async fn leave(&self) {
        let lease = lock(&self.replication.status).lease.take();
        if let Some((member, lease)) = lease {
            // Without an answer, the lease ends by itself.
            let _ = timeout(GRACE, self.replication.members[member].revoke(lease)).await;
        }
    }

    fn failed(&self, etcd: &EtcdClient, error: &EtcdError, is_news: bool) {
        let mut status = lock(&self.replication.status);
        if status.connected.take().is_some() {
            status.since = Instant::now();
        }
        status.reason = format!("{}: {error}", etcd.url());
        if is_news {
            let fields: log::Fields<'_> = &[("member", &etcd.url()), ("reason", error)];
            log::warning("a member of etcd does not answer", fields);
        }
    }

    /// Replicates by one member, until it fails.
    async fn follow(&self, index: usize, progress: &mut Progress) -> Result<Infallible, EtcdError> {
        let etcd = &self.replication.members[index];
        let lease = etcd.grant(LEASE).await?;
        let mut session = Session {
            replication: self.replication,
            shared: self.shared,
            etcd,
            lease,
            interfaces: BTreeSet::new(),
            written: BTreeSet::new(),
        };
        let Header { cluster, revision } = session.read_all(progress).await?;
        let directory = Put {
            key: format!("{}directories/{lease}", self.replication.prefix),
            value: self.replication.name.clone(),
            lease: Some(lease),
        };
        etcd.put(&[directory]).await?;
        let mut watch = etcd.watch(&self.replication.prefix, revision + 1).await?;
        // All that servers have announced here is to be in etcd, also if it has lost its data.
        for address in self.shared.read(|registry, now| registry.announced_here(now)) {
            lock(&self.replication.changes).entry(address).or_insert(Change::Announced);
        }
        {
            let mut status = lock(&self.replication.status);
            status.connected = Some(etcd.url());
            status.since = Instant::now();
            status.lease = Some((index, lease));
        }
        log::info(
            "announcements are shared by etcd",
            &[("member", &etcd.url()), ("cluster", &cluster)],
        );
        session.write_changes(progress).await?;
        let mut clock = interval(KEEP_ALIVE);
        loop {
            tokio::select! {
                events = watch.next() => session.apply(events?, progress).await?,
                () = self.replication.has_changes.notified() => session.write_changes(progress).await?,
                _ = clock.tick() => {
                    etcd.keep_alive(lease).await?;
                    session.delete_silent(progress).await?;
                }
            }
        }
    }
}

impl Session<'_> {
    fn server_key(&self, address: &str) -> String {
        format!("{}servers/{address}", self.replication.prefix)
    }

    fn interface_key(&self, hash: &str) -> String {
        format!("{}interfaces/{hash}", self.replication.prefix)
    }

    /// Reads the state of etcd.
    async fn read_all(&mut self, progress: &mut Progress) -> Result<Header, EtcdError> {
        let prefix = &self.replication.prefix;
        let (header, servers) = self.etcd.list(&format!("{prefix}servers/"), false).await?;
        let interfaces = format!("{prefix}interfaces/");
        let (_, known) = self.etcd.list(&interfaces, true).await?;
        let hashes = known
            .into_iter()
            .filter_map(|one| one.key.strip_prefix(&interfaces).map(str::to_owned));
        self.interfaces = hashes.collect();
        let (_, directories) = self.etcd.list(&format!("{prefix}directories/"), false).await?;
        lock(&self.replication.status).directories.clear();
        if progress.cluster != header.cluster {
            *progress = Progress { cluster: header.cluster, revisions: HashMap::new() };
        }
        let events = directories.into_iter().chain(servers).map(Event::Put).collect();
        self.apply(events, progress).await?;
        Ok(header)
    }

    /// Takes over changes of other directories.
    async fn apply(
        &mut self,
        events: Vec<Event>,
        progress: &mut Progress,
    ) -> Result<(), EtcdError> {
        for event in events {
            let key = match &event {
                Event::Put(kv) => &kv.key,
                Event::Deleted(key) => key,
            };
            let Some((kind, name)) = key
                .strip_prefix(&self.replication.prefix)
                .and_then(|rest| rest.split_once('/'))
                .map(|(kind, name)| (kind.to_owned(), name.to_owned()))
            else {
                continue;
            };
            match (kind.as_str(), event) {
                ("servers", Event::Put(kv)) => self.apply_server(name, &kv, progress).await?,
                ("interfaces", Event::Put(_)) => drop(self.interfaces.insert(name)),
                ("interfaces", Event::Deleted(_)) => drop(self.interfaces.remove(&name)),
                ("directories", Event::Put(kv)) if name != self.lease.to_string() => {
                    let value = String::from_utf8_lossy(&kv.value).into_owned();
                    lock(&self.replication.status).directories.insert(name, value);
                }
                ("directories", Event::Deleted(_)) => {
                    lock(&self.replication.status).directories.remove(&name);
                }
                // A server that etcd has deleted becomes silent by this directory's own clock.
                _ => {}
            }
        }
        Ok(())
    }

    async fn apply_server(
        &mut self,
        address: String,
        kv: &KeyValue,
        progress: &mut Progress,
    ) -> Result<(), EtcdError> {
        let known = progress.revisions.entry(address.clone()).or_insert(0);
        if *known >= kv.revision {
            // It is no news, and says nothing about the age.
            return Ok(());
        }
        *known = kv.revision;
        let record: Record = match serde_json::from_slice(&kv.value) {
            Ok(record) => record,
            Err(error) => {
                let fields: log::Fields<'_> = &[("key", &kv.key), ("reason", &error)];
                log::warning("a record in etcd is not one of a directory", fields);
                return Ok(());
            }
        };
        if record.from == self.lease || record.announcement.address != address {
            return Ok(());
        }
        let Record { owner, mut announcement, .. } = record;
        announcement.interfaces.clear();
        let missing = self.replicate(&announcement, &owner);
        for hash in missing {
            if let Some(kv) = self.etcd.get(&self.interface_key(&hash)).await?
                && let Ok(text) = String::from_utf8(kv.value)
            {
                announcement.interfaces.insert(hash, text);
            }
        }
        if !announcement.interfaces.is_empty() {
            self.replicate(&announcement, &owner);
        }
        Ok(())
    }

    /// Hands an announcement of another directory over. Returns the hashes of interfaces that are missing.
    fn replicate(&self, announcement: &Announcement, owner: &str) -> Vec<String> {
        match self.shared.replicate(announcement.clone(), owner) {
            Ok(announced) => announced.missing,
            Err(error) => {
                let fields: log::Fields<'_> =
                    &[("server", &announcement.address), ("reason", &error)];
                log::warning("an announcement of another directory is refused", fields);
                Vec::new()
            }
        }
    }

    /// Writes what servers have announced to this directory. Failed writes are repeated with the next announcement.
    async fn write_changes(&mut self, progress: &mut Progress) -> Result<(), EtcdError> {
        let changes = std::mem::take(&mut *lock(&self.replication.changes));
        let (mut puts, mut bytes) = (Vec::new(), 0);
        for (address, change) in changes {
            let entry = match change {
                Change::Announced => {
                    let entry = self.shared.read(|registry, _| registry.entry(&address).cloned());
                    // Another directory may have heard the server since.
                    let Some(entry) = entry.filter(|entry| entry.is_direct) else { continue };
                    self.write_interfaces(&entry.announcement).await?;
                    entry
                }
                Change::Left(entry) => *entry,
            };
            let is_leaving = entry.announcement.is_leaving;
            let record =
                Record { from: self.lease, owner: entry.owner, announcement: entry.announcement };
            // A record consists of texts and numbers.
            let value = serde_json::to_string(&record).unwrap_or_default();
            let key = self.server_key(&address);
            let put = Put { key, value, lease: Some(self.lease) };
            if is_leaving {
                // Directories that watch learn that it has left; those that start later find nothing.
                progress
                    .revisions
                    .insert(address.clone(), self.etcd.put(std::slice::from_ref(&put)).await?);
                self.etcd.delete(&put.key).await?;
                self.written.remove(&address);
                continue;
            }
            let length = put.key.len() + put.value.len();
            if bytes + length > MOST_BYTES || puts.len() >= MOST_PUTS {
                self.write(std::mem::take(&mut puts), progress).await?;
                bytes = 0;
            }
            bytes += length;
            puts.push((address, put));
        }
        self.write(puts, progress).await
    }

    async fn write(
        &mut self,
        puts: Vec<(String, Put)>,
        progress: &mut Progress,
    ) -> Result<(), EtcdError> {
        if puts.is_empty() {
            return Ok(());
        }
        let (addresses, puts): (Vec<String>, Vec<Put>) = puts.into_iter().unzip();
        let revision = match self.etcd.put(&puts).await {
            Ok(revision) => revision,
            Err(error) if error.is_too_large() => {
                let servers = addresses.join(", ");
                let fields: log::Fields<'_> = &[("servers", &servers), ("reason", &error)];
                let what = "etcd does not take an announcement: start it with a larger \
                            --max-request-bytes";
                log::warning(what, fields);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for address in addresses {
            progress.revisions.insert(address.clone(), revision);
            self.written.insert(address);
        }
        Ok(())
    }

    /// Writes the interfaces of a server that etcd does not have.
    async fn write_interfaces(&mut self, announcement: &Announcement) -> Result<(), EtcdError> {
        for hash in announcement.modules.iter().filter_map(|module| module.hash.as_ref()) {
            if self.interfaces.contains(hash) {
                continue;
            }
            let text = self.shared.read(|registry, _| {
                registry.interface(hash).map(|interface| interface.text.clone())
            });
            // The server sends the text later.
            let Some(value) = text else { continue };
            let put = Put { key: self.interface_key(hash), value, lease: None };
            match self.etcd.put(&[put]).await {
                Ok(_) => {}
                Err(error) if error.is_too_large() => {
                    let fields: log::Fields<'_> =
                        &[("server", &announcement.address), ("hash", hash), ("reason", &error)];
                    let what = "etcd does not take an interface, so other directories lack it: \
                                start etcd with a larger --max-request-bytes";
                    log::warning(what, fields);
                }
                Err(error) => return Err(error),
            }
            self.interfaces.insert(hash.clone());
        }
        Ok(())
    }

    /// Deletes servers that are silent, and interfaces that no server has.
    async fn delete_silent(&mut self, progress: &mut Progress) -> Result<(), EtcdError> {
        let heard: BTreeSet<String> =
            self.shared.read(|registry, now| registry.announced_here(now)).into_iter().collect();
        let silent: Vec<String> = self.written.difference(&heard).cloned().collect();
        for address in silent {
            self.written.remove(&address);
            // Keep entries that another directory has written since.
            let is_silent = self.shared.read(|registry, now| registry.is_silent(&address, now));
            if is_silent {
                self.etcd.delete(&self.server_key(&address)).await?;
            }
        }
        progress
            .revisions
            .retain(|address, _| self.shared.read(|registry, _| registry.entry(address).is_some()));
        for hash in self.shared.unused_interfaces() {
            self.etcd.delete(&self.interface_key(&hash)).await?;
        }
        Ok(())
    }
}
