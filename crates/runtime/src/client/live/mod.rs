//! What a grid tells of itself, and the socket where it does.

mod offer;
mod snapshot;

pub(crate) use offer::Offer;
pub use snapshot::name_program;
pub(crate) use snapshot::{About, snapshot};
