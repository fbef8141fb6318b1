//! A daemon that a test plays.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_client::Grid;
use gridrpc_link::{LinkError, Outbound, Received, Receiver};
use gridrpc_transport::Unix;
use gridrpc_wire::{Join, Message, VERSION};

/// Upper limit for every step.
pub const WAIT: Duration = Duration::from_secs(60);

/// Waits until the details of the only host contain this text.
pub fn wait_for_detail(grid: &Grid, text: &str) {
    let until = Instant::now() + WAIT;
    loop {
        let hosts = grid.hosts();
        if hosts[0].detail.contains(text) {
            return;
        }
        assert!(Instant::now() < until, "{hosts:?} lacks {text:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A daemon's end of a connection.
pub struct Daemon {
    up: Outbound,
    receiver: Receiver,
}

impl Daemon {
    /// Accepts a connection.
    pub fn accept(listener: &UnixListener) -> Daemon {
        let stream: UnixStream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let socket = Arc::new(Unix(stream.into()));
        let up = Outbound::new(socket.clone(), Box::new(|_| ()));
        Daemon { up, receiver: Receiver::new(socket, 1 << 20) }
    }

    /// Sends a message.
    pub fn send(&self, message: &Message<'_>) {
        self.up.push(message).unwrap();
        self.up.flush();
    }

    /// Does the handshake, and reports this many workers.
    pub fn join(&mut self, workers: u32) {
        self.send(&Message::Join(Join {
            min_version: VERSION,
            max_version: VERSION,
            pid: std::process::id(),
            processors: 2,
            clock: 0,
            memory: 0,
            host: "here",
            boot: "",
            program: env!("CARGO_PKG_VERSION"),
            port: 0,
            addresses: Vec::new(),
        }));
        assert!(self.receive(|message| matches!(message, Message::Serve(_))));
        self.send(&Message::Workers { ready: workers, wanted: workers });
    }

    /// Receives messages until this one has come. Returns false if the connection ends first.
    pub fn receive(&mut self, is_wanted: impl Fn(&Message<'_>) -> bool) -> bool {
        loop {
            let mut came = false;
            let each = |received: Received<'_>| -> Result<(), LinkError> {
                came |= is_wanted(&received.message);
                Ok(())
            };
            self.receiver.drain(each).unwrap();
            if came {
                return true;
            }
            if self.receiver.fill().unwrap() == 0 {
                return false;
            }
        }
    }
}
