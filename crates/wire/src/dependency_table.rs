//! Results of other calls in the arguments of a call: the last section is a table of them, with the small ones packed
//! after it. The others are sections of the call, in front of it.
//!
//! The table consists of little-endian 64-bit numbers: the number of results; then for each of them its number of
//! sections, and for each section its place and its length in bytes. If its highest bit is set, the place is the
//! number of a section of the call; otherwise it is an offset from the start of the table, in bytes.

use std::ops::Range;

/// Flag of a place that is a section number.
const IN_SECTION: u64 = 1 << 63;
/// Alignment of packed sections, which suits arrays.
const ALIGNED: usize = 64;
const NUMBER: usize = 8;

/// Location of a section of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPart {
    /// The section of the call with this number.
    Section(usize),
    /// These bytes of the section that contains the table.
    Packed(Range<usize>),
}

/// Builder for the section with the table.
#[derive(Debug)]
pub struct Table {
    numbers: Vec<u64>,
    packed: Vec<u8>,
    /// Start of the packed sections.
    start: usize,
}

impl Table {
    /// Creates a table for results with these numbers of sections.
    pub fn new(sections: &[usize]) -> Table {
        let numbers = 1 + sections.iter().map(|count| 1 + 2 * count).sum::<usize>();
        let start = (numbers * NUMBER).next_multiple_of(ALIGNED);
        let mut table = Table { numbers: Vec::with_capacity(numbers), packed: Vec::new(), start };
        table.numbers.push(sections.len() as u64);
        table
    }

    /// Begins the next result.
    pub fn begin(&mut self, sections: usize) {
        self.numbers.push(sections as u64);
    }

    /// Adds its next section: section number `index` of the call.
    pub fn refer(&mut self, index: usize, len: usize) {
        self.numbers.extend([IN_SECTION | index as u64, len as u64]);
    }

    /// Adds its next section, which is small, and packs it after the table.
    pub fn pack(&mut self, bytes: &[u8]) {
        self.packed.resize(self.packed.len().next_multiple_of(ALIGNED), 0);
        let place = self.start + self.packed.len();
        self.packed.extend_from_slice(bytes);
        self.numbers.extend([place as u64, bytes.len() as u64]);
    }

    /// The finished section.
    pub fn finish(self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.numbers.iter().flat_map(|one| one.to_le_bytes()).collect();
        debug_assert!(bytes.len() <= self.start);
        if self.packed.is_empty() {
            return bytes;
        }
        bytes.resize(self.start, 0);
        bytes.extend_from_slice(&self.packed);
        bytes
    }
}

/// The locations of the sections of result number `index`; `None` if the table is malformed.
#[must_use]
pub fn find(table: &[u8], index: usize) -> Option<Vec<ResultPart>> {
    let number = |at: usize| {
        let bytes = table.get(at.checked_mul(NUMBER)?..)?.first_chunk::<NUMBER>()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let whole = |number: u64| usize::try_from(number).ok();
    if index >= whole(number(0)?)? {
        return None;
    }
    let mut at: usize = 1;
    for _ in 0..index {
        let sections = whole(number(at)?)?;
        at = at.checked_add(sections.checked_mul(2)?.checked_add(1)?)?;
    }
    let sections = whole(number(at)?)?;
    // Limited to what the table can hold: further entries cannot exist.
    let mut places = Vec::with_capacity(sections.min(table.len() / NUMBER));
    for section in 0..sections {
        let place = number(at + 1 + 2 * section)?;
        if place & IN_SECTION != 0 {
            places.push(ResultPart::Section(whole(place & !IN_SECTION)?));
        } else {
            let (start, len) = (whole(place)?, whole(number(at + 2 + 2 * section)?)?);
            let range = start..start.checked_add(len)?;
            table.get(range.clone())?;
            places.push(ResultPart::Packed(range));
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let mut table = Table::new(&[2, 0, 1]);
        table.begin(2);
        table.pack(b"first");
        table.refer(7, 1_000_000);
        table.begin(0);
        table.begin(1);
        table.pack(b"third");
        table.finish()
    }

    #[test]
    fn results_are_found_where_they_were_put() {
        let table = example();
        let packed = |place: &ResultPart| match place {
            ResultPart::Packed(range) => (range.start % ALIGNED, table[range.clone()].to_vec()),
            ResultPart::Section(_) => panic!("not packed"),
        };
        let first = find(&table, 0).unwrap();
        assert_eq!(packed(&first[0]), (0, b"first".to_vec()));
        assert_eq!(first[1], ResultPart::Section(7));
        assert_eq!(find(&table, 1).unwrap(), []);
        assert_eq!(packed(&find(&table, 2).unwrap()[0]), (0, b"third".to_vec()));
        assert_eq!(find(&table, 3), None);
    }

    #[test]
    fn a_broken_table_is_refused() {
        let table = example();
        for len in 0..table.len() {
            // Any result is fine, as long as nothing outside is read.
            for index in 0..4 {
                drop(find(&table[..len], index));
            }
        }
        for at in 0..table.len() {
            for wrong in [1, 0x80, 0xff] {
                let mut table = table.clone();
                table[at] ^= wrong;
                (0..4).for_each(|index| drop(find(&table, index)));
            }
        }
        assert_eq!(find(&[0xff; 64], 0), None);
    }
}
