//! Calls made by running functions: requests and answers of worker and client in callbacks.
//!
//! The highest callback indices are not parameters of functions but requests. The first section of a request and of
//! its answer is a list of texts. The last text of a request names the server of the call, or is empty. Requests with
//! [`LOCAL`] are served where the function runs; the others by the client.

/// The server that means the machine of the function.
pub const LOCAL: &str = "localhost";
/// The first text of the answer if there is no such server; the second is the message.
pub const NO_SERVER: &str = "no server";
/// Makes a call: form of the function, its name, deadline in ns or nothing, idempotent (0 or 1), priority. The next
/// section is the function's pickle or empty, and the arguments follow. The answer: the call's number, nothing if
/// there is no room for it, or [`NO_SERVER`].
pub const SUBMIT: u16 = u16::MAX;
/// Waits for the call with a number. The answer: its outcome, with further sections.
pub const WAIT: u16 = u16::MAX - 1;
/// Whether the call has ended: 0 or 1.
pub const DONE: u16 = u16::MAX - 2;
/// Cancels the call. The answer: whether it had not ended, 0 or 1.
pub const CANCEL: u16 = u16::MAX - 3;

/// Whether a callback index is such a request.
pub fn is_request(index: u16) -> bool {
    index >= CANCEL
}

/// Whether a request with these texts is served where the function runs.
pub fn is_local(texts: &[&str]) -> bool {
    texts.last() == Some(&LOCAL)
}

/// Encodes a list of texts: their number, then each text after its length, as little-endian 32-bit numbers.
#[must_use]
pub fn encode(texts: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = (texts.len() as u32).to_le_bytes().to_vec();
    for text in texts {
        bytes.extend_from_slice(&(text.as_ref().len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_ref().as_bytes());
    }
    bytes
}

/// Decodes such a list.
#[must_use]
pub fn decode(mut bytes: &[u8]) -> Option<Vec<&str>> {
    let number = |bytes: &mut &[u8]| {
        let (first, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        usize::try_from(u32::from_le_bytes(*first)).ok()
    };
    let count = number(&mut bytes)?;
    // Each text takes at least four bytes.
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
