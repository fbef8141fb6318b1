//! Errors of enrolment.

use std::io;

use thiserror::Error;

use super::Refusal;
use crate::{AuthorityError, TokenError};

/// Reason why a user could not enrol, or the service could not start.
#[derive(Debug, Error)]
pub enum EnrolmentError {
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Files of the user or of the authority cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// Nothing listens at the address in the token.
    #[error(
        "cannot connect to the authority at {address}: {error}; is `gridrpc ca serve` running there?"
    )]
    Unreachable {
        /// The address.
        address: String,
        /// The system's answer.
        error: io::Error,
    },
    /// The other side is not the authority that made the token.
    #[error(
        "{address} is not the service of the authority that made this token, so nothing was sent to it: check the \
         address with the owner of the authority"
    )]
    OtherAuthority {
        /// The address.
        address: String,
    },
    /// The certificate of the service is not valid at the time of this host.
    #[error(
        "the certificate of the authority at {address} {problem}: correct the clock of the machine that is wrong"
    )]
    Clock {
        /// The address.
        address: String,
        /// Both times.
        problem: String,
    },
    /// The connection failed.
    #[error("the connection to the authority at {address} failed: {reason}")]
    Connection {
        /// The address.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The service refuses the token or the request.
    #[error("the authority at {address} gives no certificate: {refusal}")]
    Refused {
        /// The address.
        address: String,
        /// The reason.
        refusal: Refusal,
    },
    /// The service cannot listen.
    #[error("cannot listen at {address}: {error}; choose another address with --listen")]
    Listen {
        /// The address.
        address: String,
        /// The system's answer.
        error: io::Error,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The service cannot start its runtime.
    #[error("the service cannot start: {0}")]
    Start(io::Error),
}
