//! Hosts with workers of this grid: what their agents are told, and what they say.

mod applied;
mod clock;
mod conversation;
pub(crate) mod doors;
mod fetching;
mod inbound;
mod launching;
mod losses;
mod peers;
mod remedies;
mod results;
mod starts;
mod wishes;

pub(crate) use conversation::told;
pub(super) use launching::expected;
pub(super) use peers::Hosts;
pub(super) use wishes::Wishes;
