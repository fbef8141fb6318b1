//! Sections whose bytes are in memory: into a message, and out of one.

use std::collections::VecDeque;
use std::sync::Arc;

use gridrpc_wire::{Place, Section, Sections};

use super::Incoming;
use crate::Stream;
use crate::buffers::Source;

/// Most bytes that a frame carries inline, over all sections.
pub const MAX_INLINE: usize = 512 << 10;
/// The longest of those sections.
const INLINE: usize = 32 << 10;

/// Splits sections into those that a message describes and those that are streamed.
#[must_use]
pub fn divide(parts: &[Incoming]) -> (Sections<'_>, VecDeque<Arc<Source>>) {
    let mut inline = 0;
    let mut streams = VecDeque::new();
    let mut sections = Vec::with_capacity(parts.len());
    for part in parts {
        if let Incoming::Argument(index, len) = part {
            sections.push(Section { len: *len, place: Place::Argument(*index) });
            continue;
        }
        let bytes = part.bytes();
        if bytes.len() < INLINE && inline + bytes.len() <= MAX_INLINE {
            inline += bytes.len();
            sections.push(Section::inline(bytes));
        } else {
            sections.push(Section { len: bytes.len() as u64, place: Place::Stream });
            streams.push_back(Arc::new(Source::held(part.clone())));
        }
    }
    (sections, streams)
}

/// The bytes of each section of a message that has arrived.
#[must_use]
pub fn section_bytes(sections: &[Section<'_>], streams: Vec<Stream>) -> Vec<Vec<u8>> {
    let mut streams = streams.into_iter();
    sections
        .iter()
        .map(|section| match section.place {
            Place::Inline(bytes) => bytes.to_vec(),
            _ => streams.next().map(Stream::into_bytes).unwrap_or_default(),
        })
        .collect()
}
