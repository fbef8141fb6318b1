//! Calls from the caller's view: request, outcome and waiting.

mod dependencies;
mod handle;
mod handler;
mod lost_workers;
mod outcome;
mod remote_result;
pub(crate) mod trace;
mod watch;

pub(crate) use handle::Extras;
pub use handle::{Call, Dependency, Hold, ResultArray};
pub use handler::{CallbackHandler, Callbacks};
pub use lost_workers::LostItems;
pub use lost_workers::{loss_from_the_wire, loss_on_the_wire};
pub(crate) use outcome::moved;
pub use outcome::{Outcome, Profile};
pub(crate) use remote_result::{
    RemotePart, RemoteResult, RemoteResultRequest, RemoteResultRequests, ResultLease,
};
pub(crate) use watch::NotifiedWatchers;
pub use watch::{Watch, Watcher};
