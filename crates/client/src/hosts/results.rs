//! Requests about results that hosts keep, and recovery when such a host is lost.

use std::sync::Arc;

use gridrpc_core::WorkerId;
use gridrpc_wire::Message;

use crate::call::{Call, RemoteResultRequest};
use crate::state::State;
use crate::state::remote_results::{RemoteResultState, ResultCopy};
use crate::sync::now;

impl State {
    /// Sends hosts the requests of calls and users about results that they keep.
    pub(crate) fn pass_to_hosts(&mut self, requests: Vec<RemoteResultRequest>) {
        for request in requests {
            match request {
                RemoteResultRequest::Fetch(host, call) => {
                    self.push(host, &Message::FetchResult { call })
                }
                RemoteResultRequest::Drop(host, call) => {
                    self.remote_results.forget(host, call);
                    self.push(host, &Message::DropResult { call });
                    for (blob, copy) in self.remote_results.take_copies(|copy| copy.result == call)
                    {
                        self.push(copy.to, &Message::DropBlob { blob });
                    }
                }
            }
        }
    }

    /// Handles shared data that has not come from another host. Returns whether it is a copy of a result. The host
    /// gives back the calls that wait for it, and their arguments are assembled in another way.
    pub(crate) fn lose_copy(&mut self, blob: u64) -> bool {
        let Some(ResultCopy { from, to, .. }) = self.remote_results.take_copy(blob) else {
            return false;
        };
        self.remote_results.moved -= 1;
        self.remote_results.not_moved += 1;
        self.push(to, &Message::DropBlob { blob });
        self.drive(|core, out| core.not_exchanged(now(), from, to, out));
        true
    }

    /// Handles the loss of the results of a host that is gone. Idempotent calls run again; returns the others.
    pub(crate) fn lose_results(&mut self, host: WorkerId) -> Vec<Arc<Call>> {
        let mut failed = Vec::new();
        self.remote_results.take_copies(|copy| copy.to == host);
        for RemoteResultState { call, again, waiting, .. } in self.remote_results.take_of(host) {
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
