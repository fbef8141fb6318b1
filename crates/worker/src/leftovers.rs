//! Leftover processes that functions have started: they end with their worker.
//!
//! A worker is a *subreaper*, so it inherits the orphans of processes that its functions have started, and the
//! spawner inherits those of a worker that has ended. So a child of the spawner that is no worker comes from a worker
//! that is gone. It gets SIGTERM, so that it can clean up, and is killed soon after; its own leftovers arrive here
//! too.

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
    /// Children started by this process itself, or by modules that it has imported. They may serve the workers.
    own: HashSet<Pid>,
    /// When each is killed. `None`: already killed.
    known: HashMap<Pid, Option<Instant>>,
}

impl Leftovers {
    /// Makes this process inherit its workers' leftovers, unless that is disabled.
    pub(super) fn new() -> io::Result<Leftovers> {
        let end = leftovers_end();
        if end {
            nix::sys::prctl::set_child_subreaper(true)?;
        }
        Ok(Leftovers { end, own: HashSet::new(), known: HashMap::new() })
    }

    /// In a new worker: makes it inherit its functions' leftovers.
    pub(super) fn become_worker(&self) -> io::Result<()> {
        if self.end {
            nix::sys::prctl::set_child_subreaper(true)?;
        }
        Ok(())
    }

    /// Marks new children as this process's own, because it has just imported a module.
    pub(super) fn note_own(&mut self, workers: impl Iterator<Item = Pid>) {
        if self.end {
            let workers: HashSet<Pid> = workers.collect();
            let other = |pid: &Pid| !workers.contains(pid) && !self.known.contains_key(pid);
            self.own = children().into_iter().filter(other).collect();
        }
    }

    /// Children started by this process itself.
    pub(super) fn own(&self) -> impl Iterator<Item = Pid> {
        self.own.iter().copied()
    }

    /// Finds new leftovers and sends them SIGTERM. Call it when a child has ended.
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

    /// Handles the end of a child that is no worker.
    pub(super) fn ended(&mut self, child: Pid) {
        self.own.remove(&child);
        self.known.remove(&child);
    }

    /// Kills those whose time is up, or all if `at_once`. Returns when the next one is due.
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

/// The children of this process, which has one thread. Empty if the kernel does not list them.
fn children() -> Vec<Pid> {
    let ours = Pid::this();
    let list = std::fs::read_to_string(format!("/proc/self/task/{ours}/children"));
    let list = list.unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}
