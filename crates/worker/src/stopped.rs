//! Stopped workers (SIGSTOP). Their calls would never end, and an idle one would swallow the next call. Workers that
//! are not continued within a time-out are killed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

/// Environment variable with the number of seconds that a worker may be stopped; 0: forever.
const VARIABLE: &str = "GRIDRPC_STALL";
const STALL: f64 = 10.0;
/// When all processes of a job are stopped and continued together, the spawner may continue first. The others have
/// this long from then.
const MORE: Duration = Duration::from_secs(2);

/// The stopped workers.
#[derive(Debug)]
pub(super) struct Stopped {
    stall: Option<Duration>,
    /// When each is killed, and whether that has already been postponed.
    due: HashMap<Pid, (Instant, bool)>,
}

impl Stopped {
    pub(super) fn new() -> Stopped {
        let setting = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
        let stall = Duration::try_from_secs_f64(setting.unwrap_or(STALL)).unwrap_or(Duration::MAX);
        Stopped { stall: (!stall.is_zero()).then_some(stall), due: HashMap::new() }
    }

    pub(super) fn has_stopped(&mut self, worker: Pid) {
        if let Some(due) = self.stall.and_then(|stall| Instant::now().checked_add(stall)) {
            self.due.insert(worker, (due, false));
        }
    }

    /// Removes a worker that has been continued or has ended.
    pub(super) fn goes_on(&mut self, worker: Pid) {
        self.due.remove(&worker);
    }

    /// The workers to kill now.
    pub(super) fn overdue(&mut self) -> Vec<Pid> {
        let now = Instant::now();
        let mut overdue = Vec::new();
        self.due.retain(|worker, (due, last)| {
            if *due > now {
                return true;
            }
            if *last {
                overdue.push(*worker);
                return false;
            }
            (*due, *last) = (now + MORE, true);
            true
        });
        overdue
    }

    /// Time of the next kill.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.values().map(|(due, _)| *due).min()
    }
}
