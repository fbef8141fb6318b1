//! Messages of an agent, as events for the core.

use gridrpc_core::Loss;
use gridrpc_link::payload::{Incoming, take_sections};
use gridrpc_link::{LinkError, Received, Receiver, sections};
use gridrpc_shm::borrowed::Mapped;
use gridrpc_transport::addresses::with_port;
use gridrpc_wire::nested_call::is_request;
use gridrpc_wire::{HostEnd, Message, Order, Place, RemoteError, Section, Stamps, VERSION};

use crate::call::{Outcome, RemotePart, loss_from_the_wire};
use crate::daemon_connection::RequestError;

/// An event reported by an agent.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Join(Joined),
    /// An agent of this gridrpc version with another message format.
    Stranger(String),
    Workers {
        ready: u32,
        wanted: u32,
    },
    NoWorkers(Loss),
    Answer {
        call: u64,
        stamps: Stamps,
        outcome: Outcome,
    },
    /// A call has returned, and its result stays on the host.
    Kept {
        call: u64,
        stamps: Stamps,
        parts: Vec<RemotePart>,
        order: Order,
    },
    /// A result that had stayed on the host.
    Fetched {
        call: u64,
        sections: Vec<Incoming>,
        order: Order,
    },
    Ended {
        call: u64,
        end: RemoteEnd,
    },
    Callback {
        call: u64,
        index: u16,
        arguments: Vec<Incoming>,
        order: Order,
    },
    Reserved {
        number: u32,
        lost: Option<Loss>,
    },
    Retracted(Vec<u64>),
    /// The server keeps a call as a detached one with this id.
    Detached {
        call: u64,
        id: String,
    },
    NotDetached {
        call: u64,
        error: RequestError,
    },
    BlobDropped {
        blob: u64,
        unread: bool,
    },
    Missing(u64),
    NotPassed {
        blob: u64,
        to: u32,
    },
    Output {
        worker: u32,
        stderr: bool,
        bytes: Vec<u8>,
    },
    Ping(u64),
    Pong {
        number: u64,
        clock: u64,
    },
}

/// Identity of an agent.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) pid: u32,
    pub(crate) processors: u32,
    /// Bytes; 0: unknown.
    pub(crate) memory: u64,
    pub(crate) host: String,
    pub(crate) boot: String,
    /// Its addresses for other agents.
    pub(crate) addresses: Vec<String>,
}

/// How a call ended on a host.
#[derive(Debug)]
pub(crate) enum RemoteEnd {
    Lost(Loss),
    NoWorkers(Loss),
    Cancelled,
    /// It was rejected, with the reason.
    Refused(String),
}

/// Receiving half of a connection to an agent.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) receiver: Receiver,
    /// Whether the host is trusted.
    trusted: bool,
    /// Whether the host uses memory of this client.
    pub(crate) uses_memory: bool,
    /// Why the connection must end.
    pub(crate) broken: Option<String>,
}

impl Conversation {
    pub(crate) fn new(receiver: Receiver, trusted: bool) -> Conversation {
        Conversation { receiver, trusted, uses_memory: false, broken: None }
    }

    /// The events received in full. A malformed message marks the conversation as broken.
    pub(crate) fn events(&mut self) -> Vec<HostEvent> {
        let mut events = Vec::new();
        let (trusted, uses_memory) = (self.trusted, self.uses_memory);
        let drained = self.receiver.drain(|received| -> Result<(), LinkError> {
            if !trusted {
                check_untrusted(&received.message)?;
            }
            if !uses_memory && sections(&received.message).iter().any(is_argument) {
                return Err(LinkError::Unexpected(
                    "a result in the memory of this client".to_owned(),
                ));
            }
            events.push(decode(received)?);
            Ok(())
        });
        if let Err(error) = drained {
            self.broken.get_or_insert(error.to_string());
        }
        events
    }
}

fn is_argument(section: &Section<'_>) -> bool {
    matches!(section.place, Place::Argument(_))
}

/// Rejects messages that an untrusted host has no reason to send: it has received neither Python nor shared data, and
/// no request to keep a result. It may answer that nothing reads its own named data any more.
fn check_untrusted(message: &Message<'_>) -> Result<(), LinkError> {
    let is_kept = |section: &Section<'_>| matches!(section.place, Place::Kept { .. });
    let what = match message {
        // The only error with sections that are not a pickle.
        Message::Failure { error, sections, .. }
            if RemoteError::from_name(error) != Some(RemoteError::RanksLost)
                && sections.iter().any(|section| section.len > 0) =>
        {
            "a pickled error"
        }
        Message::Reply { sections, .. } if sections.iter().any(is_kept) => "a result that it keeps",
        Message::KeptResult { .. } => "a result that it has kept",
        Message::Callback { index, .. } if is_request(*index) => "a call that its function makes",
        Message::Missing { .. } | Message::NotPassed { .. } => "shared data",
        _ => return Ok(()),
    };
    Err(LinkError::Untrusted(what))
}

fn decode(received: Received<'_>) -> Result<HostEvent, LinkError> {
    let Received { message, order, streams, .. } = received;
    let mapped = Mapped::default();
    let no_blobs = |_, _| None;
    Ok(match message {
        Message::Join(join) => {
            if !(join.min_version..=join.max_version).contains(&VERSION) {
                return Ok(HostEvent::Stranger(join.program.to_owned()));
            }
            let own = join.addresses.iter().filter(|_| join.port != 0);
            HostEvent::Join(Joined {
                pid: join.pid,
                processors: join.processors,
                memory: join.memory,
                host: join.host.to_owned(),
                boot: join.boot.to_owned(),
                addresses: own.map(|host| with_port(host, join.port)).collect(),
            })
        }
        Message::Workers { ready, wanted } => HostEvent::Workers { ready, wanted },
        Message::NoWorkers(loss) => HostEvent::NoWorkers(loss_from_the_wire(&loss)),
        Message::Reply { call, stamps, sections, .. }
            if sections.iter().any(|section| matches!(section.place, Place::Kept { .. })) =>
        {
            let part = |section: &Section<'_>| match section.place {
                Place::Kept { .. } => Ok(RemotePart::There(section.len)),
                Place::Inline(bytes) => Ok(RemotePart::Here(Incoming::Bytes(bytes.to_vec()))),
                _ => Err(LinkError::Unexpected("a result that is kept in part".to_owned())),
            };
            let parts = sections.iter().map(part).collect::<Result<_, _>>()?;
            HostEvent::Kept { call, stamps, parts, order }
        }
        Message::KeptResult { call, sections } => {
            let sections = take_sections(&sections, streams, &mapped, no_blobs)?;
            HostEvent::Fetched { call, sections, order }
        }
        Message::Reply { call, stamps, sections, .. } => {
            let sections = take_sections(&sections, streams, &mapped, no_blobs)?;
            HostEvent::Answer { call, stamps, outcome: Outcome::Returned(sections, order) }
        }
        Message::Failure { call, stamps, error, message, trace, sections, .. } => {
            let sections = take_sections(&sections, streams, &mapped, no_blobs)?;
            let (error, message, trace) = (error.to_owned(), message.to_owned(), trace.to_owned());
            let outcome = Outcome::Raised { error, message, trace, sections, order };
            HostEvent::Answer { call, stamps, outcome }
        }
        Message::Ended { call, end, loss } => {
            let end = match end {
                HostEnd::Lost => RemoteEnd::Lost(loss_from_the_wire(&loss)),
                HostEnd::NoWorkers => RemoteEnd::NoWorkers(loss_from_the_wire(&loss)),
                HostEnd::Cancelled => RemoteEnd::Cancelled,
                HostEnd::Refused => RemoteEnd::Refused(loss.why.to_owned()),
            };
            HostEvent::Ended { call, end }
        }
        Message::Callback { call, index, sections } => {
            let arguments = take_sections(&sections, streams, &mapped, no_blobs)?;
            HostEvent::Callback { call, index, arguments, order }
        }
        Message::Reserved { number, lost } => {
            HostEvent::Reserved { number, lost: lost.as_ref().map(loss_from_the_wire) }
        }
        Message::Retracted { calls } => HostEvent::Retracted(calls),
        Message::Detached { call, id } => HostEvent::Detached { call, id: id.to_owned() },
        Message::NotDetached { call, error, message } => {
            let (error, message) = (error.to_owned(), message.to_owned());
            let error = RequestError { error, message, ..RequestError::default() };
            HostEvent::NotDetached { call, error }
        }
        Message::Missing { blob } => HostEvent::Missing(blob),
        Message::NotPassed { blob, to } => HostEvent::NotPassed { blob, to },
        Message::BlobDropped { blob, unread } => HostEvent::BlobDropped { blob, unread },
        Message::Output { worker, stderr, sections } => {
            let parts = take_sections(&sections, streams, &mapped, no_blobs)?;
            let bytes = parts.iter().flat_map(|part| part.bytes()).copied().collect();
            HostEvent::Output { worker, stderr, bytes }
        }
        Message::Ping { number } => HostEvent::Ping(number),
        Message::Pong { number, clock } => HostEvent::Pong { number, clock },
        other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
    })
}

/// A call that the host rejected ends with an error.
pub(crate) fn refused(why: String) -> Outcome {
    Outcome::Raised {
        error: RemoteError::OutOfMemory.name().to_owned(),
        message: format!("the host could not take the call: {why}"),
        trace: String::new(),
        sections: Vec::new(),
        order: Order::NATIVE,
    }
}
