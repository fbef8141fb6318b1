//! The error for a call that exceeds a limit.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// The calls of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Calls that run.
    pub running: u64,
    /// Calls that wait.
    pub waiting: u64,
    /// Bytes of their arguments.
    pub bytes: u64,
    /// Workers in use.
    pub workers: u64,
}

/// A call exceeds a limit of its user.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("the limit `{limit}` of user {user:?} is reached: {} ({queue}); {}", self.amount(), self.remedy())]
pub struct LimitReached {
    /// The user.
    pub user: String,
    /// The limit, by its key in server.toml.
    pub limit: &'static str,
    /// The value that exceeds the limit, or has reached it.
    pub value: f64,
    /// The limit.
    pub allowed: f64,
    /// The calls of the user.
    pub queue: QueueState,
    /// When to try again; none: unknown, or trying again does not help.
    pub retry_after: Option<Duration>,
}

impl LimitReached {
    fn amount(&self) -> String {
        let (value, allowed) = (self.value, self.allowed);
        match self.limit {
            "calls" => format!("{value} calls would run at a time, and {allowed} may"),
            "queued" => format!("{value} calls would wait, and {allowed} may"),
            "bytes" => format!("the arguments would have {value} bytes, and {allowed} may be held"),
            "rate" => format!("{allowed} calls per second are allowed"),
            "workers" => format!("{value} workers would be in use, and {allowed} may be"),
            _ => format!("{value:.0} CPU seconds were used in 24 hours, and {allowed} are allowed"),
        }
    }

    fn remedy(&self) -> String {
        match self.retry_after {
            Some(time) => format!("try again in {}", rounded(time)),
            None if self.is_hopeless() => {
                "this call alone exceeds it: ask the server's owner for a higher limit".into()
            }
            None => "try again when calls have ended".into(),
        }
    }

    /// Whether the call exceeds the limit even without any other call.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        let others = match self.limit {
            "bytes" => self.queue.bytes,
            "workers" => self.queue.workers,
            "cpu_seconds_per_day" => return self.allowed <= 0.0,
            _ => return false,
        };
        self.value - others as f64 > self.allowed
    }
}

/// A time rounded up to what a person waits for.
pub(crate) fn rounded(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..1.0 => format!("{} ms", (seconds * 1e3).ceil().max(1.0)),
        ..120.0 => format!("{} s", seconds.ceil()),
        ..7200.0 => format!("{} min", (seconds / 60.0).ceil()),
        _ => format!("{} h", (seconds / 3600.0).ceil()),
    }
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueueState { running, waiting, bytes, workers } = self;
        write!(f, "now: {running} running, {waiting} waiting, {bytes} bytes, {workers} workers")
    }
}
