//! An agent's sign of life. Whatever its own thread does for long, such as making memory for an argument of
//! gigabytes on a host that is short of it, the client hears from the agent: only one that is stopped, or cut
//! off, is silent.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use gridrpc_client::Parent;
use gridrpc_wire::Message;

use crate::answers::Answers;

/// As often a sign of life is given, in the time after which an agent without one is taken for lost.
const BEATS: u32 = 3;

/// Gives signs of life until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// Its end ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// `heartbeat`: how long the client waits for a sign of life.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn new(heartbeat: Duration, answers: &Arc<Answers>) -> io::Result<Heartbeat> {
        let (end, ended) = channel();
        let answers = Arc::clone(answers);
        let beat = move || {
            let mut number = 0;
            while ended.recv_timeout(heartbeat / BEATS) == Err(RecvTimeoutError::Timeout) {
                number += 1;
                answers.tell(&Message::Ping { number });
                answers.settle();
            }
        };
        let thread = Builder::new().name("gridrpc-heart".to_owned()).spawn(beat)?;
        Ok(Heartbeat { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end = None;
        // It has no reason to panic, and nobody would be told here.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
