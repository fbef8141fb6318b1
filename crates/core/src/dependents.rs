//! Calls that wait for the results of other calls.

use std::collections::HashMap;

use crate::ids::CallId;

/// Waiting calls by the call that they wait for.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    pub(crate) table: HashMap<CallId, Vec<CallId>>,
}

/// Lists up to this length are not searched for ended calls.
pub(crate) const SHORT: usize = 64;

impl Dependents {
    /// Makes `call` wait for `dependency`. `live` reports which calls have not ended.
    pub(crate) fn add(&mut self, dependency: CallId, call: CallId, live: impl Fn(CallId) -> bool) {
        let list = self.table.entry(dependency).or_default();
        // Bounds the number of cancelled ids behind a long call.
        if list.len() >= SHORT && list.len() == list.capacity() {
            list.retain(|call| live(*call));
        }
        list.push(call);
    }

    /// Whether any call waits for this one.
    pub(crate) fn has(&self, dependency: CallId) -> bool {
        !self.table.is_empty() && self.table.contains_key(&dependency)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.table.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CallId, &[CallId])> {
        self.table.iter().map(|(dependency, calls)| (*dependency, calls.as_slice()))
    }
}
