//! How results of other calls lie in the arguments of a call: its last section is a table of them,
//! with the small ones packed behind it. The others are sections of the call, in front of it.
//!
//! The table is made of numbers of 64 bits, little end first: how many results there are; then for each of
//! them how many sections it has, and for each of those two numbers, where it is and how long it is, bytes. With
//! its highest bit set, the first is the number of a section of the call; otherwise it counts from the
//! start of the table, in bytes.

use std::ops::Range;

/// Set in the number of a section.
const IN_SECTION: u64 = 1 << 63;
/// What is packed starts at multiples of so many bytes, as arrays like it.
const ALIGNED: usize = 64;
const NUMBER: usize = 8;

/// Where a section of a result is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPart {
    /// It is the section of the call of this number.
    Section(usize),
    /// These bytes of the section that holds the table.
    Packed(Range<usize>),
}

/// The section with the table, while it is put together.
#[derive(Debug)]
pub struct Table {
    numbers: Vec<u64>,
    packed: Vec<u8>,
    /// Where what is packed starts.
    start: usize,
}

impl Table {
    /// For results of so many sections each.
    pub fn new(sections: &[usize]) -> Table {
        let numbers = 1 + sections.iter().map(|count| 1 + 2 * count).sum::<usize>();
        let start = (numbers * NUMBER).next_multiple_of(ALIGNED);
        let mut table = Table { numbers: Vec::with_capacity(numbers), packed: Vec::new(), start };
        table.numbers.push(sections.len() as u64);
        table
    }

    /// The sections of the next result follow.
    pub fn begin(&mut self, sections: usize) {
        self.numbers.push(sections as u64);
    }

    /// It is section number `index` of the call.
    pub fn refer(&mut self, index: usize, len: usize) {
        self.numbers.extend([IN_SECTION | index as u64, len as u64]);
    }

    /// Its next section is small, and packed behind the table.
    pub fn pack(&mut self, bytes: &[u8]) {
        self.packed.resize(self.packed.len().next_multiple_of(ALIGNED), 0);
        let place = self.start + self.packed.len();
        self.packed.extend_from_slice(bytes);
        self.numbers.extend([place as u64, bytes.len() as u64]);
    }

    /// The section.
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

/// Where the sections of result number `index` are, if the section that should hold the table says so.
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
    // As many as there is room for: the rest cannot be there.
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
            // It may be found or not, but never outside.
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
