//! Which large answers are on their way, of workers that wait with them until they are asked.
//!
//! If all workers sent at once, the switch before the client would drop much of it, and TCP waits for
//! 0.2 s and longer before it sends the last of a lost answer again. With 400 answers of 1 MB
//! through 1 Gbit/s a quarter of all packets was lost, and the last answer came after twice the time that
//! the link needs. With some at a time next to nothing is lost, and the first come far earlier.

use std::time::Instant;

use crate::client::turns::{LARGE, Turns};
use crate::link::Coming;

/// As many may be on their way.
const AT_ONCE: usize = 16;

/// An answer: of which process, and which one of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    worker: u32,
    generation: u32,
    number: u32,
}

/// What waits, first come first served, and what has been asked for.
#[derive(Debug)]
pub(super) struct Fetching(Turns<Answer>);

impl Default for Fetching {
    fn default() -> Fetching {
        Fetching(Turns::new(AT_ONCE))
    }
}

impl Fetching {
    /// Something has come from a process, and this answer of it has not come in whole.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        worker: u32,
        generation: u32,
        coming: Option<Coming>,
    ) {
        let coming = coming.filter(|coming| coming.total >= LARGE);
        let Some(Coming { number, left, .. }) = coming else {
            return self.forget(worker);
        };
        let answer = Answer { worker, generation, number };
        self.0.end(|one| one.worker != worker || one == answer);
        if !self.0.note(now, answer, left) && !self.0.is_waiting(answer) {
            self.0.wait(answer, left);
        }
    }

    /// Nothing of a worker is on its way any more.
    pub(super) fn forget(&mut self, worker: u32) {
        self.0.retain(|answer| answer.worker != worker);
    }

    /// The next worker that is to send its answer, if there is room for one.
    pub(super) fn next(&mut self, now: Instant) -> Option<u32> {
        self.0.next(now).map(|answer| answer.worker)
    }

    /// Whether no answer waits.
    pub(super) fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// When the next answer keeps others waiting no more.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        self.0.due(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::turns::PATIENCE;

    const MB: usize = 1 << 20;

    fn announced(number: u32, total: usize) -> Option<Coming> {
        Some(Coming { number, total, left: total })
    }

    fn asked(fetching: &mut Fetching, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| fetching.next(now)).collect()
    }

    #[test]
    fn some_large_ones_at_a_time_in_the_order_in_which_they_came() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in (0..40).rev() {
            fetching.heard(now, worker, 1, announced(1, MB));
        }
        assert_eq!(asked(&mut fetching, now), Vec::from_iter((24..40).rev()));
        // One has come in whole, and one in part.
        fetching.heard(now, 25, 1, None);
        fetching.heard(now, 26, 1, Some(Coming { number: 1, total: MB, left: MB / 2 }));
        assert_eq!(asked(&mut fetching, now), [23]);
        assert!(asked(&mut fetching, now).is_empty());
    }

    #[test]
    fn small_ones_are_not_asked_for() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        fetching.heard(now, 0, 1, announced(1, LARGE - 1));
        assert_eq!(fetching.next(now), None);
    }

    #[test]
    fn as_many_middling_ones_as_make_up_some_large_ones() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..100 {
            fetching.heard(now, worker, 1, announced(1, LARGE));
        }
        assert_eq!(asked(&mut fetching, now).len(), MB / LARGE);
    }

    #[test]
    fn what_does_not_go_on_keeps_nobody_waiting() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..2 * AT_ONCE as u32 + 4 {
            fetching.heard(now, worker, 1, announced(1, MB));
        }
        assert_eq!(fetching.due(now), None);
        assert_eq!(asked(&mut fetching, now).len(), AT_ONCE);
        let due = fetching.due(now).expect("some keep others waiting");
        assert!((now + PATIENCE..now + 3 * PATIENCE).contains(&due));
        assert_eq!(asked(&mut fetching, due - Duration::from_nanos(1)).len(), 0);
        assert_eq!(asked(&mut fetching, due).len(), AT_ONCE);
        // None waits behind the last ones.
        assert_eq!(asked(&mut fetching, due + 3 * PATIENCE).len(), 4);
        assert_eq!(fetching.due(now), None);
    }

    #[test]
    fn what_goes_on_keeps_others_waiting() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..2 * AT_ONCE as u32 {
            fetching.heard(now, worker, 1, announced(1, 4 * MB));
        }
        assert_eq!(asked(&mut fetching, now).len(), AT_ONCE);
        for worker in 0..AT_ONCE as u32 {
            let coming = Coming { number: 1, total: 4 * MB, left: 3 * MB };
            fetching.heard(now + PATIENCE / 2, worker, 1, Some(coming));
        }
        assert!(asked(&mut fetching, now + PATIENCE).is_empty());
        assert_eq!(asked(&mut fetching, now + 2 * PATIENCE).len(), AT_ONCE);
    }

    #[test]
    fn the_next_answer_of_a_worker_waits_behind_others() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..=AT_ONCE as u32 {
            fetching.heard(now, worker, 1, announced(1, MB));
        }
        assert_eq!(asked(&mut fetching, now).len(), AT_ONCE);
        fetching.heard(now, 3, 1, announced(2, MB));
        assert_eq!(asked(&mut fetching, now), [16]);
        fetching.heard(now, 16, 1, None);
        assert_eq!(asked(&mut fetching, now), [3]);
    }

    #[test]
    fn lost_workers_make_room() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..AT_ONCE as u32 + 2 {
            fetching.heard(now, worker, 1, announced(1, MB));
        }
        assert_eq!(asked(&mut fetching, now).len(), AT_ONCE);
        fetching.forget(16);
        fetching.forget(0);
        assert_eq!(asked(&mut fetching, now), [17]);
        // A successor of worker 0 begins anew.
        fetching.heard(now, 0, 2, announced(1, MB));
        fetching.forget(1);
        assert_eq!(asked(&mut fetching, now), [0]);
    }
}
