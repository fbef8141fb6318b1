//! Functions that end their process.
//!
//! A function that calls `exit`, as Fortran's `STOP` does, cannot continue, and neither can the frames below it. The
//! worker answers the call from an exit handler, and the process ends. Another worker takes its place. Ends without
//! exit handlers are not handled here: signals, `abort`, `_exit`, and `exit` in a thread other than the call's.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, Once, PoisonError};

use crate::module::callback;
use crate::module::error::CallError;
use crate::module::raised::text;

/// The function's message about the end of its process. Not thread-local, because `exit` drops thread-local data
/// before it runs handlers.
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Records why the function ends its process.
pub(super) extern "C" fn ends(message: *const c_char) {
    let words = text(message).map(|text| text.trim().to_owned());
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Registers an exit handler that answers the call. Handlers run in reverse order, so those of modules loaded later
/// run first.
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
