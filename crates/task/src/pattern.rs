//! What files of a worker hold: a pattern that depends on the worker and on the place in the file, so
//! that a block of another worker, or of another place, is noticed.

/// Bytes of a page: each has the same words, changed by a key of its own. No two pages are alike, and
/// none has repetitions that a file system could make use of.
const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;

/// The pattern of one worker.
pub struct Pattern {
    words: [u64; WORDS],
    worker: u64,
}

impl Pattern {
    /// That of this worker.
    pub fn of(worker: u32) -> Pattern {
        let mut words = [0; WORDS];
        for (number, word) in (0..).zip(&mut words) {
            *word = mixed(number);
        }
        Pattern { words, worker: u64::from(worker) << 40 }
    }

    /// What belongs at this place of the file.
    pub fn fill(&self, block: &mut [u8], offset: u64) {
        let mut page = [0; PAGE];
        let mut at = offset;
        for piece in pieces(block.len(), offset) {
            self.make(at / PAGE as u64, &mut page);
            let start = at as usize % PAGE;
            block[piece.clone()].copy_from_slice(&page[start..start + piece.len()]);
            at += piece.len() as u64;
        }
    }

    /// The first place in the file where the block holds something else.
    pub fn first_wrong(&self, block: &[u8], offset: u64) -> Option<u64> {
        let mut page = [0; PAGE];
        let mut at = offset;
        for piece in pieces(block.len(), offset) {
            self.make(at / PAGE as u64, &mut page);
            let start = at as usize % PAGE;
            let expected = &page[start..start + piece.len()];
            if block[piece.clone()] != *expected {
                let wrong = block[piece.clone()].iter().zip(expected).position(|(a, b)| a != b);
                return wrong.map(|place| at + place as u64);
            }
            at += piece.len() as u64;
        }
        None
    }

    fn make(&self, number: u64, page: &mut [u8; PAGE]) {
        let key = mixed(self.worker ^ !number);
        for (bytes, word) in page.chunks_exact_mut(8).zip(&self.words) {
            bytes.copy_from_slice(&(word ^ key).to_le_bytes());
        }
    }
}

/// The parts of a block that lie in one page each.
fn pieces(length: usize, offset: u64) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let room = PAGE - (offset + from as u64) as usize % PAGE;
        let to = length.min(from + room);
        let piece = from..to;
        from = to;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A number that looks drawn at random (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(worker: u32, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Pattern::of(worker).fill(&mut bytes, 0);
        bytes
    }

    #[test]
    fn blocks_of_any_size_make_the_same_file() {
        let whole = whole(3, 3 * PAGE + 17);
        for size in [1, 7, 8, 1000, PAGE, PAGE + 1, 2 * PAGE] {
            let mut offset = 0;
            for block in whole.chunks(size) {
                let mut made = vec![0; block.len()];
                Pattern::of(3).fill(&mut made, offset);
                assert_eq!(made, block);
                assert_eq!(Pattern::of(3).first_wrong(block, offset), None);
                offset += block.len() as u64;
            }
        }
    }

    #[test]
    fn every_changed_byte_is_noticed_where_it_lies() {
        let whole = whole(0, PAGE + 100);
        for place in [0, 1, 8, 4095, 4096, PAGE + 99] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert_eq!(Pattern::of(0).first_wrong(&changed, 0), Some(place as u64));
        }
    }

    #[test]
    fn other_workers_and_other_places_have_other_data() {
        let (zero, one) = (whole(0, 4 * PAGE), whole(1, 4 * PAGE));
        assert_eq!(Pattern::of(1).first_wrong(&zero, 0), Some(0));
        assert_ne!(zero, one);
        let mut pages: Vec<&[u8]> = zero.chunks(PAGE).chain(one.chunks(PAGE)).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 8);
        assert_eq!(Pattern::of(0).first_wrong(&zero[PAGE..], 0), Some(0));
    }
}
