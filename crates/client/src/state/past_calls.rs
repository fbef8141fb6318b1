//! What became of the calls of functions that nobody holds any more.

use std::collections::HashMap;

use gridrpc_core::CallCounters;

/// Names that are kept apart. A program that makes up new ones again and again gets no further.
const MOST_NAMES: usize = 1000;
/// What all others are called together.
pub(crate) const OTHERS: &str = "(others)";

/// By name.
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
