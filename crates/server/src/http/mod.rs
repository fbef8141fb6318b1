//! HTTP: the Open Inference Protocol, metrics and the live page, on a runtime and in threads of their own.

mod clients;
mod functions;
mod metrics;

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gridrpc_inference::{Functions, Options, serve};
use gridrpc_transport::certificates::Revocations;
use gridrpc_transport::listener::listen;
use rustls::ServerConfig as TlsServerConfig;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::config::HttpConfig;
use crate::detached::DetachedCalls;
use crate::shared::Shared;
use functions::ServerFunctions;

/// Threads that answer requests. Calls run on workers, and their results need no thread while they are awaited.
const THREADS: usize = 2;

/// Answers requests until it is closed.
pub(crate) struct HttpServer {
    port: u16,
    functions: Arc<ServerFunctions>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("port", &self.port).finish_non_exhaustive()
    }
}

impl HttpServer {
    /// Listens at all addresses of the configuration. `tls`: none: requests are not encrypted.
    pub(crate) fn start(
        config: &HttpConfig,
        tls: Option<TlsServerConfig>,
        revocations: Revocations,
        shared: &Arc<Shared>,
        detached: &Arc<DetachedCalls>,
    ) -> io::Result<HttpServer> {
        let ports = (config.port != 0).then_some((config.port, config.port));
        let (sockets, port) = listen(&config.addresses, ports)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gridrpc-http")
            .enable_all()
            .build()?;
        let defaults = Options::default();
        let options = Options {
            name: shared.config.name.clone(),
            max_request_bytes: usize::try_from(config.most_request_bytes).unwrap_or(usize::MAX),
            max_running: config.most_calls as usize,
            max_connections: config.most_connections as usize,
            header_timeout: defaults.header_timeout.min(config.request_timeout),
            request_timeout: config.request_timeout,
            allowed_origins: config.allowed_origins.clone(),
            ..defaults
        };
        let functions = Arc::new(ServerFunctions::new(
            Arc::clone(shared),
            Arc::clone(detached),
            revocations,
            config.clone(),
        ));
        let offered = Arc::clone(&functions) as Arc<dyn Functions>;
        let (shutdown, requested) = oneshot::channel();
        let run = move || run(&runtime, sockets, tls, offered, options, requested);
        let thread = thread::Builder::new().name("gridrpc-http".into()).spawn(run)?;
        Ok(HttpServer { port, functions, shutdown: Some(shutdown), thread: Some(thread) })
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// State with regular clean-up.
    pub(crate) fn cleaner(&self) -> impl Fn() + Send + 'static {
        let functions = Arc::clone(&self.functions);
        move || functions.remove_idle()
    }

    /// Answers the requests that have arrived, and ends.
    pub(crate) fn close(&mut self) {
        // The other end is gone if the thread is.
        drop(self.shutdown.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.close();
    }
}

fn run(
    runtime: &Runtime,
    sockets: Vec<TcpListener>,
    tls: Option<TlsServerConfig>,
    functions: Arc<dyn Functions>,
    options: Options,
    requested: oneshot::Receiver<()>,
) {
    runtime.block_on(async move {
        // They are non-blocking, as the runtime requires.
        let listeners = sockets.into_iter().map(tokio::net::TcpListener::from_std);
        match listeners.collect::<io::Result<Vec<_>>>() {
            Ok(listeners) => {
                let shutdown = async { drop(requested.await) };
                serve(listeners, tls, functions, options, shutdown).await;
            }
            Err(error) => crate::log::log(
                crate::log::Level::Error,
                "HTTP is not served",
                &[("reason", &error)],
            ),
        }
    });
}
