//! Callbacks of functions on this host, which run at the client.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridrpc_client::CallbackHandler;
use gridrpc_link::payload::{Incoming, Payload, divide};
use gridrpc_wire::{Message, Order};

use crate::answers::Answers;

/// The client's answer.
pub(super) type Answer = Result<Payload, String>;

/// Callbacks that await the client's answer, by call: a function waits for one callback before it makes the
/// next. None: the client is gone.
#[derive(Debug)]
pub(super) struct Waiting(Mutex<Option<HashMap<u64, SyncSender<Answer>>>>);

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting(Mutex::new(Some(HashMap::new())))
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, SyncSender<Answer>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an answer from the client.
    pub(super) fn answer(&self, call: u64, answer: Answer) {
        let waiting = self.lock().as_mut().and_then(|waiting| waiting.remove(&call));
        if let Some(waiting) = waiting {
            // The waiting thread may be gone.
            let _ = waiting.send(answer);
        }
    }

    /// Waits for the answer to a callback. Returns `false` if the client is gone.
    fn expect(&self, call: u64, answered: SyncSender<Answer>) -> bool {
        self.lock().as_mut().map(|waiting| waiting.insert(call, answered)).is_some()
    }

    /// Fails all callbacks, also later ones: the client is gone.
    pub(super) fn give_up(&self) {
        *self.lock() = None;
    }
}

/// Forwards the callbacks of one call to the client.
#[derive(Debug)]
pub(super) struct CallbackForwarder {
    pub(super) call: u64,
    pub(super) answers: Arc<Answers>,
    pub(super) waiting: Arc<Waiting>,
}

impl CallbackHandler for CallbackForwarder {
    fn run(&self, index: u16, arguments: Vec<Incoming>, order: Order) -> Answer {
        let (answered, answer) = sync_channel(1);
        let gone = || Err("the client is gone".to_owned());
        if !self.waiting.expect(self.call, answered) {
            return gone();
        }
        let (sections, streams) = divide(&arguments);
        let message = Message::Callback { call: self.call, index, sections };
        let pushed = self.answers.up.push_in(order, &message, streams);
        pushed.map_err(|error| error.to_string())?;
        self.answers.up.flush();
        self.answers.send();
        answer.recv().unwrap_or_else(|_| gone())
    }

    fn is_of_parent(&self) -> bool {
        true
    }
}
