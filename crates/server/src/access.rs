//! What one connected user may do, checked at each step.

use std::sync::Arc;

use gridrpc_agent::{
    Access, Denied, DetachRequest, DetachedEntry, NamedData, NamedFunction, Permit, RequestError,
};
use gridrpc_client::FunctionRef;
use gridrpc_core::{BlobId, CallOptions};
use gridrpc_wire::{FunctionForm, RemoteError, TraceContext};

use crate::caller::{Caller, denied};
use crate::detached::DetachedCalls;
use crate::offered_function::OfferedFunction;

/// Largest payload of a call whose user has no limit, bytes.
const MAX_PAYLOAD: u64 = 1 << 40;

/// What a user with a connection may do.
#[derive(Debug)]
pub(crate) struct UserAccess {
    pub(crate) caller: Arc<Caller>,
    pub(crate) detached: Arc<DetachedCalls>,
}

impl Access for UserAccess {
    fn find(&self, form: FunctionForm, name: &str) -> Result<NamedFunction, Denied> {
        let UserAccess { caller, .. } = self;
        if form == FunctionForm::Named {
            let (name, hash) = match name.split_once('#') {
                Some((name, hash)) => (name, Some(hash.to_owned())),
                None => (name, None),
            };
            match caller.module_of(name) {
                Ok((_, function)) => {
                    let is_method = function.contains('.');
                    let (caller, name) = (Arc::clone(caller), name.into());
                    let offered = OfferedFunction { caller, name, hash, is_method };
                    return Ok(NamedFunction::Offered(Arc::new(offered)));
                }
                Err(denied) if !caller.role.code => {
                    caller.refused(name, &denied);
                    return Err(denied.into());
                }
                Err(_) => {}
            }
        }
        if caller.role.code {
            return Ok(NamedFunction::Sent);
        }
        let message = format!(
            "{} runs the functions that it offers, and none that clients send: its owner can allow user `{}` to send \
             code (code = true in server.toml)",
            caller.shared.name(),
            caller.user
        );
        let denied = denied(RemoteError::NotPermitted, message);
        caller.refused(name, &denied);
        Err(denied.into())
    }

    fn begin(
        &self,
        function: &FunctionRef,
        bytes: u64,
        trace: Option<TraceContext>,
        more_workers: u32,
        options: &mut CallOptions,
    ) -> Result<Box<dyn Permit>, Denied> {
        options.priority = self.caller.role.priority;
        let permit = self.caller.permit(&function.name().into(), None, bytes, more_workers)?;
        Ok(permit.traced(trace))
    }

    fn reserve(&self) -> Result<Box<dyn Permit>, Denied> {
        Ok(self.caller.reserve()?)
    }

    fn share(&self, bytes: u64) -> Result<Box<dyn Permit>, Denied> {
        Ok(self.caller.permit(&"shared data".into(), None, bytes, 0)?)
    }

    fn named_data(&self, blob: BlobId) -> Result<Arc<NamedData>, Denied> {
        Ok(self.caller.named_data(blob.0)?)
    }

    fn keep(&self, call: DetachRequest<'_>) -> Result<Box<dyn DetachedEntry>, Denied> {
        let stored = self.detached.store_call(&self.caller, &call);
        stored.map_err(|RequestError { error, message, .. }| Denied { error, message })
    }

    fn max_payload(&self) -> u64 {
        self.caller.role.limits.bytes.most().unwrap_or(MAX_PAYLOAD)
    }

    fn exceeds_payload(&self, bytes: u64) -> Denied {
        match self.caller.permit(&"a payload".into(), None, bytes, 0) {
            Err(reached) => reached.into(),
            Ok(_) => {
                let message = format!("{bytes} bytes are more than the server accepts at a time");
                denied(RemoteError::LimitReached, message).into()
            }
        }
    }
}
