//! Tokens that lead to an enrolment service.

use std::net::SocketAddr;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::{TokenError, names};

/// Fingerprint of an authority: the BLAKE3 hash of its certificate, DER.
pub(super) type Fingerprint = [u8; 32];

pub(crate) fn fingerprint(certificate: &[u8]) -> Fingerprint {
    *blake3::hash(certificate).as_bytes()
}

/// Prefix of a token, with the number of its format.
const MARK: &str = "gridrpc-ca2.";
const SECRET: usize = 24;
const FINGERPRINT: usize = 32;
/// Notices tokens that were not copied as a whole.
const CHECKSUM: usize = 4;
/// Longest address, bytes: a host name of 253 bytes and a port.
const LONGEST_ADDRESS: usize = 260;

/// A one-time token with the address of the service and the fingerprint of the authority.
///
/// As text it is `gridrpc-ca2.` and the base64url encoding of secret, fingerprint, address and checksum.
#[derive(Clone, PartialEq, Eq)]
pub struct EnrolmentToken {
    address: String,
    authority: Fingerprint,
    text: String,
}

impl EnrolmentToken {
    /// A token for the service at this address, `HOST:PORT`.
    pub(crate) fn new(
        secret: &[u8; SECRET],
        authority: &Fingerprint,
        address: &str,
    ) -> Result<EnrolmentToken, TokenError> {
        check_address(address)?;
        let mut bytes = [&secret[..], authority, address.as_bytes()].concat();
        bytes.extend(checksum(&bytes));
        let text = format!("{MARK}{}", URL_SAFE_NO_PAD.encode(bytes));
        Ok(EnrolmentToken { address: address.to_owned(), authority: *authority, text })
    }

    /// Address of the service, `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The token as text. It is secret.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn authority(&self) -> &Fingerprint {
        &self.authority
    }
}

impl FromStr for EnrolmentToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<EnrolmentToken, TokenError> {
        let text = text.trim();
        let Some(encoded) = text.strip_prefix(MARK) else {
            return Err(match text.starts_with("gridrpc-ca1.") {
                true => TokenError::WithoutAddress,
                false => TokenError::NoToken,
            });
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| TokenError::Incomplete)?;
        let (rest, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TokenError::Incomplete)?;
        if checksum(rest) != *sum {
            return Err(TokenError::Incomplete);
        }
        let (_, rest) = rest.split_first_chunk::<SECRET>().ok_or(TokenError::Incomplete)?;
        let (authority, address) =
            rest.split_first_chunk::<FINGERPRINT>().ok_or(TokenError::Incomplete)?;
        let address = String::from_utf8_lossy(address).into_owned();
        check_address(&address)?;
        Ok(EnrolmentToken { address, authority: *authority, text: text.to_owned() })
    }
}

impl std::fmt::Debug for EnrolmentToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The rest is secret.
        f.debug_struct("EnrolmentToken").field("address", &self.address).finish_non_exhaustive()
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM]);
    sum
}

fn check_address(address: &str) -> Result<(), TokenError> {
    let is_name = || {
        let (host, port) = address.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        Some(port > 0 && !host.contains([':', '*']) && names::host(host).is_ok())
    };
    let is_numeric = address.parse().is_ok_and(|address: SocketAddr| address.port() > 0);
    if address.len() <= LONGEST_ADDRESS && (is_numeric || is_name() == Some(true)) {
        return Ok(());
    }
    Err(TokenError::BadAddress { address: address.chars().take(LONGEST_ADDRESS).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(address: &str) -> EnrolmentToken {
        EnrolmentToken::new(&[7; SECRET], &[9; FINGERPRINT], address).unwrap()
    }

    #[test]
    fn a_token_tells_its_address_and_authority() {
        for address in ["ca.example.org:7713", "10.0.0.1:1", "[::1]:65535"] {
            let made = token(address);
            let read: EnrolmentToken = format!(" {}\n", made.as_str()).parse().unwrap();
            assert_eq!((read.address(), read.authority()), (address, &[9; FINGERPRINT]));
            assert_eq!(read, made);
        }
    }

    #[test]
    fn each_shortened_or_changed_token_is_noticed() {
        let text = token("ca:7713").text;
        for len in MARK.len()..text.len() {
            let read = text[..len].parse::<EnrolmentToken>();
            assert!(matches!(read, Err(TokenError::Incomplete)), "{len}: {read:?}");
        }
        for at in MARK.len()..text.len() {
            let mut changed = text.clone();
            let other = if &text[at..=at] == "A" { "B" } else { "A" };
            changed.replace_range(at..=at, other);
            assert!(changed.parse::<EnrolmentToken>().is_err(), "{at}");
        }
    }

    #[test]
    fn other_tokens_and_addresses_are_refused() {
        let read = |text: &str| text.parse::<EnrolmentToken>();
        assert!(matches!(read("hello"), Err(TokenError::NoToken)));
        assert!(matches!(read("gridrpc-ca1.AAAA"), Err(TokenError::WithoutAddress)));
        for bad in ["", "ca", "ca:", "ca:0", "ca:70000", ":1", "a b:1", "::1:7", "*.a:1", "a:1:2"] {
            let made = EnrolmentToken::new(&[0; SECRET], &[0; FINGERPRINT], bad);
            assert!(matches!(made, Err(TokenError::BadAddress { .. })), "{bad}");
        }
    }
}
