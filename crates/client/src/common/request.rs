//! Submission of a call, and the reasons to reject it.

use std::sync::Arc;

use gridrpc_core::{BlobId, CallOptions, Owner, Task, Time};
use gridrpc_link::buffers::Sink;
use gridrpc_link::payload::Payload;
use gridrpc_wire::TraceContext;
use thiserror::Error;

use crate::call::{Call, Callbacks, Dependency, Extras};
use crate::common::Common;
use crate::error::GridError;
use crate::function::FunctionRef;
use crate::state::State;

/// A call to be submitted.
#[derive(Debug)]
pub struct Request {
    /// Function to run.
    pub function: Arc<FunctionRef>,
    /// Its arguments, from [`Grid::payload`](crate::Grid::payload).
    pub payload: Payload,
    /// Shared data that they refer to.
    pub blobs: Vec<BlobId>,
    /// The client whose call it is.
    pub owner: Owner,
    /// Options of the call.
    pub options: CallOptions,
    /// Callbacks that its function may call.
    pub callbacks: Option<Callbacks>,
    /// Destinations of streamed sections of its result, by number.
    pub sinks: Vec<(u16, Arc<Sink>)>,
    /// Calls whose results it needs, in the order of their numbers in the pickle, or of their sections behind its own.
    pub after: Vec<Dependency>,
    /// Span of the calling program that it belongs to. Only servers use it.
    pub trace: Option<TraceContext>,
}

impl Request {
    /// Creates a request of this process without dependencies.
    #[must_use]
    pub fn new(function: Arc<FunctionRef>, payload: Payload, options: CallOptions) -> Request {
        let (blobs, sinks, after) = (Vec::new(), Vec::new(), Vec::new());
        let (owner, callbacks, trace) = (Owner::SELF, None, None);
        Request { function, payload, blobs, owner, options, callbacks, sinks, after, trace }
    }
}

/// Reason to reject a call.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// Too many calls, or bytes of their data, wait for workers. Returns the request.
    #[error("too many calls wait for workers")]
    Full(Box<Request>),
    /// The grid cannot accept the call at all.
    #[error(transparent)]
    Failed(#[from] GridError),
}

impl Common {
    /// Submits a call; `bounded`: only if there is room for it.
    pub(crate) fn submit(&self, request: Request, bounded: bool) -> Result<Arc<Call>, SubmitError> {
        let bytes = request.payload.bytes;
        let mut state = self.lock();
        if bounded && !state.core.has_room(bytes) && !state.closing && state.core.broken().is_none()
        {
            drop(state);
            return Err(SubmitError::Full(Box::new(request)));
        }
        let Request {
            function,
            payload,
            blobs,
            owner,
            mut options,
            callbacks,
            sinks,
            after,
            trace,
        } = request;
        if let Some(offer) = function.offer()
            && options.on.is_none()
        {
            let is_member = |group| {
                group == offer.group
                    || offer.host.is_some_and(|host| state.core.is_member(host, group))
            };
            if !options.group.is_none_or(is_member) {
                let (function, server) = (function.name().to_owned(), offer.module.server.clone());
                return Err(GridError::OfferedElsewhere { function, server }.into());
            }
            options.group = Some(offer.group);
        }
        if let Some(trust) = &state.trust {
            // A module function gets results of other calls as it gets arrays of the caller.
            let unpickles = !after.is_empty() && !function.is_native();
            let refers = unpickles || blobs.iter().any(|blob| !blob.is_named());
            options.group =
                trust.bound_of(&state.core, &function, refers, options.group, options.on)?;
        }
        let id = function.id();
        let ids: Option<Vec<_>> =
            (!after.is_empty()).then(|| after.iter().filter_map(Dependency::id).collect());
        let extras = Extras { callbacks, sinks, trace };
        let call = Call::new(function, payload, extras, after, options.idempotent);
        let now = Time(call.profile().submit);
        let payload = Arc::clone(&call);
        let task = Task { owner, function: id, bytes, blobs, options, payload };
        self.drop_segments(&mut state);
        if let Some(worker) = state.core.asks_for_progress(now, id) {
            state.note_progress(now, worker);
        }
        let taken = state.drive(|core, out| match &ids {
            None => core.submit(now, task, out),
            Some(after) => core.submit_after(now, task, after, out),
        });
        let id = match taken {
            Ok(id) => id,
            Err(refusal) => {
                drop(state);
                return Err(SubmitError::Failed(refusal.into()));
            }
        };
        call.named(id);
        state.submitting = true;
        let ready = std::mem::take(&mut state.to_gather);
        self.finish(state);
        self.gather(ready);
        Ok(call)
    }

    fn drop_segments(&self, state: &mut State) {
        let gone = self.pool.gone();
        if !gone.is_empty() {
            // The drops go with the next message: until then the worker only keeps the memory longer.
            state.drop_segments(&gone, false);
        }
    }
}
