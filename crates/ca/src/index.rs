//! Index of all certificates that an authority has issued, as JSON lines.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::AuthorityError;
use crate::files::{self, PRIVATE};

/// Who a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateRole {
    /// A user, who connects to servers.
    User,
    /// A server.
    Server,
}

/// A certificate that the authority has issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Serial number, hexadecimal.
    pub serial: String,
    /// Who it is for.
    pub role: CertificateRole,
    /// Name of the user or server.
    pub name: String,
    /// Groups of a user.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Names and addresses of a server.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Start of the validity, seconds since 1970.
    pub from: u64,
    /// End of the validity, seconds since 1970.
    pub until: u64,
    /// When it was revoked, seconds since 1970.
    #[serde(default)]
    pub revoked: Option<u64>,
    /// The public key (SubjectPublicKeyInfo, DER, base64): a certificate is renewed without a new request.
    pub key: String,
}

impl Issued {
    /// Whether the certificate is neither revoked nor expired.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.revoked.is_none() && self.until > now()
    }

    /// Whether this is its serial number or the name of its user or server.
    pub(crate) fn is_called(&self, target: &str) -> bool {
        self.serial.eq_ignore_ascii_case(target) || self.name == target
    }
}

/// Reads a file of JSON lines.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, AuthorityError> {
    let text = files::read_if_exists(file)?;
    let parse = |(index, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| AuthorityError::Damaged {
            file: file.to_owned(),
            line: index + 1,
            reason: error.to_string(),
        })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(parse).collect()
}

/// Replaces a file of JSON lines.
pub(crate) fn write<T: Serialize>(file: &Path, records: &[T]) -> Result<(), AuthorityError> {
    let mut text = String::new();
    for record in records {
        let line = serde_json::to_string(record).map_err(|error| AuthorityError::File {
            action: "write",
            file: file.to_owned(),
            error: error.into(),
        })?;
        text.push_str(&line);
        text.push('\n');
    }
    files::write(file, &text, PRIVATE)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The day of a time in seconds since 1970, as `2030-12-31`, in UTC.
#[must_use]
pub fn date(seconds: u64) -> String {
    let time =
        i64::try_from(seconds).ok().and_then(|time| OffsetDateTime::from_unix_timestamp(time).ok());
    time.map_or_else(|| "an unknown day".to_owned(), |time| time.date().to_string())
}
