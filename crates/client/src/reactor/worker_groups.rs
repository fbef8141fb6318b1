//! Control groups of the workers of this machine. A worker enters its group before it gets its first call.

use std::io;

use gridrpc_sys::worker_groups::{WorkerGroup, WorkerGroups};

use crate::reactor::Reactor;
use crate::reactor::worker_input::Event;

impl Reactor {
    /// Puts a worker that reports its start into a group of its own. If that fails, takes out its report, so that it
    /// gets no calls.
    pub(super) fn confine(&mut self, index: u32, mut events: Vec<Event>) -> Vec<Event> {
        let welcome = events.iter().find_map(|event| match event {
            Event::Welcome { pid } => Some(*pid),
            _ => None,
        });
        let (Some(pid), Some(groups)) = (welcome, &self.worker_groups) else { return events };
        let spawner = self.spawner.as_ref().map(|spawner| spawner.pid());
        let Some(input) = self.worker_inputs.get_mut(index as usize).and_then(Option::as_mut)
        else {
            return events;
        };
        match confined(groups, pid, spawner) {
            Ok(group) => input.group = Some(group),
            Err(error) => {
                // The spawner reports how a process ended that is gone.
                if error.kind() != io::ErrorKind::NotFound {
                    let why = format!("cannot be put into a control group: {error}");
                    input.broken.get_or_insert(why);
                }
                events.retain(|event| !matches!(event, Event::Welcome { .. }));
            }
        }
        events
    }

    /// Ends the groups of all workers, which are gone.
    pub(super) fn end_groups(&mut self) {
        let inputs = self.worker_inputs.iter_mut().flatten();
        inputs.filter_map(|input| input.group.take()).for_each(|group| self.to_remove.add(group));
        self.to_remove.end();
    }
}

fn confined(groups: &WorkerGroups, pid: u32, spawner: Option<u32>) -> io::Result<WorkerGroup> {
    // The number comes from a process of another user: it must be that of a worker.
    let parent = gridrpc_sys::process::parent_of(pid)?;
    if Some(parent) != spawner {
        let text = format!("process {pid} was not started for this grid");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    groups.confine(pid)
}
