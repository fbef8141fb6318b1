//! C++ exceptions, which the stub catches and reports here.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::fmt;

thread_local! {
    static RAISED: Cell<Option<Raised>> = const { Cell::new(None) };
}

/// A C++ exception.
#[derive(Debug)]
pub(crate) struct Raised {
    /// Its type.
    pub(super) kind: String,
    /// Its message, if any.
    message: Option<String>,
}

impl Raised {
    pub(super) fn new(kind: String, message: String) -> Raised {
        Raised { kind, message: Some(message) }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.message, self.kind.as_str()) {
            (Some(message), _) => f.write_str(message),
            (None, "") => f.write_str("an exception of another language than C++"),
            (None, kind) => write!(f, "a C++ exception of type {kind}"),
        }
    }
}

/// A C string of the stub; `None` if null.
pub(super) fn text(text: *const c_char) -> Option<String> {
    // SAFETY: null, or a C string of the stub's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Records an exception that the stub has caught; the stub returns next.
pub(super) extern "C" fn raised(kind: *const c_char, message: *const c_char) {
    let kind = text(kind).unwrap_or_default();
    RAISED.set(Some(Raised { kind, message: text(message) }));
}

/// Takes the last exception that the stub has reported.
pub(super) fn take_raised() -> Raised {
    let unknown = || Raised { kind: String::new(), message: None };
    RAISED.take().unwrap_or_else(unknown)
}
