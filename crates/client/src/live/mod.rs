//! What a running grid tells of itself to other programs of its user, such as `gridrpc top`.
//!
//! Each grid listens at a socket whose name is in no file system ([`place`]). Whoever connects is sent one
//! document, [`Stats`] as JSON, and the connection ends. So a grid at which nobody looks has one more
//! descriptor and nothing else to do, and nothing of it is left behind when its process is killed.

mod offer;
pub mod place;
mod snapshot;
mod stats;

pub(crate) use offer::Offer;
pub use snapshot::name_program;
pub(crate) use snapshot::{About, snapshot};
pub use stats::{CallCounts, FunctionStats, HostStats, Stats};
