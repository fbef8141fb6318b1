//! Counts of calls by function and by user, since the server started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// Most functions and users that are counted by name.
const MOST: usize = 10_000;

/// Ended calls of a function or user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallCount {
    /// Calls that returned.
    pub returned: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Their run time, s.
    pub seconds: f64,
    /// Bytes of their arguments.
    pub bytes_in: u64,
    /// Bytes of their results.
    pub bytes_out: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedCall {
    pub(crate) is_returned: bool,
    pub(crate) ran: Duration,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

#[derive(Debug, Default)]
struct Counts {
    functions: BTreeMap<String, CallCount>,
    users: BTreeMap<String, CallCount>,
}

/// Counts of ended calls.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    counts: Mutex<Counts>,
    refused: AtomicU64,
}

impl Statistics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call.
    pub(crate) fn ended(&self, function: &str, user: &str, call: EndedCall) {
        let mut counts = self.lock();
        let Counts { functions, users } = &mut *counts;
        for (all, name) in [(functions, function), (users, user)] {
            if !all.contains_key(name) {
                if all.len() >= MOST {
                    continue;
                }
                all.insert(name.to_owned(), CallCount::default());
            }
            if let Some(count) = all.get_mut(name) {
                *(if call.is_returned { &mut count.returned } else { &mut count.failed }) += 1;
                count.seconds += call.ran.as_secs_f64();
                count.bytes_in += call.bytes_in;
                count.bytes_out += call.bytes_out;
            }
        }
    }

    /// Counts a connection or request that was not admitted.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections and requests that were not admitted.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The counts by function and by user.
    pub(crate) fn counts(&self) -> (BTreeMap<String, CallCount>, BTreeMap<String, CallCount>) {
        let counts = self.lock();
        (counts.functions.clone(), counts.users.clone())
    }
}
