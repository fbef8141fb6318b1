//! Control groups whose workers are gone: each is removed when its last process is gone too.

use std::time::Duration;

use gridrpc_core::Time;
use gridrpc_sys::process::leftovers_end;
use gridrpc_sys::worker_groups::WorkerGroup;

use crate::sync::now;

/// Interval of attempts to remove groups that still contain processes, ns.
const AGAIN: u64 = 100_000_000;
/// How long the processes that a function has left behind have to end after their worker, ns. The spawner ends them
/// sooner.
const LEFT: u64 = 2_000_000_000;
/// How long killed processes may take to end when the grid is closed.
const DYING: Duration = Duration::from_millis(500);

/// Groups whose workers are gone.
#[derive(Debug, Default)]
pub(super) struct GroupsToRemove {
    groups: Vec<(WorkerGroup, Time)>,
}

impl GroupsToRemove {
    /// Removes a group, as soon as it is empty.
    pub(super) fn add(&mut self, mut group: WorkerGroup) {
        if !group.remove() {
            self.groups.push((group, now()));
        }
    }

    /// Removes empty groups. Returns when to try again.
    pub(super) fn remove(&mut self) -> Option<Time> {
        let now = now();
        self.groups.retain_mut(|(group, since)| {
            if now.since(*since) > LEFT && leftovers_end() {
                group.kill();
            }
            !group.remove()
        });
        (!self.groups.is_empty()).then(|| now + AGAIN)
    }

    /// Kills the remaining processes, and removes all groups that become empty in time.
    pub(super) fn end(&mut self) {
        let until = now() + DYING.as_nanos() as u64;
        loop {
            self.groups.retain_mut(|(group, _)| {
                if leftovers_end() {
                    group.kill();
                }
                !group.remove()
            });
            if self.groups.is_empty() || !leftovers_end() || now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
