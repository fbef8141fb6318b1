//! Live statistics that a running grid offers to other programs of its user, such as `gridrpc top`.
//!
//! Each grid listens on a socket whose name is in no file system ([`place`]). It sends each connection one document,
//! [`Stats`] as JSON, and closes it. An unobserved grid has one more descriptor and no other cost, and nothing
//! remains when its process is killed.

mod offer;
pub mod place;
mod snapshot;
mod stats;

pub(crate) use offer::StatsSocket;
pub use snapshot::name_program;
pub(crate) use snapshot::{About, snapshot};
pub use stats::{CallCounts, FunctionStats, HostStats, Stats};
