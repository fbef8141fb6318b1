//! Flow control of large answers: which are in transit, on hosts that hold them back until they are fetched.
//!
//! If all hosts sent at once, the switch in front of the client would drop many packets, and TCP waits 0.2 s or
//! longer before it retransmits the end of a lost answer. With 400 answers of 1 MB over 1 Gbit/s, each on its own
//! connection, a quarter of all packets was lost, and the last answer arrived after twice the time that the link
//! needs. With a bounded number in transit almost nothing is lost, and the first answers arrive far earlier.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use gridrpc_core::Time;
use gridrpc_link::PartialAnswer;

/// With this many hosts or fewer, large answers do not congest the link.
pub(crate) const FEW: usize = 16;
/// Above this round-trip time answers are not held back: they do not collide, and a request costs more than it saves.
pub(crate) const FAR: Duration = Duration::from_millis(10);
/// Answers with at least this many streamed bytes are held back.
pub(crate) const LARGE: usize = 32 << 10;
/// Maximum number of answers in transit.
const AT_ONCE: usize = 16;
/// More may be in transit while fewer bytes than this are left to receive.
const FEW_BYTES: usize = 1 << 20;
/// How long a stalled answer holds back others, ns. Its link may be dead.
const HANDSHAKE_TIMEOUT: u64 = 1_000_000_000;

/// An answer: its host and its number on the connection. Each host sends requested answers in the order of their announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    host: usize,
    number: u32,
}

/// A requested answer.
#[derive(Debug)]
struct PendingFetch {
    answer: Answer,
    left: usize,
    until: Time,
}

/// Announced answers, first in first out, and requested ones.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    /// The last answer that each host has announced.
    announced: HashMap<usize, u32>,
    waiting: VecDeque<(Answer, usize)>,
    under_way: Vec<PendingFetch>,
}

impl Fetches {
    /// Records data from a host. `coming`: its answers that are not complete.
    pub(crate) fn add_sample(
        &mut self,
        now: Time,
        host: usize,
        coming: impl Iterator<Item = PartialAnswer>,
    ) {
        let coming: Vec<PartialAnswer> = coming.filter(|coming| coming.total >= LARGE).collect();
        self.under_way.retain_mut(|one| {
            if one.answer.host != host {
                return true;
            }
            let found = coming.iter().find(|coming| coming.number == one.answer.number);
            let Some(coming) = found else { return false };
            if coming.left < one.left {
                (one.left, one.until) = (coming.left, now + HANDSHAKE_TIMEOUT);
            }
            true
        });
        for PartialAnswer { number, left, .. } in coming {
            let last = self.announced.get(&host);
            // Numbers wrap around.
            if last.is_none_or(|last| number.wrapping_sub(*last).cast_signed() > 0) {
                self.announced.insert(host, number);
                self.waiting.push_back((Answer { host, number }, left));
            }
        }
    }

    /// Forgets a host that is gone.
    pub(crate) fn forget(&mut self, host: usize) {
        self.announced.remove(&host);
        self.waiting.retain(|(answer, _)| answer.host != host);
        self.under_way.retain(|one| one.answer.host != host);
    }

    /// The next host to send an answer, if there is room for one.
    pub(crate) fn next(&mut self, now: Time) -> Option<usize> {
        let in_time = || self.under_way.iter().filter(|one| one.until > now);
        let left: usize = in_time().map(|one| one.left).sum();
        if in_time().count() >= AT_ONCE && left >= FEW_BYTES {
            return None;
        }
        let (answer, left) = self.waiting.pop_front()?;
        self.under_way.push(PendingFetch { answer, left, until: now + HANDSHAKE_TIMEOUT });
        Some(answer.host)
    }

    /// Whether no answer waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next answer stops holding back others.
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
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

    fn announced(number: u32, total: usize) -> PartialAnswer {
        PartialAnswer { number, total, left: total }
    }

    fn requested(fetching: &mut Fetches, now: Time) -> Vec<usize> {
        std::iter::from_fn(|| fetching.next(now)).collect()
    }

    /// Hosts that have announced one answer each.
    fn waiting(now: Time, hosts: usize, total: usize) -> Fetches {
        let mut fetching = Fetches::default();
        for host in 0..hosts {
            fetching.add_sample(now, host, [announced(1, total)].into_iter());
        }
        fetching
    }

    #[test]
    fn some_large_ones_at_a_time_in_the_order_in_which_they_came() {
        let now = Time(7);
        let mut fetching = Fetches::default();
        for host in (0..40).rev() {
            fetching.add_sample(now, host, [announced(1, MB)].into_iter());
        }
        assert_eq!(requested(&mut fetching, now), Vec::from_iter((24..40).rev()));
        // One answer is complete, and one is partial.
        fetching.add_sample(now, 25, [].into_iter());
        fetching.add_sample(
            now,
            26,
            [PartialAnswer { number: 1, total: MB, left: MB / 2 }].into_iter(),
        );
        assert_eq!(requested(&mut fetching, now), [23]);
        assert!(requested(&mut fetching, now).is_empty());
    }

    #[test]
    fn all_that_a_host_has_announced_is_requested_once() {
        let now = Time(7);
        let mut fetching = Fetches::default();
        let all = [announced(u32::MAX, MB), announced(0, MB), announced(1, LARGE - 1)];
        fetching.add_sample(now, 7, all[..1].iter().copied());
        fetching.add_sample(now, 7, all.into_iter());
        assert_eq!(requested(&mut fetching, now), [7, 7], "small ones come by themselves");
        fetching.add_sample(now, 7, [announced(0, MB), announced(2, MB)].into_iter());
        assert_eq!(requested(&mut fetching, now), [7]);
    }

    #[test]
    fn as_many_middling_ones_as_make_up_some_large_ones() {
        let now = Time(7);
        assert_eq!(requested(&mut waiting(now, 100, LARGE), now).len(), MB / LARGE);
    }

    #[test]
    fn what_does_not_continue_keeps_nobody_waiting() {
        let now = Time(7);
        let mut fetching = waiting(now, 2 * AT_ONCE + 4, MB);
        assert_eq!(fetching.due(now), None);
        assert_eq!(requested(&mut fetching, now).len(), AT_ONCE);
        let due = fetching.due(now).expect("some keep others waiting");
        assert!((now + HANDSHAKE_TIMEOUT..now + 3 * HANDSHAKE_TIMEOUT).contains(&due));
        assert_eq!(requested(&mut fetching, Time(due.0 - 1)).len(), 0);
        assert_eq!(requested(&mut fetching, due).len(), AT_ONCE);
        // No answer waits behind the last ones.
        assert_eq!(requested(&mut fetching, due + 3 * HANDSHAKE_TIMEOUT).len(), 4);
        assert_eq!(fetching.due(now), None);
    }

    #[test]
    fn what_continues_keeps_others_waiting() {
        let now = Time(7);
        let mut fetching = waiting(now, 2 * AT_ONCE, 4 * MB);
        assert_eq!(requested(&mut fetching, now).len(), AT_ONCE);
        for host in 0..AT_ONCE {
            let coming = PartialAnswer { number: 1, total: 4 * MB, left: 3 * MB };
            fetching.add_sample(now + HANDSHAKE_TIMEOUT / 2, host, [coming].into_iter());
        }
        assert!(requested(&mut fetching, now + HANDSHAKE_TIMEOUT).is_empty());
        assert_eq!(requested(&mut fetching, now + 2 * HANDSHAKE_TIMEOUT).len(), AT_ONCE);
    }

    #[test]
    fn the_next_answer_of_a_host_waits_behind_others() {
        let now = Time(7);
        let mut fetching = waiting(now, AT_ONCE + 1, MB);
        assert_eq!(requested(&mut fetching, now).len(), AT_ONCE);
        fetching.add_sample(now, 3, [announced(2, MB)].into_iter());
        assert_eq!(requested(&mut fetching, now), [16]);
        fetching.add_sample(now, 16, [].into_iter());
        assert_eq!(requested(&mut fetching, now), [3]);
    }

    #[test]
    fn lost_hosts_make_room_and_start_over() {
        let now = Time(7);
        let mut fetching = waiting(now, AT_ONCE + 2, MB);
        assert_eq!(requested(&mut fetching, now).len(), AT_ONCE);
        fetching.forget(16);
        fetching.forget(0);
        assert_eq!(requested(&mut fetching, now), [17]);
        fetching.add_sample(now, 0, [announced(1, MB)].into_iter());
        fetching.forget(1);
        assert_eq!(requested(&mut fetching, now), [0]);
    }
}
