//! Choice of the server for a call, by predicted times and other policies. Pure.

#![forbid(unsafe_code)]

mod average;
mod choice;
mod prediction;

pub use average::Average;
pub use choice::{Policy, choose};
pub use prediction::{ASSUMED_BANDWIDTH, Candidate, Prediction, Work};
