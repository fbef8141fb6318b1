//! Payloads: what a call or a reply carries, on its way out and as it came in.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use gridrpc_wire::{Lease, MAX_SECTIONS, Message, Place, Section, Sections, WireError};

use crate::borrowed::{Borrowed, Mapped};
use crate::link::{LinkError, Push, Stream};
use crate::loan::{Held, Sink, Source};
use crate::passing::Passing;
use crate::segment::{FIRST_OF_ARRAYS, Left, Lent, Pool, Segment};
use crate::sys;
use crate::worker::lendings::Lendings;

/// Bytes that a frame carries inline at most, all sections together.
const MAX_INLINE: usize = 512 << 10;
/// Copies of so many bytes and more are made in memory of the pool even if it is not shared: the allocator
/// would take new memory for each of them, whose pages cost five times as much as the copy.
const WORTH_A_SEGMENT: u64 = 4 << 20;

/// One section on its way out.
#[derive(Debug)]
pub enum Outgoing {
    /// Goes in the frame.
    Inline(Vec<u8>),
    /// Goes in frames of its own.
    Stream(Arc<Source>),
    /// Lies in shared memory.
    Shared {
        /// The segment.
        lent: Arc<Lent>,
        /// Where it starts in the segment, bytes.
        offset: u64,
        /// Its length, bytes.
        len: u64,
    },
    /// Lies in somebody else's shared memory, and is passed on.
    Passed(Borrowed),
    /// In a result: lies where the call's section of that number lay.
    Argument {
        /// The call's section.
        index: u16,
        /// How much of it, bytes.
        len: u64,
    },
    /// Is part of the result of another call, which the receiver keeps.
    Kept {
        /// The call.
        call: u64,
        /// Which of its result's sections.
        section: u16,
        /// Its length, bytes.
        len: u64,
        /// Has the receiver keep it.
        keeper: Arc<dyn Keeps>,
    },
    /// Is shared data that the receiver has by then.
    Blob {
        /// The shared data's number.
        blob: u64,
        /// Which of its sections.
        part: u32,
        /// Its length, bytes.
        len: u64,
    },
}

/// Whoever has it has somebody else keep something.
pub trait Keeps: std::fmt::Debug + Send + Sync {}

/// Puts a payload together, choosing how each section travels.
#[derive(Debug)]
pub struct PayloadBuilder<'p> {
    pool: &'p Arc<Pool>,
    /// Whether the receiver can map what lies there.
    shares: bool,
    /// What is lent from it, and may come back any time.
    lendings: Option<&'p Lendings>,
    threshold: usize,
    inline: usize,
    bytes: u64,
    parts: Vec<Outgoing>,
}

impl<'p> PayloadBuilder<'p> {
    /// Sections of `threshold` bytes and more lie in memory of the pool, if the receiver `shares` it.
    #[must_use]
    pub fn new(pool: &'p Arc<Pool>, shares: bool, threshold: usize) -> Self {
        let (inline, bytes, parts) = (0, 0, Vec::new());
        PayloadBuilder { pool, shares, lendings: None, threshold, inline, bytes, parts }
    }

    /// With the sections of a payload that has not been sent, for more to be added.
    #[must_use]
    pub fn go_on_with(self, payload: Payload) -> Self {
        let inline = |part: &Outgoing| match part {
            Outgoing::Inline(bytes) => bytes.len(),
            _ => 0,
        };
        let inline = payload.parts.iter().map(inline).sum();
        PayloadBuilder { inline, bytes: payload.bytes, parts: payload.parts, ..self }
    }

    /// Uses what comes back of these again.
    pub(crate) fn lending(self, lendings: &'p Lendings) -> Self {
        PayloadBuilder { lendings: Some(lendings), ..self }
    }

    /// A segment of shared memory for `len` bytes, to be filled and added. None: they have to go through
    /// the socket, as no memory is shared, or no more descriptors are to be used for it.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn take_shared(&self, len: u64) -> io::Result<Option<Lent>> {
        if self.shares { self.take(len) } else { Ok(None) }
    }

    /// A segment for a copy of `len` bytes, to be shared or sent from there. None: it is not worth one, or no more
    /// descriptors are to be used for it.
    fn take_for_copy(&self, len: u64) -> io::Result<Option<Lent>> {
        if self.shares || len >= WORTH_A_SEGMENT { self.take(len) } else { Ok(None) }
    }

    fn take(&self, len: u64) -> io::Result<Option<Lent>> {
        if let Some(lendings) = self.lendings {
            lendings.end_marked();
            if lendings.are_many() {
                return Ok(None);
            }
        }
        match self.pool.take(len) {
            Ok(lent) => Ok(Some(lent)),
            Err(error) if sys::is_out_of_descriptors(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds a section with a copy of `bytes`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let small = self.is_small(bytes.len());
        let part = if small {
            self.inline += bytes.len();
            Outgoing::Inline(bytes.to_vec())
        } else if let Some(lent) = self.take_for_copy(bytes.len() as u64)? {
            lent.write(bytes)?;
            Outgoing::Shared { lent: Arc::new(lent), offset: 0, len: bytes.len() as u64 }
        } else {
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
            copy.extend_from_slice(bytes);
            Outgoing::Stream(Arc::new(Source::owned(copy)))
        };
        self.push(part, bytes.len() as u64);
        Ok(())
    }

    /// Adds a section with these bytes.
    ///
    /// # Errors
    /// As [`PayloadBuilder::add`].
    pub fn add_owned(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let len = bytes.len();
        if !self.is_small(len) {
            return self.add(&bytes);
        }
        self.inline += len;
        self.push(Outgoing::Inline(bytes), len as u64);
        Ok(())
    }

    /// Whether a section of `len` bytes goes in the frame.
    #[must_use]
    pub fn is_small(&self, len: usize) -> bool {
        len < self.threshold && self.inline + len <= MAX_INLINE
    }

    /// Whether sections can lie in shared memory.
    #[must_use]
    pub fn has_shared_memory(&self) -> bool {
        self.shares
    }

    /// Adds a section that lies in shared memory already. `moved`: what it counts for in the bound on
    /// data that waits, bytes.
    pub fn add_shared(&mut self, lent: Arc<Lent>, offset: u64, len: u64, moved: u64) {
        self.push(Outgoing::Shared { lent, offset, len }, moved);
    }

    /// Adds a section that somebody else has sent: passed on where it lies, if that can be done, or
    /// copied.
    ///
    /// # Errors
    /// As [`PayloadBuilder::add`].
    pub fn pass_on(&mut self, section: &Incoming) -> io::Result<()> {
        if let Incoming::Shared(stretch) = section
            && self.passes_on(section)
        {
            self.push(Outgoing::Passed(stretch.clone()), 0);
            return Ok(());
        }
        self.add(section.bytes())
    }

    /// Whether a section of somebody else's can be passed on without a copy.
    #[must_use]
    pub fn passes_on(&self, section: &Incoming) -> bool {
        let can = |stretch: &Borrowed| stretch.passing().is_some();
        self.shares && matches!(section, Incoming::Shared(stretch) if can(stretch))
    }

    /// Adds a section that is sent from where it lies.
    pub fn add_source(&mut self, source: Arc<Source>) {
        let len = source.len() as u64;
        self.push(Outgoing::Stream(source), len);
    }

    /// Adds a section of the call that is answered, with what was left there.
    pub fn add_argument(&mut self, index: u16, len: u64) {
        self.push(Outgoing::Argument { index, len }, 0);
    }

    /// Adds a section of `len` bytes that `fill` writes in place.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn add_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<()> {
        let small = self.is_small(len);
        if !small && let Some(lent) = self.take_for_copy(len as u64)? {
            lent.make_ready(len as u64);
            let start = lent.start(len as u64)?;
            // SAFETY: the segment is ours alone until it is lent; its pages read as zero if new.
            fill(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) });
            let lent = Arc::new(lent);
            self.push(Outgoing::Shared { lent, offset: 0, len: len as u64 }, len as u64);
            return Ok(());
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        fill(&mut bytes);
        let part = if small {
            self.inline += len;
            Outgoing::Inline(bytes)
        } else {
            Outgoing::Stream(Arc::new(Source::owned(bytes)))
        };
        self.push(part, len as u64);
        Ok(())
    }

    /// Adds a section before all others: values, which are known when their contents are.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn add_first(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes)?;
        self.parts.rotate_right(1);
        Ok(())
    }

    /// Adds a section that is part of shared data.
    pub fn add_blob(&mut self, blob: u64, part: u32, len: u64) {
        self.parts.push(Outgoing::Blob { blob, part, len });
    }

    /// Adds a section of another call's result, which the receiver keeps.
    pub fn add_kept(&mut self, call: u64, section: u16, len: u64, keeper: Arc<dyn Keeps>) {
        self.push(Outgoing::Kept { call, section, len, keeper }, 0);
    }

    fn push(&mut self, part: Outgoing, bytes: u64) {
        self.bytes += bytes;
        self.parts.push(part);
    }

    /// How many sections it has so far.
    #[must_use]
    pub fn sections(&self) -> usize {
        self.parts.len()
    }

    /// How many more sections the payload may have.
    #[must_use]
    pub fn room(&self) -> usize {
        MAX_SECTIONS - self.parts.len()
    }

    /// The payload.
    #[must_use]
    pub fn finish(self) -> Payload {
        Payload { parts: self.parts, bytes: self.bytes }
    }
}

/// A payload ready to be sent.
#[derive(Debug, Default)]
pub struct Payload {
    /// Its sections.
    pub parts: Vec<Outgoing>,
    /// The length of all that has to be moved, bytes.
    pub bytes: u64,
}

/// Announces a segment that is new to the receiver.
///
/// # Errors
/// When a bound of the format is exceeded.
pub(crate) fn announce(
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
    passing: &Passing,
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
    /// The sections as a message names them.
    #[must_use]
    pub fn sections(&self) -> Sections<'_> {
        let describe = |part| match part {
            &Outgoing::Shared { ref lent, offset, len } => {
                let lease = Lease { segment: lent.segment().number(), offset };
                Section { len, place: Place::Shared(lease) }
            }
            Outgoing::Passed(stretch) => {
                // Where it cannot be passed on it is not put into a payload.
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

    /// Where an answer finds what the worker has left in section number `index`.
    ///
    /// # Errors
    /// When the section does not lie in shared memory, is shorter, or cannot be mapped.
    pub fn left(&self, index: u16, len: u64) -> io::Result<Left> {
        match self.parts.get(usize::from(index)) {
            // Arrays of the caller's program are not given away as results.
            Some(Outgoing::Shared { lent, offset, len: whole })
                if len <= *whole && lent.segment().number() < FIRST_OF_ARRAYS =>
            {
                Left::new(lent, *offset, len)
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The sections as a message names them to a host, which no memory is shared with.
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

    /// The contents of those that are streamed to a host.
    ///
    /// # Errors
    /// When shared memory cannot be mapped.
    pub fn sources(&self) -> io::Result<VecDeque<Arc<Source>>> {
        let mut sources = VecDeque::new();
        for part in &self.parts {
            match part {
                Outgoing::Stream(source) => sources.push_back(Arc::clone(source)),
                Outgoing::Shared { lent, offset, len } => {
                    sources.push_back(Arc::new(Source::held(Left::new(lent, *offset, *len)?)));
                }
                Outgoing::Passed(stretch) => {
                    sources.push_back(Arc::new(Source::held(Incoming::Shared(stretch.clone()))));
                }
                _ => {}
            }
        }
        Ok(sources)
    }

    /// Announces the segments that the receiver does not know yet; `is_new` says which.
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

    /// Whether parts of it are kept by the receiver, so that nobody else can take it.
    pub(crate) fn is_kept_in_part(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Outgoing::Kept { .. }))
    }

    /// Takes off what was added behind its first sections, when it had so many bytes.
    pub(crate) fn cut_back(&mut self, sections: usize, bytes: u64) {
        self.parts.truncate(sections);
        self.bytes = bytes;
    }

    /// Whether parts of it are read where they lie.
    pub(crate) fn is_lent(&self) -> bool {
        let lies = |part: &Outgoing| matches!(part, Outgoing::Shared { .. } | Outgoing::Passed(_));
        self.parts.iter().any(lies)
    }

    /// What the streamed sections hold, bytes.
    #[must_use]
    pub fn streamed(&self) -> u64 {
        let len = |part: &Outgoing| match part {
            Outgoing::Stream(bytes) => bytes.len() as u64,
            _ => 0,
        };
        self.parts.iter().map(len).sum()
    }

    /// Appends the streamed sections, directly behind their message.
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

/// One section as it came in.
#[derive(Debug, Clone)]
pub enum Incoming {
    /// Received bytes.
    Bytes(Vec<u8>),
    /// Received bytes that more than one message refers to.
    Kept(Arc<Vec<u8>>),
    /// A stretch of shared memory.
    Shared(Borrowed),
    /// Received bytes that lie where their caller wants them.
    Placed(Arc<Sink>),
    /// What a call's own section of that number holds now, so many bytes of it.
    Argument(u16, u64),
    /// The same, where it lies.
    Left(Left),
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
            // They are not ours to look at.
            Incoming::Placed(_) | Incoming::Argument(..) => &[],
        }
    }

    /// How many bytes it has.
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

impl Held for Incoming {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

impl Held for Left {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

/// Takes the sections of a message that came in, looking up shared ones.
///
/// # Errors
/// When a section refers to memory that was not announced, or could not be mapped. Those that could be
/// go back then.
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

/// Copies what lies in shared memory if too much of this process's memory is shared already: each
/// stretch that somebody keeps takes one of the mappings that the kernel allows.
#[must_use]
pub(crate) fn kept_within_bounds(sections: Vec<Incoming>) -> Vec<Incoming> {
    if !sys::mappings_are_many() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_copies_for_a_receiver_that_shares_nothing_use_the_same_memory_again() {
        let pool = Pool::new(64 << 20);
        let bytes = vec![7; WORTH_A_SEGMENT as usize];
        let copy = || {
            let mut payload = PayloadBuilder::new(&pool, false, 16 << 10);
            payload.add(&bytes).unwrap();
            payload.add(&bytes[1..]).unwrap();
            let payload = payload.finish();
            let places: Vec<_> =
                payload.streamed_sections().into_iter().map(|section| section.place).collect();
            assert!(matches!(places[..], [Place::Stream, Place::Stream]), "{places:?}");
            let sources = payload.sources().unwrap();
            sources[0].with(|sent| assert!(sent == bytes));
            sources[1].with(|sent| assert!(sent == &bytes[1..]));
            match &payload.parts[..] {
                [Outgoing::Shared { lent, .. }, Outgoing::Stream(_)] => lent.segment().number(),
                parts => panic!("{parts:?}"),
            }
        };
        assert_eq!(copy(), copy());
    }
}
