//! Callbacks of functions on this host, which the client runs.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_client::CallbackHandler;
use gridrpc_client::Parent as _;
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_wire::Message;

use crate::answers::{Answers, divide};

/// What the client has answered.
pub(super) type Answer = Result<Payload, String>;

/// Callbacks that the client has been asked for, by the number of their call: a function waits for one
/// before it makes the next.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<u64, SyncSender<Answer>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, SyncSender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has answered.
    pub(super) fn answer(&self, call: u64, answer: Answer) {
        let waiting = self.lock().remove(&call);
        if let Some(waiting) = waiting {
            // Who has waited may be gone.
            let _ = waiting.send(answer);
        }
    }

    /// The client is gone: nothing will be answered.
    pub(super) fn give_up(&self) {
        self.lock().clear();
    }
}

/// Has the client run the callbacks of one call.
#[derive(Debug)]
pub(super) struct Backwards {
    pub(super) call: u64,
    pub(super) answers: Arc<Answers>,
    pub(super) waiting: Arc<Waiting>,
}

impl CallbackHandler for Backwards {
    fn run(&self, index: u16, arguments: Vec<Incoming>) -> Answer {
        let (answered, answer) = sync_channel(1);
        self.waiting.lock().insert(self.call, answered);
        let (sections, streams) = divide(&arguments);
        let message = Message::Callback { call: self.call, index, sections };
        let pushed = self.answers.up.push_with(&message, streams);
        pushed.map_err(|error| error.to_string())?;
        self.answers.up.flush();
        self.answers.settle();
        answer.recv().unwrap_or_else(|_| Err("the client is gone".to_owned()))
    }
}
