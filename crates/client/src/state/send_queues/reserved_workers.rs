//! Reserved workers that live on hosts.

use std::collections::HashMap;

use gridrpc_core::WorkerId;

/// What hosts call their reserved workers.
///
/// A place is reserved again as soon as its last owner knows of its loss, and the host may still have something to
/// say of that one. So each reservation has a number of its own, which is not used again.
#[derive(Debug, Default)]
pub(super) struct ReservedWorkers {
    last: u32,
    places: HashMap<u32, WorkerId>,
    numbers: HashMap<WorkerId, u32>,
}

impl ReservedWorkers {
    /// A number for whoever has this place from now on.
    pub(super) fn reserve(&mut self, place: WorkerId) -> u32 {
        self.last = (self.last + 1) % u32::MAX;
        self.leave(place);
        self.places.insert(self.last, place);
        self.numbers.insert(place, self.last);
        self.last
    }

    /// The number of the one that has this place.
    pub(super) fn number(&self, place: WorkerId) -> Option<u32> {
        self.numbers.get(&place).copied()
    }

    /// The place of the one with this number; none: it is gone.
    pub(super) fn place(&self, number: u32) -> Option<WorkerId> {
        self.places.get(&number).copied()
    }

    /// The one that has this place is gone.
    pub(super) fn leave(&mut self, place: WorkerId) {
        if let Some(number) = self.numbers.remove(&place) {
            self.places.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_one_that_is_gone_is_not_about_the_next() {
        let mut guests = ReservedWorkers::default();
        let first = guests.reserve(WorkerId(4));
        assert_eq!(guests.place(first), Some(WorkerId(4)));
        guests.leave(WorkerId(4));
        assert_eq!(guests.number(WorkerId(4)), None);
        let next = guests.reserve(WorkerId(4));
        assert_eq!((guests.place(first), guests.place(next)), (None, Some(WorkerId(4))));
        let third = guests.reserve(WorkerId(4));
        assert_eq!((guests.place(next), guests.number(WorkerId(4))), (None, Some(third)));
    }
}
