//! One-time tokens: whoever has one gets a certificate for one user, once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::AuthorityError;
use crate::index::now;

/// Prefix of a token without an address, with the number of its format.
const MARK: &str = "gridrpc-ca1.";

/// How long a used or expired token is remembered, so that its holder learns why it is refused, seconds.
const REMEMBERED: u64 = 30 * 24 * 3600;

/// A token, as the authority keeps it: without the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TokenRecord {
    /// BLAKE3 hash of the token, hexadecimal.
    hash: String,
    pub user: String,
    pub groups: Vec<String>,
    until: u64,
    used: bool,
}

impl TokenRecord {
    /// The record of a new token. `valid`: seconds.
    pub(crate) fn new(token: &str, user: &str, groups: &[String], valid: u64) -> TokenRecord {
        TokenRecord {
            hash: hash(token),
            user: user.to_owned(),
            groups: groups.to_vec(),
            until: now().saturating_add(valid),
            used: false,
        }
    }
}

/// A token as text, without an address.
pub(crate) fn encode(secret: &[u8]) -> String {
    format!("{MARK}{}", URL_SAFE_NO_PAD.encode(secret))
}

/// Marks a token as used, and returns its user and groups. `requested`: the user that it has to be for.
pub(crate) fn take(
    records: &mut [TokenRecord],
    token: &str,
    requested: Option<String>,
) -> Result<(String, Vec<String>), AuthorityError> {
    // Comparing hashes reveals nothing about tokens by its duration.
    let hash = hash(token.trim());
    let record = records.iter_mut().find(|record| record.hash == hash);
    let record = record.ok_or(AuthorityError::UnknownToken)?;
    let user = record.user.clone();
    if record.used {
        return Err(AuthorityError::UsedToken { user });
    }
    if record.until <= now() {
        return Err(AuthorityError::ExpiredToken { user });
    }
    if let Some(requested) = requested.filter(|requested| *requested != user) {
        return Err(AuthorityError::OtherUser { user, requested });
    }
    record.used = true;
    Ok((user, record.groups.clone()))
}

/// Makes the tokens of a user useless. Returns whether there were any.
pub(crate) fn cancel(records: &mut [TokenRecord], user: &str) -> bool {
    let mut is_changed = false;
    for record in records.iter_mut().filter(|record| record.user == user && !record.used) {
        record.used = true;
        is_changed = true;
    }
    is_changed
}

/// Forgets old tokens.
pub(crate) fn clean(records: &mut Vec<TokenRecord>) {
    records.retain(|record| record.until.saturating_add(REMEMBERED) > now());
}

fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}
