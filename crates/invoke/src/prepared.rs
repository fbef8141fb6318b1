//! A call with checked arguments, and its request.

use std::sync::Arc;

use gridrpc_client::{Callbacks, Dependency, Request};
use gridrpc_core::{BlobId, CallOptions};
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::Payload;
use gridrpc_typed::Scalars;

use crate::results::Landing;
use crate::target::Target;

/// Whether the caller's memory may be used after the request has been built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    /// Until the [`Landing`] is used or dropped.
    UntilLanded,
    /// Not for arguments, which are copied. Results are written there when they land.
    Copied,
    /// Until the arguments have been detached, and for results when they land.
    Detached,
}

/// A prepared call.
#[derive(Debug)]
pub struct Prepared {
    /// Payload to send.
    pub payload: Payload,
    /// Shared data that it refers to.
    pub blobs: Vec<BlobId>,
    /// Calls whose results become its last sections.
    pub after: Vec<Dependency>,
    /// Destinations of streamed results.
    pub sinks: Vec<(u16, Arc<Sink>)>,
    /// Delivers the results.
    pub landing: Landing,
    /// The scalars, for the sizes of callbacks' arguments.
    pub scalars: Scalars,
    /// Number of processes that it runs on.
    pub width: u32,
}

impl Prepared {
    /// The request, for [`Grid::submit`](gridrpc_client::Grid::submit), and the landing of its results. With `cores`,
    /// each of its processes gets this many.
    #[must_use]
    pub fn request(
        self,
        target: &Target,
        mut options: CallOptions,
        callbacks: Option<Callbacks>,
    ) -> (Request, Landing) {
        options.cores = options.cores.saturating_mul(self.width);
        // Data that may arrive twice is not received in the caller's memory.
        let sinks = if options.idempotent { Vec::new() } else { self.sinks };
        let request = request(target, self.payload, options);
        (
            Request { blobs: self.blobs, after: self.after, callbacks, sinks, ..request },
            self.landing,
        )
    }
}

/// The request for a call of `target`. If the interface declares it idempotent, so is the call, except on a reserved
/// worker.
pub(super) fn request(target: &Target, payload: Payload, mut options: CallOptions) -> Request {
    options.idempotent =
        (target.interface().idempotent || options.idempotent) && options.on.is_none();
    Request::new(target.function(), payload, options)
}
