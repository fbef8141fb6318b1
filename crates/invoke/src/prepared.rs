//! A call whose arguments have been found to fit, and how it is to be made.

use std::sync::Arc;

use gridrpc_client::{Callbacks, Request};
use gridrpc_core::{BlobId, CallOptions};
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::Payload;
use gridrpc_typed::Scalars;

use crate::results::Landing;
use crate::target::Target;

/// Whether the caller's memory may be used after the request has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    /// Until the [`Landing`] is used or dropped.
    UntilLanded,
    /// Not for arguments: they are copied. Results are put there when they land.
    Copied,
}

/// A call that can be made.
#[derive(Debug)]
pub struct Prepared {
    /// What is sent.
    pub payload: Payload,
    /// The shared data that it refers to.
    pub blobs: Vec<BlobId>,
    /// Where streamed results go.
    pub sinks: Vec<(u16, Arc<Sink>)>,
    /// What puts the results into their places.
    pub landing: Landing,
    /// The scalars, for the sizes of callbacks' arguments.
    pub scalars: Scalars,
    /// How many processes it runs on.
    pub width: u32,
}

impl Prepared {
    /// The request, for [`Grid::submit`](gridrpc_client::Grid::submit), and what puts the results into their places.
    /// With `cores`, each of its processes has as many.
    #[must_use]
    pub fn request(
        self,
        target: &Target,
        mut options: CallOptions,
        callbacks: Option<Callbacks>,
    ) -> (Request, Landing) {
        options.cores = options.cores.saturating_mul(self.width);
        // What may come twice is not received where the caller has it.
        let sinks = if options.idempotent { Vec::new() } else { self.sinks };
        let request = request(target, self.payload, options);
        (Request { blobs: self.blobs, callbacks, sinks, ..request }, self.landing)
    }
}

/// The request for a call of `target`. Where its interface says that it is idempotent, it is, except on a reserved
/// worker.
pub(super) fn request(target: &Target, payload: Payload, mut options: CallOptions) -> Request {
    options.idempotent =
        (target.interface().idempotent || options.idempotent) && options.on.is_none();
    Request::new(Arc::clone(&target.function), payload, options)
}
