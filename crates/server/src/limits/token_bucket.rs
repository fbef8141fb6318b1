//! Token bucket: a rate with a burst of one second.

use std::time::Duration;

/// Longest wait that is computed.
const LONGEST: f64 = 1e9;

/// A bucket of tokens that refills with time.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    tokens: f64,
    /// Time of the last refill.
    filled: Duration,
}

/// The size of a bucket: a rate below one call per second allows one call at once.
fn capacity(rate: f64) -> f64 {
    rate.max(1.0)
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn full(rate: f64, now: Duration) -> TokenBucket {
        TokenBucket { tokens: capacity(rate), filled: now }
    }

    /// Adds the tokens since the last time. The rate may have changed meanwhile.
    pub(super) fn refill(&mut self, rate: f64, now: Duration) {
        let since = now.saturating_sub(self.filled).as_secs_f64();
        self.tokens = (self.tokens + rate * since).min(capacity(rate));
        self.filled = self.filled.max(now);
    }

    /// Time until there is a token; none: there is one.
    pub(super) fn wait(&self, rate: f64) -> Option<Duration> {
        // What was refilled in many small steps may lack a rounding error.
        const ERROR: f64 = 1e-9;
        let lacking = 1.0 - ERROR - self.tokens;
        (lacking > 0.0)
            .then(|| Duration::from_secs_f64(((1.0 - self.tokens) / rate).clamp(0.0, LONGEST)))
    }

    /// Takes a token, of those that `wait` has seen.
    pub(super) fn take(&mut self) {
        self.tokens = (self.tokens - 1.0).max(0.0);
    }

    /// Whether it is full.
    pub(super) fn is_full(&self, rate: f64) -> bool {
        self.tokens >= capacity(rate)
    }

    #[cfg(test)]
    pub(super) fn tokens(&self) -> f64 {
        self.tokens
    }
}
