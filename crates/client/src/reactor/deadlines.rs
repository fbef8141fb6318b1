//! All that is due in the reactor, by one clock: what it has to do at some moment if nothing else happens, and so
//! until when it may sleep.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gridrpc_core::Time;

/// A process in a worker's place. Once it is gone, nothing of what is due for it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Something the spawner has been asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) process: Process,
    /// Whether the worker is to end; else it is to start, which takes as long as imports take.
    pub(super) to_end: bool,
    /// Whether the spawner has been continued meanwhile, in case that it was stopped.
    pub(super) urged: bool,
}

/// An agent that has been asked for, of the host of this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Agent {
    pub(super) index: u32,
    pub(super) agent: u32,
}

/// A connection to the agent of the host of this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Connection {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// What is due once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A worker that has closed its connection has had time to end by itself.
    Gone(Process),
    /// A line that a worker has begun is passed on as it is, such as a question.
    Line(Process),
    /// The spawner ought to have done it by now.
    Answer(Asked),
    /// The agent ought to have dialled by now.
    Dialled(Agent),
    /// Is the host still there?
    Heard(Connection),
    /// The launcher ought to have said by now how this connection's agent came to be gone.
    Left(Connection),
}

/// What comes again and again: each has one moment at which it is due next, or none for now.
#[derive(Clone, Copy, Debug)]
pub(super) enum Routine {
    /// The core has a timer, or callers want something.
    Core,
    /// It is looked for memory that nobody uses.
    Memory,
    /// A host's large answers keep others waiting no more.
    Fetches,
    /// The grid is closed: is everything gone?
    Closing,
}

const ROUTINES: usize = Routine::Closing as usize + 1;
const NEVER: Time = Time(u64::MAX);

#[derive(Debug)]
pub(super) struct Deadlines {
    once: BinaryHeap<Reverse<(Time, Due)>>,
    routines: [Time; ROUTINES],
}

impl Deadlines {
    pub(super) fn new() -> Deadlines {
        Deadlines { once: BinaryHeap::new(), routines: [NEVER; ROUTINES] }
    }

    /// Has something done once.
    pub(super) fn add(&mut self, at: Time, due: Due) {
        self.once.push(Reverse((at, due)));
    }

    /// When something is due next that comes again and again.
    pub(super) fn set(&mut self, routine: Routine, at: Option<Time>) {
        self.routines[routine as usize] = at.unwrap_or(NEVER);
    }

    /// Takes out what is to be done by now, what was due first.
    pub(super) fn take(&mut self, now: Time) -> Option<Due> {
        let Reverse((at, due)) = *self.once.peek()?;
        if at > now {
            return None;
        }
        self.once.pop();
        Some(due)
    }

    /// When the next is due of all there is.
    pub(super) fn next(&self) -> Option<Time> {
        let routines = self.routines.iter().fold(NEVER, |first, at| first.min(*at));
        let once = self.once.peek().map_or(NEVER, |Reverse((at, _))| *at);
        Some(routines.min(once)).filter(|next| *next != NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(index: u32) -> Due {
        Due::Line(Process { index, generation: 1 })
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
