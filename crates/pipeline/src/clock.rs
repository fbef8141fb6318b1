//! Simulated time: what happens next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that waits for its time, or for work to be done; of equal ones the first put down is
/// the first.
pub struct Waiting<T> {
    at: f64,
    number: u64,
    pub what: T,
}

impl<T> Waiting<T> {
    /// Its time.
    pub fn at(&self) -> f64 {
        self.at
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap has its largest on top.
        let times = other.at.partial_cmp(&self.at).unwrap_or(Ordering::Equal);
        times.then_with(|| other.number.cmp(&self.number))
    }
}

/// A queue by time, and then by when things were put down.
pub struct Queue<T> {
    waiting: BinaryHeap<Waiting<T>>,
    number: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { waiting: BinaryHeap::new(), number: 0 }
    }
}

impl<T> Queue<T> {
    /// Puts down something.
    pub fn push(&mut self, at: f64, what: T) {
        self.number += 1;
        self.waiting.push(Waiting { at, number: self.number, what });
    }

    /// The first, taken out.
    pub fn pop(&mut self) -> Option<Waiting<T>> {
        self.waiting.pop()
    }

    /// The time of the first.
    pub fn first(&self) -> Option<f64> {
        self.waiting.peek().map(Waiting::at)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
