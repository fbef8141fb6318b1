//! Payloads of calls and replies, outgoing and incoming.

mod builder;
mod section_bytes;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use gridrpc_shm::ForwardableSegment;
use gridrpc_shm::borrowed::{Borrowed, Mapped};
use gridrpc_shm::segment::{FIRST_OF_ARRAYS, InPlaceResult, PooledSegment, Segment};
use gridrpc_wire::{Lease, Message, Order, Place, Section, Sections, WireError};

use crate::buffers::{PinnedBytes, Sink, Source};
use crate::{LinkError, Push, Stream};

pub use builder::PayloadBuilder;
pub use section_bytes::{MAX_INLINE, divide, section_bytes};

/// An outgoing section.
#[derive(Debug)]
pub enum Outgoing {
    /// Sent inline in the frame.
    Inline(Vec<u8>),
    /// Streamed in separate frames.
    Stream(Arc<Source>),
    /// Lies in shared memory.
    Shared {
        /// The segment.
        lent: Arc<PooledSegment>,
        /// Its offset in the segment, bytes.
        offset: u64,
        /// Its length, bytes.
        len: u64,
    },
    /// Lies in another process's shared memory, and is passed on.
    Passed(Borrowed),
    /// In a result: stored in the call's section with this number.
    Argument {
        /// The call's section.
        index: u16,
        /// Its length, bytes.
        len: u64,
    },
    /// Part of the result of another call, which the receiver keeps or gets from the host that does.
    Kept {
        /// The call.
        call: u64,
        /// Section number in its result.
        section: u16,
        /// Number among the sections of the result that are kept.
        part: u32,
        /// Its length, bytes.
        len: u64,
        /// Makes the receiver keep it.
        keeper: Arc<dyn KeepAlive>,
    },
    /// Part of shared data that the receiver has by then.
    Blob {
        /// The shared data's number.
        blob: u64,
        /// Section number in the shared data.
        part: u32,
        /// Its length, bytes.
        len: u64,
    },
}

impl Outgoing {
    /// The call whose result it is part of, if that stays on a host.
    #[must_use]
    pub fn remote_call(&self) -> Option<u64> {
        match self {
            Outgoing::Kept { call, .. } => Some(*call),
            _ => None,
        }
    }
}

/// Keeps data alive on another host while it exists.
pub trait KeepAlive: std::fmt::Debug + Send + Sync {}

/// A payload ready to be sent.
#[derive(Debug)]
pub struct Payload {
    /// Its sections.
    pub parts: Vec<Outgoing>,
    /// Number of bytes to transfer.
    pub bytes: u64,
    /// Byte order of the numbers in its sections, which the frame that names them has.
    pub order: Order,
}

impl Default for Payload {
    fn default() -> Payload {
        Payload { parts: Vec::new(), bytes: 0, order: Order::NATIVE }
    }
}

/// Announces a segment that is new to the receiver.
///
/// # Errors
/// When a bound of the format is exceeded.
pub fn announce(
    segment: &Segment,
    to: &mut impl Push,
    is_new: impl FnOnce(u32) -> bool,
) -> Result<(), WireError> {
    if is_new(segment.number()) {
        let message = Message::Segment { segment: segment.number(), len: segment.len() };
        to.push_with(&message, vec![segment.file()])?;
    }
    Ok(())
}

/// Announces a segment that is passed on.
fn announce_passed(
    passing: &ForwardableSegment,
    to: &mut impl Push,
    is_new: impl FnOnce(u32) -> bool,
) -> Result<(), WireError> {
    let segment = passing.number();
    if is_new(segment) {
        let message = Message::Segment { segment, len: passing.len() };
        to.push_with(&message, vec![passing.file()])?;
    }
    Ok(())
}

impl Payload {
    /// The sections for a message.
    #[must_use]
    pub fn sections(&self) -> Sections<'_> {
        let describe = |part| match part {
            &Outgoing::Shared { ref lent, offset, len } => {
                let lease = Lease { segment: lent.segment().number(), offset };
                Section { len, place: Place::Shared(lease) }
            }
            Outgoing::Passed(stretch) => {
                // A section that cannot be passed on is never added to a payload.
                let (segment, offset) = stretch
                    .passing()
                    .map_or((u32::MAX, 0), |(passing, offset)| (passing.number(), offset));
                let lease = Lease { segment, offset };
                Section { len: stretch.len() as u64, place: Place::Shared(lease) }
            }
            &Outgoing::Argument { index, len } => Section { len, place: Place::Argument(index) },
            &Outgoing::Blob { blob, part, len } => {
                Section { len, place: Place::Blob { blob, part } }
            }
            &Outgoing::Kept { call, section, len, .. } => {
                Section { len, place: Place::Kept { call, section } }
            }
            Outgoing::Inline(bytes) => Section::inline(bytes),
            Outgoing::Stream(bytes) => Section { len: bytes.len() as u64, place: Place::Stream },
        };
        self.parts.iter().map(describe).collect()
    }

    /// The result that the worker has left in section number `index`.
    ///
    /// # Errors
    /// When the section does not lie in shared memory, is shorter, or cannot be mapped.
    pub fn left(&self, index: u16, len: u64) -> io::Result<InPlaceResult> {
        match self.parts.get(usize::from(index)) {
            // Arrays of the caller's program are not given away as results.
            Some(Outgoing::Shared { lent, offset, len: whole })
                if len <= *whole && lent.segment().number() < FIRST_OF_ARRAYS =>
            {
                InPlaceResult::new(lent, *offset, len)
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The sections for a message to a host, without shared memory.
    #[must_use]
    pub fn streamed_sections(&self) -> Sections<'_> {
        let streamed =
            |part: &Outgoing| matches!(part, Outgoing::Shared { .. } | Outgoing::Passed(_));
        let sections = self.sections().into_iter().zip(&self.parts);
        sections
            .map(
                |(section, part)| {
                    if streamed(part) {
                        Section { place: Place::Stream, ..section }
                    } else {
                        section
                    }
                },
            )
            .collect()
    }

    /// The contents of the sections that are streamed to a host.
    ///
    /// # Errors
    /// When shared memory cannot be mapped.
    pub fn sources(&self) -> io::Result<VecDeque<Arc<Source>>> {
        let mut sources = VecDeque::new();
        for part in &self.parts {
            match part {
                Outgoing::Stream(source) => sources.push_back(Arc::clone(source)),
                Outgoing::Shared { lent, offset, len } => {
                    sources.push_back(Arc::new(Source::held(InPlaceResult::new(
                        lent, *offset, *len,
                    )?)));
                }
                Outgoing::Passed(stretch) => {
                    sources.push_back(Arc::new(Source::held(Incoming::Shared(stretch.clone()))));
                }
                _ => {}
            }
        }
        Ok(sources)
    }

    /// The contents of the sections that are streamed to everybody.
    #[must_use]
    pub fn streams(&self) -> VecDeque<Arc<Source>> {
        let stream = |part: &Outgoing| match part {
            Outgoing::Stream(source) => Some(Arc::clone(source)),
            _ => None,
        };
        self.parts.iter().filter_map(stream).collect()
    }

    /// Announces the segments that are new to the receiver, according to `is_new`.
    ///
    /// # Errors
    /// Never, as the messages are small.
    pub fn announce(
        &self,
        to: &mut impl Push,
        mut is_new: impl FnMut(u32) -> bool,
    ) -> Result<(), WireError> {
        for part in &self.parts {
            match part {
                Outgoing::Shared { lent, .. } => announce(lent.segment(), to, &mut is_new)?,
                Outgoing::Passed(stretch) => {
                    if let Some((passing, _)) = stretch.passing() {
                        announce_passed(passing, to, &mut is_new)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether hosts keep parts of it, so that it cannot go to any executor.
    pub fn is_kept_in_part(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Outgoing::Kept { .. }))
    }

    /// Truncates it to its first sections, when its size was `bytes`.
    pub fn cut_back(&mut self, sections: usize, bytes: u64) {
        self.parts.truncate(sections);
        self.bytes = bytes;
    }

    /// Whether the receiver reads parts of it in place.
    pub fn is_lent(&self) -> bool {
        let lies = |part: &Outgoing| matches!(part, Outgoing::Shared { .. } | Outgoing::Passed(_));
        self.parts.iter().any(lies)
    }

    /// Number of bytes in the streamed sections.
    #[must_use]
    pub fn streamed(&self) -> u64 {
        let len = |part: &Outgoing| match part {
            Outgoing::Stream(bytes) => bytes.len() as u64,
            _ => 0,
        };
        self.parts.iter().map(len).sum()
    }

    /// Appends the streamed sections, directly after their message.
    ///
    /// # Errors
    /// Never, as the pieces are cut to fit.
    pub fn push_streams(&self, to: &mut impl Push) -> Result<(), WireError> {
        for part in &self.parts {
            if let Outgoing::Stream(bytes) = part {
                to.push_stream(bytes)?;
            }
        }
        Ok(())
    }
}

/// An incoming section.
#[derive(Debug, Clone)]
pub enum Incoming {
    /// Received bytes.
    Bytes(Vec<u8>),
    /// Received bytes shared by several messages.
    Kept(Arc<Vec<u8>>),
    /// A stretch of shared memory.
    Shared(Borrowed),
    /// Bytes received in their destination.
    Placed(Arc<Sink>),
    /// The current content of the call's own section with this number, of this length.
    Argument(u16, u64),
    /// The same, in place.
    Left(InPlaceResult),
}

impl Incoming {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Incoming::Bytes(bytes) => bytes,
            Incoming::Kept(bytes) => bytes,
            Incoming::Shared(stretch) => stretch.bytes(),
            Incoming::Left(stretch) => stretch.bytes(),
            // They are not accessible from here.
            Incoming::Placed(_) | Incoming::Argument(..) => &[],
        }
    }

    /// Its length, bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        match self {
            Incoming::Placed(sink) => sink.len(),
            Incoming::Argument(_, len) => *len as usize,
            other => other.bytes().len(),
        }
    }
}

impl PinnedBytes for Incoming {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

impl PinnedBytes for InPlaceResult {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

/// Takes the sections of an incoming message, and looks up shared ones.
///
/// # Errors
/// When a section refers to memory that was not announced, or could not be mapped. The others are then released.
pub fn take_sections(
    sections: &[Section<'_>],
    streams: Vec<Stream>,
    mapped: &Mapped,
    blob: impl Fn(u64, u32) -> Option<Incoming>,
) -> Result<Vec<Incoming>, LinkError> {
    let mut streams = streams.into_iter();
    let unknown = |what: &str| LinkError::Unexpected(format!("a section in unknown {what}"));
    let mut taken = Vec::with_capacity(sections.len());
    let mut no_room = None;
    for (index, section) in sections.iter().enumerate() {
        taken.push(match section.place {
            Place::Inline(bytes) => Incoming::Bytes(bytes.to_vec()),
            Place::Stream => match streams.next().ok_or_else(|| unknown("stream"))? {
                Stream::Bytes(bytes) => Incoming::Bytes(bytes),
                Stream::Dropped(_) => Incoming::Bytes(Vec::new()),
                Stream::Placed(sink, _) => Incoming::Placed(sink),
            },
            Place::Argument(index) => Incoming::Argument(index, section.len),
            Place::Shared(lease) => {
                if let Some(why) = mapped.no_room(lease) {
                    no_room = Some(LinkError::NoRoom { bytes: section.len, why: why.to_owned() });
                    continue;
                }
                let stretch = mapped.borrow(lease, section.len);
                let stretch = stretch.ok_or_else(|| unknown("shared memory"))?;
                Incoming::Shared(stretch.as_section(index as u16))
            }
            Place::Blob { blob: number, part } => {
                blob(number, part).ok_or_else(|| unknown("shared data"))?
            }
            Place::Kept { .. } => return Err(unknown("result of another call")),
        });
    }
    no_room.map_or(Ok(taken), Err)
}

/// Copies data out of shared memory if this process has too many mappings: each kept stretch takes one of the
/// mappings that the kernel allows.
#[must_use]
pub fn limit_mappings(sections: Vec<Incoming>) -> Vec<Incoming> {
    if !gridrpc_sys::mappings_are_many() {
        return sections;
    }
    let copied = |section: Incoming| match section {
        Incoming::Shared(stretch) => {
            let mut bytes = Vec::new();
            match bytes.try_reserve_exact(stretch.len()) {
                Ok(()) => {
                    bytes.extend_from_slice(stretch.bytes());
                    Incoming::Bytes(bytes)
                }
                Err(_) => Incoming::Shared(stretch),
            }
        }
        other => other,
    };
    sections.into_iter().map(copied).collect()
}
