//! Tables of values by handle: a handle is an index and a generation.
//!
//! A handle is a few numbers in the caller's memory. It may never have been initialized, or refer to a
//! removed value. Each use of a place therefore gets a new generation, and the numbers of a handle include a
//! checksum.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::c_types::Handle;

/// Generations are never reused, not even after the library has been finalized.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
struct Inner<T> {
    /// Each with its generation.
    places: Vec<Option<(u64, Arc<T>)>>,
    free: Vec<usize>,
}

/// Kind of a handle: its first number.
#[derive(Clone, Copy, Debug)]
pub enum HandleKind {
    /// A function handle.
    Function = 1,
    /// An object handle.
    Object = 2,
    /// Attributes of handles.
    HandleAttributes = 3,
    /// Attributes of a session.
    SessionAttributes = 4,
}

/// Values of one kind, by their handles.
#[derive(Debug)]
pub struct Slots<T> {
    kind: u64,
    inner: RwLock<Inner<T>>,
}

impl<T> Slots<T> {
    /// An empty table.
    pub fn new(kind: HandleKind) -> Slots<T> {
        Slots {
            kind: kind as u64,
            inner: RwLock::new(Inner { places: Vec::new(), free: Vec::new() }),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner<T>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner<T>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, index: usize, generation: u64) -> Handle {
        let check = check(self.kind, index as u64, generation);
        Handle([self.kind, index as u64, generation, check])
    }

    /// Adds a value.
    pub fn insert(&self, value: Arc<T>) -> Handle {
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.write();
        let index = inner.free.pop().unwrap_or_else(|| {
            inner.places.push(None);
            inner.places.len() - 1
        });
        inner.places[index] = Some((generation, value));
        self.handle(index, generation)
    }

    /// The value of a handle.
    pub fn get(&self, handle: &Handle) -> Option<Arc<T>> {
        let index = self.index(handle)?;
        match self.read().places.get(index)? {
            Some((generation, value)) if *generation == handle.0[2] => Some(Arc::clone(value)),
            _ => None,
        }
    }

    /// Removes the value of a handle.
    pub fn remove(&self, handle: &Handle) -> Option<Arc<T>> {
        let index = self.index(handle)?;
        let mut inner = self.write();
        let place = inner.places.get_mut(index)?;
        if place.as_ref().is_none_or(|(generation, _)| *generation != handle.0[2]) {
            return None;
        }
        let (_, value) = place.take()?;
        inner.free.push(index);
        Some(value)
    }

    fn index(&self, handle: &Handle) -> Option<usize> {
        let Handle([kind, index, generation, sum]) = *handle;
        let fits = kind == self.kind && sum == check(kind, index, generation);
        usize::try_from(index).ok().filter(|_| fits)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        let inner = self.read();
        inner.places.len() - inner.free.len()
    }

    /// All values.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.read().places.iter().flatten().map(|(_, value)| Arc::clone(value)).collect()
    }
}

/// Checksum of a handle's numbers; garbage hardly ever matches.
fn check(kind: u64, index: u64, generation: u64) -> u64 {
    let mixed = kind.rotate_left(17) ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ generation;
    mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_stand_for_what_was_taken_in() {
        let slots = Slots::new(HandleKind::Function);
        let (a, b) = (slots.insert(Arc::new('a')), slots.insert(Arc::new('b')));
        assert_eq!((*slots.get(&a).unwrap(), *slots.get(&b).unwrap()), ('a', 'b'));
        assert_eq!(*slots.remove(&a).unwrap(), 'a');
        assert!(slots.get(&a).is_none() && slots.remove(&a).is_none());
        let c = slots.insert(Arc::new('c'));
        assert_eq!(c.0[1], a.0[1], "the place is used again");
        assert!(slots.get(&a).is_none());
        assert_eq!((slots.len(), slots.all().len()), (2, 2));
    }

    #[test]
    fn what_is_no_handle_is_found_out() {
        let slots = Slots::new(HandleKind::Function);
        let good = slots.insert(Arc::new(()));
        assert!(Slots::<()>::new(HandleKind::Function).get(&good).is_none());
        assert!(Slots::<()>::new(HandleKind::Object).get(&good).is_none());
        for place in 0..4 {
            let mut bad = good;
            bad.0[place] ^= 1 << 40;
            assert!(slots.get(&bad).is_none());
        }
        for bad in [Handle::default(), Handle([u64::MAX; 4])] {
            assert!(slots.get(&bad).is_none());
        }
    }
}
