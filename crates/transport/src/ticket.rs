//! Ticket of an agent for its client. A launcher passes it on, as one word of text.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a secret.
pub const SECRET: usize = 32;

/// Where to dial, and the secret to present. Its holder can be this agent, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Addresses of the client, as `host:port`, the most likely first.
    pub addresses: Vec<String>,
    /// Distinguishes this agent from all others; it is accepted once.
    pub secret: [u8; SECRET],
    /// Keys for the encryption of the connection; `None`: plain TCP.
    pub keys: Option<TicketKeys>,
}

/// The keys of a grid for its agents, DER.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketKeys {
    /// The certificate of the client.
    pub client: Vec<u8>,
    /// The certificate of the agents.
    pub certificate: Vec<u8>,
    /// Its private key (PKCS #8).
    pub key: Vec<u8>,
}

/// A word that is not a ticket.
#[derive(Debug, Error)]
#[error("this is not a ticket of a gridrpc client: {0}")]
pub struct TicketError(String);

/// Prefix of a ticket, with the number of its format.
const MARK: &str = "gridrpc1.";

impl Ticket {
    /// Encodes the ticket as one word, without blanks and shell metacharacters.
    ///
    /// # Panics
    /// Never: a ticket is plain data.
    #[must_use]
    pub fn encode(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{MARK}{}", URL_SAFE_NO_PAD.encode(json))
    }

    /// Decodes a ticket.
    ///
    /// # Errors
    /// When the word is not a ticket.
    pub fn decode(word: &str) -> Result<Ticket, TicketError> {
        let wrong = |why: String| TicketError(why);
        let text = word.trim().strip_prefix(MARK);
        let text = text.ok_or_else(|| wrong(format!("it does not start with `{MARK}`")))?;
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The other fields are secret.
        f.debug_struct("Ticket").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let keys = TicketKeys { client: vec![1], certificate: vec![2, 3], key: vec![255; 40] };
        Ticket { addresses: vec!["10.0.0.1:4000".into()], secret: [7; SECRET], keys: Some(keys) }
    }

    #[test]
    fn a_ticket_is_one_word_and_can_be_read_again() {
        let word = ticket().encode();
        assert!(word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)));
        assert_eq!(Ticket::decode(&format!(" {word}\n")).unwrap(), ticket());
    }

    #[test]
    fn what_is_no_ticket_is_refused() {
        let word = ticket().encode();
        for wrong in ["", "hello", "gridrpc1.", "gridrpc1.!!!", &word[..word.len() - 9]] {
            let error = Ticket::decode(wrong).unwrap_err().to_string();
            assert!(error.contains("not a ticket"), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", ticket()), r#"Ticket { addresses: ["10.0.0.1:4000"], .. }"#);
    }
}
