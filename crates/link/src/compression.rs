//! Compression of streams over a network, where that makes them faster.

use std::time::{Duration, Instant};

use gridrpc_wire::Compression;
use zstd::bulk::Compressor;

/// Compression level of zstd: the fastest that finds repetitions.
const LEVEL: i32 = 1;
/// Data that does not shrink to this share of its size is sent uncompressed, and so is the data after it, for this
/// many bytes.
const WORTH: f64 = 0.9;
const LEFT_ALONE: usize = 16 << 20;
/// How long a link must have been saturated before its rate is known.
const LOOK: Duration = Duration::from_millis(30);
/// How much slower than the compressor a link has to be.
const SLOWER: f64 = 0.8;
/// Minimum size of a piece to compress, bytes.
const SHORT: usize = 4096;

/// Compresses pieces, and measures whether that helps.
#[derive(Default)]
pub(super) struct Packing {
    mode: Compression,
    compressor: Option<Compressor<'static>>,
    /// Bytes that are still sent uncompressed because earlier ones did not shrink.
    left_alone: usize,
    /// Rate of the compressor, input bytes per second.
    speed: Option<f64>,
    /// Start of the link's saturation, and the number of bytes sent since then.
    busy: Option<(Instant, u64)>,
    /// Rate of the link, bytes per second.
    rate: Option<f64>,
}

impl Packing {
    pub(super) fn new(mode: Compression) -> Packing {
        Packing { mode, ..Packing::default() }
    }

    /// Records bytes that the socket has taken; `more`: it takes no more for now.
    pub(super) fn sent(&mut self, bytes: usize, more: bool) {
        if self.mode != Compression::Auto {
            return;
        }
        match &mut self.busy {
            None if more => self.busy = Some((Instant::now(), 0)),
            None => {}
            Some((since, carried)) => {
                *carried += bytes as u64;
                let time = since.elapsed();
                if time >= LOOK {
                    self.rate = Some(*carried as f64 / time.as_secs_f64());
                    self.busy = more.then(|| (Instant::now(), 0));
                } else if !more {
                    self.busy = None;
                }
            }
        }
    }

    fn wanted(&self) -> bool {
        match self.mode {
            Compression::Off => false,
            Compression::On => true,
            Compression::Auto => {
                let speed = self.speed.unwrap_or(f64::INFINITY);
                self.rate.is_some_and(|rate| rate < SLOWER * speed)
            }
        }
    }

    /// Compresses the piece to one zstd frame, if that is shorter and the link is slow enough.
    pub(super) fn pack(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        if piece.len() < SHORT || !self.wanted() {
            return None;
        }
        if self.left_alone > 0 {
            self.left_alone = self.left_alone.saturating_sub(piece.len());
            return None;
        }
        if self.compressor.is_none() {
            self.compressor = Compressor::new(LEVEL).ok();
        }
        let begun = Instant::now();
        let packed = self.compressor.as_mut()?.compress(piece).ok()?;
        let now = piece.len() as f64 / begun.elapsed().as_secs_f64().max(1e-9);
        self.speed = Some(self.speed.map_or(now, |speed| 0.75 * speed + 0.25 * now));
        if packed.len() as f64 > WORTH * piece.len() as f64 {
            self.left_alone = LEFT_ALONE;
            return None;
        }
        Some(packed)
    }
}

impl std::fmt::Debug for Packing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packing").field("mode", &self.mode).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_become_shorter_is_left_alone_for_a_while() {
        let mut packing = Packing::new(Compression::On);
        let zeros = vec![0; 100_000];
        let packed = packing.pack(&zeros).expect("shorter");
        assert!(packed.len() < 1000);
        assert_eq!(zstd::bulk::decompress(&packed, zeros.len()).expect("a frame"), zeros);
        let noise = gridrpc_sys::random::<100_000>().expect("random bytes");
        assert!(packing.pack(&noise).is_none());
        assert!(packing.pack(&zeros).is_none(), "it follows what was not worth it");
        assert!(packing.pack(&zeros[..10]).is_none(), "too short");
    }

    #[test]
    fn links_whose_rate_is_not_known_are_not_slow() {
        let mut packing = Packing::new(Compression::Auto);
        let zeros = vec![0; 100_000];
        assert!(packing.pack(&zeros).is_none());
        packing.sent(1, true);
        std::thread::sleep(LOOK);
        packing.sent(1000, true);
        assert!(packing.pack(&zeros).is_some(), "{packing:?}: it carries 33 kB/s");
        assert!(Packing::new(Compression::Off).pack(&zeros).is_none());
    }
}
