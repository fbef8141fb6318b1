//! Counts the calls of users and admits those within the limits.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cpu_window::CpuWindow;
use super::limit::{Limit, Limits};
use super::limit_reached::{LimitReached, QueueState};
use super::token_bucket::TokenBucket;

/// Weight of the last interval in the mean interval between ends of calls.
const LAST_WEIGHT: f64 = 0.2;

/// Number of a call that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallToken(u64);

/// Counts the calls of all users.
///
/// A call begins with [`try_begin`](Limiter::try_begin), waits, gets workers with [`try_start`](Limiter::try_start)
/// and ends with [`end`](Limiter::end), started or not. `now` is the time since any fixed moment, which outlives
/// restarts if CPU time does ([`restore`](Limiter::restore)).
#[derive(Debug, Default)]
pub struct Limiter {
    users: HashMap<String, Usage>,
    calls: HashMap<CallToken, Admitted>,
    next: u64,
}

/// CPU time that a user has used in one hour, to be stored across a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUsage {
    /// The user.
    pub user: String,
    /// The hour of `now`.
    pub hour: u64,
    /// The CPU time.
    pub cpu: Duration,
}

/// What a user uses.
#[derive(Debug)]
struct Usage {
    queue: QueueState,
    bucket: TokenBucket,
    /// Rate of the last refill.
    rate: f64,
    cpu: CpuWindow,
    /// Time of the last end of a call.
    ended: Option<Duration>,
    /// Mean time between ends of calls, seconds.
    interval: Option<f64>,
}

#[derive(Debug)]
struct Admitted {
    user: String,
    bytes: u64,
    /// None: it waits.
    workers: Option<u64>,
    /// Whether it is a worker that is reserved for an object, and no call.
    is_reservation: bool,
}

impl Usage {
    fn new(rate: f64, now: Duration) -> Usage {
        Usage {
            queue: QueueState::default(),
            bucket: TokenBucket::full(rate, now),
            rate,
            cpu: CpuWindow::default(),
            ended: None,
            interval: None,
        }
    }

    fn refresh(&mut self, rate: f64, now: Duration) {
        self.rate = rate;
        if rate.is_finite() {
            self.bucket.refill(rate, now);
        } else {
            self.bucket = TokenBucket::full(rate, now);
        }
        self.cpu.expire(now);
    }

    /// When a call will probably end, by the mean interval.
    fn next_end(&self) -> Option<Duration> {
        let interval = self.interval.filter(|_| self.queue.running > 0)?;
        Duration::try_from_secs_f64(interval).ok()
    }

    fn reached(
        &self,
        user: &str,
        limit: &'static str,
        value: u64,
        allowed: Limit,
        retry_after: Option<Duration>,
    ) -> LimitReached {
        LimitReached {
            user: user.to_owned(),
            limit,
            value: value as f64,
            allowed: allowed.most().map_or(f64::INFINITY, |most| most as f64),
            queue: self.queue,
            retry_after,
        }
    }

    /// Checks all limits of one more call. Counts nothing.
    fn check(
        &self,
        user: &str,
        limits: &Limits,
        bytes: u64,
        now: Duration,
    ) -> Result<(), LimitReached> {
        let held = self.queue.bytes.saturating_add(bytes);
        // The largest number stands for a sum that is too large to count.
        if !limits.bytes.allows(held) || held == u64::MAX {
            let error = self.reached(user, "bytes", held, limits.bytes, None);
            let retry_after = self.next_end().filter(|_| !error.is_hopeless());
            return Err(LimitReached { retry_after, ..error });
        }
        if let Limit::At(allowed) = limits.cpu_seconds {
            let (used, allowed) = (self.cpu.used(), Duration::from_secs(allowed));
            if used >= allowed {
                let wait = self.cpu.wait(allowed, now);
                let error = self.reached(user, KEY_OF_CPU, 0, limits.cpu_seconds, wait);
                return Err(LimitReached { value: used.as_secs_f64(), ..error });
            }
        }
        // A call that can run at once waits a moment as well.
        let free = limits.calls.most().map_or(1, |calls| calls.saturating_sub(self.queue.running));
        let waiting = (self.queue.waiting + 1).saturating_sub(free);
        if !limits.queued.allows(waiting) {
            return Err(self.reached(user, "queued", waiting, limits.queued, self.next_end()));
        }
        if let Some(wait) = self.bucket.wait(limits.rate).filter(|_| limits.rate.is_finite()) {
            let error = self.reached(user, "rate", 0, Limit::Unlimited, Some(wait));
            return Err(LimitReached { value: limits.rate, allowed: limits.rate, ..error });
        }
        Ok(())
    }
}

const KEY_OF_CPU: &str = "cpu_seconds_per_day";

impl Limiter {
    /// Admits a call of a user with arguments of this size to the queue.
    ///
    /// # Errors
    /// The first limit that it exceeds. Nothing is counted then.
    pub fn try_begin(
        &mut self,
        user: &str,
        limits: &Limits,
        bytes: u64,
        now: Duration,
    ) -> Result<CallToken, LimitReached> {
        let usage =
            self.users.entry(user.to_owned()).or_insert_with(|| Usage::new(limits.rate, now));
        usage.refresh(limits.rate, now);
        usage.check(user, limits, bytes, now)?;
        if limits.rate.is_finite() {
            usage.bucket.take();
        }
        usage.queue.waiting += 1;
        usage.queue.bytes += bytes;
        let token = CallToken(self.next);
        self.next += 1;
        self.calls.insert(
            token,
            Admitted { user: user.to_owned(), bytes, workers: None, is_reservation: false },
        );
        Ok(token)
    }

    /// Reserves a worker for an object, until [`end`](Limiter::end). It is no call: calls of the object's methods run
    /// there, and take no worker besides.
    ///
    /// # Errors
    /// When the user may use no more workers.
    pub fn try_reserve(
        &mut self,
        user: &str,
        limits: &Limits,
        now: Duration,
    ) -> Result<CallToken, LimitReached> {
        let usage =
            self.users.entry(user.to_owned()).or_insert_with(|| Usage::new(limits.rate, now));
        usage.refresh(limits.rate, now);
        let used = usage.queue.workers + 1;
        if !limits.workers.allows(used) {
            return Err(usage.reached(user, "workers", used, limits.workers, None));
        }
        usage.queue.workers = used;
        let token = CallToken(self.next);
        self.next += 1;
        let (user, workers) = (user.to_owned(), Some(1));
        self.calls.insert(token, Admitted { user, bytes: 0, workers, is_reservation: true });
        Ok(token)
    }

    /// Moves a waiting call from the queue to so many workers. Without effect for a call that runs or has ended.
    ///
    /// # Errors
    /// The first limit that it exceeds: the call then waits on.
    pub fn try_start(
        &mut self,
        token: CallToken,
        limits: &Limits,
        workers: u64,
    ) -> Result<(), LimitReached> {
        let Some(call) = self.calls.get_mut(&token).filter(|call| call.workers.is_none()) else {
            return Ok(());
        };
        let Some(usage) = self.users.get_mut(&call.user) else { return Ok(()) };
        let running = usage.queue.running + 1;
        if !limits.calls.allows(running) {
            let next = usage.next_end();
            return Err(usage.reached(&call.user, "calls", running, limits.calls, next));
        }
        let used = usage.queue.workers.saturating_add(workers);
        if !limits.workers.allows(used) || used == u64::MAX {
            let error = usage.reached(&call.user, "workers", used, limits.workers, None);
            let retry_after = usage.next_end().filter(|_| !error.is_hopeless());
            return Err(LimitReached { retry_after, ..error });
        }
        call.workers = Some(workers);
        usage.queue.waiting -= 1;
        usage.queue.running = running;
        usage.queue.workers = used;
        Ok(())
    }

    /// Ends a call that has used this CPU time. Returns whether it had not ended before.
    pub fn end(&mut self, token: CallToken, cpu: Duration, now: Duration) -> bool {
        let Some(call) = self.calls.remove(&token) else { return false };
        let Some(usage) = self.users.get_mut(&call.user) else { return false };
        usage.queue.bytes -= call.bytes;
        match call.workers {
            Some(workers) if call.is_reservation => usage.queue.workers -= workers,
            Some(workers) => {
                usage.queue.running -= 1;
                usage.queue.workers -= workers;
                if let Some(before) = usage.ended.replace(now) {
                    let last = now.saturating_sub(before).as_secs_f64();
                    let mean = usage.interval.unwrap_or(last);
                    usage.interval = Some(mean + LAST_WEIGHT * (last - mean));
                }
            }
            None => usage.queue.waiting -= 1,
        }
        if !cpu.is_zero() {
            usage.cpu.add(cpu, now);
        }
        true
    }

    /// The calls of a user.
    #[must_use]
    pub fn queue(&self, user: &str) -> QueueState {
        self.users.get(user).map(|usage| usage.queue).unwrap_or_default()
    }

    /// CPU time of a user that counts for the limit of 24 hours.
    #[must_use]
    pub fn cpu_time(&self, user: &str) -> Duration {
        self.users.get(user).map(|usage| usage.cpu.used()).unwrap_or_default()
    }

    /// CPU time that counts, of all users, by the hour.
    #[must_use]
    pub fn cpu_usage(&self) -> Vec<CpuUsage> {
        let hours = self.users.iter().flat_map(|(user, usage)| {
            usage.cpu.hours().map(|(hour, cpu)| CpuUsage { user: user.clone(), hour, cpu })
        });
        hours.collect()
    }

    /// Counts CPU time from before a restart.
    pub fn restore(&mut self, used: Vec<CpuUsage>) {
        for CpuUsage { user, hour, cpu } in used {
            // The first call sets the rate.
            let new = || Usage::new(f64::INFINITY, Duration::ZERO);
            self.users.entry(user).or_insert_with(new).cpu.restore(hour, cpu);
        }
    }

    /// Forgets users without calls and without usage that still counts.
    pub fn forget_idle(&mut self, now: Duration) {
        self.users.retain(|_, usage| {
            usage.refresh(usage.rate, now);
            let is_idle = usage.queue == QueueState::default() && usage.cpu.is_empty();
            !is_idle || !usage.bucket.is_full(usage.rate)
        });
    }

    #[cfg(test)]
    pub(super) fn tokens_of(&self, user: &str) -> Option<f64> {
        self.users.get(user).map(|usage| usage.bucket.tokens())
    }

    #[cfg(test)]
    pub(super) fn known_users(&self) -> usize {
        self.users.len()
    }
}
