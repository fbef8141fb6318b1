//! Detached calls: they run and have results when their client is gone, and survive a restart of the server.

mod calls;
mod record;
mod requests;
mod store;

pub(crate) use calls::DetachedCalls;
