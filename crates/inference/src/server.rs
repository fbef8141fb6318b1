//! The server: its connections and their limits.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::dispatch::{Peer, answer};
use crate::functions::Functions;
use crate::options::Options;
use crate::pending::{Established, Pending};
use crate::service::Service;

/// Maximum size of a request's headers in HTTP/2, bytes; and of the read buffer in HTTP/1.
const MAX_HEADERS: u32 = 16 << 10;
const MAX_BUFFER: usize = 512 << 10;
/// Flow control windows in HTTP/2, bytes.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// How often an idle HTTP/2 connection is probed.
const PROBE: Duration = Duration::from_secs(20);
/// Pause after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves REST and gRPC on each of these sockets until `shutdown` is ready, and then completes running requests for
/// [`Options::grace`]. Requests that still run are cancelled.
///
/// `tls`: without it, connections are not encrypted. The protocols for ALPN are set here.
pub async fn serve(
    listeners: Vec<TcpListener>,
    tls: Option<ServerConfig>,
    functions: Arc<dyn Functions>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    let acceptor = tls.map(|mut config| {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    });
    let grace = options.grace;
    let mut pending = Pending::new(options.max_pending.min(options.max_connections / 2));
    let slots = Arc::new(Semaphore::new(options.max_connections.min(Semaphore::MAX_PERMITS)));
    let service = Arc::new(Service::new(functions, options));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            // Reaped here, so that the set does not grow.
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listeners, &slots) => accepted,
        };
        let Ok((stream, address, slot)) = accepted else {
            // There are no descriptors, or the other end is gone already.
            sleep(PAUSE).await;
            continue;
        };
        let (service, acceptor) = (Arc::clone(&service), acceptor.clone());
        let watcher = graceful.watcher();
        let established = Established::default();
        let first_request = established.clone();
        let task = connections.spawn(async move {
            let _slot = slot;
            let context = Context { service, established: first_request, watcher };
            // A broken connection concerns nobody else.
            let _ = connection(context, acceptor, stream, address).await;
        });
        pending.add(task, established);
    }
    drop(listeners);
    let _ = timeout(grace, graceful.shutdown()).await;
    connections.shutdown().await;
}

/// What a connection needs of its server.
struct Context {
    service: Arc<Service>,
    established: Established,
    watcher: Watcher,
}

async fn accept(
    listeners: &[TcpListener],
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let any = poll_fn(|context| {
        let mut all = listeners.iter().map(|listener| listener.poll_accept(context));
        all.find(Poll::is_ready).unwrap_or(Poll::Pending)
    });
    let (stream, address) = any.await?;
    Ok((stream, address, slot))
}

async fn connection(
    context: Context,
    acceptor: Option<TlsAcceptor>,
    stream: TcpStream,
    address: SocketAddr,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let limit = context.service.options.header_timeout;
    let Some(acceptor) = acceptor else {
        let is_http2 = has_http2_preface(&stream, limit).await?;
        let peer = Peer { certificates: Arc::from([]), address, stalled: Arc::default() };
        return talk(context, stream, is_http2, peer).await;
    };
    let accepted = timeout(limit, acceptor.accept(stream)).await;
    let stream = accepted
        .unwrap_or_else(|elapsed| Err(elapsed.into()))
        .inspect_err(|error| context.service.functions.refused(address, error))?;
    let (_, tls) = stream.get_ref();
    let is_http2 = tls.alpn_protocol() == Some(b"h2");
    let certificates = tls.peer_certificates().unwrap_or_default();
    let certificates = certificates.iter().map(|one| one.clone().into_owned()).collect();
    talk(context, stream, is_http2, Peer { certificates, address, stalled: Arc::default() }).await
}

/// Whether a connection starts as HTTP/2 does. Reads nothing.
async fn has_http2_preface(stream: &TcpStream, limit: Duration) -> io::Result<bool> {
    const PREFACE: &[u8; 4] = b"PRI ";
    let until = Instant::now() + limit;
    let mut start = [0; PREFACE.len()];
    loop {
        let len = timeout_at(until, stream.peek(&mut start)).await??;
        if len == PREFACE.len() || start[..len] != PREFACE[..len] || len == 0 {
            return Ok(start == *PREFACE);
        }
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // What has arrived is seen again at once.
        sleep(PAUSE).await;
    }
}

/// Answers the requests of a connection.
async fn talk(
    context: Context,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    is_http2: bool,
    peer: Peer,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let Context { service, established, watcher } = context;
    let stream = TokioIo::new(stream);
    let limit = service.options.header_timeout;
    let max_streams = service.options.max_streams;
    let stalled = Arc::clone(&peer.stalled);
    let answer = service_fn(move |request| {
        established.set();
        answer(Arc::clone(&service), peer.clone(), request)
    });
    if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(max_streams)
            .max_header_list_size(MAX_HEADERS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(PROBE)
            .keep_alive_timeout(limit)
            .serve_connection(stream, answer);
        run(watcher.watch(connection), &stalled).await?;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limit)
            .max_buf_size(MAX_BUFFER)
            .serve_connection(stream, answer);
        run(watcher.watch(connection), &stalled).await?;
    }
    Ok(())
}

/// Runs a connection until it ends, or a response is not taken.
async fn run<E: std::error::Error + Send + Sync + 'static>(
    connection: impl Future<Output = Result<(), E>>,
    stalled: &Notify,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    tokio::select! {
        ended = connection => Ok(ended?),
        () = stalled.notified() => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}
