//! The errors that a worker itself reports for a call, by the names that stand in a `Failure`.

use std::fmt;

/// The prefix that keeps these names apart from the types of errors that functions raise.
const PREFIX: &str = "gridrpc.";

macro_rules! remote_errors {
    ($($(#[doc = $doc:literal])* $variant:ident,)*) => {
        /// Why a worker could not run a function, or could not send what came of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RemoteError {
            $($(#[doc = $doc])* $variant,)*
        }

        impl RemoteError {
            /// All of them.
            pub const ALL: &[RemoteError] = &[$(RemoteError::$variant),*];

            /// Its name in a message.
            pub fn name(self) -> &'static str {
                match self {
                    $(RemoteError::$variant => concat!("gridrpc.", stringify!($variant)),)*
                }
            }

            /// The error of that name; `None` for the type of an error that a function has raised,
            /// and for errors that newer workers may know.
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
    /// The worker has no function of that name.
    FunctionNotFound,
    /// The arguments do not fit the function.
    ArgumentError,
    /// A message or its values cannot be decoded.
    ProtocolError,
    /// The worker has no memory for the results.
    OutOfMemory,
    /// The module of the function cannot be loaded.
    ModuleError,
    /// A function of the client's that the function called back has failed.
    CallbackFailed,
    /// The function has ended its process instead of returning.
    FunctionExited,
    /// Processes on which a function ran together have ended, or could not be started.
    RanksLost,
    /// The worker was lost that ran a call with many items.
    ItemLost,
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
