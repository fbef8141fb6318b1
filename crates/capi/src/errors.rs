//! The codes that functions return, with Ninf-G's numbers, and their texts.

use std::ffi::CStr;

use crate::config::ConfigError;

/// `grpc_error_t`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Success.
    NoError = 0,
    /// `grpc_initialize` has not been called.
    NotInitialized = 1,
    /// `grpc_initialize` has been called before.
    AlreadyInitialized = 2,
    /// The configuration file cannot be read.
    ConfigfileNotFound = 3,
    /// The configuration file is malformed.
    ConfigfileError = 4,
    /// No such server, or workers cannot be started there.
    ServerNotFound = 5,
    /// No known module has such a function.
    FunctionNotFound = 6,
    /// A function handle is NULL, was never initialized, or is destructed.
    InvalidFunctionHandle = 7,
    /// There is no such session, or it has been removed.
    InvalidSessionId = 8,
    /// The server does not accept the call.
    RpcRefused = 9,
    /// The connection or the worker was lost.
    CommunicationFailed = 10,
    /// A session failed, found while waiting for it.
    SessionFailed = 11,
    /// The session still runs.
    NotCompleted = 12,
    /// All sessions still run.
    NoneCompleted = 13,
    /// An object handle is NULL, was never initialized, or is destructed.
    InvalidObjectHandle = 14,
    /// No known module has such a class.
    ClassNotFound = 15,
    /// A time limit was reached.
    Timeout = 16,
    /// The session was cancelled.
    Canceled = 17,
    /// Anything else.
    Other = 18,
}

impl ErrorCode {
    const ALL: [ErrorCode; 19] = [
        ErrorCode::NoError,
        ErrorCode::NotInitialized,
        ErrorCode::AlreadyInitialized,
        ErrorCode::ConfigfileNotFound,
        ErrorCode::ConfigfileError,
        ErrorCode::ServerNotFound,
        ErrorCode::FunctionNotFound,
        ErrorCode::InvalidFunctionHandle,
        ErrorCode::InvalidSessionId,
        ErrorCode::RpcRefused,
        ErrorCode::CommunicationFailed,
        ErrorCode::SessionFailed,
        ErrorCode::NotCompleted,
        ErrorCode::NoneCompleted,
        ErrorCode::InvalidObjectHandle,
        ErrorCode::ClassNotFound,
        ErrorCode::Timeout,
        ErrorCode::Canceled,
        ErrorCode::Other,
    ];

    /// The code with this number. `None` for other numbers, including `GRPC_UNKNOWN_ERROR_CODE`.
    #[must_use]
    pub fn from_number(number: i32) -> Option<ErrorCode> {
        usize::try_from(number).ok().and_then(|index| ErrorCode::ALL.get(index)).copied()
    }

    /// The error message.
    #[must_use]
    pub fn text(self) -> &'static CStr {
        match self {
            ErrorCode::NoError => c"no error",
            ErrorCode::NotInitialized => {
                c"the library is not initialized: call grpc_initialize first"
            }
            ErrorCode::AlreadyInitialized => c"the library is initialized already",
            ErrorCode::ConfigfileNotFound => c"the configuration file cannot be read",
            ErrorCode::ConfigfileError => c"the configuration file is malformed",
            ErrorCode::ServerNotFound => {
                c"there is no such server, or no worker could be started there"
            }
            ErrorCode::FunctionNotFound => c"no known module has such a function",
            ErrorCode::InvalidFunctionHandle => {
                c"the function handle is not valid: NULL, never initialized, or destructed"
            }
            ErrorCode::InvalidSessionId => c"there is no such session, or no longer",
            ErrorCode::RpcRefused => c"the server refused the call",
            ErrorCode::CommunicationFailed => c"the worker or the connection to it was lost",
            ErrorCode::SessionFailed => c"the session failed: grpc_get_error has the reason",
            ErrorCode::NotCompleted => c"the session has not ended yet",
            ErrorCode::NoneCompleted => c"none of the sessions has ended yet",
            ErrorCode::InvalidObjectHandle => {
                c"the object handle is not valid: NULL, never initialized, or destructed"
            }
            ErrorCode::ClassNotFound => c"no known module has such a class",
            ErrorCode::Timeout => c"a time limit was reached",
            ErrorCode::Canceled => c"the session was cancelled",
            ErrorCode::Other => c"another error: grpc_error_detail_np tells which",
        }
    }
}

/// The message for any number, including numbers that are not codes.
#[must_use]
pub fn text_of(number: i32) -> &'static CStr {
    ErrorCode::from_number(number).map_or(c"GRPC_UNKNOWN_ERROR_CODE", ErrorCode::text)
}

impl From<&ConfigError> for ErrorCode {
    fn from(error: &ConfigError) -> Self {
        match error {
            // A file that includes a missing file is itself malformed.
            ConfigError::NotFound { at: None, .. } => ErrorCode::ConfigfileNotFound,
            ConfigError::NotFound { .. } | ConfigError::Malformed { .. } => {
                ErrorCode::ConfigfileError
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_and_codes_agree() {
        for (number, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, number);
            assert_eq!(ErrorCode::from_number(number as i32), Some(code));
        }
    }

    #[test]
    fn every_code_has_a_text_of_its_own() {
        let texts: HashSet<_> = ErrorCode::ALL.into_iter().map(ErrorCode::text).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn other_numbers_are_unknown() {
        for number in [19, 20, 21, -1, i32::MIN, i32::MAX] {
            assert_eq!(text_of(number), c"GRPC_UNKNOWN_ERROR_CODE");
        }
    }
}
