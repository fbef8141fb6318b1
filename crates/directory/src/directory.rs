//! A directory that runs: its registry, its file and its HTTP server.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gridrpc_sys::safe_path::{UnsafePath, make_folder};
use gridrpc_transport::certificates::{
    ClientCertificates, CredentialFiles, CredentialKeysError, Credentials, CredentialsError,
    Revocations, RevocationsError, server_config,
};
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::http;
use crate::replication::Replication;
use crate::replicator::Replicator;
use crate::shared::{Options, Shared};
use crate::store::Store;

/// The port of directories.
pub const DIRECTORY_PORT: u16 = 7713;
/// Threads that answer requests.
const THREADS: usize = 2;
/// How often old servers are forgotten, and the list of revoked certificates is read.
const CHECK: Duration = Duration::from_secs(5);

/// Why a directory cannot start.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// The state folder is not private.
    #[error("the state folder `{}` cannot be used: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        error: UnsafePath,
    },
    /// The file cannot be used.
    #[error("cannot use `{}`: {error}; if it is damaged, remove it: servers announce themselves again", file.display())]
    Store {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: rusqlite::Error,
    },
    /// Other machines would reach a directory without certificates.
    #[error(
        "other machines reach {0}, and the directory has no certificate: make one by `gridrpc ca server` and name its \
         folder by --credentials, or listen at 127.0.0.1"
    )]
    WithoutTls(IpAddr),
    /// The port is in use, or an address is none of this host's.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Keys(#[from] CredentialKeysError),
    /// The list of revoked certificates cannot be used.
    #[error(transparent)]
    Revocations(#[from] RevocationsError),
    /// The certificates for etcd cannot be used.
    #[error("cannot use etcd: {0}")]
    Etcd(io::Error),
    /// The system refuses threads.
    #[error("cannot start the directory: {0}")]
    System(io::Error),
}

/// A directory that runs. It stops when it is dropped.
#[derive(Debug)]
pub struct Directory {
    port: u16,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Directory {
    /// Starts a directory.
    ///
    /// # Errors
    /// When its file, certificates or addresses cannot be used.
    pub fn start(options: Options) -> Result<Directory, DirectoryError> {
        if options.credentials.is_none()
            && let Some(address) = options.addresses.iter().find(|address| !address.is_loopback())
        {
            return Err(DirectoryError::WithoutTls(*address));
        }
        let folder = options.state.clone();
        make_folder(&folder)
            .map_err(|error| DirectoryError::Folder { folder: folder.clone(), error })?;
        let credentials = options.credentials.as_deref().map(CredentialFiles::in_folder);
        let credentials = credentials.map(|files| Credentials::read(&files)).transpose()?;
        let revocations = match options.revoked.as_deref().zip(credentials.as_ref()) {
            Some((file, credentials)) => Revocations::watch(file, credentials)?,
            None => Revocations::none(),
        };
        let tls = credentials.map(|credentials| {
            server_config(&credentials, &revocations, ClientCertificates::Optional)
        });
        let tls = tls.transpose()?;
        let file = folder.join("directory.sqlite");
        let failed = |error| DirectoryError::Store { file: file.clone(), error };
        let store = Store::open(&file).map_err(failed)?;
        let registry = store.load(Duration::ZERO).map_err(failed)?;
        let (sockets, port) = listen(&options.addresses, options.port)?;
        let replication = options.etcd.as_ref().map(|etcd| Replication::new(etcd, port));
        let replication = replication.transpose().map_err(DirectoryError::Etcd)?;
        let shared = Arc::new(Shared::new(options, revocations, registry, store, replication));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gridrpc-directory")
            .enable_all()
            .build()
            .map_err(DirectoryError::System)?;
        let (shutdown, requested) = oneshot::channel();
        let thread = thread::Builder::new().name("gridrpc-directory".into()).spawn(move || {
            runtime.block_on(async move {
                let (checked, replicated) = (Arc::clone(&shared), Arc::clone(&shared));
                let checks = async move {
                    let mut interval = tokio::time::interval(CHECK);
                    loop {
                        interval.tick().await;
                        checked.check();
                    }
                };
                let replicator = replicated
                    .replication
                    .as_ref()
                    .map(|replication| Replicator { replication, shared: &replicated });
                let replication = async {
                    match &replicator {
                        Some(replicator) => replicator.run().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = http::serve(sockets, tls, shared) => {}
                    () = checks => {}
                    () = replication => {}
                    _ = requested => {}
                }
                if let Some(replicator) = &replicator {
                    replicator.leave().await;
                }
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
        });
        let thread = Some(thread.map_err(DirectoryError::System)?);
        Ok(Directory { port, shutdown: Some(shutdown), thread })
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The other end is gone if the thread is.
        drop(self.shutdown.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

/// Listens at one port of all addresses.
fn listen(addresses: &[IpAddr], port: u16) -> Result<(Vec<TcpListener>, u16), DirectoryError> {
    let (mut sockets, mut port) = (Vec::new(), port);
    for address in addresses {
        let address = SocketAddr::new(*address, port);
        let failed = |error| DirectoryError::Listen { address, error };
        let socket = TcpListener::bind(address).map_err(failed)?;
        // As the runtime requires.
        socket.set_nonblocking(true).map_err(failed)?;
        port = socket.local_addr().map_err(failed)?.port();
        sockets.push(socket);
    }
    Ok((sockets, port))
}
