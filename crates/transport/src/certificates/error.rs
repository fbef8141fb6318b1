//! Errors of credentials and revocation lists.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gridrpc_sys::safe_path::UnsafePath;
use rustls::pki_types::UnixTime;
use thiserror::Error;
use x509_parser::time::ASN1Time;

/// Reason why credentials cannot be used.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// A file does not exist.
    #[error("`{}` does not exist: create the credentials with `gridrpc ca`, or correct the path", .file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The system does not let this process read a file.
    #[error("`{}` cannot be read: {error}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// Other users may read the private key.
    #[error(
        "the private key `{}` can be read by other users (mode {mode:03o}): run `chmod 600 {}`",
        .file.display(), .file.display()
    )]
    Exposed {
        /// The file of the key.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Other users can change a file, and so whom this process trusts.
    #[error("{0}; credentials need files and folders that only this user and root can change")]
    Unsafe(#[from] UnsafePath),
    /// A file is not in PEM format.
    #[error("`{}` is not in PEM format: {reason}", .file.display())]
    NotPem {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A file contains nothing of the expected kind.
    #[error("`{}` contains no {expected} in PEM format", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// What it should contain.
        expected: &'static str,
    },
    /// The private key is protected by a password.
    #[error(
        "the private key `{}` is encrypted: decrypt it with `openssl pkey -in {} -out FILE`",
        .file.display(), .file.display()
    )]
    EncryptedKey {
        /// The file of the key.
        file: PathBuf,
    },
    /// A certificate or key has a wrong encoding or an algorithm that is not supported.
    #[error("`{}` cannot be used: {reason}", .file.display())]
    Unusable {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The private key is not the one of the certificate.
    #[error(
        "the private key `{}` does not belong to the certificate `{}`",
        .key.display(), .certificate.display()
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// A certificate is no longer valid.
    #[error(
        "the certificate `{}` expired on {}, and the clock of this host says {}: renew it, or correct the clock",
        .file.display(), Utc(*.until), Utc(*.now)
    )]
    Expired {
        /// The file of the certificate.
        file: PathBuf,
        /// End of its validity.
        until: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
    /// A certificate is not valid yet.
    #[error(
        "the certificate `{}` is valid from {}, and the clock of this host says {}: correct the clock, or wait",
        .file.display(), Utc(*.from), Utc(*.now)
    )]
    NotYetValid {
        /// The file of the certificate.
        file: PathBuf,
        /// Start of its validity.
        from: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
}

/// Reason why a revocation list is not in force. The previous one stays in force.
#[derive(Debug, Error)]
pub enum RevocationsError {
    /// The file cannot be read, or is no PEM file.
    #[error(transparent)]
    File(#[from] CredentialsError),
    /// It is not a revocation list, or not one that is supported.
    #[error("`{}` is not a valid revocation list: {reason}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// None of the trusted authorities has issued it.
    #[error(
        "the revocation list `{}` was issued by `{issuer}`, which is not a trusted authority: copy the list of the \
         authority that signed the users' certificates",
        .file.display()
    )]
    UnknownIssuer {
        /// The file.
        file: PathBuf,
        /// Name of its issuer.
        issuer: String,
    },
    /// It has been changed since it was signed, or another authority of the same name has signed it.
    #[error("the signature of the revocation list `{}` is wrong: copy it again from the authority", .file.display())]
    BadSignature {
        /// The file.
        file: PathBuf,
    },
}

/// A time in UTC, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Utc(pub SystemTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ASN1Time::from_timestamp(seconds(self.0)) {
            Ok(time) => write!(f, "{}", time.to_datetime()),
            Err(_) => f.write_str("an unknown date"),
        }
    }
}

/// A time of rustls.
pub(crate) fn system(time: UnixTime) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs())).unwrap_or(UNIX_EPOCH)
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(since).unwrap_or(i64::MAX)
}
