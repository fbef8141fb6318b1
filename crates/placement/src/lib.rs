//! Choice of the server for a call, by predicted times and other policies. Pure.

#![forbid(unsafe_code)]

mod average;
mod choice;
mod knowledge;
mod own_calls;
mod prediction;

pub use average::Average;
pub use choice::{Policy, choose};
pub use knowledge::{ANSWER_STALE, ANSWER_VALID, Announced, Measured, candidates};
pub use own_calls::{OwnCall, OwnCalls};
pub use prediction::{ASSUMED_BANDWIDTH, Candidate, Prediction, Work};
