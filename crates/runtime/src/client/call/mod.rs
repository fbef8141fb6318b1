//! One call as its caller sees it: what was sent, what came of it, and who waits for it.

mod handle;
mod handler;
mod keeper;
mod lost;
mod needed;
mod outcome;
pub(crate) mod trace;
mod watch;

pub use handle::{Call, Dependency, Hold};
pub use handler::{CallbackHandler, Callbacks};
pub(crate) use keeper::{Keeper, KeptPart, KeptRequest, KeptRequests, KeptResult};
pub use lost::LostItems;
pub(crate) use lost::{loss_from_the_wire, loss_on_the_wire};
pub(crate) use outcome::moved;
pub use outcome::{Outcome, Profile};
pub use watch::{Watch, Watcher};
