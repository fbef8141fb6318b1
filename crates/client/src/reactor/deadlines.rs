//! Deadlines of the reactor: what it has to do at some time if nothing else happens, and so until when it may sleep.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gridrpc_core::Time;

/// A process in a worker's place. When it is gone, its deadlines no longer matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A request to the spawner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpawnerRequest {
    pub(super) process: Process,
    /// Whether the worker is to end. Otherwise it is to start, which takes as long as its imports.
    pub(super) to_end: bool,
    /// Whether the spawner has been sent SIGCONT in the meantime, in case it was stopped.
    pub(super) urged: bool,
}

/// A requested agent of the host with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Agent {
    pub(super) index: u32,
    pub(super) agent: u32,
}

/// A connection to the agent of the host with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Connection {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A one-time deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deadline {
    /// A worker that has closed its connection should have ended by itself.
    Gone(Process),
    /// An incomplete line of a worker, such as a prompt, is passed on as it is.
    Line(Process),
    /// The spawner should have carried out the request.
    Answer(SpawnerRequest),
    /// The agent should have dialled.
    Dialled(Agent),
    /// Liveness check of the host.
    Heard(Connection),
    /// The launcher should have reported why this connection's agent is gone.
    Left(Connection),
}

/// A recurring deadline. Each has at most one due time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Routine {
    /// The core has a timer, or callers have a request.
    Core,
    /// Search for unused memory.
    Memory,
    /// A stalled answer of a host stops holding back others.
    Fetches,
    /// Control groups of ended workers still contain processes.
    Groups,
    /// The grid is closed: check whether everything is gone.
    Closing,
}

const ROUTINES: usize = Routine::Closing as usize + 1;
const NEVER: Time = Time(u64::MAX);

#[derive(Debug)]
pub(super) struct Deadlines {
    once: BinaryHeap<Reverse<(Time, Deadline)>>,
    routines: [Time; ROUTINES],
}

impl Deadlines {
    pub(super) fn new() -> Deadlines {
        Deadlines { once: BinaryHeap::new(), routines: [NEVER; ROUTINES] }
    }

    /// Adds a one-time deadline.
    pub(super) fn add(&mut self, at: Time, due: Deadline) {
        self.once.push(Reverse((at, due)));
    }

    /// Sets the next time of a recurring deadline.
    pub(super) fn set(&mut self, routine: Routine, at: Option<Time>) {
        self.routines[routine as usize] = at.unwrap_or(NEVER);
    }

    /// Takes out the earliest deadline that has passed.
    pub(super) fn take(&mut self, now: Time) -> Option<Deadline> {
        let Reverse((at, due)) = *self.once.peek()?;
        if at > now {
            return None;
        }
        self.once.pop();
        Some(due)
    }

    /// Time of the earliest deadline.
    pub(super) fn next(&self) -> Option<Time> {
        let routines = self.routines.iter().fold(NEVER, |first, at| first.min(*at));
        let once = self.once.peek().map_or(NEVER, |Reverse((at, _))| *at);
        Some(routines.min(once)).filter(|next| *next != NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(index: u32) -> Deadline {
        Deadline::Line(Process { index, generation: 1 })
    }

    #[test]
    fn what_is_due_first_comes_first_whenever_it_was_added() {
        let mut deadlines = Deadlines::new();
        assert_eq!((deadlines.next(), deadlines.take(Time(9))), (None, None));
        for at in [5, 3, 8, 3] {
            deadlines.add(Time(at), line(at as u32));
        }
        assert_eq!(deadlines.next(), Some(Time(3)));
        let taken: Vec<_> = std::iter::from_fn(|| deadlines.take(Time(5))).collect();
        assert_eq!(taken, [line(3), line(3), line(5)]);
        assert_eq!(deadlines.next(), Some(Time(8)));
    }

    #[test]
    fn what_comes_again_is_due_when_it_was_said_last() {
        let mut deadlines = Deadlines::new();
        deadlines.add(Time(50), line(0));
        deadlines.set(Routine::Core, Some(Time(20)));
        deadlines.set(Routine::Closing, Some(Time(30)));
        assert_eq!(deadlines.next(), Some(Time(20)));
        deadlines.set(Routine::Core, Some(Time(40)));
        assert_eq!(deadlines.next(), Some(Time(30)));
        deadlines.set(Routine::Closing, None);
        assert_eq!(deadlines.next(), Some(Time(40)));
        deadlines.set(Routine::Core, None);
        assert_eq!(deadlines.next(), Some(Time(50)));
    }
}
