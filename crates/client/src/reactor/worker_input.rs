//! The receiving side of a worker connection.

use std::sync::Arc;

use gridrpc_core::CallId;
use gridrpc_link::payload::{Incoming, limit_mappings, take_sections};
use gridrpc_link::{LinkError, Outbound, Placement, Received, Receiver};
use gridrpc_shm::borrowed::Mapped;
use gridrpc_shm::outboxes::BoxMemory;
use gridrpc_sys::worker_groups::WorkerGroup;
use gridrpc_wire::{Lease, Message, Order, Place, RemoteError, Stamps, VERSION};

use crate::call::Outcome;
use crate::common::Common;
use crate::output;

/// The receiving side of one worker process.
#[derive(Debug)]
pub(super) struct WorkerInput {
    pub(super) generation: u32,
    /// The connection's other half.
    pub(super) up: Arc<Outbound>,
    pub(super) receiver: Receiver,
    /// Memory for its unsent messages.
    pub(super) outbox: BoxMemory,
    /// Its segments for results.
    pub(super) mapped: Mapped,
    /// Its standard output, if that does not go to our own.
    pub(super) stdout: Option<output::OutputPipe>,
    pub(super) stderr: output::OutputPipe,
    pub(super) host: String,
    /// Whether the spawner has reported its process.
    pub(super) started: bool,
    /// Protocol violation that ends it.
    pub(super) broken: Option<String>,
    pub(super) at_end: bool,
    /// The control group that limits it.
    pub(super) group: Option<WorkerGroup>,
}

/// A message of a worker.
pub(super) enum Event {
    Welcome { pid: u32 },
    Answer { call: u64, stamps: Stamps, retained: Vec<Lease>, outcome: Outcome },
    Release(Vec<Lease>),
    BlobDropped { blob: u64, unread: bool },
    Callback { call: u64, index: u16, arguments: Vec<Incoming>, order: Order },
}

impl WorkerInput {
    /// Whether nothing more is read from it.
    pub(super) fn is_over(&self) -> bool {
        self.at_end || self.broken.is_some()
    }

    /// Passes on the output of its process.
    pub(super) fn read_output(&mut self) {
        for output in self.stdout.iter_mut().chain([&mut self.stderr]) {
            output.read();
            output.end();
        }
    }

    /// The messages received in full. A malformed one sets `broken`.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        let WorkerInput { receiver, mapped, broken, host, stderr, .. } = self;
        let mut events = Vec::new();
        let drained = receiver.drain(|received| -> Result<(), LinkError> {
            events.extend(decode(received, mapped, host, stderr)?);
            Ok(())
        });
        if let Err(error) = drained {
            broken.get_or_insert(error.to_string());
        }
        events
    }
}

/// A result that this process has no memory for.
fn no_room_for_result(error: &LinkError) -> Outcome {
    Outcome::Raised {
        error: RemoteError::OutOfMemory.name().to_owned(),
        message: format!("the result cannot be taken: {error}"),
        trace: String::new(),
        sections: Vec::new(),
        order: Order::NATIVE,
    }
}

/// Decodes a worker's message. Maps announced segments.
fn decode(
    received: Received<'_>,
    mapped: &mut Mapped,
    host: &mut String,
    stderr: &mut output::OutputPipe,
) -> Result<Option<Event>, LinkError> {
    let Received { message, order, streams, mut descriptors } = received;
    let no_blobs = |_, _| None;
    Ok(Some(match message {
        Message::Welcome(welcome) => {
            if welcome.version != VERSION {
                return Err(LinkError::Unexpected(format!("version {}", welcome.version)));
            }
            welcome.host.clone_into(host);
            Event::Welcome { pid: welcome.pid }
        }
        Message::Reply { call, stamps, retained, sections } => {
            let outcome = match take_sections(&sections, streams, mapped, no_blobs) {
                Err(error @ LinkError::NoRoom { .. }) => no_room_for_result(&error),
                sections => Outcome::Returned(limit_mappings(sections?), order),
            };
            Event::Answer { call, stamps, retained, outcome }
        }
        Message::Failure { call, stamps, retained, error, message, trace, sections } => {
            let sections = match take_sections(&sections, streams, mapped, no_blobs) {
                // Report the error without the sections that do not fit.
                Err(LinkError::NoRoom { .. }) => Vec::new(),
                sections => limit_mappings(sections?),
            };
            let mut message = message.to_owned();
            let trace = if error == RemoteError::FunctionExited.name() {
                // The process answers when it exits, so all of its output is in the pipe.
                stderr.read();
                let written = stderr.text();
                if let Some(reason) = fortran_error(&written)
                    && !message.contains(&reason)
                {
                    message = format!("{reason}: {message}");
                }
                written
            } else {
                trace.to_owned()
            };
            let error = error.to_owned();
            let outcome = Outcome::Raised { error, message, trace, sections, order };
            Event::Answer { call, stamps, retained, outcome }
        }
        Message::Callback { call, index, sections } => {
            let arguments = take_sections(&sections, streams, mapped, no_blobs)?;
            Event::Callback { call, index, arguments, order }
        }
        Message::Segment { segment, len } => {
            mapped.add_if_there_is_room(segment, len, descriptors.pop())?;
            return Ok(None);
        }
        Message::DropSegment { segment } => {
            mapped.remove(segment);
            return Ok(None);
        }
        Message::Release { leases } => Event::Release(leases),
        Message::BlobDropped { blob, unread } => Event::BlobDropped { blob, unread },
        other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
    }))
}

/// The run-time error of Fortran that ended a process, with its place in the source, from the end of its standard
/// error. Modules report the errors that compiled code finds; those that libgfortran finds itself, as in a namelist,
/// are only written there.
fn fortran_error(written: &str) -> Option<String> {
    let lines: Vec<&str> = written.lines().collect();
    let (at, error) = lines.iter().enumerate().rev().find_map(|(at, line)| {
        Some((at, line.strip_prefix("Fortran runtime error: ")?.trim_end()))
    })?;
    let place = at.checked_sub(1).map(|before| lines[before].trim_end());
    Some(match place.filter(|place| place.starts_with("At line ")) {
        Some(place) => format!("{place}: {error}"),
        None => error.to_owned(),
    })
}

/// Maximum length of a result, bytes. The address space sets the real limit.
pub(super) const MAX_PAYLOAD: u64 = 1 << 40;

/// Makes results with a destination in the caller's memory arrive there.
pub(super) fn placement(common: &Arc<Common>) -> Placement {
    let common = Arc::downgrade(common);
    Box::new(move |message, lengths| {
        let Message::Reply { call, sections, .. } = message else { return Vec::new() };
        let Some(common) = common.upgrade() else { return Vec::new() };
        let call = common.lock().core.payload(CallId(*call)).cloned();
        let Some(call) = call else { return Vec::new() };
        let streamed = sections.iter().enumerate();
        let streamed = streamed.filter(|(_, section)| section.place == Place::Stream);
        let places: Vec<_> = streamed.map(|(index, _)| call.sink(index)).collect();
        debug_assert_eq!(places.len(), lengths.len());
        places
    })
}
