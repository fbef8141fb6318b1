//! A call whose arguments have been found to fit, and how it is to be made.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_client::{Callbacks, Request};
use gridrpc_core::{BlobId, GroupId, Reservation, Resources};
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

/// How a call is to be made.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// After which time it fails.
    pub deadline: Option<Duration>,
    /// How many processors it uses, all of one host, in each of its processes; 0 is 1.
    pub cores: u32,
    /// What it takes of its host beside processors.
    pub resources: Resources,
    /// How long its function is expected to run, if that is known.
    pub expected: Option<Duration>,
    /// The group that has to run it, if not any that has room.
    pub group: Option<GroupId>,
    /// The reserved worker that has to run it.
    pub on: Option<Reservation>,
    /// What its function may call back.
    pub callbacks: Option<Callbacks>,
    /// Whether it may run again when its worker is lost, even if its interface does not say so. Its function must not
    /// change arguments.
    pub runs_again: bool,
}

impl Prepared {
    /// The request, for [`Grid::submit`](gridrpc_client::Grid::submit), and what puts the results into their places.
    #[must_use]
    pub fn request(self, target: &Target, mut options: CallOptions) -> (Request, Landing) {
        options.cores = options.cores.max(1).saturating_mul(self.width);
        // What may come twice is not received where the caller has it.
        let sinks = if options.runs_again { Vec::new() } else { self.sinks };
        let request = request(target, self.payload, options);
        (Request { blobs: self.blobs, sinks, ..request }, self.landing)
    }
}

/// The request for a call that needs nothing else.
pub(super) fn request(target: &Target, payload: Payload, options: CallOptions) -> Request {
    let CallOptions { deadline, cores, resources, expected, group, on, callbacks, runs_again } =
        options;
    Request {
        function: Arc::clone(&target.function),
        payload,
        blobs: Vec::new(),
        deadline,
        idempotent: (target.interface().idempotent || runs_again) && on.is_none(),
        priority: 0,
        cores: cores.max(1),
        threads: 0,
        resources,
        expected,
        group,
        on,
        callbacks,
        sinks: Vec::new(),
        after: Vec::new(),
    }
}
