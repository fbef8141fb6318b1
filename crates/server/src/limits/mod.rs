//! Limits of users: calls, queue, bytes, rate, workers, CPU time. Pure: time is a parameter.

mod cpu_window;
mod limit;
mod limit_reached;
mod limiter;
#[cfg(test)]
mod tests;
mod token_bucket;

pub use limit::{Limit, Limits};
pub(crate) use limit_reached::rounded;
pub use limit_reached::{LimitReached, QueueState};
pub use limiter::{CallToken, CpuUsage, Limiter};
