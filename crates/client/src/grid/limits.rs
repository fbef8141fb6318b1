//! Limits on the number of workers on this system, and of each of them.

use std::fmt;

use gridrpc_sys::fd_limit;
use gridrpc_sys::worker_groups::WorkerGroups;
use gridrpc_sys::worker_limits::{Grouped, WorkerLimits};

use crate::error::GridError;

const MOST_WORKERS: u32 = 100_000;
/// Descriptors that a worker uses in the client: its connection, standard output and error.
const DESCRIPTORS_PER_WORKER: u64 = 3;
/// Descriptors reserved for everything else.
const OTHER_DESCRIPTORS: u64 = 64;

/// Checks that this many workers fit. Raises the file limit where that takes no time.
pub(super) fn check_workers(workers: u32) -> Result<(), GridError> {
    if workers == 0 || workers > MOST_WORKERS {
        return Err(GridError::Config(format!(
            "{workers} workers: choose from 1 to {MOST_WORKERS}"
        )));
    }
    let limit = gridrpc_sys::raise_file_limit();
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let need = open + OTHER_DESCRIPTORS + DESCRIPTORS_PER_WORKER * u64::from(workers);
    if need > limit {
        return Err(GridError::Config(format!(
            "{workers} workers need {need} open files, but the limit is {limit}: raise it with \
             `ulimit -n {need}`, or use fewer workers"
        )));
    }
    if gridrpc_sys::threads() == 1 {
        fd_limit::make(need);
    }
    Ok(())
}

/// Limits of workers, and how the system holds them.
#[derive(Clone, Debug)]
pub struct LimitsInForce {
    /// The limits.
    pub limits: WorkerLimits,
    /// Those that a control group of each worker holds. They count its children too.
    pub grouped: Grouped,
    /// Why the others are held by rlimits alone.
    pub reasons: Vec<String>,
}

impl LimitsInForce {
    /// Finds how these limits can be held.
    pub(super) fn of(limits: &WorkerLimits) -> (Option<WorkerGroups>, LimitsInForce) {
        let limits = limits.clone();
        if limits.memory.is_none() && limits.processes.is_none() {
            let grouped = Grouped::default();
            return (None, LimitsInForce { limits, grouped, reasons: Vec::new() });
        }
        let (groups, reasons) = WorkerGroups::find(&limits);
        let grouped = groups.holds();
        let groups = (grouped != Grouped::default()).then_some(groups);
        (groups, LimitsInForce { limits, grouped, reasons })
    }
}

impl fmt::Display for LimitsInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorkerLimits { memory, open_files, processes, user } = &self.limits;
        let by = |grouped: bool, rlimit| if grouped { "control group" } else { rlimit };
        let mut parts = Vec::new();
        if let Some(memory) = memory {
            let by = by(self.grouped.memory, "rlimit of each process");
            parts.push(format!("memory {memory} bytes ({by})"));
        }
        if let Some(processes) = processes {
            let by = by(self.grouped.processes, "rlimit of the user, not for root");
            parts.push(format!("processes {processes} ({by})"));
        }
        if let Some(files) = open_files {
            parts.push(format!("open files {files} (rlimit of each process)"));
        }
        if let Some(user) = user {
            parts.push(format!("user {}", user.name));
        }
        if parts.is_empty() {
            return f.write_str("workers have no limits");
        }
        write!(f, "limits of each worker: {}", parts.join(", "))?;
        self.reasons.iter().try_for_each(|reason| write!(f, "; {reason}"))
    }
}
