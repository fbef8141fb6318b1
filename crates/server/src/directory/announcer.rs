//! Thread that announces the server to directories.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gridrpc_config::{ServerAddress, credentials_folder};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::catalogue::{Code, OfferedModule};
use crate::config::{Cores, DirectoryConfig};
use crate::directory::announcement::{AnnouncedModule, Announcement, DirectoryReply};
use crate::log;
use crate::roles::Role;
use crate::shared::Shared;
use gridrpc_http::{HttpClient, Trust};

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a stop waits for the last announcement.
const GRACE: Duration = Duration::from_secs(1);

/// Announces the server to directories in the background. Calls never wait for it.
pub(crate) struct Announcer {
    /// Whether the server ends.
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").finish_non_exhaustive()
    }
}

impl Announcer {
    /// Starts the announcements. `port`, `http_port`: where the server listens.
    pub(crate) fn start(
        config: &DirectoryConfig,
        shared: &Arc<Shared>,
        port: u16,
        http_port: Option<u16>,
    ) -> io::Result<Announcer> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let clients = config.clients()?;
        let (stop, stopped) = watch::channel(false);
        let address = config.at_port(config.port.unwrap_or(port));
        let http = http_port.map(|port| format!("https://{}", config.at_port(port)));
        let state =
            Arc::new(State { shared: Arc::clone(shared), config: config.clone(), address, http });
        let thread = thread::Builder::new().name("gridrpc-announcer".into()).spawn(move || {
            runtime.block_on(async {
                let mut tasks = JoinSet::new();
                for client in clients {
                    let state = Arc::clone(&state);
                    tasks.spawn(announce_to(client, state, stopped.clone()));
                }
                tasks.join_all().await;
            });
        })?;
        Ok(Announcer { stop, thread: Some(thread) })
    }

    /// Tells the directories that the server ends.
    pub(crate) fn close(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.close();
    }
}

impl DirectoryConfig {
    /// A client for each directory.
    pub(crate) fn clients(&self) -> io::Result<Vec<HttpClient>> {
        let folder = self.credentials.clone().or_else(credentials_folder);
        let folder = folder.unwrap_or_else(|| PathBuf::from("."));
        self.urls.iter().map(|url| HttpClient::new(url, Trust::Credentials(&folder))).collect()
    }

    /// The announced host with this port.
    fn at_port(&self, port: u16) -> String {
        ServerAddress::Tls { host: self.host.clone(), port }.to_string()
    }
}

/// What the announcements of a server consist of.
struct State {
    shared: Arc<Shared>,
    config: DirectoryConfig,
    address: String,
    http: Option<String>,
}

/// Announces the server to one directory until the server ends.
async fn announce_to(client: HttpClient, state: Arc<State>, mut stopped: watch::Receiver<bool>) {
    let mut has_failed = false;
    loop {
        let announced = tokio::select! {
            announced = announce(&client, &state, false) => announced,
            _ = stopped.changed() => Ok(()),
        };
        report(&client, &announced, has_failed);
        has_failed = announced.is_err();
        let waited = timeout(state.config.interval, stopped.wait_for(|stopped| *stopped)).await;
        if waited.is_ok() {
            break;
        }
    }
    // A directory that is away notices by itself.
    let _ = timeout(GRACE, announce(&client, &state, true)).await;
}

/// Logs the first failure of several, and the success after them.
fn report(client: &HttpClient, announced: &Result<(), String>, has_failed: bool) {
    match announced {
        Err(reason) if !has_failed => {
            let fields: log::Fields<'_> = &[("directory", client.url()), ("reason", reason)];
            log::warning("cannot announce the server to a directory", fields);
        }
        Ok(()) if has_failed => {
            log::info("the server is announced again", &[("directory", client.url())]);
        }
        _ => {}
    }
}

/// Announces the server once, and again with the interfaces that the directory does not have.
async fn announce(client: &HttpClient, state: &State, is_leaving: bool) -> Result<(), String> {
    let mut announcement = state.announcement(is_leaving);
    let missing = post(client, &announcement).await?.missing;
    if missing.is_empty() || is_leaving {
        return Ok(());
    }
    announcement.interfaces = state
        .modules()
        .into_iter()
        .filter_map(|module| match &module.code {
            Code::Library { text, hash, .. } => Some((hash.clone(), text.clone())),
            Code::Python(_) => None,
        })
        .filter(|(hash, _)| missing.contains(hash))
        .collect();
    post(client, &announcement).await.map(|_| ())
}

async fn post(client: &HttpClient, announcement: &Announcement) -> Result<DirectoryReply, String> {
    // It fails only for maps whose keys are not texts.
    let body = serde_json::to_vec(announcement).unwrap_or_default();
    let request = client.post("application/json", body.into());
    let (status, answer) = timeout(TIMEOUT, request)
        .await
        .map_err(|_| format!("the directory took longer than {} s", TIMEOUT.as_secs()))?
        .map_err(|error| error.to_string())?;
    if !status.is_success() {
        let text = String::from_utf8_lossy(&answer);
        let text: String = text.trim().chars().take(300).collect();
        return Err(format!("the directory answered {status}: {text}"));
    }
    serde_json::from_slice(&answer).map_err(|error| format!("it is no directory: {error}"))
}

impl State {
    /// The modules that all users of the server may call. The others are nobody else's business.
    fn modules(&self) -> Vec<Arc<OfferedModule>> {
        let everyone = Role::of(&self.shared.config, "", &[]);
        let mut modules = self.shared.catalogue.modules();
        modules.retain(|module| everyone.may_call(&module.name, Some(&module.settings)));
        modules
    }

    fn announcement(&self, is_leaving: bool) -> Announcement {
        let pools = &self.shared.pools;
        let (ready, ..) = pools.common.counts();
        let cores = pools.common_workers().max(u32::try_from(ready).unwrap_or(u32::MAX)).max(1);
        let cores_of = |module: &OfferedModule| match module.settings.cores {
            Cores::One => 1,
            Cores::All => cores,
            Cores::Count(count) => count.min(cores),
        };
        let in_use: f64 = self
            .shared
            .catalogue
            .modules()
            .iter()
            .map(|module| module.alive() as f64 * f64::from(cores_of(module)))
            .sum();
        let queued = pools.all().iter().map(|(_, pool)| pool.counts().1 as u64).sum();
        let module = |module: &Arc<OfferedModule>| {
            let (hash, functions) = match &module.code {
                Code::Library { hash, .. } => (Some(hash.clone()), Vec::new()),
                Code::Python(_) => (None, module.functions()),
            };
            let is_full = module.is_full(pools.common_workers());
            AnnouncedModule { name: module.name.clone(), hash, functions, is_full }
        };
        Announcement {
            name: self.shared.config.name.clone(),
            address: self.address.clone(),
            http: self.http.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            interval: self.config.interval.as_secs_f64(),
            cores,
            load: in_use / f64::from(cores),
            queued,
            speed: self.config.speed,
            accepts: !self.shared.is_draining(),
            is_leaving,
            modules: self.modules().iter().map(module).collect(),
            interfaces: Default::default(),
        }
    }
}
