//! The limits of one user.

use std::fmt;

/// Default of `queued`: every queue has a bound.
const QUEUED: u64 = 10_000;
/// Default of `shared_bytes`: the data is on disk.
const SHARED: u64 = 1 << 30;

/// A limit of a number. Unlimited is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// At most this number.
    At(u64),
    /// Any number.
    Unlimited,
}

/// All limits of one user.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Calls that run at a time.
    pub calls: Limit,
    /// Calls that wait.
    pub queued: Limit,
    /// Bytes of arguments held at a time.
    pub bytes: Limit,
    /// Calls per second; infinity: unlimited.
    pub rate: f64,
    /// Workers in use at a time.
    pub workers: Limit,
    /// CPU seconds in 24 hours.
    pub cpu_seconds: Limit,
    /// Bytes of data that is shared by name.
    pub shared_bytes: Limit,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            calls: Limit::Unlimited,
            queued: Limit::At(QUEUED),
            bytes: Limit::Unlimited,
            rate: f64::INFINITY,
            workers: Limit::Unlimited,
            cpu_seconds: Limit::Unlimited,
            shared_bytes: Limit::At(SHARED),
        }
    }
}

impl Limit {
    /// Whether it allows this number.
    #[must_use]
    pub fn allows(self, number: u64) -> bool {
        match self {
            Limit::At(most) => number <= most,
            Limit::Unlimited => true,
        }
    }

    /// The number, if there is one.
    #[must_use]
    pub fn most(self) -> Option<u64> {
        match self {
            Limit::At(most) => Some(most),
            Limit::Unlimited => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::At(most) => most.fmt(f),
            Limit::Unlimited => f.write_str("unlimited"),
        }
    }
}
