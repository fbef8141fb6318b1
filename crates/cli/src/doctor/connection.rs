//! Connection to an agent for one thread that sends requests and waits for answers.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridrpc_link::buffers::Source;
use gridrpc_link::{LinkError, Outbound, Received, Receiver, Socket};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::Message;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use thiserror::Error;

/// Largest answer, bytes.
const MOST: u64 = 1 << 28;

/// Why an agent does not answer.
#[derive(Debug, Error)]
pub(super) enum LineError {
    #[error("its agent is gone")]
    Gone,
    #[error("its agent has not answered in {0:.0?}")]
    Silent(Duration),
    #[error("its agent: {0}")]
    Link(#[from] LinkError),
}

/// The connection.
pub(super) struct AgentConnection {
    socket: Socket,
    out: Outbound,
    receiver: Receiver,
    blocked: Arc<AtomicBool>,
}

impl AgentConnection {
    /// Creates a connection on a non-blocking socket.
    pub(super) fn new(socket: Socket) -> AgentConnection {
        let blocked = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&blocked);
        let watch = move |is_blocked| watched.store(is_blocked, Ordering::Release);
        let out = Outbound::new(Arc::clone(&socket), Box::new(watch));
        let receiver = Receiver::new(Arc::clone(&socket), MOST);
        AgentConnection { socket, out, receiver, blocked }
    }

    /// Sends a message and its streams as far as the connection accepts them; the rest is sent while waiting
    /// for an answer.
    pub(super) fn send(
        &self,
        message: &Message<'_>,
        streams: VecDeque<Arc<Source>>,
    ) -> Result<(), LineError> {
        self.out.push_with(message, streams).map_err(LinkError::from)?;
        self.out.flush();
        Ok(())
    }

    /// Waits until `take` accepts a message. Answers the agent's pings meanwhile.
    pub(super) fn wait<T>(
        &mut self,
        timeout: Duration,
        mut take: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> Result<T, LineError> {
        let until = Instant::now() + timeout;
        loop {
            let mut taken = None;
            let mut more = true;
            while more && taken.is_none() {
                more = self.receiver.drain_one(&mut |received: Received<'_>| {
                    if let Message::Ping { number } = received.message {
                        let pong = Message::Pong { number, clock: monotonic_ns() };
                        self.out.push(&pong)?;
                    } else {
                        taken = take(&received.message);
                    }
                    Ok::<(), LinkError>(())
                })?;
            }
            if let Some(taken) = taken {
                return Ok(taken);
            }
            self.out.flush();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LineError::Silent(timeout));
            }
            self.fill(left)?;
        }
    }

    fn fill(&mut self, longest: Duration) -> Result<(), LineError> {
        if !self.receiver.has_more() {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, self.blocked.load(Ordering::Acquire));
            let mut waited = [PollFd::new(self.socket.socket(), flags)];
            let longest = PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX);
            // After an interruption it polls again.
            let _ = poll(&mut waited, longest);
        }
        match self.receiver.fill() {
            Ok(0) => Err(LineError::Gone),
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(())
            }
            Err(_) => Err(LineError::Gone),
        }
    }
}
