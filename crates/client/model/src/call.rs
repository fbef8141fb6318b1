//! A call: has ended or not, and wakes who sleeps on it.

use loom::sync::{Condvar, Mutex};

#[derive(Debug)]
pub(crate) struct Call {
    ended: Mutex<bool>,
    end: Condvar,
}

impl Call {
    pub(crate) fn new() -> Call {
        Call { ended: Mutex::new(false), end: Condvar::new() }
    }

    pub(crate) fn done(&self) -> bool {
        *self.ended.lock().unwrap()
    }

    pub(crate) fn finish(&self) {
        *self.ended.lock().unwrap() = true;
        self.end.notify_all();
    }

    /// Sleeps until it has ended.
    pub(crate) fn sleep(&self) -> bool {
        let mut ended = self.ended.lock().unwrap();
        while !*ended {
            ended = self.end.wait(ended).unwrap();
        }
        true
    }
}
