//! Failure of an API function: error code and details.

use crate::config::ConfigError;
use crate::errors::ErrorCode;

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The return value of the API function.
    pub code: ErrorCode,
    /// Details for display; may be empty.
    pub detail: String,
}

impl Failure {
    /// A failure with details.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Failure {
        Failure { code, detail: detail.into() }
    }

    /// A failure without a code of its own.
    pub fn other(detail: impl Into<String>) -> Failure {
        Failure::new(ErrorCode::Other, detail)
    }

    /// A callback waits for its own session.
    #[must_use]
    pub fn waits_for_itself(id: i32) -> Failure {
        Failure::other(format!(
            "session {id}: its own callback waits for it, and it cannot end before that returns: wait for it \
             elsewhere, or name other sessions"
        ))
    }

    /// There is no such session.
    #[must_use]
    pub fn no_session(id: i32) -> Failure {
        Failure::new(
            ErrorCode::InvalidSessionId,
            format!("session {id}: it never existed, or is forgotten"),
        )
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::new(ErrorCode::from(&error), error.to_string())
    }
}
