//! Large messages that share a way: some at a time, in the order in which they came.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Messages with so many streamed bytes and more wait for their turn.
pub(crate) const LARGE: usize = 32 << 10;
/// More than the usual number may be under way as long as they have less than so many bytes to go.
const FEW_BYTES: usize = 1 << 20;
/// How long a message of which nothing arrives keeps others waiting. Its link may be dead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// What waits, first come first served, and what is under way; `K` tells messages apart.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    at_once: usize,
    waiting: VecDeque<(K, usize)>,
    under_way: Vec<UnderWay<K>>,
}

#[derive(Debug)]
struct UnderWay<K> {
    key: K,
    left: usize,
    until: Instant,
}

impl<K> UnderWay<K> {
    fn note(&mut self, now: Instant, left: usize) {
        if left < self.left {
            self.until = now + PATIENCE;
        }
        self.left = left;
    }
}

impl<K: Copy + Eq> Turns<K> {
    /// `at_once` messages may be under way.
    pub(crate) fn new(at_once: usize) -> Turns<K> {
        Turns { at_once, waiting: VecDeque::new(), under_way: Vec::new() }
    }

    /// A message of `left` bytes is to wait for its turn.
    pub(crate) fn wait(&mut self, key: K, left: usize) {
        self.waiting.push_back((key, left));
    }

    /// Whether it waits.
    pub(crate) fn is_waiting(&self, key: K) -> bool {
        self.waiting.iter().any(|(one, _)| *one == key)
    }

    /// So many bytes of a message are left, if it is under way. `true`: it is.
    pub(crate) fn note(&mut self, now: Instant, key: K, left: usize) -> bool {
        let found = self.under_way.iter_mut().find(|one| one.key == key);
        found.map(|one| one.note(now, left)).is_some()
    }

    /// Asks of each that is under way how many bytes are left; with none it is through.
    pub(crate) fn look(&mut self, now: Instant, left: impl Fn(K) -> usize) {
        self.under_way.retain_mut(|one| {
            one.note(now, left(one.key));
            one.left > 0
        });
    }

    /// Only those go on waiting, or being under way, that `keep` says so of.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(K) -> bool) {
        self.under_way.retain(|one| keep(one.key));
        self.waiting.retain(|(key, _)| keep(*key));
    }

    /// Only those go on being under way that `keep` says so of.
    pub(crate) fn end(&mut self, mut keep: impl FnMut(K) -> bool) {
        self.under_way.retain(|one| keep(one.key));
    }

    /// The next message whose turn it is, if there is room for one.
    pub(crate) fn next(&mut self, now: Instant) -> Option<K> {
        let in_time = || self.under_way.iter().filter(|one| one.until > now);
        let left: usize = in_time().map(|one| one.left).sum();
        if in_time().count() >= self.at_once && left >= FEW_BYTES {
            return None;
        }
        let (key, left) = self.waiting.pop_front()?;
        self.under_way.push(UnderWay { key, left, until: now + PATIENCE });
        Some(key)
    }

    /// Whether nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next one keeps others waiting no more.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        self.under_way.iter().map(|one| one.until).filter(|until| *until > now).min()
    }
}
