//! Queue of calls that wait for any worker, or for one of a group: by priority, then by submission.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use crate::ids::CallId;

/// A call in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Submission number.
    pub(crate) serial: u64,
    pub(crate) id: CallId,
}

/// The place of a call among those of its owner. Smaller goes first: a higher priority, or an earlier submission.
pub(crate) type Place = (Reverse<i32>, u64);

/// The place of a call among those of all owners: by the owner's usage first.
pub(crate) type Order = (u128, Place);

/// Queue of calls. Nearly all have priority 0: those have a separate queue, which needs no search.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    plain: VecDeque<Entry>,
    /// By priority; no entry is empty.
    others: BTreeMap<i32, VecDeque<Entry>>,
}

impl Queue {
    /// Inserts a call in its place. New calls go to the end. A call that returns, because its worker was lost or it
    /// had to wait for others, goes further to the front.
    pub(crate) fn insert(&mut self, priority: i32, entry: Entry) {
        let level =
            if priority == 0 { &mut self.plain } else { self.others.entry(priority).or_default() };
        if level.back().is_none_or(|last| last.serial < entry.serial) {
            level.push_back(entry);
        } else {
            let place = level.partition_point(|other| other.serial < entry.serial);
            level.insert(place, entry);
        }
    }

    /// The first call.
    pub(crate) fn front(&self) -> Option<CallId> {
        self.front_in_order().map(|(_, id)| id)
    }

    /// The first call, and its place among the calls of all queues.
    pub(crate) fn front_in_order(&self) -> Option<(Place, CallId)> {
        let (priority, entry) = match self.first_other() {
            None => (0, self.plain.front()?),
            Some(priority) => (priority, self.others.get(&priority)?.front()?),
        };
        Some(((Reverse(priority), entry.serial), entry.id))
    }

    pub(crate) fn pop_front(&mut self) -> Option<CallId> {
        let Some(priority) = self.first_other() else {
            return self.plain.pop_front().map(|entry| entry.id);
        };
        let level = self.others.get_mut(&priority)?;
        let entry = level.pop_front()?;
        if level.is_empty() {
            self.others.remove(&priority);
        }
        Some(entry.id)
    }

    /// The last call.
    pub(crate) fn last(&self) -> Option<CallId> {
        let entry = match self.others.first_key_value() {
            Some((priority, level)) if *priority < 0 || self.plain.is_empty() => level.back(),
            _ => self.plain.back(),
        };
        entry.map(|entry| entry.id)
    }

    pub(crate) fn pop_last(&mut self) -> Option<CallId> {
        let lowest = self.others.first_entry();
        let Some(mut level) = lowest.filter(|level| *level.key() < 0 || self.plain.is_empty())
        else {
            return self.plain.pop_back().map(|entry| entry.id);
        };
        let entry = level.get_mut().pop_back();
        if level.get().is_empty() {
            level.remove();
        }
        entry.map(|entry| entry.id)
    }

    /// The priority of the first call, if that is not 0.
    fn first_other(&self) -> Option<i32> {
        let (highest, _) = self.others.last_key_value()?;
        (*highest > 0 || self.plain.is_empty()).then_some(*highest)
    }

    pub(crate) fn len(&self) -> usize {
        self.plain.len() + self.others.values().map(VecDeque::len).sum::<usize>()
    }

    /// All calls, to check the invariants.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CallId> {
        self.others.values().chain([&self.plain]).flatten().map(|entry| entry.id)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(CallId) -> bool) {
        self.plain.retain(|entry| keep(entry.id));
        self.others.retain(|_, level| {
            level.retain(|entry| keep(entry.id));
            !level.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| {
            let front = queue.front_in_order();
            assert_eq!(front.map(|(_, id)| id), queue.pop_front());
            front.map(|(_, id)| id.0)
        })
        .collect()
    }

    #[test]
    fn higher_priorities_go_first_and_each_in_order() {
        let mut queue = Queue::default();
        for (serial, priority) in [0, 5, -1, 0, 5, 7, -3, -1].into_iter().enumerate() {
            let serial = serial as u64;
            queue.insert(priority, Entry { serial, id: CallId(serial) });
        }
        assert_eq!(queue.len(), 8);
        assert_eq!(drained(&mut queue), [5, 1, 4, 0, 3, 2, 7, 6]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn the_last_goes_first_from_the_other_end() {
        let mut queue = Queue::default();
        for (serial, priority) in [0, 5, -1, 0, 5, 7, -3, -1].into_iter().enumerate() {
            let serial = serial as u64;
            queue.insert(priority, Entry { serial, id: CallId(serial) });
        }
        let from_the_end = std::iter::from_fn(|| {
            let last = queue.last();
            assert_eq!(last, queue.pop_last());
            last.map(|id| id.0)
        });
        assert_eq!(from_the_end.collect::<Vec<_>>(), [6, 7, 2, 3, 0, 4, 1, 5]);
    }

    #[test]
    fn places_can_be_compared_between_queues() {
        let first = |priority, serial| {
            let mut queue = Queue::default();
            queue.insert(priority, Entry { serial, id: CallId(serial) });
            queue.front_in_order().map(|(order, _)| order)
        };
        assert!(first(1, 9) < first(0, 2));
        assert!(first(0, 2) < first(0, 3));
        assert!(first(0, 3) < first(-1, 1));
    }

    #[test]
    fn what_comes_back_takes_the_place_that_it_had() {
        let mut queue = Queue::default();
        for serial in [3, 4, 7, 1, 5, 0] {
            queue.insert(0, Entry { serial, id: CallId(serial) });
        }
        queue.retain(|id| id.0 != 4);
        assert_eq!(drained(&mut queue), [0, 1, 3, 5, 7]);
    }
}
