//! Reasons why a connection is not admitted.

use std::io;
use std::time::SystemTime;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use thiserror::Error as ThisError;

use crate::certificates::{IdentityError, Utc, system};

/// Reason why a connection was not admitted.
#[derive(Debug, ThisError)]
pub enum HandshakeError {
    /// It does not use TLS.
    #[error("it does not use TLS")]
    NotTls,
    /// It only supports versions of TLS before 1.3.
    #[error("its version of TLS is older than 1.3")]
    OldTls,
    /// It has presented no certificate.
    #[error("it has presented no certificate")]
    NoCertificate,
    /// None of the trusted authorities has signed the certificate.
    #[error("no trusted authority has signed its certificate")]
    UnknownAuthority,
    /// The certificate is not valid any more.
    #[error("its certificate expired on {}, and the clock of this host says {}", Utc(*.until), Utc(*.now))]
    Expired {
        /// End of its validity.
        until: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
    /// The certificate is not valid yet.
    #[error(
        "its certificate is not valid before {}, and the clock of this host says {}: is it right?",
        Utc(*.from), Utc(*.now)
    )]
    NotYetValid {
        /// Start of its validity.
        from: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
    /// The authority has revoked the certificate.
    #[error("its certificate has been revoked")]
    Revoked,
    /// The certificate cannot be accepted for another reason.
    #[error("its certificate is not valid: {0}")]
    BadCertificate(CertificateError),
    /// The certificate names no user.
    #[error("its certificate names no user: {0}")]
    NoIdentity(IdentityError),
    /// The other end does not accept this server.
    #[error("it does not accept this server: {0:?}")]
    PeerRefused(AlertDescription),
    /// It has closed the connection.
    #[error("it has closed the connection early")]
    Closed,
    /// It has not presented a secret or a certificate in time.
    #[error("it has not completed the handshake in time")]
    Timeout,
    /// It had to make room for newer connections.
    #[error("too many connections were pending, most of them from its address")]
    Crowded,
    /// It violates the TLS protocol.
    #[error("it violates the TLS protocol: {0}")]
    Tls(Error),
    /// The connection has failed.
    #[error("the connection has failed: {0}")]
    Connection(io::Error),
}

impl HandshakeError {
    /// The reason why a handshake has failed.
    pub(super) fn of(error: io::Error) -> HandshakeError {
        match crate::tls::reason(&error) {
            Some(error) => HandshakeError::of_tls(error.clone()),
            None => match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe => HandshakeError::Closed,
                _ => HandshakeError::Connection(error),
            },
        }
    }

    fn of_tls(error: Error) -> HandshakeError {
        match error {
            Error::InvalidMessage(_) if crate::tls::is_not_tls(&error) => HandshakeError::NotTls,
            Error::PeerIncompatible(
                PeerIncompatible::SupportedVersionsExtensionRequired
                | PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::ServerDoesNotSupportTls12Or13,
            ) => HandshakeError::OldTls,
            Error::NoCertificatesPresented => HandshakeError::NoCertificate,
            Error::InvalidCertificate(error) => HandshakeError::of_certificate(error),
            Error::AlertReceived(alert) => HandshakeError::PeerRefused(alert),
            error => HandshakeError::Tls(error),
        }
    }

    fn of_certificate(error: CertificateError) -> HandshakeError {
        match error {
            // A foreign authority may have the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                HandshakeError::UnknownAuthority
            }
            CertificateError::ExpiredContext { time, not_after } => {
                HandshakeError::Expired { until: system(not_after), now: system(time) }
            }
            CertificateError::NotValidYetContext { time, not_before } => {
                HandshakeError::NotYetValid { from: system(not_before), now: system(time) }
            }
            CertificateError::Revoked => HandshakeError::Revoked,
            error => HandshakeError::BadCertificate(error),
        }
    }
}
