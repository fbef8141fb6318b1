//! Sections: the pieces of a payload, and their locations.

use crate::bytes::{Reader, WireError, Writer, bounded};

/// Maximum number of sections of a payload.
pub const MAX_SECTIONS: usize = 1024;
/// Maximum number of segments that a client has announced to a daemon and not dropped.
pub const MAX_DAEMON_SEGMENTS: usize = 64;
/// Maximum length of a section, bytes. Far above any memory, far below overflow of sums.
pub const MAX_SECTION_LEN: u64 = 1 << 48;

/// A stretch of a shared-memory segment, lent to the receiver until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The owner's number of the segment.
    pub segment: u32,
    /// Offset of the stretch, bytes.
    pub offset: u64,
}

/// Location of a section's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// In the frame itself.
    Inline(&'a [u8]),
    /// In the `Data` frames that follow directly.
    Stream,
    /// In a shared-memory segment that the receiver has mapped.
    Shared(Lease),
    /// Part of shared data that the receiver already has.
    Blob {
        /// The shared data's number.
        blob: u64,
        /// Section number in the shared data.
        part: u32,
    },
    /// In an answer: in the call's own section with this number, in the receiver's shared memory, which the worker
    /// has written to.
    Argument(u16),
    /// On a host, which keeps the result of a call.
    Kept {
        /// The call.
        call: u64,
        /// Section number in its result.
        section: u16,
    },
}

/// One piece of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Length, bytes.
    pub len: u64,
    /// Location of the bytes.
    pub place: Place<'a>,
}

/// The sections of one payload, in order.
pub type Sections<'a> = Vec<Section<'a>>;

const INLINE: u8 = 0;
const STREAM: u8 = 1;
const SHARED: u8 = 2;
const BLOB: u8 = 3;
const ARGUMENT: u8 = 4;
const KEPT: u8 = 5;
/// Minimum length of a descriptor: place and length.
const MIN_DESCRIPTOR: usize = 9;

impl<'a> Section<'a> {
    /// A section whose bytes travel in the frame.
    #[must_use]
    pub fn inline(bytes: &'a [u8]) -> Self {
        Section { len: bytes.len() as u64, place: Place::Inline(bytes) }
    }
}

impl Writer<'_> {
    pub(crate) fn sections(&mut self, sections: &[Section<'_>]) -> Result<(), WireError> {
        bounded("number of sections", sections.len() as u64, MAX_SECTIONS as u64)?;
        self.count(sections.len(), "number of sections")?;
        for section in sections {
            bounded("section length", section.len, MAX_SECTION_LEN)?;
            let tag = match section.place {
                Place::Inline(bytes) if bytes.len() as u64 != section.len => {
                    return Err(WireError::Meaningless {
                        what: "section length",
                        value: section.len,
                    });
                }
                Place::Inline(_) => INLINE,
                Place::Stream => STREAM,
                Place::Shared(_) => SHARED,
                Place::Blob { .. } => BLOB,
                Place::Argument(_) => ARGUMENT,
                Place::Kept { .. } => KEPT,
            };
            self.u8(tag);
            self.u64(section.len);
            match section.place {
                Place::Inline(_) | Place::Stream => {}
                Place::Shared(lease) => self.lease(lease),
                Place::Blob { blob, part } => {
                    self.u64(blob);
                    self.u32(part);
                }
                Place::Argument(index) => self.u16(index),
                Place::Kept { call, section } => {
                    self.u64(call);
                    self.u16(section);
                }
            }
        }
        for section in sections {
            if let Place::Inline(bytes) = section.place {
                self.out.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    pub(crate) fn lease(&mut self, lease: Lease) {
        self.u32(lease.segment);
        self.u64(lease.offset);
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn sections(&mut self) -> Result<Sections<'a>, WireError> {
        let count = self.count(MIN_DESCRIPTOR, MAX_SECTIONS, "number of sections")?;
        let mut sections = self.list(count, Reader::descriptor)?;
        for section in &mut sections {
            if let Place::Inline(bytes) = &mut section.place {
                bounded("inline section", section.len, self.remaining() as u64)?;
                *bytes = self.bytes(section.len as usize, "inline section")?;
            }
        }
        Ok(sections)
    }

    /// Location and length of a section; the bytes of an inline one follow later.
    fn descriptor(&mut self) -> Result<Section<'a>, WireError> {
        let tag = self.u8("section place")?;
        let len = self.u64("section length")?;
        bounded("section length", len, MAX_SECTION_LEN)?;
        let place = match tag {
            INLINE => Place::Inline(&[]),
            STREAM => Place::Stream,
            SHARED => Place::Shared(self.lease()?),
            BLOB => Place::Blob { blob: self.u64("blob")?, part: self.u32("blob part")? },
            ARGUMENT => Place::Argument(self.u16("argument")?),
            KEPT => Place::Kept { call: self.u64("call")?, section: self.u16("kept section")? },
            other => {
                return Err(WireError::Meaningless { what: "section place", value: other.into() });
            }
        };
        Ok(Section { len, place })
    }

    pub(crate) fn lease(&mut self) -> Result<Lease, WireError> {
        Ok(Lease { segment: self.u32("segment")?, offset: self.u64("segment offset")? })
    }
}
