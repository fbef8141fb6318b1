//! Choice of the server for a call, by predicted times and other policies. Pure.

#![forbid(unsafe_code)]

mod average;
mod choice;
mod knowledge;
mod prediction;

pub use average::Average;
pub use choice::{Policy, choose};
pub use knowledge::{ANSWER_STALE, ANSWER_VALID, Announced, Measured, OwnCalls, candidates};
pub use prediction::{ASSUMED_BANDWIDTH, Candidate, Prediction, Work};
