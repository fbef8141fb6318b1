//! A connection to a client, before and while it is served.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use gridrpc_link::{Outbound, Receiver, Socket};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::answers::Answers;
use crate::incoming::Places;

/// Largest payload accepted, bytes; the address space is the real limit.
pub(super) const MAX_PAYLOAD: u64 = 1 << 40;

/// A connection over a non-blocking socket.
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) receiver: Receiver,
    pub(super) answers: Arc<Answers>,
    pub(super) places: Places,
    /// Whether the socket takes no more bytes for now.
    blocked: Arc<AtomicBool>,
}

impl Connection {
    /// `max_payload`: largest payload accepted, bytes.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub(super) fn new(socket: Socket, max_payload: u64) -> io::Result<Connection> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = EventFd::from_value_and_flags(0, flags)?;
        let blocked = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&blocked);
        let cell: Arc<OnceLock<Weak<Answers>>> = Arc::default();
        let waker = Arc::clone(&cell);
        let watch = move |is_blocked| {
            watched.store(is_blocked, Ordering::Release);
            if let Some(answers) = waker.get().and_then(Weak::upgrade) {
                let _ = answers.wake.write(1);
            }
        };
        let up = Outbound::new(Arc::clone(&socket), Box::new(watch));
        let answers = Answers::new(up, wake);
        // The cell is empty: it was made above.
        let _ = cell.set(Arc::downgrade(&answers));
        let receiver = Receiver::new(Arc::clone(&socket), max_payload);
        let places = Places::new(answers.held_results.clone());
        Ok(Connection { socket, receiver, answers, places, blocked })
    }

    /// Waits up to `timeout` until there is something to read or this thread is woken, and sends what the socket takes
    /// again. Returns whether there is something to read.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, self.blocked.load(Ordering::Acquire));
        let mut waited = [
            PollFd::new(self.socket.socket(), flags),
            PollFd::new(self.answers.wake.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = match timeout {
            _ if self.receiver.has_more() => PollTimeout::ZERO,
            None => PollTimeout::NONE,
            Some(timeout) => PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX),
        };
        let _ = poll(&mut waited, timeout);
        let ready = |at: usize| waited[at].revents().unwrap_or(PollFlags::empty());
        if ready(1).contains(PollFlags::POLLIN) {
            let _ = self.answers.wake.read();
        }
        if ready(0).contains(PollFlags::POLLOUT) {
            self.answers.up.flush();
        }
        !ready(0).is_empty() || self.receiver.has_more()
    }
}
