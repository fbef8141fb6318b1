//! Reserved workers on hosts.

use std::collections::HashMap;

use gridrpc_core::WorkerId;

/// Numbers of reserved workers in messages to hosts.
///
/// A place is reserved again as soon as its last owner knows of its loss, and the host may still report events of
/// that owner. So each reservation has its own number, which is not reused.
#[derive(Debug, Default)]
pub(super) struct ReservedWorkers {
    last: u32,
    places: HashMap<u32, WorkerId>,
    numbers: HashMap<WorkerId, u32>,
}

impl ReservedWorkers {
    /// Assigns a number to the new holder of this place.
    pub(super) fn reserve(&mut self, place: WorkerId) -> u32 {
        self.last = (self.last + 1) % u32::MAX;
        self.leave(place);
        self.places.insert(self.last, place);
        self.numbers.insert(place, self.last);
        self.last
    }

    /// The number of the current holder of this place.
    pub(super) fn number(&self, place: WorkerId) -> Option<u32> {
        self.numbers.get(&place).copied()
    }

    /// The place of the holder with this number; `None`: it is gone.
    pub(super) fn place(&self, number: u32) -> Option<WorkerId> {
        self.places.get(&number).copied()
    }

    /// Removes the holder of this place.
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
