//! The audit log: a bounded queue to a thread that writes it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::config::AuditConfig;

use super::log_file::LogFile;
use super::record::{AuditEvent, AuditRecord};

/// Most records in the queue.
const QUEUE: usize = 8192;
/// How long a record waits for others. Records need not wake the writer meanwhile: a wake-up for each would take longer
/// than a small call, and a processor from those that run it.
const GATHER: Duration = Duration::from_millis(20);
/// Time between attempts to write while that fails.
const RETRY: Duration = Duration::from_millis(500);
/// Time without dropped records after which a recovery is reported.
const QUIET: Duration = Duration::from_secs(1);

/// The audit log cannot be opened.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The file cannot be opened or created.
    #[error("the audit log `{}` cannot be opened: {source}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("the audit log has no thread: {source}")]
    Thread {
        /// The error.
        source: io::Error,
    },
}

/// A change of the state of the audit log, for the server's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditStatus {
    /// Records are dropped, as the file cannot be written.
    Failing {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// Records are dropped, as they come faster than they are written.
    Overflow {
        /// Most records in the queue.
        most: usize,
    },
    /// Records are written again.
    Recovered {
        /// Number of records that were dropped.
        dropped: u64,
    },
}

impl fmt::Display for AuditStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditStatus::Failing { path, reason } => write!(
                f,
                "the audit log `{}` cannot be written: {reason}; the server continues without it \
                 and counts the missing records",
                path.display()
            ),
            AuditStatus::Overflow { most } => write!(
                f,
                "the audit log is too slow: {most} records wait; the server continues and counts \
                 the missing records"
            ),
            AuditStatus::Recovered { dropped } => {
                write!(f, "the audit log is written again; {dropped} records are missing")
            }
        }
    }
}

type Reporter = Box<dyn Fn(AuditStatus) + Send + Sync>;

/// The audit log. Dropping it writes what is queued.
#[derive(Debug)]
pub struct AuditLog {
    /// None only while it is dropped.
    sender: Option<SyncSender<AuditRecord>>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    report: Reporter,
    /// Records dropped since the last one that says so.
    missing: AtomicU64,
    /// All records dropped.
    dropped: AtomicU64,
    /// Whether a failure to write was reported.
    failing_is_reported: AtomicBool,
    /// Whether an overflow of the queue was reported.
    overflow_is_reported: AtomicBool,
    most: usize,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}

impl Shared {
    fn count_dropped(&self, count: u64) {
        self.missing.fetch_add(count, Ordering::Relaxed);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    fn report_once(&self, is_reported: &AtomicBool, status: impl FnOnce() -> AuditStatus) {
        if !is_reported.swap(true, Ordering::Relaxed) {
            (self.report)(status());
        }
    }

    fn report_recovery(&self, dropped: u64) {
        self.failing_is_reported.store(false, Ordering::Relaxed);
        self.overflow_is_reported.store(false, Ordering::Relaxed);
        (self.report)(AuditStatus::Recovered { dropped });
    }
}

impl AuditLog {
    /// Opens the log. `report` gets each change of its state once, and must not wait for long: it is called by the
    /// threads that record.
    ///
    /// # Errors
    /// When the file cannot be opened, or the thread not started.
    pub fn open(
        config: &AuditConfig,
        report: impl Fn(AuditStatus) + Send + Sync + 'static,
    ) -> Result<AuditLog, AuditError> {
        AuditLog::with_queue(config, QUEUE, Box::new(report))
    }

    pub(super) fn with_queue(
        config: &AuditConfig,
        most: usize,
        report: Reporter,
    ) -> Result<AuditLog, AuditError> {
        let file = LogFile::open(config)
            .map_err(|source| AuditError::Open { path: config.file.clone(), source })?;
        let shared = Arc::new(Shared {
            report,
            missing: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failing_is_reported: AtomicBool::new(false),
            overflow_is_reported: AtomicBool::new(false),
            most,
        });
        let (sender, receiver) = sync_channel(most);
        let mut writer = Writer {
            path: config.file.clone(),
            file,
            shared: Arc::clone(&shared),
            failed: None,
            missing: 0,
            recorded: None,
            lines: Vec::new(),
        };
        let writer = thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&receiver))
            .map_err(|source| AuditError::Thread { source })?;
        Ok(AuditLog { sender: Some(sender), shared, writer: Some(writer) })
    }

    /// Queues a record. Never waits: without room in the queue it is dropped and counted.
    pub fn record(&self, mut record: AuditRecord) {
        record.shorten();
        let Some(sender) = &self.sender else { return };
        match sender.try_send(record) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                let shared = &self.shared;
                shared.count_dropped(1);
                let status = || AuditStatus::Overflow { most: shared.most };
                shared.report_once(&shared.overflow_is_reported, status);
            }
        }
    }

    /// Number of records dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // The writer ends when the queue is empty and has no sender.
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The thread that writes.
struct Writer {
    path: PathBuf,
    file: LogFile,
    shared: Arc<Shared>,
    /// Time of the last attempt, if it failed.
    failed: Option<Instant>,
    /// Missing records that the log has recorded since the last report of a recovery.
    missing: u64,
    /// When it last recorded missing records.
    recorded: Option<Instant>,
    lines: Vec<u8>,
}

impl Writer {
    fn run(&mut self, receiver: &Receiver<AuditRecord>) {
        loop {
            // While records are missing, it also writes without a new one.
            let first = match receiver.recv_timeout(RETRY) {
                Ok(record) => {
                    thread::sleep(GATHER);
                    Some(record)
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.lines.clear();
            let mut count = 0;
            let rest = std::iter::from_fn(|| receiver.try_recv().ok());
            for record in first.into_iter().chain(rest).take(self.shared.most) {
                record.append_to(&mut self.lines);
                count += 1;
            }
            self.write(count, false);
            self.report_recovery(false);
        }
        self.lines.clear();
        self.write(0, true);
        self.report_recovery(true);
    }

    /// Reports a recovery once no record was dropped for a while, as an overload drops some now and then.
    fn report_recovery(&mut self, is_last: bool) {
        let is_quiet = self.recorded.is_some_and(|last| is_last || last.elapsed() >= QUIET);
        if is_quiet && self.failed.is_none() {
            self.recorded = None;
            self.shared.report_recovery(std::mem::take(&mut self.missing));
        }
    }

    /// Writes the lines of so many records. `is_last`: there is no later attempt.
    fn write(&mut self, count: u64, is_last: bool) {
        let waits = self.failed.is_some_and(|last| last.elapsed() < RETRY);
        if waits && !is_last {
            // The failure was reported.
            self.shared.count_dropped(count);
            return;
        }
        // Those that are dropped from here on are in the next such line.
        let missing = self.shared.missing.swap(0, Ordering::Relaxed);
        if missing == 0 && self.lines.is_empty() {
            return;
        }
        if missing > 0 {
            let records = self.lines.len();
            let record = AuditRecord::now(AuditEvent::Dropped);
            AuditRecord { records: Some(missing), ..record }.append_to(&mut self.lines);
            self.lines.rotate_left(records);
        }
        match self.file.append(&self.lines) {
            Ok(()) => {
                self.failed = None;
                if missing > 0 {
                    self.missing += missing;
                    self.recorded = Some(Instant::now());
                }
            }
            Err(error) => {
                self.failed = Some(Instant::now());
                self.shared.missing.fetch_add(missing, Ordering::Relaxed);
                self.shared.count_dropped(count);
                let (path, reason) = (self.path.clone(), error.to_string());
                let status = || AuditStatus::Failing { path, reason };
                self.shared.report_once(&self.shared.failing_is_reported, status);
            }
        }
    }
}
