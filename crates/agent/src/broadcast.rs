//! Data that goes from host to host, and not through the client. Each agent forwards shared data while it receives it,
//! so the client sends it once, regardless of the number of hosts. Kept results go to the hosts of calls that need them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_client::Parent as _;
use gridrpc_link::payload::divide;
use gridrpc_link::{LinkError, Received, Receiver, Sender};
use gridrpc_transport::dial::dial;
use gridrpc_transport::listener::{Admission, Admitted, Listener};
use gridrpc_transport::{Keys, Ticket, TicketKeys, Transport};
use gridrpc_wire::{Compression, Message, Order, Place, SECRET, Section};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::answers::Answers;
use crate::held_results::HeldResults;
use crate::incoming::Places;

/// Largest shared data accepted, bytes.
const MAX_PAYLOAD: u64 = 1 << 40;
/// How long another agent may take to connect, or to resume sending or receiving.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to dial a host for a result. The client can send the result itself, and a call waits for it.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a forwarding thread waits for more bytes at a time.
const MOMENT: Duration = Duration::from_micros(500);
/// Bytes forwarded at a time.
const PIECE: usize = 256 << 10;

/// How many agents may connect before the client has announced them.
const EARLY: usize = 64;

/// Data expected from other agents, by the number that the listener assigned.
type Expected = Arc<Mutex<HashMap<u32, (u64, Instant)>>>;

/// Forwards shared data and receives what other agents forward.
#[derive(Debug)]
pub(super) struct Broadcast {
    listener: Listener,
    keys: Option<TicketKeys>,
    expected: Expected,
    next: u32,
    places: Places,
    answers: Arc<Answers>,
    pub(super) compression: Compression,
}

impl Broadcast {
    /// Opens a port for other agents of the same grid.
    pub(super) fn new(
        keys: Option<&TicketKeys>,
        places: &Places,
        answers: &Arc<Answers>,
    ) -> io::Result<Broadcast> {
        let own = keys.map(Keys::among_agents).transpose().map_err(io::Error::other)?;
        let keys = own.as_ref().map(Keys::ticket);
        let expected = Expected::default();
        let (due, theirs, replies) = (Arc::clone(&expected), places.clone(), Arc::clone(answers));
        let admit = move |admitted: Admitted| {
            let known = due.lock().unwrap_or_else(PoisonError::into_inner).remove(&admitted.agent);
            let Some((blob, _)) = known else { return };
            let (places, answers) = (theirs.clone(), Arc::clone(&replies));
            let taking = move || {
                if let Err(error) = take(blob, &admitted.transport, &places) {
                    places.blobs.give_up(blob);
                    eprintln!("gridrpc: shared data did not come from another host: {error}");
                    answers.tell(&Message::Missing { blob });
                    answers.send();
                }
                // There may be data to share with the workers.
                answers.changed();
            };
            // Without a thread the data stays missing, as if nobody had connected.
            let _ = thread::Builder::new().name("gridrpc-peer".into()).spawn(taking);
        };
        let admission = Admission::Secret { keys: own.map(Arc::new), early: EARLY };
        let listener = Listener::open(&[], None, admission, admit)?;
        let (places, answers) = (places.clone(), Arc::clone(answers));
        let compression = Compression::Off;
        Ok(Broadcast { listener, keys, expected, next: 0, places, answers, compression })
    }

    /// The port that other agents dial.
    pub(super) fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Expects shared data from another agent.
    pub(super) fn expect(&mut self, blob: u64, secret: &[u8; SECRET]) {
        self.next = self.next.wrapping_add(1);
        let due = Instant::now() + HANDSHAKE_TIMEOUT;
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.insert(self.next, (blob, due));
        drop(expected);
        self.listener.invite(self.next, secret);
    }

    /// Reports data that has not arrived in time. Returns when to check again.
    pub(super) fn look(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let overdue = expected.extract_if(|_, (_, due)| *due <= now);
        for (number, (blob, _)) in overdue {
            self.listener.revoke(number);
            self.answers.tell(&Message::Missing { blob });
        }
        expected.values().map(|(_, due)| *due).min()
    }

    /// Forwards shared data to another agent as it arrives.
    pub(super) fn pass(&self, blob: u64, to: u32, secret: [u8; SECRET], addresses: &[&str]) {
        let (places, compression) = (self.places.clone(), self.compression);
        let ticket = self.ticket(secret, addresses);
        self.begin(blob, to, "shared data", move || send_on(blob, &ticket, &places, compression));
    }

    /// Sends a kept result to another agent, as shared data with this number.
    pub(super) fn pass_result(
        &self,
        call: u64,
        blob: u64,
        to: u32,
        secret: [u8; SECRET],
        addresses: &[&str],
    ) {
        let (held_results, compression) = (self.answers.held_results.clone(), self.compression);
        let ticket = self.ticket(secret, addresses);
        let sending = move || send_result(call, blob, &ticket, &held_results, compression);
        self.begin(blob, to, "a result", sending);
    }

    fn ticket(&self, secret: [u8; SECRET], addresses: &[&str]) -> Ticket {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        Ticket { addresses, secret, keys: self.keys.clone() }
    }

    /// Sends data in a thread. If that fails, the client is notified.
    fn begin(
        &self,
        blob: u64,
        to: u32,
        what: &'static str,
        send: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) {
        let answers = Arc::clone(&self.answers);
        let sending = move || {
            if let Err(why) = send() {
                eprintln!("gridrpc: {what} could not be sent on to another host: {why}");
                answers.tell(&Message::NotPassed { blob, to });
                answers.send();
            }
        };
        if thread::Builder::new().name("gridrpc-pass".into()).spawn(sending).is_err() {
            self.answers.tell(&Message::NotPassed { blob, to });
        }
    }
}

/// Receives shared data from another agent.
fn take(blob: u64, transport: &Arc<dyn Transport>, places: &Places) -> Result<(), LinkError> {
    let mut receiver = Receiver::new(Arc::clone(transport), MAX_PAYLOAD);
    receiver.place_streams(places.placement());
    let mut complete = false;
    while !complete {
        let filled = receiver.fill();
        match filled {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut waited = [PollFd::new(transport.socket(), PollFlags::POLLIN)];
                let timeout = PollTimeout::try_from(HANDSHAKE_TIMEOUT).unwrap_or(PollTimeout::MAX);
                if poll(&mut waited, timeout) == Ok(0) {
                    return Err(io::Error::from(io::ErrorKind::TimedOut).into());
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        receiver.drain(|received: Received<'_>| match received.message {
            Message::Blob { blob: number, .. } if number == blob => {
                complete = true;
                Ok(())
            }
            other => Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
        })?;
    }
    places.blobs.complete(blob);
    Ok(())
}

/// Sends shared data to another agent; the data may still be arriving here.
fn send_on(
    blob: u64,
    ticket: &Ticket,
    places: &Places,
    compression: Compression,
) -> Result<(), String> {
    let data = places.blobs.wait_for(blob, HANDSHAKE_TIMEOUT).ok_or("it has not begun to come")?;
    let dialled = dial(ticket, HANDSHAKE_TIMEOUT, false).map_err(|error| error.to_string())?;
    let mut sender = Sender::new(dialled.transport);
    sender.compress(compression);
    let place = Place::Stream;
    let lengths = data.lengths();
    let sections = lengths.iter().map(|len| Section { len: *len as u64, place }).collect();
    sender.push(&Message::Blob { blob, sections }).map_err(|error| error.to_string())?;
    send_all(&mut sender)?;
    for part in 0..lengths.len() {
        let mut sent = 0;
        let mut since = Instant::now();
        while let Some(piece) = data.piece(part, sent, PIECE) {
            if piece.is_empty() {
                if since.elapsed() > HANDSHAKE_TIMEOUT || data.is_given_up() {
                    return Err("the rest of it has not come".to_owned());
                }
                thread::sleep(MOMENT);
                continue;
            }
            since = Instant::now();
            sent = piece.end;
            let pushed = sender.push_next_piece(data.source(part, piece));
            pushed.map_err(|error| error.to_string())?;
            send_all(&mut sender)?;
        }
    }
    Ok(())
}

/// Sends the large sections of a kept result to another agent.
fn send_result(
    call: u64,
    blob: u64,
    ticket: &Ticket,
    held_results: &HeldResults,
    compression: Compression,
) -> Result<(), String> {
    let parts = held_results.get(call).ok_or("it is not here any more")?;
    // The client has the others.
    let (mut sections, sources) = divide(&parts);
    sections.retain(|section| section.place == Place::Stream);
    let dialled = dial(ticket, DIAL_TIMEOUT, false).map_err(|error| error.to_string())?;
    let mut sender = Sender::new(dialled.transport);
    sender.compress(compression);
    let mut frame = Vec::new();
    let encoded = Message::Blob { blob, sections }.encode(Order::NATIVE, &mut frame);
    encoded.map_err(|error| error.to_string())?;
    sender.push_frames(&frame);
    sender.push_bulk(sources);
    send_all(&mut sender)
}

/// Sends all that has been pushed, unless the other agent takes nothing for a while.
fn send_all(sender: &mut Sender) -> Result<(), String> {
    while !sender.flush().map_err(|error| error.to_string())? {
        let mut waited = [PollFd::new(sender.socket(), PollFlags::POLLOUT)];
        let timeout = PollTimeout::try_from(HANDSHAKE_TIMEOUT).unwrap_or(PollTimeout::MAX);
        if poll(&mut waited, timeout) == Ok(0) {
            return Err("it takes no more".to_owned());
        }
    }
    Ok(())
}
