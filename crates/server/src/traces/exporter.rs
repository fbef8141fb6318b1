//! Exporter of spans: a bounded queue, and a thread that posts them to the collector.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use crate::config::{Sampler, TracesConfig};
use crate::log;
use crate::traces::ended_span::EndedSpan;
use crate::traces::otlp::{
    ExportTraces, InstrumentationScope, Resource, ResourceSpans, ScopeSpans, text, whole,
};
use gridrpc_http::HttpClient;

/// Calls that wait for export. Spans of further ones are dropped.
const QUEUE: usize = 4096;
/// Most calls of one request.
const BATCH: usize = 512;
/// How long the first call of a request waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stop waits for the last requests.
const GRACE: Duration = Duration::from_secs(2);

/// Exports the spans of calls in the background. A call never waits for it.
pub(crate) struct Tracer {
    pub(super) sampler: Sampler,
    queue: mpsc::Sender<EndedSpan>,
    counts: Arc<SpanCounts>,
    running: Mutex<Option<ExportThread>>,
}

/// The thread of an exporter.
struct ExportThread {
    stop: oneshot::Sender<()>,
    /// Disconnected when the last spans have been exported.
    finished: Receiver<()>,
    thread: JoinHandle<()>,
}

/// Numbers of spans since the server started.
#[derive(Debug, Default)]
struct SpanCounts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Starts the exporter of the server with this name.
    pub(crate) fn start(config: &TracesConfig, server: &str) -> io::Result<Arc<Tracer>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (queue, receiver) = mpsc::channel(QUEUE);
        let (stop, stop_requested) = oneshot::channel();
        let (exporting, finished) = sync_channel::<()>(0);
        let counts = Arc::<SpanCounts>::default();
        let exporter = Exporter {
            collector: HttpClient::new(&config.url, config.trust())?,
            resource: Resource {
                attributes: vec![
                    text("service.name", &config.service),
                    text("service.version", env!("CARGO_PKG_VERSION")),
                    text("service.instance.id", server),
                    whole("process.pid", std::process::id().into()),
                ],
            },
            counts: Arc::clone(&counts),
            has_failed: false,
        };
        let thread = thread::Builder::new().name("gridrpc-traces".into()).spawn(move || {
            runtime.block_on(exporter.run(receiver, stop_requested));
            drop(exporting);
        })?;
        let running = Mutex::new(Some(ExportThread { stop, finished, thread }));
        Ok(Arc::new(Tracer { sampler: config.sampler, queue, counts, running }))
    }

    /// Queues the spans of a call, or drops them if the queue is full.
    pub(super) fn queue(&self, span: EndedSpan) {
        if let Err(error) = self.queue.try_send(span) {
            let count = error.into_inner().count();
            self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Numbers of exported and dropped spans.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let SpanCounts { exported, dropped } = &*self.counts;
        (exported.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed))
    }

    /// Exports the queued spans and ends. A collector that takes longer than two seconds does not get them.
    pub(crate) fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ExportThread { stop, finished, thread }) = running else { return };
        // Fails only if the thread has ended.
        let _ = stop.send(());
        if finished.recv_timeout(GRACE) != Err(RecvTimeoutError::Timeout) {
            // Its panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Exporter {
    collector: HttpClient,
    resource: Resource,
    counts: Arc<SpanCounts>,
    /// Whether the last request failed.
    has_failed: bool,
}

impl Exporter {
    /// Exports spans until a stop is requested, and then those that are left.
    async fn run(mut self, mut queue: mpsc::Receiver<EndedSpan>, mut stop: oneshot::Receiver<()>) {
        let mut is_stopping = false;
        loop {
            let mut batch = Vec::with_capacity(BATCH);
            tokio::select! {
                _ = &mut stop, if !is_stopping => {
                    is_stopping = true;
                    queue.close();
                    continue;
                }
                count = queue.recv_many(&mut batch, BATCH) => if count == 0 { return },
            }
            let until = Instant::now() + DELAY;
            while batch.len() < BATCH && !is_stopping {
                let room = BATCH - batch.len();
                tokio::select! {
                    _ = &mut stop => {
                        is_stopping = true;
                        queue.close();
                    }
                    () = sleep_until(until) => break,
                    count = queue.recv_many(&mut batch, room) => if count == 0 { break },
                }
            }
            self.export(batch).await;
        }
    }

    async fn export(&mut self, batch: Vec<EndedSpan>) {
        let count = batch.iter().map(EndedSpan::count).sum();
        let body = self.body(batch);
        let post = self.collector.post("application/x-protobuf", body);
        let posted = match timeout(TIMEOUT, post).await {
            Ok(Ok((status, _))) if status.is_success() => Ok(()),
            Ok(Ok((status, _))) => Err(format!("the collector answered {status}")),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the collector took longer than {} s", TIMEOUT.as_secs())),
        };
        let counted = if posted.is_ok() { &self.counts.exported } else { &self.counts.dropped };
        counted.fetch_add(count, Ordering::Relaxed);
        match &posted {
            Err(error) if !self.has_failed => {
                let fields: log::Fields<'_> =
                    &[("endpoint", self.collector.url()), ("reason", error)];
                log::warning("cannot export traces: spans are dropped", fields);
            }
            Ok(()) if self.has_failed => {
                log::info("traces are exported again", &[("endpoint", self.collector.url())]);
            }
            _ => {}
        }
        self.has_failed = posted.is_err();
    }

    fn body(&self, batch: Vec<EndedSpan>) -> Bytes {
        let scope = InstrumentationScope {
            name: "gridrpc".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let spans = batch.into_iter().flat_map(EndedSpan::into_spans).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        let resource_spans =
            vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans }];
        ExportTraces { resource_spans }.encode_to_vec().into()
    }
}
