//! Counters of the calls of dropped functions.

use std::collections::HashMap;

use gridrpc_core::CallCounters;

/// Maximum number of separate names. Bounds the memory of a program that keeps making new ones.
const MOST_NAMES: usize = 1000;
/// Name of all others together.
pub(crate) const OTHERS: &str = "(others)";

/// Counters by name.
#[derive(Debug, Default)]
pub(crate) struct PastCalls(HashMap<String, CallCounters>);

impl PastCalls {
    pub(crate) fn note(&mut self, name: String, counters: &CallCounters) {
        if *counters == CallCounters::default() {
            return;
        }
        let known = self.0.contains_key(&name) || self.0.len() < MOST_NAMES;
        let name = if known { name } else { OTHERS.to_owned() };
        self.0.entry(name).or_default().add(counters);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &CallCounters)> {
        self.0.iter()
    }
}
