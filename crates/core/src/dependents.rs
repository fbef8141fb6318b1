//! Which calls wait for the results of which.

use std::collections::HashMap;

use crate::ids::CallId;

/// Which calls wait for which.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    pub(crate) table: HashMap<CallId, Vec<CallId>>,
}

/// Lists up to this length are not looked through for calls that have ended.
pub(crate) const SHORT: usize = 64;

impl Dependents {
    /// `call` waits for `dependency`. `live` says which calls have not ended.
    pub(crate) fn add(&mut self, dependency: CallId, call: CallId, live: impl Fn(CallId) -> bool) {
        let list = self.table.entry(dependency).or_default();
        // Ids of calls that were given up must not pile up behind one that takes long.
        if list.len() >= SHORT && list.len() == list.capacity() {
            list.retain(|call| live(*call));
        }
        list.push(call);
    }

    /// Whether some wait for this one.
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
