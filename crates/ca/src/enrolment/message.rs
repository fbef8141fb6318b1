//! Messages between a user and the service, as JSON.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::AuthorityError;

/// Path of the service.
pub(super) const PATH: &str = "/enrol";
/// Largest request and response, bytes.
pub(super) const LIMIT: usize = 64 << 10;

/// What a user sends.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnrolmentRequest {
    pub token: String,
    /// The certificate signing request, PEM.
    pub request: String,
}

/// What the service answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EnrolmentResponse {
    /// The user's certificate, followed by that of the authority, PEM.
    Certificate(String),
    /// There is none.
    Refused(Refusal),
}

/// Reason why the service refuses a token or a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// The authority does not know the token.
    #[error("the token is unknown: it was made by another authority, used long ago, or revoked")]
    Unknown,
    /// The token has been used.
    #[error("the token of user `{user}` has been used: ask for a new one")]
    Used {
        /// The user.
        user: String,
    },
    /// The token is too old.
    #[error("the token of user `{user}` has expired: ask for a new one")]
    Expired {
        /// The user.
        user: String,
    },
    /// The token is for another user.
    #[error(
        "the token is for user `{user}`, and not for `{requested}`: enrol as `{user}`, or ask for another one"
    )]
    OtherUser {
        /// The user of the token.
        user: String,
        /// The user in the request.
        requested: String,
    },
    /// Too many wrong tokens have come from this address.
    #[error("too many refused requests have come from this address: try again in {seconds} s")]
    TooMany {
        /// Time until the next try, seconds.
        seconds: u64,
    },
    /// The request cannot be used.
    #[error("the request is not valid: {message}")]
    BadRequest {
        /// The problem.
        message: String,
    },
    /// The authority cannot sign.
    #[error(
        "the authority cannot sign now; its owner finds the reason in the output of `gridrpc ca serve`"
    )]
    Unavailable,
}

impl From<&AuthorityError> for Refusal {
    fn from(error: &AuthorityError) -> Refusal {
        match error {
            AuthorityError::UnknownToken => Refusal::Unknown,
            AuthorityError::UsedToken { user } => Refusal::Used { user: user.clone() },
            AuthorityError::ExpiredToken { user } => Refusal::Expired { user: user.clone() },
            AuthorityError::OtherUser { user, requested } => {
                Refusal::OtherUser { user: user.clone(), requested: requested.clone() }
            }
            AuthorityError::BadRequest { .. } | AuthorityError::BadSignature { .. } => {
                Refusal::BadRequest { message: error.to_string() }
            }
            // Names of files and folders are no business of the user's.
            _ => Refusal::Unavailable,
        }
    }
}
