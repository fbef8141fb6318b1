//! Choice of the server for a call, by predicted times and other policies. Pure.

#![forbid(unsafe_code)]

mod average;
mod choice;
mod knowledge;
mod measurements;
mod own_calls;
mod prediction;

pub use average::Average;
pub use choice::{Policy, choose, shares};
pub use knowledge::{ANSWER_STALE, ANSWER_VALID, AnnouncedLoad, Measured, candidates};
pub use measurements::{CallTimes, Measurements};
pub use own_calls::ClientCall;
pub use prediction::{ASSUMED_BANDWIDTH, Candidate, Prediction, Work};
