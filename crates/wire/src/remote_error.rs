//! Errors that a worker itself reports for a call, with their names in a `Failure`.

use std::fmt;

/// Prefix that distinguishes these names from error types of functions.
const PREFIX: &str = "gridrpc.";

macro_rules! remote_errors {
    ($($(#[doc = $doc:literal])* $variant:ident,)*) => {
        /// Reason why a worker could not run a function, or could not send its result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RemoteError {
            $($(#[doc = $doc])* $variant,)*
        }

        impl RemoteError {
            /// All variants.
            pub const ALL: &[RemoteError] = &[$(RemoteError::$variant),*];

            /// Its name in a message.
            pub fn name(self) -> &'static str {
                match self {
                    $(RemoteError::$variant => concat!("gridrpc.", stringify!($variant)),)*
                }
            }

            /// The error with this name; `None` for an error type of a function, and for errors of newer workers.
            pub fn from_name(name: &str) -> Option<RemoteError> {
                match name.strip_prefix(PREFIX)? {
                    $(stringify!($variant) => Some(RemoteError::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

remote_errors! {
    /// The worker has no function with this name.
    FunctionNotFound,
    /// The arguments do not match the function.
    ArgumentError,
    /// A message or its values cannot be decoded.
    ProtocolError,
    /// The worker has no memory for the results.
    OutOfMemory,
    /// The module of the function cannot be loaded.
    ModuleError,
    /// A function of the client, called back by the function, has failed.
    CallbackFailed,
    /// The function has ended its process instead of returning.
    FunctionExited,
    /// Processes of a parallel function have ended, or could not be started.
    RanksLost,
    /// The worker of a call with many items was lost.
    ItemLost,
    /// The module of the function has another interface by now than the caller believes.
    InterfaceChanged,
    /// A limit of the user is reached on the server.
    LimitReached,
    /// The server does not allow it to the user.
    NotPermitted,
    /// The call has run longer, or used more processor time, than the host allows.
    DeadlineExceeded,
    /// The server keeps no detached call of the user with this id.
    CallNotFound,
    /// A detached call was lost with its worker or its server, and cannot run again.
    CallLost,
    /// A detached call was cancelled.
    CallCancelled,
    /// The server keeps no data under this name that the user may read.
    DataNotFound,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_found_by_its_name() {
        for error in RemoteError::ALL {
            assert!(error.name().starts_with(PREFIX));
            assert_eq!(RemoteError::from_name(error.name()), Some(*error));
        }
        assert_eq!(RemoteError::from_name("OutOfMemory"), None);
        assert_eq!(RemoteError::from_name("gridrpc.ValueError"), None);
        assert_eq!(RemoteError::from_name("ValueError"), None);
    }
}
