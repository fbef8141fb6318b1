//! Messages from the client that a worker has not handled yet.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use gridrpc_core::BlobId;
use gridrpc_link::buffers::Source;
use gridrpc_link::payload::{Incoming, Outgoing, take_sections};
use gridrpc_link::{LinkError, Received, Stream};
use gridrpc_shm::borrowed::Mapped;
use gridrpc_shm::lendings::Lendings;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{FunctionForm, Lease, Message, Order, Place, Section};

use crate::shared_data::Blobs;

/// Messages from the client, and the state that they have changed.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) functions: HashMap<u32, Arc<KnownFunction>>,
    pub(super) serial: u64,
    pub(super) blobs: Blobs,
    /// The client's segments.
    pub(super) mapped: Mapped,
    /// Results and callback arguments that the client still reads.
    pub(super) lendings: Lendings,
    /// Shared data that was dropped; objects made of it have to be released.
    pub(super) dropped: Vec<u64>,
    /// Calls to run, and whether their answers may wait for others.
    pub(super) jobs: VecDeque<(Job, bool)>,
    /// The running call, and whether anybody still waits for it.
    pub(super) current: Option<u64>,
    pub(super) cancelled: bool,
    /// Cancelled calls that have not started.
    pub(super) unwanted: HashSet<u64>,
    /// An upcoming call, and the number of threads that it may use.
    pub(super) multicore: Option<(u64, u32)>,
    pub(super) callback: Option<CallbackAnswer>,
    /// Streams of the last answers, whose buffers are reused.
    pub(super) sent: Vec<Arc<Source>>,
    pub(super) ended: bool,
}

impl Inbox {
    pub(super) fn new(lendings: Lendings) -> Inbox {
        Inbox {
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
            multicore: None,
            callback: None,
            sent: Vec::new(),
            ended: false,
        }
    }

    /// Records a section that has gone to the client, which may read it in place.
    pub(super) fn lend(&self, part: &Outgoing) {
        if let Outgoing::Shared { lent, offset, .. } = part {
            let lease = Lease { segment: lent.segment().number(), offset: *offset };
            self.lendings.add(lease, Arc::clone(lent));
        }
    }

    /// Handles a message; a call is added to the inbox.
    pub(super) fn take(&mut self, received: Received<'_>) -> Result<(), LinkError> {
        let Received { message, order, streams, mut descriptors } = received;
        match message {
            Message::Call { call, function, batch, sections } => {
                let blobs = &self.blobs;
                let look_up = |blob, part: u32| blobs.parts(blob)?.get(part as usize).cloned();
                let order = ArgumentOrder::new(order, &sections);
                let sections = take_sections(&sections, streams, &self.mapped, look_up)?;
                let function = self.functions.get(&function).cloned().ok_or_else(|| {
                    LinkError::Unexpected("a call of a function that was never told".into())
                })?;
                let received = monotonic_ns();
                let multicore = self.multicore.take().filter(|(multicore, _)| *multicore == call);
                let threads = multicore.map_or(0, |(_, threads)| threads);
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
            Message::Wide { call, threads, .. } => self.multicore = Some((call, threads)),
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
            // An answer to a call that has already been answered.
            Message::CallbackReply { .. } | Message::CallbackFailure { .. } => {}
            Message::Goodbye => self.ended = true,
            other => return Err(unexpected(&other)),
        }
        Ok(())
    }
}

/// A function received from the client.
#[derive(Debug)]
pub struct KnownFunction {
    /// Its number.
    pub number: u32,
    /// Number of functions received so far: the same `number` may later stand for another function.
    pub serial: u64,
    /// By name, by value, or in a module.
    pub form: FunctionForm,
    /// `module/function`, or the readable name of a pickled function.
    pub name: String,
    /// The pickled function, or the file of its module.
    pub body: Vec<u8>,
}

/// A call to run.
#[derive(Debug)]
pub struct Job {
    /// The client's number for it.
    pub call: u64,
    /// Function to run.
    pub function: Arc<KnownFunction>,
    /// The arguments.
    pub sections: Vec<Incoming>,
    /// Byte order of the arguments.
    pub order: ArgumentOrder,
    /// When it had been received in full, ns.
    pub received: u64,
    /// Number of threads that it may use; 0: the default.
    pub threads: u32,
}

/// Byte order of the numbers in the sections of a call.
#[derive(Clone, Debug)]
pub struct ArgumentOrder {
    /// That of the call.
    pub call: Order,
    /// Sections with named data of the server, which keeps it in this machine's order.
    native: Vec<u16>,
}

impl ArgumentOrder {
    fn new(call: Order, sections: &[Section<'_>]) -> ArgumentOrder {
        let mut native = Vec::new();
        if call != Order::NATIVE {
            let is_named = |section: &Section<'_>| matches!(section.place, Place::Blob { blob, .. } if BlobId(blob).is_named());
            native.extend((0..).zip(sections).filter(|(_, one)| is_named(one)).map(|(at, _)| at));
        }
        ArgumentOrder { call, native }
    }

    /// The order of one section.
    #[must_use]
    pub fn of(&self, section: u16) -> Order {
        if self.native.contains(&section) { Order::NATIVE } else { self.call }
    }
}

/// Results of a callback, or its error.
#[derive(Debug)]
pub struct CallbackAnswer {
    /// Its results, or the client's message.
    pub results: Result<Vec<Incoming>, String>,
    /// Byte order of the results.
    pub order: Order,
}

pub(super) fn unexpected(message: &Message<'_>) -> LinkError {
    LinkError::Unexpected(format!("{:?}", message.kind()))
}

pub(super) fn unexpected_end() -> LinkError {
    LinkError::Unexpected("a message without the descriptor that belongs to it".into())
}
