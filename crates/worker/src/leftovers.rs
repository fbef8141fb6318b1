//! Processes that functions have started and left behind: they end with the worker that they came from.
//!
//! A worker inherits the orphans of what its functions have started, as it is a *subreaper*, and the
//! spawner inherits those of a worker that has ended. So whatever child the spawner has that is no
//! worker stems from one that is gone. It is asked to end by SIGTERM, so that it may clean up, and soon
//! killed; what it leaves behind in turn comes here as well.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use gridrpc_sys::process::leftovers_end;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long they have to end by themselves.
const GRACE: Duration = Duration::from_millis(300);

/// The spawner's children that are no workers.
#[derive(Debug)]
pub(super) struct Leftovers {
    /// Whether they are to end.
    end: bool,
    /// Those that this process has started itself, or rather what it has imported: they may serve the
    /// workers.
    own: HashSet<Pid>,
    /// When each is killed. None: it has been.
    known: HashMap<Pid, Option<Instant>>,
}

impl Leftovers {
    /// Has this process inherit what its workers leave behind, unless that is not wanted.
    pub(super) fn new() -> io::Result<Leftovers> {
        let end = leftovers_end();
        if end {
            nix::sys::prctl::set_child_subreaper(true)?;
        }
        Ok(Leftovers { end, own: HashSet::new(), known: HashMap::new() })
    }

    /// In a new worker: has it inherit what its functions leave behind.
    pub(super) fn become_worker(&self) -> io::Result<()> {
        if self.end {
            nix::sys::prctl::set_child_subreaper(true)?;
        }
        Ok(())
    }

    /// Counts what has come as this process's own: it has just imported something.
    pub(super) fn note_own(&mut self, workers: impl Iterator<Item = Pid>) {
        if self.end {
            let workers: HashSet<Pid> = workers.collect();
            let other = |pid: &Pid| !workers.contains(pid) && !self.known.contains_key(pid);
            self.own = children().into_iter().filter(other).collect();
        }
    }

    /// Those that this process has started itself.
    pub(super) fn own(&self) -> impl Iterator<Item = Pid> {
        self.own.iter().copied()
    }

    /// Looks for those that have come since, and asks them to end. To be called when a child has ended.
    pub(super) fn look(&mut self, workers: impl Iterator<Item = Pid>) {
        if !self.end {
            return;
        }
        let workers: HashSet<Pid> = workers.collect();
        for child in children() {
            let counted = self.own.contains(&child) || self.known.contains_key(&child);
            if !counted && !workers.contains(&child) {
                let _ = kill(child, Signal::SIGTERM);
                self.known.insert(child, Some(Instant::now() + GRACE));
            }
        }
    }

    /// A child has ended that is no worker.
    pub(super) fn ended(&mut self, child: Pid) {
        self.own.remove(&child);
        self.known.remove(&child);
    }

    /// Kills those whose time is up; all if `at_once`. Says when the next is due.
    pub(super) fn kill(&mut self, at_once: bool) -> Option<Instant> {
        let now = Instant::now();
        for (child, due) in &mut self.known {
            if due.is_some_and(|due| at_once || due <= now) {
                // It may have ended by itself; it has not been reaped yet.
                let _ = kill(*child, Signal::SIGKILL);
                *due = None;
            }
        }
        self.known.values().flatten().min().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// The children of this process, which has one thread. None where the kernel does not tell.
fn children() -> Vec<Pid> {
    let ours = Pid::this();
    let told = std::fs::read_to_string(format!("/proc/self/task/{ours}/children"));
    let told = told.unwrap_or_default();
    told.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}
