//! What a client has told a worker, and has not been taken up.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use gridrpc_wire::{Lease, Message};

use super::{CallbackAnswer, Job, KnownFunction, unexpected, unexpected_end};
use crate::borrowed::Mapped;
use crate::link::{LinkError, Received, Stream};
use crate::loan::Source;
use crate::payload::{Outgoing, take_sections};
use crate::sys::monotonic_ns;
use crate::worker::blobs::Blobs;
use crate::worker::lendings::Lendings;

/// What the client has told this worker.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) functions: HashMap<u32, Arc<KnownFunction>>,
    pub(super) serial: u64,
    pub(super) blobs: Blobs,
    /// The client's segments.
    pub(super) mapped: Mapped,
    /// Results and arguments of callbacks that the client still reads.
    pub(super) lendings: Lendings,
    /// Shared data that was dropped, and that what was made of it is to be let go of.
    pub(super) dropped: Vec<u64>,
    /// Calls to run, and whether their answers may wait for others.
    pub(super) jobs: VecDeque<(Job, bool)>,
    /// The call that runs, and whether anybody still waits for it.
    pub(super) current: Option<u64>,
    pub(super) cancelled: bool,
    /// Calls that nobody waits for any more, not taken up yet.
    pub(super) unwanted: HashSet<u64>,
    /// A call to come, and how many threads it is to use.
    pub(super) wide: Option<(u64, u32)>,
    pub(super) callback: Option<CallbackAnswer>,
    /// Streams of the last answers: their buffers are used again.
    pub(super) sent: Vec<Arc<Source>>,
    pub(super) ended: bool,
}

impl Desk {
    pub(super) fn new(lendings: Lendings) -> Desk {
        Desk {
            functions: HashMap::new(),
            serial: 0,
            blobs: Blobs::default(),
            mapped: Mapped::default(),
            lendings,
            dropped: Vec::new(),
            jobs: VecDeque::new(),
            current: None,
            cancelled: false,
            unwanted: HashSet::new(),
            wide: None,
            callback: None,
            sent: Vec::new(),
            ended: false,
        }
    }

    /// A section has gone to the client, which may read it where it lies.
    pub(super) fn lend(&self, part: &Outgoing) {
        if let Outgoing::Shared { lent, offset, .. } = part {
            let lease = Lease { segment: lent.segment().number(), offset: *offset };
            self.lendings.add(lease, Arc::clone(lent));
        }
    }

    /// Acts on a message; a call is put on the desk.
    pub(super) fn take(&mut self, received: Received<'_>) -> Result<(), LinkError> {
        let Received { message, order, streams, mut descriptors } = received;
        match message {
            Message::Call { call, function, batch, sections } => {
                let blobs = &self.blobs;
                let look_up = |blob, part: u32| blobs.parts(blob)?.get(part as usize).cloned();
                let sections = take_sections(&sections, streams, &self.mapped, look_up)?;
                let function = self.functions.get(&function).cloned().ok_or_else(|| {
                    LinkError::Unexpected("a call of a function that was never told".into())
                })?;
                let received = monotonic_ns();
                let wide = self.wide.take().filter(|(wide, _)| *wide == call);
                let threads = wide.map_or(0, |(_, threads)| threads);
                let job = Job { call, function, sections, order, received, threads };
                self.jobs.push_back((job, batch));
            }
            Message::Function { function: number, form, name, .. } => {
                self.serial += 1;
                let known = KnownFunction {
                    number,
                    serial: self.serial,
                    form,
                    name: name.to_owned(),
                    body: streams.into_iter().next().map(Stream::into_bytes).unwrap_or_default(),
                };
                self.functions.insert(number, Arc::new(known));
            }
            Message::Wide { call, threads, .. } => self.wide = Some((call, threads)),
            Message::Segment { segment, len } => {
                let file = descriptors.pop().ok_or_else(unexpected_end)?;
                self.mapped.add(segment, len, file)?;
            }
            Message::DropSegment { segment } => self.mapped.remove(segment),
            Message::Release { leases } => {
                self.lendings.end(&leases);
            }
            Message::Blob { blob, sections } => {
                self.blobs.add(blob, &sections, streams, &self.mapped)?;
            }
            Message::DropBlob { blob } => {
                self.blobs.remove(blob);
                self.dropped.push(blob);
            }
            Message::Cancel { call } if self.current == Some(call) => self.cancelled = true,
            Message::Cancel { call } => {
                if self.jobs.iter().any(|(job, _)| job.call == call) {
                    self.unwanted.insert(call);
                }
            }
            Message::CallbackReply { call, sections } if self.current == Some(call) => {
                let no_blobs = |_, _| None;
                let results = Ok(take_sections(&sections, streams, &self.mapped, no_blobs)?);
                self.callback = Some(CallbackAnswer { results, order });
            }
            Message::CallbackFailure { call, message } if self.current == Some(call) => {
                let results = Err(message.to_owned());
                self.callback = Some(CallbackAnswer { results, order });
            }
            // To a call that has been answered meanwhile.
            Message::CallbackReply { .. } | Message::CallbackFailure { .. } => {}
            Message::Goodbye => self.ended = true,
            other => return Err(unexpected(&other)),
        }
        Ok(())
    }
}
