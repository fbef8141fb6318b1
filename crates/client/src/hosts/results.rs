//! Requests about results that hosts keep, and recovery when such a host is lost.

use std::sync::Arc;

use gridrpc_core::WorkerId;
use gridrpc_wire::Message;

use crate::call::{Call, KeptRequest};
use crate::state::State;
use crate::state::remote_results::KeptCall;
use crate::sync::now;

impl State {
    /// Sends hosts the requests of calls and users about results that they keep.
    pub(crate) fn pass_to_hosts(&mut self, requests: Vec<KeptRequest>) {
        for request in requests {
            match request {
                KeptRequest::Fetch(host, call) => self.push(host, &Message::FetchResult { call }),
                KeptRequest::Drop(host, call) => {
                    self.kept.forget(host, call);
                    self.push(host, &Message::DropResult { call });
                }
            }
        }
    }

    /// Handles the loss of the results of a host that is gone. Idempotent calls run again; returns the others.
    pub(crate) fn lose_results(&mut self, host: WorkerId) -> Vec<Arc<Call>> {
        let mut failed = Vec::new();
        for KeptCall { call, again, waiting, .. } in self.kept.take_of(host) {
            self.to_gather.extend(waiting);
            let Some(call) = call.upgrade().filter(|call| call.lose_kept()) else { continue };
            let task = again.filter(|_| !self.closing).map(|again| again.with(Arc::clone(&call)));
            let taken = task.map(|task| self.drive(|core, out| core.submit(now(), task, out)));
            match taken {
                Some(Ok(id)) => call.named(id),
                Some(Err(_)) | None => failed.push(call),
            }
        }
        failed
    }
}
