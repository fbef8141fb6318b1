//! A call as it is handed over, and why it may not be taken.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{BlobId, Reservation, ServerId};
use thiserror::Error;

use crate::client::callbacks::Callbacks;
use crate::client::error::GridError;
use crate::client::function::FunctionRef;
use crate::client::gather::Dependency;
use crate::loan::Sink;
use crate::payload::Payload;

/// A call to be submitted.
#[derive(Debug)]
pub struct Request {
    /// What to run.
    pub function: Arc<FunctionRef>,
    /// Its arguments, from [`Grid::payload`](crate::client::Grid::payload).
    pub payload: Payload,
    /// The shared data that they refer to.
    pub blobs: Vec<BlobId>,
    /// After which time the call fails.
    pub deadline: Option<Duration>,
    /// Whether it may be run again when its worker is lost.
    pub idempotent: bool,
    /// Of the calls that wait for a worker, those with a higher priority go first.
    pub priority: i32,
    /// The server that has to run it, from [`Grid::server`](crate::client::Grid::server); none: whoever has room.
    pub server: Option<ServerId>,
    /// The reserved worker that has to run it.
    pub on: Option<Reservation>,
    /// What its function may call back.
    pub callbacks: Option<Callbacks>,
    /// Where streamed sections of its result are to lie, by number.
    pub sinks: Vec<(u16, Arc<Sink>)>,
    /// Calls whose results it needs, in the order in which its pickle counts them.
    pub after: Vec<Dependency>,
}

/// Why a call was not taken.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// Too many calls, or bytes of their data, wait for workers. The request comes back.
    #[error("too many calls wait for workers")]
    Full(Box<Request>),
    /// It cannot be taken at all.
    #[error(transparent)]
    Failed(#[from] GridError),
}
