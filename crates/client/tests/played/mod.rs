//! A daemon that a test plays.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::HashMap;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_client::Grid;
use gridrpc_link::payload::{Incoming, divide, section_bytes};
use gridrpc_link::{LinkError, Outbound, Received, Receiver};
use gridrpc_transport::Unix;
use gridrpc_wire::{FunctionForm, HostCall, Join, Message, Stamps, VERSION};

/// Upper limit for every step.
pub const WAIT: Duration = Duration::from_secs(60);

/// The answer to a request: its sections, or the name and the message of an error.
pub type Answer = Result<Vec<Vec<u8>>, (String, String)>;

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
        self.greet();
        assert!(self.receive(|message| matches!(message, Message::Serve(_))));
        self.send(&Message::Workers { ready: workers, wanted: workers });
    }

    fn greet(&self) {
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

    /// Greets, and answers requests until the other end closes the connection.
    pub fn answer(&mut self, answer: impl Fn(&str, Vec<Vec<u8>>) -> Answer) {
        self.greet();
        let mut names = HashMap::new();
        loop {
            let mut calls = Vec::new();
            let each = |received: Received<'_>| -> Result<(), LinkError> {
                match received.message {
                    Message::Function { function, form: FunctionForm::Named, name, .. } => {
                        names.insert(function, name.to_owned());
                    }
                    Message::HostCall(HostCall { call, function, ref sections, .. }) => {
                        let sections = section_bytes(sections, received.streams);
                        calls.push((call, names[&function].clone(), sections));
                    }
                    other => panic!("{other:?}"),
                }
                Ok(())
            };
            self.receiver.drain(each).unwrap();
            for (call, name, sections) in calls {
                match answer(&name, sections) {
                    Ok(sections) => self.reply(call, sections),
                    Err((error, message)) => self.fail(call, &error, &message),
                }
            }
            if self.receiver.fill().unwrap() == 0 {
                return;
            }
        }
    }

    fn reply(&self, call: u64, sections: Vec<Vec<u8>>) {
        let parts: Vec<Incoming> = sections.into_iter().map(Incoming::Bytes).collect();
        let (sections, streams) = divide(&parts);
        let (stamps, retained) = (Stamps::default(), Vec::new());
        self.up.push_with(&Message::Reply { call, stamps, retained, sections }, streams).unwrap();
        self.up.flush();
    }

    /// Sends the failure of a call.
    pub fn fail(&self, call: u64, error: &str, message: &str) {
        let (stamps, retained, sections) = (Stamps::default(), Vec::new(), Vec::new());
        self.send(&Message::Failure {
            call,
            stamps,
            retained,
            error,
            message,
            trace: "",
            sections,
        });
    }

    /// Waits for a call, and returns its number and the name of its function.
    pub fn receive_call(&mut self) -> (u64, String) {
        let (mut names, mut found) = (HashMap::new(), None);
        while found.is_none() {
            let each = |received: Received<'_>| -> Result<(), LinkError> {
                match received.message {
                    Message::Function { function, form: FunctionForm::Named, name, .. } => {
                        names.insert(function, name.to_owned());
                    }
                    Message::HostCall(HostCall { call, function, .. }) => {
                        found = Some((call, names[&function].clone()));
                    }
                    _ => {}
                }
                Ok(())
            };
            self.receiver.drain(each).unwrap();
            assert!(found.is_some() || self.receiver.fill().unwrap() > 0, "no call");
        }
        found.unwrap()
    }
}
