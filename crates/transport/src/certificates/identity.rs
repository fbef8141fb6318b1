//! Who a user is, from a verified certificate.

use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer as _, X509Certificate};

use super::credentials::system_time;

/// A user, as the certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the user: the common name of the subject.
    pub user: String,
    /// Groups of the user: the organizational units of the subject.
    pub groups: Vec<String>,
    /// Serial number of the certificate, hexadecimal.
    pub serial: String,
    /// End of the certificate's validity.
    pub until: SystemTime,
    /// Name of the authority that issued the certificate, DER: a serial number is unique for one authority only.
    issuer: Vec<u8>,
}

/// Reason why a certificate names no user.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// It is not a certificate.
    #[error("the certificate cannot be decoded: {reason}")]
    Malformed {
        /// The problem.
        reason: String,
    },
    /// The subject has no common name, or several.
    #[error("the certificate has {count} common names (CN) instead of one, the name of the user")]
    CommonNames {
        /// How many there are.
        count: usize,
    },
    /// A name is empty, too long, or contains control characters.
    #[error(
        "the name {name:?} in the certificate is empty, longer than {LONGEST} bytes or not printable"
    )]
    BadName {
        /// The name, as far as it can be decoded.
        name: String,
    },
}

/// Longest name of a user or group, bytes.
const LONGEST: usize = 128;

impl Identity {
    /// The user of a certificate that has been verified.
    ///
    /// # Errors
    /// When the certificate names no user.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Identity, IdentityError> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| IdentityError::Malformed { reason: error.to_string() })?;
        let subject = parsed.subject();
        let mut users: Vec<_> = subject.iter_common_name().map(name).collect::<Result<_, _>>()?;
        let (Some(user), true) = (users.pop(), users.is_empty()) else {
            let count = subject.iter_common_name().count();
            return Err(IdentityError::CommonNames { count });
        };
        let groups = subject.iter_organizational_unit().map(name).collect::<Result<_, _>>()?;
        Ok(Identity {
            user,
            groups,
            serial: serial_text(parsed.raw_serial()),
            until: system_time(parsed.validity().not_after.timestamp()),
            issuer: parsed.issuer().as_raw().to_vec(),
        })
    }

    pub(super) fn issuer(&self) -> &[u8] {
        &self.issuer
    }
}

fn name(attribute: &AttributeTypeAndValue<'_>) -> Result<String, IdentityError> {
    let text = attribute.as_str();
    let text = text.map_err(|_| IdentityError::BadName {
        name: String::from_utf8_lossy(attribute.as_slice()).into_owned(),
    })?;
    // Names appear in logs and tables, where a line break would forge an entry.
    if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(IdentityError::BadName { name: text.chars().take(LONGEST).collect() });
    }
    Ok(text.to_owned())
}

/// A serial number as hexadecimal digits, without the zeros that DER adds in front.
pub(super) fn serial_text(serial: &[u8]) -> String {
    let zeros = serial.iter().take_while(|byte| **byte == 0).count();
    serial[zeros..].iter().map(|byte| format!("{byte:02x}")).collect()
}
