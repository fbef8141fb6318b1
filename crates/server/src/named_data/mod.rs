//! Shared data with names, which the server keeps for later calls and other users.

pub(crate) mod record;
pub(crate) mod store;

pub(crate) use store::NamedStore;
