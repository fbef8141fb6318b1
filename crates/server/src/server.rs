//! A server that runs.

use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use gridrpc_agent::{Daemon, Proof, User};
use gridrpc_client::GridError;
use gridrpc_sys::safe_path::{UnsafePath, make_folder};
use gridrpc_transport::certificates::{
    ClientCertificates, CredentialFiles, CredentialKeysError, Credentials, CredentialsError,
    Revocations, RevocationsError, ServerKeys, server_config,
};
use nix::fcntl::{Flock, FlockArg};
use thiserror::Error;

use crate::api_tokens::{ApiTokenError, ApiTokens};
use crate::audit::{AuditError, AuditEvent, AuditLog, AuditRecord};
use crate::catalogue::{Catalogue, CatalogueError};
use crate::config::{Network, ServerConfig, TlsConfig};
use crate::detached::DetachedCalls;
use crate::directory::Announcer;
use crate::http::HttpServer;
use crate::log;
use crate::named_data::NamedStore;
use crate::pools::{Pools, Workers};
use crate::publisher::Publisher;
use crate::service::Users;
use crate::shared::Shared;
use crate::stop::Stop;
use crate::traces::Tracer;
use crate::worker_user::{WorkerUserError, root_warning, worker_user};

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The state folder is not private.
    #[error("the state folder `{}` cannot be used: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        error: UnsafePath,
    },
    /// Another server uses the state folder.
    #[error(
        "another server{} uses the state folder `{}`: stop it with `gridrpc server stop`, or name another folder by \
         `state` in server.toml", pid.map_or_else(String::new, |pid| format!(" (process {pid})")), folder.display()
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The other server.
        pid: Option<u32>,
    },
    /// Another server listens at the Unix socket.
    #[error("another server listens at `{}`: stop it, or name another `socket` in server.toml", socket.display())]
    SocketInUse {
        /// The socket.
        socket: PathBuf,
    },
    /// The system refused an operation.
    #[error("{what} `{place}`: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The file, folder or address.
        place: String,
        /// The system's error.
        error: io::Error,
    },
    /// The port is in use, or an address is none of this host's.
    #[error("cannot listen at port {port} of {}: {error}; name another `port` or other `addresses` in server.toml", addresses.join(", "))]
    Listen {
        /// The addresses.
        addresses: Vec<String>,
        /// The port.
        port: u16,
        /// The system's error.
        error: io::Error,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The port for HTTP is in use, or an address is none of this host's.
    #[error("cannot serve HTTP at port {port} of {}: {error}; name another `port` or other `addresses` in [http] of server.toml", addresses.join(", "))]
    Http {
        /// The addresses.
        addresses: Vec<String>,
        /// The port.
        port: u16,
        /// The system's error.
        error: io::Error,
    },
    /// The API tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] ApiTokenError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Keys(#[from] CredentialKeysError),
    /// The list of revoked certificates cannot be used.
    #[error(transparent)]
    Revocations(#[from] RevocationsError),
    /// The audit log cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A module cannot be offered.
    #[error(transparent)]
    Module(#[from] CatalogueError),
    /// Several problems, found by a check.
    #[error("{}", .0.join("\n"))]
    Problems(Vec<String>),
    /// The workers cannot run as another user.
    #[error(transparent)]
    WorkerUser(#[from] WorkerUserError),
    /// The workers cannot start.
    #[error("the workers cannot start: {0}")]
    Workers(#[from] GridError),
}

/// How often folders, certificates and idle pools are checked.
const CHECK: Duration = Duration::from_millis(250);
/// Permissions of the Unix socket: all users of this machine may connect, and have their own rights.
const PERMISSIONS: u32 = 0o666;
/// Permissions of files in the state folder, which are private even where others can pass through the folder.
const PRIVATE: u32 = 0o600;
/// Permissions of a folder that others can pass through, and not list.
const PASSAGE: u32 = 0o711;

/// A server that runs. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    daemon: Arc<Mutex<Daemon>>,
    stop: Arc<Stop>,
    checking: Option<JoinHandle<()>>,
    detached: Arc<DetachedCalls>,
    /// Runs detached calls.
    detaching: Option<JoinHandle<()>>,
    port: Option<u16>,
    http: Option<HttpServer>,
    announcer: Option<Announcer>,
    /// Held while the server runs.
    _lock: Flock<fs::File>,
}

impl Server {
    /// Starts a server. `program`: the `gridrpc` program, which workers run.
    ///
    /// # Errors
    /// When its state folder, certificates, modules or addresses cannot be used.
    pub fn start(config: ServerConfig, program: PathBuf) -> Result<Server, ServerError> {
        log::set_format(config.log);
        let lock = lock_state(&config.state)?;
        let tls = config.network.as_ref().map(|network| Tls::read(&network.tls)).transpose()?;
        let tokens = config.http.as_ref().map(|http| ApiTokens::open(&http.tokens)).transpose()?;
        let (copies, added) = (config.state.join("copies"), config.state.join("modules"));
        for folder in [&copies, &added] {
            make_folder(folder)
                .map_err(|error| ServerError::Folder { folder: folder.clone(), error })?;
        }
        if let Some(warning) = root_warning(&config) {
            log::warning(warning, &[]);
        }
        let user = worker_user(&config)?;
        if user.is_some() {
            // Their workers load the copies of modules. All else in the state folder is for the server alone.
            for folder in [&config.state, &copies] {
                fs::set_permissions(folder, fs::Permissions::from_mode(PASSAGE)).map_err(
                    |error| {
                        let place = folder.display().to_string();
                        ServerError::System { what: "cannot let workers enter", place, error }
                    },
                )?;
            }
        }
        let audit = AuditLog::open(&config.audit, |status| log::warning(&status.to_string(), &[]))?;
        let named = config.state.join("shared");
        let named_data = NamedStore::open(&named)
            .map_err(|error| ServerError::Folder { folder: named.clone(), error })?;
        let pools = Pools::new(Workers::new(&config, program, user));
        let most = config.most_connections as usize;
        let (socket, network) = (config.socket.clone(), config.network.clone());
        let tracer = config.traces.as_ref().map(|traces| {
            Tracer::start(traces, &config.name).map_err(|error| ServerError::System {
                what: "cannot start the exporter of traces to",
                place: traces.url.to_string(),
                error,
            })
        });
        let tracer = tracer.transpose()?;
        let catalogue = Catalogue::new(copies);
        let shared = Shared::new(config, catalogue, pools, audit, named_data, tokens, tracer);
        let shared = Arc::new(shared);
        let publisher = Arc::new(Publisher::new(Arc::clone(&shared), added));
        for file in &shared.config.files {
            publisher.publish(file)?;
        }
        for (name, python) in &shared.config.python {
            shared.catalogue.offer_python(name, python);
        }
        publisher.check(true);
        let grid = shared.pools.common.grid()?;
        let stop = Arc::<Stop>::default();
        let system = |what, place: &Path| {
            let place = place.display().to_string();
            move |error| ServerError::System { what, place, error }
        };
        let calls = shared.config.state.join("calls");
        let detached = DetachedCalls::open(&shared, &calls)
            .map_err(|error| ServerError::Folder { folder: calls.clone(), error })?;
        let running = Arc::clone(&detached);
        let detaching = thread::Builder::new()
            .name("gridrpc-detached".to_owned())
            .spawn(move || running.run())
            .map_err(system("cannot start a thread for", &calls))?;
        let users = Users {
            shared: Arc::clone(&shared),
            publisher: Arc::clone(&publisher),
            stop: Arc::clone(&stop),
            detached: Arc::clone(&detached),
        };
        let mut daemon = Daemon::new(grid, Arc::new(users), most)
            .map_err(system("cannot make an event descriptor for", &socket))?;
        if UnixStream::connect(&socket).is_ok() {
            return Err(ServerError::SocketInUse { socket });
        }
        daemon.listen_at(&socket).map_err(system("cannot listen at", &socket))?;
        let is_private = socket.starts_with(&shared.config.state);
        let permissions = if is_private { PRIVATE } else { PERMISSIONS };
        fs::set_permissions(&socket, fs::Permissions::from_mode(permissions))
            .map_err(system("cannot let users connect to", &socket))?;
        let mut port = None;
        let revocations =
            tls.as_ref().map_or_else(Revocations::none, |tls| tls.revocations.clone());
        let http = shared.config.http.as_ref().map(|http| {
            let tls = tls.as_ref().map(Tls::optional).transpose()?;
            HttpServer::start(http, tls, revocations.clone(), &shared, &detached).map_err(|error| {
                let addresses = http.addresses.iter().map(ToString::to_string).collect();
                ServerError::Http { addresses, port: http.port, error }
            })
        });
        let http = http.transpose()?;
        if let Some((network, tls)) = network.zip(tls) {
            port = Some(listen(&mut daemon, &network, tls.required()?, &shared)?);
        }
        let announcer =
            shared.config.directory.as_ref().zip(port).map(|(directory, port)| {
                let http = http.as_ref().map(HttpServer::port);
                let place =
                    directory.urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let what = "cannot announce the server to";
                Announcer::start(directory, &shared, port, http)
                    .map_err(|error| ServerError::System { what, place, error })
            });
        let announcer = announcer.transpose()?;
        let daemon = Arc::new(Mutex::new(daemon));
        let checks = Checks {
            shared: Arc::clone(&shared),
            publisher,
            daemon: Arc::clone(&daemon),
            revocations,
            clean_http: http.as_ref().map(|http| Box::new(http.cleaner()) as Box<dyn Fn() + Send>),
            stop: Arc::clone(&stop),
        };
        let checking = thread::Builder::new()
            .name("gridrpc-checks".to_owned())
            .spawn(move || checks.run())
            .map_err(system("cannot start a thread for", &socket))?;
        let (checking, detaching, _lock) = (Some(checking), Some(detaching), lock);
        Ok(Server {
            shared,
            daemon,
            stop,
            checking,
            detached,
            detaching,
            port,
            http,
            announcer,
            _lock,
        })
    }

    /// The port for clients of other machines, if it has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The port for HTTP, if it has one.
    #[must_use]
    pub fn http_port(&self) -> Option<u16> {
        self.http.as_ref().map(HttpServer::port)
    }

    /// The modules that it offers.
    #[must_use]
    pub fn modules(&self) -> Vec<String> {
        self.shared.catalogue.modules().iter().map(|module| module.name.clone()).collect()
    }

    /// The request to stop it.
    #[must_use]
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// Waits until a stop is requested, then ends all connections and workers.
    pub fn run(mut self) {
        while !self.stop.wait(Duration::from_secs(3600)) {}
        self.close();
    }

    fn close(&mut self) {
        self.stop.request();
        let Some(checking) = self.checking.take() else { return };
        // Before it is gone, so that clients choose other servers.
        drop(self.announcer.take());
        // Its panic has been reported where it happened.
        let _ = checking.join();
        if let Some(http) = &mut self.http {
            http.close();
        }
        self.detached.stop();
        if let Some(detaching) = self.detaching.take() {
            let _ = detaching.join();
        }
        gridrpc_sys::lock(&self.daemon).close();
        self.shared.pools.close();
        if let Some(tracer) = &self.shared.tracer {
            tracer.close();
        }
        let _ = fs::remove_file(&self.shared.config.socket);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// Takes the state folder for this server.
fn lock_state(folder: &Path) -> Result<Flock<fs::File>, ServerError> {
    make_folder(folder)
        .map_err(|error| ServerError::Folder { folder: folder.to_owned(), error })?;
    let file = folder.join("server.lock");
    let failed = |error| ServerError::System {
        what: "cannot open",
        place: file.display().to_string(),
        error,
    };
    let mut options = fs::File::options();
    let options = options.read(true).write(true).create(true).truncate(false).mode(PRIVATE);
    let opened = options.open(&file).map_err(failed)?;
    let locked = Flock::lock(opened, FlockArg::LockExclusiveNonblock);
    match locked {
        Ok(locked) => {
            fs::write(&file, format!("{}\n", std::process::id())).map_err(failed)?;
            Ok(locked)
        }
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
            let pid = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
            Err(ServerError::InUse { folder: folder.to_owned(), pid })
        }
        Err((_, errno)) => Err(failed(errno.into())),
    }
}

/// The server's certificate, and the users' that are refused.
pub(crate) struct Tls {
    credentials: Credentials,
    revocations: Revocations,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn read(tls: &TlsConfig) -> Result<Tls, ServerError> {
        let credentials = Credentials::read(&CredentialFiles {
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
            authority: tls.authority.clone(),
        })?;
        let revocations = match &tls.revoked {
            None => Revocations::none(),
            Some(file) => Revocations::watch(file, &credentials)?,
        };
        Ok(Tls { credentials, revocations })
    }

    /// For clients that all present certificates.
    pub(crate) fn required(&self) -> Result<ServerKeys, ServerError> {
        Ok(ServerKeys::new(&self.credentials, self.revocations.clone())?)
    }

    /// For clients that present certificates or tokens.
    fn optional(&self) -> Result<rustls::ServerConfig, ServerError> {
        Ok(server_config(&self.credentials, &self.revocations, ClientCertificates::Optional)?)
    }
}

fn listen(
    daemon: &mut Daemon,
    network: &Network,
    keys: ServerKeys,
    shared: &Arc<Shared>,
) -> Result<u16, ServerError> {
    let ports = (network.port != 0).then_some((network.port, network.port));
    let log = Arc::clone(shared);
    let refused = Box::new(
        move |from: std::net::SocketAddr, refusal: gridrpc_transport::listener::HandshakeError| {
            log.statistics.refused();
            log.audit.record(AuditRecord {
                address: Some(from.to_string().into()),
                outcome: Some(refusal.to_string().into()),
                ..AuditRecord::now(AuditEvent::Refuse)
            });
        },
    );
    daemon.listen_with(&network.addresses, ports, keys, refused).map_err(|error| {
        let addresses = network.addresses.iter().map(ToString::to_string).collect();
        ServerError::Listen { addresses, port: network.port, error }
    })
}

/// What a server checks again and again.
struct Checks {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    daemon: Arc<Mutex<Daemon>>,
    revocations: Revocations,
    /// Ends what users of HTTP who are gone have left.
    clean_http: Option<Box<dyn Fn() + Send>>,
    stop: Arc<Stop>,
}

impl Checks {
    fn run(&self) {
        let mut reported = None;
        while !self.stop.wait(CHECK) {
            self.publisher.check(false);
            self.shared.pools.check(self.shared.config.workers.idle);
            for record in self.shared.named_data.expire(SystemTime::now()) {
                self.shared.audit.record(AuditRecord {
                    user: Some(record.owner.as_str().into()),
                    function: Some(record.full_name().into()),
                    outcome: Some("expired".into()),
                    ..AuditRecord::now(AuditEvent::Unshare)
                });
            }
            self.shared.limiter().forget_idle(self.shared.now());
            if let Some(clean) = &self.clean_http {
                clean();
            }
            self.revocations.refresh();
            let error = self.revocations.last_error().map(|error| error.to_string());
            if error != reported {
                if let Some(error) = &error {
                    let what = "the list of revoked certificates is not read again";
                    log::warning(what, &[("reason", error)]);
                }
                reported = error;
            }
            let now = SystemTime::now();
            let is_invalid = |user: &User| match &user.proof {
                Proof::Local { .. } => false,
                Proof::Certificate(identity) => {
                    identity.until < now || self.revocations.is_revoked(identity)
                }
            };
            gridrpc_sys::lock(&self.daemon).disconnect(is_invalid);
        }
    }
}
