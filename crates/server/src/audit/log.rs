//! The audit log: a bounded queue to a thread that writes it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::config::AuditConfig;

use super::log_file::LogFile;
use super::record::{AuditEvent, AuditRecord};

/// Most records in the queue, and for how many its memory stays after more have been there.
const QUEUE: usize = 8192;
const KEPT: usize = 1024;
/// Time between two writes. Records need not wake the writer meanwhile: a wake-up for each would take longer than a small
/// call, and a processor from those that run it.
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

/// The audit log. Dropping it writes queued records.
#[derive(Debug)]
pub struct AuditLog {
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
    queue: Mutex<Queue>,
    /// Signalled when the writer waits for a record and there is one, and at the end.
    more: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    records: Vec<AuditRecord>,
    /// Whether the writer waits for the first record.
    is_awaited: bool,
    is_closed: bool,
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

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record. Returns whether there was room.
    fn push(&self, record: AuditRecord) -> bool {
        let mut queue = self.queue();
        if queue.records.len() >= self.most {
            return false;
        }
        queue.records.push(record);
        if std::mem::take(&mut queue.is_awaited) {
            drop(queue);
            self.more.notify_one();
        }
        true
    }

    /// Moves the records of the queue to the empty `records`: not before this time, and at the first one, for which it
    /// waits up to [`RETRY`]. Returns `false` if no more will come.
    fn take(&self, records: &mut Vec<AuditRecord>, not_before: Instant) -> bool {
        let mut queue = self.queue();
        queue.is_awaited = true;
        let empty = |queue: &mut Queue| queue.records.is_empty() && !queue.is_closed;
        let waited = self.more.wait_timeout_while(queue, RETRY, empty);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.is_awaited = false;
        if !queue.records.is_empty() && !queue.is_closed {
            let closed = |queue: &mut Queue| !queue.is_closed;
            let left = not_before.saturating_duration_since(Instant::now());
            let waited = self.more.wait_timeout_while(queue, left, closed);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut queue.records, records);
        !queue.is_closed
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
            queue: Mutex::default(),
            more: Condvar::new(),
        });
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
            .spawn(move || writer.run())
            .map_err(|source| AuditError::Thread { source })?;
        Ok(AuditLog { shared, writer: Some(writer) })
    }

    /// Queues a record. Never waits: without room in the queue it is dropped and counted.
    pub fn record(&self, mut record: AuditRecord) {
        record.shorten();
        let shared = &self.shared;
        if !shared.push(record) {
            shared.count_dropped(1);
            let status = || AuditStatus::Overflow { most: shared.most };
            shared.report_once(&shared.overflow_is_reported, status);
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
        self.shared.queue().is_closed = true;
        self.shared.more.notify_one();
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
    fn run(&mut self) {
        let mut records = Vec::new();
        let mut is_last = false;
        let mut not_before = Instant::now();
        while !is_last {
            // While records are missing, it also writes without a new one.
            is_last = !self.shared.take(&mut records, not_before);
            not_before = Instant::now() + GATHER;
            self.lines.clear();
            records.iter().for_each(|record: &AuditRecord| record.append_to(&mut self.lines));
            self.write(records.len() as u64, is_last);
            records.clear();
            records.shrink_to(KEPT);
            self.report_recovery(is_last);
        }
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
