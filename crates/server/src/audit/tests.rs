//! The log with its thread: order, rotation, full disks, an overflow.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;

use super::*;
use crate::config::AuditConfig;

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("gridrpc-audit-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn config(&self) -> AuditConfig {
        AuditConfig { file: self.0.join("audit.jsonl"), size: 1 << 20, keep: 3 }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reports of the log.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<AuditStatus>>>);

impl Reports {
    fn open(&self, config: &AuditConfig) -> AuditLog {
        let reports = self.clone();
        AuditLog::open(config, move |status| lock(&reports.0).push(status)).unwrap()
    }

    fn all(&self) -> Vec<AuditStatus> {
        lock(&self.0).clone()
    }
}

fn call(number: usize) -> AuditRecord {
    let function = Some(format!("fft/f{number}").into());
    AuditRecord { function, ..AuditRecord::now(AuditEvent::Call) }
}

/// The lines of a file as JSON.
fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn functions(path: &Path) -> Vec<String> {
    let lines = lines(path).into_iter();
    lines.filter_map(|line| Some(line.get("function")?.as_str()?.to_owned())).collect()
}

/// Records missing according to the log.
fn missing(path: &Path) -> u64 {
    let lines = lines(path).into_iter().filter(|line| line["event"] == "dropped");
    lines.map(|line| line["records"].as_u64().unwrap()).sum()
}

/// Waits until this holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn records_are_written_in_order() {
    let folder = Folder::new("order");
    let (config, reports) = (folder.config(), Reports::default());
    let log = reports.open(&config);
    for number in 0..1000 {
        log.record(call(number));
    }
    drop(log);
    let expected: Vec<String> = (0..1000).map(|number| format!("fft/f{number}")).collect();
    assert_eq!(functions(&config.file), expected);
    assert_eq!(fs::metadata(&config.file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(reports.all(), []);
}

#[test]
fn a_log_is_continued() {
    let folder = Folder::new("continued");
    let (config, reports) = (folder.config(), Reports::default());
    fs::write(&config.file, "{\"event\":\"end\"}\n{\"event\":\"a cra").unwrap();
    fs::set_permissions(&config.file, fs::Permissions::from_mode(0o644)).unwrap();
    let log = reports.open(&config);
    log.record(call(1));
    drop(log);
    let text = fs::read_to_string(&config.file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["{\"event\":\"end\"}", "{\"event\":\"a cra"]);
    assert!(lines[2].ends_with("\"function\":\"fft/f1\"}"), "{text}");
    assert_eq!(fs::metadata(&config.file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error() {
    let folder = Folder::new("unopened");
    let config = AuditConfig { file: folder.0.join("none/audit.jsonl"), ..folder.config() };
    let error = AuditLog::open(&config, |_| {}).unwrap_err().to_string();
    let expected = format!("the audit log `{}` cannot be opened: ", config.file.display());
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_file_is_rotated_by_size() {
    let folder = Folder::new("rotation");
    let config = AuditConfig { size: 4096, keep: 3, ..folder.config() };
    let reports = Reports::default();
    let log = reports.open(&config);
    for number in 0..300 {
        log.record(call(number));
        // Batches are not split, so each record is one.
        let written = || {
            let last = format!("f{number}\"}}\n");
            fs::read_to_string(&config.file).is_ok_and(|text| text.ends_with(&last))
        };
        wait_until("it is written", written);
    }
    drop(log);
    let mut names: Vec<String> = fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3"]);
    let mut all = Vec::new();
    // From the oldest file to the newest.
    for name in names.iter().rev() {
        let file = folder.0.join(name);
        let data = fs::metadata(&file).unwrap();
        assert!(data.len() <= 4096 && data.permissions().mode() & 0o777 == 0o600, "{name}");
        all.extend(functions(&file));
    }
    // The latest ones, without a gap.
    let first = 300 - all.len();
    let expected: Vec<String> = (first..300).map(|number| format!("fft/f{number}")).collect();
    assert_eq!(all, expected);
    assert!((120..240).contains(&all.len()), "{}", all.len());
    assert_eq!(reports.all(), []);
}

#[test]
fn without_rotated_files_the_log_starts_over() {
    let folder = Folder::new("keep-0");
    let config = AuditConfig { size: 4096, keep: 0, ..folder.config() };
    fs::write(&config.file, "{}\n".repeat(1365)).unwrap();
    let log = Reports::default().open(&config);
    log.record(call(1));
    drop(log);
    assert_eq!(functions(&config.file), ["fft/f1"]);
    assert_eq!(lines(&config.file).len(), 1);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn a_file_that_was_moved_away_is_opened_again() {
    let folder = Folder::new("moved");
    let (config, reports) = (folder.config(), Reports::default());
    let log = reports.open(&config);
    log.record(call(1));
    wait_until("the first is written", || functions(&config.file).len() == 1);
    let moved = folder.0.join("moved");
    fs::rename(&config.file, &moved).unwrap();
    log.record(call(2));
    wait_until("the second is written", || config.file.exists() && !lines(&config.file).is_empty());
    // logrotate's `copytruncate` empties it in place.
    fs::OpenOptions::new().write(true).open(&config.file).unwrap().set_len(0).unwrap();
    log.record(call(3));
    drop(log);
    assert_eq!(functions(&moved), ["fft/f1"]);
    assert_eq!(functions(&config.file), ["fft/f3"]);
    assert_eq!(reports.all(), []);
}

#[test]
fn an_emptied_file_is_not_rotated_early() {
    let folder = Folder::new("emptied");
    let (config, reports) = (AuditConfig { size: 4096, ..folder.config() }, Reports::default());
    fs::write(&config.file, "{}\n".repeat(1365)).unwrap();
    let log = reports.open(&config);
    fs::OpenOptions::new().write(true).open(&config.file).unwrap().set_len(0).unwrap();
    log.record(call(1));
    drop(log);
    assert_eq!(functions(&config.file), ["fft/f1"]);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

/// Names the file for `part_of_a_line_is_taken_back` when it runs in a process of its own.
const LIMITED: &str = "GRIDRPC_TEST_AUDIT_FILE";

#[test]
fn part_of_a_line_is_taken_back() {
    const LIMIT: u64 = 4096;
    if let Ok(file) = std::env::var(LIMITED) {
        let log =
            Reports::default().open(&AuditConfig { file: file.into(), size: 1 << 20, keep: 1 });
        for number in 0..100 {
            log.record(call(number));
            std::thread::sleep(Duration::from_millis(1));
        }
        wait_until("the limit is reached", || log.dropped() > 0);
        return;
    }
    let folder = Folder::new("part");
    let file = folder.config().file;
    // The limit on the size of files is one of a process, and in blocks of 512 bytes.
    let program = std::env::current_exe().unwrap();
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" --exact \"$1\"", LIMIT / 512);
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .arg("audit::tests::part_of_a_line_is_taken_back")
        .env(LIMITED, &file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let length = fs::metadata(&file).unwrap().len();
    let line = fs::read_to_string(&file).unwrap().lines().next().unwrap().len() as u64;
    // `lines` checks that all of them are whole.
    assert!(!lines(&file).is_empty() && length <= LIMIT, "{length}");
    assert!(!LIMIT.is_multiple_of(line + 1), "the last line does not fit");
}

#[test]
fn a_full_disk_is_reported_once_and_missing_records_are_counted() {
    let folder = Folder::new("full");
    let (config, reports) = (folder.config(), Reports::default());
    symlink("/dev/full", &config.file).unwrap();
    let before = fs::metadata("/dev/full").unwrap().mode();
    let log = reports.open(&config);
    for number in 0..10 {
        log.record(call(number));
    }
    wait_until("all are dropped", || log.dropped() == 10);
    let full = AuditStatus::Failing {
        path: config.file.clone(),
        reason: "No space left on device (os error 28)".into(),
    };
    assert_eq!(reports.all(), std::slice::from_ref(&full));
    assert_eq!(fs::metadata("/dev/full").unwrap().mode(), before);
    // Still full after the next attempt.
    std::thread::sleep(Duration::from_millis(700));
    log.record(call(10));
    wait_until("one more is dropped", || log.dropped() == 11);
    assert_eq!(reports.all().len(), 1);
    // There is room again, and no other record.
    fs::remove_file(&config.file).unwrap();
    wait_until("missing records are recorded", || {
        config.file.exists() && missing(&config.file) > 0
    });
    log.record(call(11));
    wait_until("it recovers", || reports.all().len() == 2);
    assert_eq!(reports.all(), [full.clone(), AuditStatus::Recovered { dropped: 11 }]);
    // The next outage is reported again.
    fs::rename(&config.file, folder.0.join("first")).unwrap();
    symlink("/dev/full", &config.file).unwrap();
    log.record(call(12));
    wait_until("it fails again", || reports.all().len() == 3);
    assert_eq!(reports.all()[2], full);
    fs::remove_file(&config.file).unwrap();
    drop(log);
    assert_eq!((missing(&folder.0.join("first")), missing(&config.file)), (11, 1));
    assert_eq!(functions(&folder.0.join("first")), ["fft/f11"]);
    assert_eq!(reports.all()[3..], [AuditStatus::Recovered { dropped: 1 }]);
}

#[test]
fn a_short_recovery_is_not_reported() {
    let folder = Folder::new("short");
    let (config, reports) = (folder.config(), Reports::default());
    symlink("/dev/full", &config.file).unwrap();
    let log = reports.open(&config);
    log.record(call(0));
    wait_until("it fails", || log.dropped() == 1);
    fs::remove_file(&config.file).unwrap();
    wait_until("it is written", || config.file.exists() && missing(&config.file) == 1);
    fs::rename(&config.file, folder.0.join("first")).unwrap();
    symlink("/dev/full", &config.file).unwrap();
    log.record(call(1));
    wait_until("it fails again", || log.dropped() == 2);
    // Longer than the quiet time after which a recovery is reported.
    std::thread::sleep(Duration::from_millis(1800));
    assert_eq!(reports.all().len(), 1);
    fs::remove_file(&config.file).unwrap();
    drop(log);
    assert_eq!(missing(&config.file), 1);
    assert_eq!(reports.all()[1..], [AuditStatus::Recovered { dropped: 2 }]);
}

#[test]
fn a_folder_that_was_removed_is_an_outage() {
    let folder = Folder::new("removed");
    let inner = folder.0.join("inner");
    fs::create_dir(&inner).unwrap();
    let config = AuditConfig { file: inner.join("log"), ..folder.config() };
    let reports = Reports::default();
    let log = reports.open(&config);
    fs::remove_dir_all(&inner).unwrap();
    log.record(call(1));
    wait_until("it fails", || log.dropped() == 1);
    fs::create_dir(&inner).unwrap();
    drop(log);
    assert_eq!(missing(&config.file), 1);
    let reports = reports.all();
    assert!(matches!(&reports[0], AuditStatus::Failing { path, .. } if *path == config.file));
    assert_eq!(reports[1..], [AuditStatus::Recovered { dropped: 1 }]);
}

#[test]
fn a_full_queue_drops_records_without_waiting() {
    let folder = Folder::new("overflow");
    let (config, reports) = (folder.config(), Reports::default());
    symlink("/dev/full", &config.file).unwrap();
    // The writer waits in its report of the first failure, and so empties no queue.
    let (resume, resumed) = mpsc::channel::<()>();
    let (resumed, copy) = (Mutex::new(resumed), reports.clone());
    let report = move |status: AuditStatus| {
        let is_failure = matches!(status, AuditStatus::Failing { .. });
        lock(&copy.0).push(status);
        if is_failure {
            let _ = lock(&resumed).recv_timeout(Duration::from_secs(20));
        }
    };
    let log = AuditLog::with_queue(&config, 4, Box::new(report)).unwrap();
    let mut dropped_before = 0;
    for round in 1..=2 {
        log.record(call(0));
        wait_until("the writer waits", || reports.all().len() == 1);
        for number in 1..=10 {
            log.record(call(number));
        }
        assert_eq!(log.dropped() - dropped_before, 7, "one not written, and six without room");
        assert_eq!(reports.all()[1..], [AuditStatus::Overflow { most: 4 }]);
        fs::remove_file(&config.file).unwrap();
        resume.send(()).unwrap();
        wait_until("it recovers", || reports.all().len() == 3);
        let written = functions(&config.file);
        // Those in the queue are dropped as well if the next attempt is not due yet.
        let dropped = missing(&config.file);
        assert_eq!(dropped as usize + written.len(), 11);
        assert_eq!(log.dropped() - dropped_before, dropped);
        assert_eq!(reports.all()[2..], [AuditStatus::Recovered { dropped }]);
        // The next outage is reported again.
        dropped_before = log.dropped();
        lock(&reports.0).clear();
        fs::rename(&config.file, folder.0.join(format!("round-{round}"))).unwrap();
        symlink("/dev/full", &config.file).unwrap();
    }
}

#[test]
fn a_record_holds_bounded_texts() {
    let folder = Folder::new("long");
    let config = folder.config();
    let log = Reports::default().open(&config);
    log.record(AuditRecord { user: Some("x".repeat(1 << 20).into()), ..call(1) });
    drop(log);
    assert!(fs::metadata(&config.file).unwrap().len() < 1000);
}

#[test]
fn messages_say_what_happens() {
    let failing = AuditStatus::Failing { path: "/a".into(), reason: "full".into() };
    assert_eq!(
        failing.to_string(),
        "the audit log `/a` cannot be written: full; the server continues without it and counts the \
         missing records"
    );
    assert_eq!(
        AuditStatus::Overflow { most: 4 }.to_string(),
        "the audit log is too slow: 4 records wait; the server continues and counts the missing records"
    );
    assert_eq!(
        AuditStatus::Recovered { dropped: 7 }.to_string(),
        "the audit log is written again; 7 records are missing"
    );
}
