//! Shared data with names, which the server keeps for later calls and other users.

mod record;
mod requests;
mod store;

pub(crate) use store::NamedStore;
