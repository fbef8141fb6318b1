//! CPU time of the last 24 hours, by the hour.

use std::collections::VecDeque;
use std::time::Duration;

const HOUR: u64 = 60 * 60;
/// An hour counts until it is over for a day, so that no 24 hours exceed the limit.
const HOURS: u64 = 25;

/// CPU time of the last 24 hours.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuWindow {
    /// Hours with their CPU time, oldest first.
    hours: VecDeque<(u64, Duration)>,
}

impl CpuWindow {
    /// Adds the CPU time of a call that has ended.
    pub(super) fn add(&mut self, cpu: Duration, now: Duration) {
        self.expire(now);
        let hour = now.as_secs() / HOUR;
        match self.hours.back_mut() {
            Some((last, used)) if *last >= hour => *used = used.saturating_add(cpu),
            _ => self.hours.push_back((hour, cpu)),
        }
    }

    /// Adds the use in an hour before a restart.
    pub(super) fn restore(&mut self, hour: u64, cpu: Duration) {
        let at = self.hours.partition_point(|(other, _)| *other < hour);
        match self.hours.get_mut(at) {
            Some((there, used)) if *there == hour => *used = used.saturating_add(cpu),
            _ => self.hours.insert(at, (hour, cpu)),
        }
    }

    /// Hours with their CPU time, oldest first.
    pub(super) fn hours(&self) -> impl Iterator<Item = (u64, Duration)> {
        self.hours.iter().copied()
    }

    /// Drops hours that no longer count.
    pub(super) fn expire(&mut self, now: Duration) {
        let hour = now.as_secs() / HOUR;
        while self.hours.front().is_some_and(|(at, _)| at + HOURS <= hour) {
            self.hours.pop_front();
        }
    }

    /// CPU time that counts.
    pub(super) fn used(&self) -> Duration {
        self.hours.iter().fold(Duration::ZERO, |sum, (_, used)| sum.saturating_add(*used))
    }

    /// Time until less than this is used; none: never.
    pub(super) fn wait(&self, allowed: Duration, now: Duration) -> Option<Duration> {
        let mut used = self.used();
        for (hour, cpu) in &self.hours {
            used = used.saturating_sub(*cpu);
            if used < allowed {
                let until = Duration::from_secs((hour + HOURS) * HOUR);
                return Some(until.saturating_sub(now));
            }
        }
        None
    }

    /// Whether nothing counts.
    pub(super) fn is_empty(&self) -> bool {
        self.hours.is_empty()
    }
}
