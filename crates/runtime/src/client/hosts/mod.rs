//! Hosts with workers of this grid: what their agents are told, and what they say.

pub(crate) mod applied;
pub(crate) mod clock;
pub(crate) mod conversation;
pub(crate) mod doors;
pub(crate) mod fetching;
pub(crate) mod launching;
pub(crate) mod peers;
pub(crate) mod remedies;
mod results;
pub(crate) mod states;
pub(crate) mod wishes;
