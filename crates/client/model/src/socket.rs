//! What the reactor reads: answers, as numbers of calls, and its alarm.

use loom::sync::{Arc, Condvar, Mutex};

use crate::call::Call;
use crate::reactor_lock::{Read, Wake};
use crate::sync::Time;

#[derive(Debug, Default)]
struct Inbox {
    answers: Vec<usize>,
    wakeup: bool,
    closing: bool,
    /// Somebody is in a turn.
    reading: bool,
}

#[derive(Debug)]
pub(crate) struct Socket {
    inbox: Mutex<Inbox>,
    event: Condvar,
    /// A turn has begun or ended.
    turning: Condvar,
}

impl Socket {
    pub(crate) fn new() -> Socket {
        Socket {
            inbox: Mutex::new(Inbox::default()),
            event: Condvar::new(),
            turning: Condvar::new(),
        }
    }

    /// A worker answers a call.
    pub(crate) fn answer(&self, call: usize) {
        self.inbox.lock().unwrap().answers.push(call);
        self.event.notify_one();
    }

    /// Waits until somebody is in a turn, or nobody is.
    pub(crate) fn wait_until_reading(&self, reading: bool) {
        let mut inbox = self.inbox.lock().unwrap();
        while inbox.reading != reading {
            inbox = self.turning.wait(inbox).unwrap();
        }
    }

    pub(crate) fn close(&self) {
        self.inbox.lock().unwrap().closing = true;
        self.wake();
    }
}

impl Wake for Socket {
    fn wake(&self) {
        self.inbox.lock().unwrap().wakeup = true;
        self.event.notify_one();
    }
}

#[derive(Debug)]
pub(crate) struct Reactor {
    pub(crate) socket: Arc<Socket>,
    pub(crate) calls: Arc<Vec<Call>>,
}

impl Read for Reactor {
    fn turn(&mut self, _: Option<Time>) -> bool {
        let mut inbox = self.socket.inbox.lock().unwrap();
        inbox.reading = true;
        self.socket.turning.notify_all();
        while inbox.answers.is_empty() && !inbox.wakeup && !inbox.closing {
            inbox = self.socket.event.wait(inbox).unwrap();
        }
        if inbox.closing {
            return false;
        }
        inbox.wakeup = false;
        inbox.reading = false;
        self.socket.turning.notify_all();
        let answers = std::mem::take(&mut inbox.answers);
        drop(inbox);
        for call in answers {
            self.calls[call].finish();
        }
        true
    }
}
