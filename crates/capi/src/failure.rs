//! Why a function failed: the code that it returns, and what is known beside.

use crate::config::ConfigError;
use crate::errors::ErrorCode;

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What functions return.
    pub code: ErrorCode,
    /// All that is known, for people; may be empty.
    pub detail: String,
}

impl Failure {
    /// With a text.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Failure {
        Failure { code, detail: detail.into() }
    }

    /// Anything that has no code of its own.
    pub fn other(detail: impl Into<String>) -> Failure {
        Failure::new(ErrorCode::Other, detail)
    }

    /// A session whose callback waits for it.
    #[must_use]
    pub fn waits_for_itself(id: i32) -> Failure {
        Failure::other(format!(
            "session {id}: its own callback waits for it, and it cannot end before that returns: wait for it \
             elsewhere, or name other sessions"
        ))
    }

    /// A session that is not there.
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
