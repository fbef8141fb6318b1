//! Functions that do not return: an exception comes out of them, or they end their process.
//!
//! A stub in C++ catches exceptions and reports them here. A function that calls `exit`, as Fortran's `STOP` does,
//! cannot go on, and neither can the frames below it: the worker answers its call from an exit handler, and the
//! process ends. Another worker takes its place. What ends a process without exit handlers is not seen here:
//! signals, `abort`, `_exit`, and `exit` in another thread than the call's.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::{Mutex, Once, PoisonError};

use crate::worker::module::CallError;
use crate::worker::module::callback;

/// An exception of C++.
#[derive(Debug)]
pub(in crate::worker) struct Raised {
    /// Its type.
    pub(super) kind: String,
    /// What it says, if it says anything.
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

thread_local! {
    static RAISED: Cell<Option<Raised>> = const { Cell::new(None) };
}

/// What the function has said about the end of its process. Not of its thread: `exit` drops what threads have
/// before it runs handlers.
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

fn text(text: *const c_char) -> Option<String> {
    // SAFETY: null, or a C string of the stub's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The stub has caught an exception; it returns next.
pub(super) extern "C" fn raised(kind: *const c_char, message: *const c_char) {
    let kind = text(kind).unwrap_or_default();
    RAISED.set(Some(Raised { kind, message: text(message) }));
}

/// What the stub has reported last.
pub(super) fn take_raised() -> CallError {
    let unknown = || Raised { kind: String::new(), message: None };
    CallError::Raised(Box::new(RAISED.take().unwrap_or_else(unknown)))
}

/// The function says why it ends its process.
pub(super) extern "C" fn ends(message: *const c_char) {
    let words = text(message).map(|text| text.trim().to_owned());
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Has calls answered whose functions end their process. Handlers run in reverse order: those of modules that are
/// loaded later run before.
pub(super) fn notice_exits() {
    unsafe extern "C" {
        fn on_exit(
            handler: extern "C" fn(status: c_int, argument: *mut c_void),
            argument: *mut c_void,
        ) -> c_int;
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler stays as long as the process. Without memory for it, the worker counts as lost.
        unsafe { on_exit(exiting, std::ptr::null_mut()) };
    });
}

extern "C" fn exiting(status: c_int, _: *mut c_void) {
    let words = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
    let words = words.unwrap_or_default();
    callback::answer_at_exit(CallError::Exited { status: status & 0xff, words });
}
