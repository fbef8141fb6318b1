//! Support for launcher tests: groups, tickets, stand-ins for agents, and recorded events.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use gridrpc_config::{HostGroup, LauncherKind, WorkerOutput};
use gridrpc_launch::{Event, Launcher, Report, Start, open};
use gridrpc_transport::Ticket;
use gridrpc_wire::Compression;

/// How long a test waits for an expected event.
pub const WAIT: Duration = Duration::from_secs(30);

/// A folder for one test. Removes those of earlier runs.
pub fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    static CLEAN: Once = Once::new();
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    CLEAN.call_once(|| {
        for entry in fs::read_dir(all).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let process = name.strip_prefix("launching-").and_then(|rest| rest.split('-').next());
            if process.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    });
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = all.join(format!("launching-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Creates a program for `/bin/sh`. A separate process writes it: otherwise a child forked meanwhile by
/// another test would hold it open for writing, and it could not be run.
pub fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    let mut writer = Command::new("sh");
    writer.args(["-c", r#"cat >"$1" && chmod 755 "$1""#, "sh"]).arg(&file).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    file
}

/// An agent that prints its ticket and exits with its standard input.
pub const AGENT: &str = r#"case $1 in agent) ;; --version) exit ;; *) exit 9 ;; esac
read -r ticket
echo "has $ticket" >&2
cat >/dev/null
echo "leaves" >&2"#;

pub fn group(launcher: LauncherKind) -> HostGroup {
    HostGroup {
        name: "test".into(),
        launcher,
        hosts: Vec::new(),
        workers: 1,
        python: None,
        program: None,
        directory: None,
        environment: Vec::new(),
        preload: Vec::new(),
        memory: None,
        resources: Vec::new(),
        addresses: Vec::new(),
        ports: None,
        start_timeout: WAIT,
        reconnect_timeout: WAIT,
        stop_timeout: Duration::from_secs(2),
        heartbeat: Duration::from_secs(30),
        staging: None,
        output: WorkerOutput::Labelled,
        encryption: false,
        trusted: true,
        compression: Compression::Auto,
        min_hosts: None,
        idle: Duration::from_secs(60),
    }
}

pub fn start(agent: u32, host: &str) -> Start {
    let ticket = Ticket { addresses: vec!["10.1.2.3:4567".into()], secret: [7; 32], keys: None };
    Start { agent, host: host.into(), ticket }
}

/// A launcher, and its events.
pub struct Launching {
    pub launcher: Box<dyn Launcher>,
    events: Receiver<(u32, Event)>,
}

impl Launching {
    pub fn open(group: &HostGroup, program: &Path) -> Launching {
        let (reported, events) = mpsc::channel();
        let reported = Mutex::new(reported);
        let report = Report(Arc::new(move |agent, event| {
            let _ = reported.lock().unwrap().send((agent, event));
        }));
        Launching { launcher: open(group, program, report).expect("a launcher"), events }
    }

    pub fn next(&self) -> (u32, Event) {
        self.events.recv_timeout(WAIT).expect("no event")
    }

    /// The next event of this kind; skips others, except ends.
    pub fn said(&self) -> (u32, String) {
        loop {
            match self.next() {
                (agent, Event::Said(line)) => return (agent, String::from_utf8(line).unwrap()),
                (_, Event::State(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The ticket that an agent reports.
    pub fn ticket(&self) -> (u32, Ticket) {
        loop {
            let (agent, line) = self.said();
            if let Some(word) = line.strip_prefix("has ") {
                return (agent, Ticket::decode(word).unwrap());
            }
        }
    }

    /// How an agent ended, or why it failed to start.
    pub fn end(&self) -> (u32, Event) {
        loop {
            match self.next() {
                (_, Event::Said(_) | Event::State(_)) => {}
                end => return end,
            }
        }
    }

    /// Why an agent failed to start.
    pub fn failure(&self) -> String {
        match self.end() {
            (_, Event::Failed(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    pub fn is_silent(&self) -> bool {
        self.events.recv_timeout(Duration::from_millis(100)).is_err()
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        self.launcher.close();
    }
}
