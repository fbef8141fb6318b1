//! Heartbeat of an agent. A separate thread sends it, so that the client receives it even while the agent's
//! main thread is busy, for example allocating gigabytes for an argument on a host short of memory. Only a
//! stopped or disconnected agent is silent.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use gridrpc_client::Parent;
use gridrpc_wire::Message;

use crate::answers::Answers;

/// Heartbeats per timeout: an agent that is silent for the whole timeout is considered lost.
const BEATS: u32 = 3;

/// Sends heartbeats until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// Dropping it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// `heartbeat`: how long the client waits for a heartbeat.
    ///
    /// # Errors
    /// When the thread cannot start.
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
        // It has no reason to panic, and nobody to report a panic to.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
