//! Callbacks: functions of the client that a running function calls.
//!
//! They run in their own threads, so that one may take long or make calls itself without delaying the answers of
//! other calls. Idle threads are reused.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use gridrpc_core::{Time, WorkerId};
use gridrpc_link::payload::{Incoming, Payload};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::nested_call::{WAIT, decode, is_local, is_request};
use gridrpc_wire::{Message, Order};

use crate::call::{Call, Callbacks};
use crate::common::Common;

/// A callback that a worker waits for.
pub(crate) struct PendingCallback {
    pub(crate) worker: WorkerId,
    pub(crate) id: u64,
    pub(crate) call: Arc<Call>,
    pub(crate) index: u16,
    pub(crate) arguments: Vec<Incoming>,
    /// The byte order of the numbers in them.
    pub(crate) order: Order,
}

impl PendingCallback {
    /// Whether this grid runs a call that the function makes, and no client of it.
    pub(crate) fn is_nested(&self) -> bool {
        is_request(self.index) && (!self.call.is_of_parent() || self.is_local())
    }

    fn is_local(&self) -> bool {
        let texts = self.arguments.first().and_then(|section| decode(section.bytes()));
        texts.is_some_and(|texts| is_local(&texts))
    }
}

/// How long an idle thread stays.
const IDLE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct CallbackQueue {
    wanted: Vec<PendingCallback>,
    idle: usize,
    closed: bool,
}

/// Runs callbacks.
pub(crate) struct Runner {
    queue: Mutex<CallbackQueue>,
    more: Condvar,
    common: Arc<Common>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runner")
    }
}

impl Runner {
    pub(crate) fn new(common: Arc<Common>) -> Arc<Runner> {
        Arc::new(Runner { queue: Mutex::default(), more: Condvar::new(), common })
    }

    /// Queues a callback.
    pub(crate) fn take(self: &Arc<Runner>, wanted: PendingCallback) {
        if !wanted.call.begin_callback() {
            return self.answer(&wanted, Err("too many callbacks of the call run".to_owned()));
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.wanted.push(wanted);
        if queue.idle >= queue.wanted.len() {
            drop(queue);
            self.more.notify_one();
            return;
        }
        drop(queue);
        let runner = Arc::clone(self);
        let thread = std::thread::Builder::new().name("gridrpc-callback".into());
        if thread.spawn(move || runner.serve()).is_err() {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.idle == 0
                && let Some(wanted) = queue.wanted.pop()
            {
                drop(queue);
                wanted.call.end_callback();
                self.answer(&wanted, Err("there is no thread to run a callback in".into()));
            }
        }
    }

    /// Stops running callbacks.
    pub(crate) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.more.notify_all();
    }

    fn serve(self: Arc<Runner>) {
        while let Some(mut wanted) = self.next() {
            let arguments = std::mem::take(&mut wanted.arguments);
            let waits = wanted.index == WAIT;
            if waits {
                self.waits(&wanted, true);
            }
            let result = match wanted.call.callbacks() {
                // The call has ended; nobody waits for the callback.
                _ if wanted.call.done() => Err("the call has ended".to_owned()),
                None => Err("the call has no callbacks".to_owned()),
                Some(Callbacks(handler)) => handler.run(wanted.index, arguments, wanted.order),
            };
            wanted.call.end_callback();
            if waits {
                self.waits(&wanted, false);
            }
            self.answer(&wanted, result);
        }
    }

    /// A function waits for a call that a client of the grid serves, or no longer does.
    fn waits(&self, wanted: &PendingCallback, waits: bool) {
        let mut state = self.common.lock();
        let id = wanted.call.id();
        let by = id.and_then(|id| state.core.executor(id)).unwrap_or(wanted.worker);
        let now = Time(monotonic_ns());
        state.drive(|core, out| core.waits_for_client(now, by, waits, out));
        self.common.finish(state);
    }

    fn next(&self) -> Option<PendingCallback> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if queue.closed {
                return None;
            }
            if !queue.wanted.is_empty() {
                return Some(queue.wanted.remove(0));
            }
            queue.idle += 1;
            let waited = self.more.wait_timeout(queue, IDLE);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            queue.idle -= 1;
            if timeout.timed_out() && queue.wanted.is_empty() {
                return None;
            }
        }
    }

    fn answer(&self, wanted: &PendingCallback, result: Result<Payload, String>) {
        let mut state = self.common.lock();
        match result {
            Ok(payload) => {
                let payload = Arc::new(payload);
                wanted.call.keep(Arc::clone(&payload));
                state.answer_callback(wanted.worker, wanted.id, &payload);
            }
            Err(message) => {
                let message = &message;
                let failure = Message::CallbackFailure { call: wanted.id, message };
                state.push(wanted.worker, &failure);
            }
        }
        self.common.finish(state);
    }
}
