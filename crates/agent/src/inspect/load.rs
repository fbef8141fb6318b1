//! Test data for bandwidth measurements.

use std::collections::VecDeque;
use std::sync::Arc;

use gridrpc_link::buffers::Source;
use gridrpc_wire::{Place, Section, Sections};

/// Bytes per section.
const BLOCK: usize = 256 << 10;
/// Number of distinct blocks: repetitions are too far apart for any compressor.
const BLOCKS: usize = 32;

/// Random data.
pub struct Load {
    blocks: Vec<Arc<Source>>,
    state: u64,
}

impl Load {
    /// Creates data that no compressor can shorten.
    #[allow(clippy::new_without_default)] // it takes time to make
    pub fn new() -> Load {
        let mut load = Load { blocks: Vec::with_capacity(BLOCKS), state: 0x9e37_79b9_7f4a_7c15 };
        for _ in 0..BLOCKS {
            let block = load.random(BLOCK);
            load.blocks.push(block);
        }
        load
    }

    /// This many bytes, as sections of a message and their contents.
    pub fn take(&mut self, bytes: usize) -> (Sections<'static>, VecDeque<Arc<Source>>) {
        let whole = self.blocks.iter().cycle().take(bytes / BLOCK).cloned();
        let mut streams: VecDeque<Arc<Source>> = whole.collect();
        if !bytes.is_multiple_of(BLOCK) {
            streams.push_back(self.random(bytes % BLOCK));
        }
        let section = |part: &Arc<Source>| Section { len: part.len() as u64, place: Place::Stream };
        (streams.iter().map(section).collect(), streams)
    }

    /// Xorshift.
    fn random(&mut self, bytes: usize) -> Arc<Source> {
        let mut made = Vec::with_capacity(bytes + 7);
        while made.len() < bytes {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            made.extend_from_slice(&self.state.to_ne_bytes());
        }
        made.truncate(bytes);
        Arc::new(Source::owned(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_as_much_as_was_requested() {
        let mut load = Load::new();
        for bytes in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 40 * BLOCK] {
            let (sections, streams) = load.take(bytes);
            assert_eq!(sections.iter().map(|one| one.len).sum::<u64>(), bytes as u64);
            assert_eq!(streams.iter().map(|one| one.len()).sum::<usize>(), bytes);
        }
    }
}
