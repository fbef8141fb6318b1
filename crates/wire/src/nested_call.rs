//! Calls that running functions make: what worker and client say of them in callbacks.
//!
//! The highest indices of callbacks are no parameters of functions but requests. The first section of
//! a request and of its answer is a list of texts.

/// Make a call: form of the function, its name, deadline in ns or nothing, idempotent (0 or 1), priority; the next
/// section is the function's pickle or empty, and those behind it are the arguments. The answer: the
/// call's number, or nothing if there is no room for it.
pub const SUBMIT: u16 = u16::MAX;
/// Wait for call number so-and-so. The answer: what became of it, with further sections.
pub const WAIT: u16 = u16::MAX - 1;
/// Whether it has ended: 0 or 1.
pub const DONE: u16 = u16::MAX - 2;
/// Give it up. The answer: whether it had not ended, 0 or 1.
pub const CANCEL: u16 = u16::MAX - 3;

/// Whether a callback is such a request.
pub fn is_request(index: u16) -> bool {
    index >= CANCEL
}

/// A list of texts as bytes: their number, then each with its length in front, 32 bits, little end first.
#[must_use]
pub fn encode(texts: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = (texts.len() as u32).to_le_bytes().to_vec();
    for text in texts {
        bytes.extend_from_slice(&(text.as_ref().len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_ref().as_bytes());
    }
    bytes
}

/// The texts of such a list.
#[must_use]
pub fn decode(mut bytes: &[u8]) -> Option<Vec<&str>> {
    let number = |bytes: &mut &[u8]| {
        let (first, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        usize::try_from(u32::from_le_bytes(*first)).ok()
    };
    let count = number(&mut bytes)?;
    // Each text takes four bytes at least.
    let mut texts = Vec::with_capacity(count.min(bytes.len() / 4));
    for _ in 0..count {
        let len = number(&mut bytes)?;
        let (text, rest) = bytes.split_at_checked(len)?;
        texts.push(std::str::from_utf8(text).ok()?);
        bytes = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_texts_come_back() {
        let bytes = encode(&["", "one", "zwölf"]);
        assert_eq!(decode(&bytes).unwrap(), ["", "one", "zwölf"]);
        assert_eq!(decode(&encode(&[] as &[&str])).unwrap(), [""; 0]);
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), None);
        }
        assert_eq!(decode(&[0xff; 40]), None);
    }
}
