//! The socket that offers a grid's statistics.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use gridrpc_sys::forks;
use gridrpc_sys::timed_stream::TimedStream;

use crate::common::Common;
use crate::live::place::{StatsAddress, user_of};
use crate::live::snapshot::{About, snapshot};

/// How long a reader may take to receive the data that the socket does not hold.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// A socket that sends statistics to each connection.
#[derive(Debug)]
pub(crate) struct StatsSocket {
    listener: UnixListener,
    about: Arc<About>,
}

impl StatsSocket {
    /// Returns `None` if the system has no abstract sockets. Then the grid works but cannot be observed.
    pub(crate) fn open(about: Arc<About>) -> Option<StatsSocket> {
        let user = nix::unistd::geteuid().as_raw();
        let place = StatsAddress { user, pid: std::process::id(), grid: about.number };
        let listener = place.listen().ok()?;
        listener.set_nonblocking(true).ok()?;
        // A child would keep the name and never answer.
        forks::close_in_children(listener.as_raw_fd());
        Some(StatsSocket { listener, about })
    }

    /// Answers all open connections.
    pub(crate) fn answer(&self, common: &Common) {
        while let Ok((stream, _)) = self.listener.accept() {
            let me = nix::unistd::geteuid().as_raw();
            if user_of(&stream).is_ok_and(|user| user == me || user == 0) {
                send(stream, snapshot(common, &self.about).json().into_bytes());
            }
        }
    }
}

/// Sends as much as the socket takes at once; a separate thread waits for slow readers.
fn send(mut stream: UnixStream, text: Vec<u8>) {
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    let mut sent = 0;
    while sent < text.len() {
        match stream.write(&text[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => return,
        }
    }
    if sent < text.len() {
        let rest = move || {
            // A reader that has disconnected needs no answer.
            let _ = stream.set_nonblocking(false).and_then(|()| {
                TimedStream::new(stream, HANDSHAKE_TIMEOUT).write_all(&text[sent..])
            });
        };
        // Without a thread the reader receives a truncated document and tries again.
        let _ = std::thread::Builder::new().name("gridrpc-looked".into()).spawn(rest);
    }
}

impl AsFd for StatsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for StatsSocket {
    fn drop(&mut self) {
        forks::forget(self.listener.as_raw_fd());
    }
}
