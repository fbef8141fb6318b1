//! Which large answers are on their way, of workers that wait with them until they are asked.
//!
//! If all workers sent at once, the switch before the client would drop much of it, and TCP waits for
//! 0.2 s and longer before it sends the last of a lost answer again. With 400 answers of 1 MB
//! through 1 Gbit/s a quarter of all packets was lost, and the last answer came after twice the time that
//! the link needs. With some at a time next to nothing is lost, and the first come far earlier.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::link::Coming;

/// Answers with so many streamed bytes and more are fetched.
pub(super) const LARGE: usize = 32 << 10;
/// As many may be on their way, and more as long as they have less than so many bytes to go.
pub(super) const AT_ONCE: usize = 16;
const FEW_BYTES: usize = 1 << 20;
/// Where a message needs longer than this to go there and back, nothing is held: answers do not
/// meet, and asking costs more than it brings.
pub(super) const FAR: Duration = Duration::from_millis(10);
/// How long an answer keeps others waiting: at least so long, and for each byte. Its link may be slow, or
/// dead.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_PER_BYTE: Duration = Duration::from_micros(1);

/// An answer: of which process, and which one of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    worker: u32,
    generation: u32,
    number: u64,
}

#[derive(Debug)]
struct UnderWay {
    answer: Answer,
    left: usize,
    until: Instant,
}

/// What waits, first come first served, and what has been asked for.
#[derive(Debug, Default)]
pub(super) struct Fetching {
    waiting: VecDeque<(Answer, usize)>,
    under_way: Vec<UnderWay>,
}

impl Fetching {
    /// Something has come from a process, and this answer of it has not come in whole.
    pub(super) fn heard(&mut self, worker: u32, generation: u32, coming: Option<Coming>) {
        let coming = coming.filter(|coming| coming.total >= LARGE);
        let Some(Coming { number, left, .. }) = coming else {
            return self.forget(worker);
        };
        let answer = Answer { worker, generation, number };
        self.under_way.retain(|one| one.answer.worker != worker || one.answer == answer);
        if let Some(known) = self.under_way.iter_mut().find(|one| one.answer == answer) {
            known.left = left;
        } else if !self.waiting.iter().any(|(one, _)| *one == answer) {
            self.waiting.push_back((answer, left));
        }
    }

    /// Nothing of a worker is on its way any more.
    pub(super) fn forget(&mut self, worker: u32) {
        self.under_way.retain(|one| one.answer.worker != worker);
        self.waiting.retain(|(answer, _)| answer.worker != worker);
    }

    /// The next worker that is to send its answer, if there is room for one.
    pub(super) fn next(&mut self, now: Instant) -> Option<u32> {
        let in_time = || self.under_way.iter().filter(|one| one.until > now);
        let left: usize = in_time().map(|one| one.left).sum();
        if in_time().count() >= AT_ONCE && left >= FEW_BYTES {
            return None;
        }
        let (answer, left) = self.waiting.pop_front()?;
        let for_bytes = PATIENCE_PER_BYTE.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX));
        self.under_way.push(UnderWay { answer, left, until: now + PATIENCE + for_bytes });
        Some(answer.worker)
    }

    /// Whether no answer waits.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next answer keeps others waiting no more.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        self.under_way.iter().map(|one| one.until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn announced(number: u64, total: usize) -> Option<Coming> {
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
            fetching.heard(worker, 1, announced(1, MB));
        }
        assert_eq!(asked(&mut fetching, now), Vec::from_iter((24..40).rev()));
        // One has come in whole, and one in part.
        fetching.heard(25, 1, None);
        fetching.heard(26, 1, Some(Coming { number: 1, total: MB, left: MB / 2 }));
        assert_eq!(asked(&mut fetching, now), [23]);
        assert!(asked(&mut fetching, now).is_empty());
    }

    #[test]
    fn small_ones_are_not_asked_for() {
        let mut fetching = Fetching::default();
        fetching.heard(0, 1, announced(1, LARGE - 1));
        assert_eq!(fetching.next(Instant::now()), None);
    }

    #[test]
    fn as_many_middling_ones_as_make_up_some_large_ones() {
        let mut fetching = Fetching::default();
        for worker in 0..100 {
            fetching.heard(worker, 1, announced(1, LARGE));
        }
        assert_eq!(asked(&mut fetching, Instant::now()).len(), MB / LARGE);
    }

    #[test]
    fn what_goes_on_for_too_long_keeps_nobody_waiting() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..2 * AT_ONCE as u32 + 4 {
            fetching.heard(worker, 1, announced(1, MB));
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
    fn the_next_answer_of_a_worker_waits_behind_others() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..=AT_ONCE as u32 {
            fetching.heard(worker, 1, announced(1, MB));
        }
        assert_eq!(asked(&mut fetching, now).len(), AT_ONCE);
        fetching.heard(3, 1, announced(2, MB));
        assert_eq!(asked(&mut fetching, now), [16]);
        fetching.heard(16, 1, None);
        assert_eq!(asked(&mut fetching, now), [3]);
    }

    #[test]
    fn lost_workers_make_room() {
        let now = Instant::now();
        let mut fetching = Fetching::default();
        for worker in 0..AT_ONCE as u32 + 2 {
            fetching.heard(worker, 1, announced(1, MB));
        }
        assert_eq!(asked(&mut fetching, now).len(), AT_ONCE);
        fetching.forget(16);
        fetching.forget(0);
        assert_eq!(asked(&mut fetching, now), [17]);
        // A successor of worker 0 begins anew.
        fetching.heard(0, 2, announced(1, MB));
        fetching.forget(1);
        assert_eq!(asked(&mut fetching, now), [0]);
    }
}
