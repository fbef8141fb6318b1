//! Which large messages are on their way to workers over a network; the others wait for their turn.
//!
//! If all were sent at once, they would all arrive at the end, together, as they share the client's link;
//! and a connection whose first packets find the client's own queue full waits for 0.2 s and longer
//! before it tries again. One after the other, the first worker begins at once, and others
//! compute while the last ones get theirs.

use std::time::{Duration, Instant};

use gridrpc_core::{Time, WorkerId};

use crate::client::turns::Turns;
use crate::sys::monotonic_ns;

/// As many may be on their way.
const AT_ONCE: usize = 8;
/// How often the kernel is asked what is still on its way.
const LOOK: Duration = Duration::from_millis(1);

/// What waits at the gates of the ways out to workers.
#[derive(Debug)]
pub(super) struct Sending {
    /// Several times the same worker, if several messages wait for it.
    turns: Turns<WorkerId>,
    /// When to look what is still on its way.
    due: Option<Time>,
}

impl Default for Sending {
    fn default() -> Sending {
        Sending { turns: Turns::new(AT_ONCE), due: None }
    }
}

impl Sending {
    /// A message of so many bytes waits at a gate of the worker's.
    pub(super) fn wait(&mut self, worker: WorkerId, bytes: usize) {
        self.turns.wait(worker, bytes);
    }

    /// Whose gates are to be opened, once for each time they are named. `left` tells how many bytes are on
    /// their way to a worker.
    pub(super) fn next(&mut self, left: impl Fn(WorkerId) -> usize) -> Vec<WorkerId> {
        if self.turns.is_idle() {
            self.due = None;
            return Vec::new();
        }
        let now = Instant::now();
        self.turns.look(now, left);
        let opened = std::iter::from_fn(|| self.turns.next(now)).collect();
        let waits = !self.turns.is_idle();
        self.due = waits.then(|| Time(monotonic_ns() + LOOK.as_nanos() as u64));
        opened
    }

    /// Nothing waits for a worker any more.
    pub(super) fn forget(&mut self, worker: WorkerId) {
        self.turns.retain(|one| one != worker);
    }

    /// When [`Sending::next`] is to be asked again.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const MB: usize = 1 << 20;

    fn waiting(workers: u32) -> Sending {
        let mut sending = Sending::default();
        for worker in 0..workers {
            sending.wait(WorkerId(worker), MB);
        }
        sending
    }

    #[test]
    fn the_next_go_when_others_are_through() {
        let mut sending = waiting(20);
        assert_eq!(sending.next(|_| 0), Vec::from_iter((0..8).map(WorkerId)));
        assert!(sending.due().is_some());
        assert!(sending.next(|_| MB).is_empty());
        let left = |worker: WorkerId| if worker.0 < 2 { 0 } else { MB };
        assert_eq!(sending.next(left), [WorkerId(8), WorkerId(9)]);
        assert_eq!(sending.next(|_| 0), Vec::from_iter((10..18).map(WorkerId)));
        sending.next(|_| 0);
        sending.next(|_| 0);
        assert_eq!(sending.due(), None);
    }

    #[test]
    fn shared_data_and_arguments_of_one_worker_take_two_turns() {
        let mut sending = Sending::default();
        sending.wait(WorkerId(3), MB);
        sending.wait(WorkerId(3), MB);
        assert_eq!(sending.next(|_| 0), [WorkerId(3), WorkerId(3)]);
    }

    #[test]
    fn who_is_lost_makes_room() {
        let mut sending = waiting(10);
        sending.next(|_| 0);
        sending.forget(WorkerId(4));
        sending.forget(WorkerId(8));
        assert_eq!(sending.next(|_| MB), [WorkerId(9)]);
    }

    #[test]
    fn nothing_is_looked_at_while_nothing_waits() {
        let mut sending = waiting(8);
        sending.next(|_| 0);
        let looks = Cell::new(0);
        sending.next(|_| {
            looks.set(looks.get() + 1);
            MB
        });
        assert_eq!(looks.get(), 0);
    }
}
