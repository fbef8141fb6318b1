//! Results that stay on this host for calls that follow them here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_link::payload::Incoming;

/// Results by the client's call.
#[derive(Debug, Default)]
struct HeldState {
    results: HashMap<u64, Vec<Incoming>>,
    /// Calls that have not fully arrived and whose results are to be kept.
    expected: HashSet<u64>,
}

/// Kept results, and calls whose results will be kept.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldResults(Arc<Mutex<HeldState>>);

impl HeldResults {
    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks an arriving call so that its result is kept.
    pub(super) fn expect(&self, call: u64) {
        self.lock().expected.insert(call);
    }

    /// Whether the result of an arrived call is to be kept; clears the mark.
    pub(super) fn take_expected(&self, call: u64) -> bool {
        self.lock().expected.remove(&call)
    }

    pub(super) fn add(&self, call: u64, sections: Vec<Incoming>) {
        self.lock().results.insert(call, sections);
    }

    /// The result of a call.
    pub(super) fn get(&self, call: u64) -> Option<Vec<Incoming>> {
        self.lock().results.get(&call).cloned()
    }

    /// One section of a result.
    pub(super) fn section(&self, call: u64, section: u16) -> Option<Incoming> {
        self.lock().results.get(&call)?.get(usize::from(section)).cloned()
    }

    pub(super) fn drop_result(&self, call: u64) {
        let mut state = self.lock();
        state.expected.remove(&call);
        let dropped = state.results.remove(&call);
        drop(state);
        drop(dropped);
    }
}
