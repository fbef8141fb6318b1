//! The last error of each thread, and the functions that tell it.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io::Write;

use super::{guard, text};
use crate::environment::{self, log::Level};
use crate::errors::{ErrorCode, text_of};

thread_local! {
    static LAST: RefCell<(ErrorCode, String)> =
        const { RefCell::new((ErrorCode::NoError, String::new())) };
    /// What `grpc_error_detail_np` returned last.
    static DETAIL: RefCell<CString> = RefCell::default();
}

/// Notes an error, tells it in the log, and returns the code that its function is to return.
///
/// Old programs print no more than `grpc_error_string`, which says nothing of the cause.
pub fn note(code: ErrorCode, detail: impl Into<String>) -> c_int {
    let detail = detail.into();
    let is_told = match code {
        // They answer a question.
        ErrorCode::NoError | ErrorCode::NotCompleted | ErrorCode::NoneCompleted => false,
        // What the caller has asked for, and what the session has told when it ended.
        ErrorCode::Canceled | ErrorCode::SessionFailed => false,
        _ => !detail.is_empty(),
    };
    if is_told {
        environment::tell(Level::Error, || detail.clone());
    }
    // While the thread ends there is nobody left to ask.
    let _ = LAST.try_with(|last| last.replace((code, detail)));
    code as c_int
}

/// The last error, and what is known about it.
pub fn last() -> (ErrorCode, String) {
    LAST.try_with(|last| last.borrow().clone()).unwrap_or((ErrorCode::NoError, String::new()))
}

/// What is known about the end of a session, or why nothing is.
fn of_session(id: c_int) -> (ErrorCode, String) {
    let ended = || {
        let environment = environment::current()?;
        Ok(environment.sessions.get(id)?.settle(&environment))
    };
    match ended().map(|ended| ended.map(|ended| ended.result.clone())) {
        Ok(None) => (ErrorCode::NotCompleted, String::new()),
        Ok(Some(Ok(()))) => (ErrorCode::NoError, String::new()),
        Ok(Some(Err(failure))) | Err(failure) => (failure.code, failure.detail),
    }
}

/// Prints an error as perror does.
pub fn print(text: &str, code: ErrorCode, detail: &str) {
    let message = code.text().to_string_lossy();
    let prefix = if text.is_empty() { String::new() } else { format!("{text}: ") };
    let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    // If standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{prefix}{message}{detail}");
}

#[unsafe(no_mangle)]
extern "C" fn grpc_error_string(error_code: c_int) -> *mut c_char {
    // The standard has no const here; the header says that the text is to be read only.
    text_of(error_code).as_ptr().cast_mut()
}

#[unsafe(no_mangle)]
extern "C" fn grpc_last_error_get_np() -> c_int {
    guard(ErrorCode::Other as c_int, || last().0 as c_int)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_perror_np(prefix: *const c_char) -> c_int {
    guard(ErrorCode::Other as c_int, || {
        let (code, detail) = last();
        // SAFETY: What the function's caller gives is a text or NULL.
        print(&unsafe { text(prefix) }.unwrap_or_default(), code, &detail);
        ErrorCode::NoError as c_int
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_error_detail_np(session_id: c_int) -> *const c_char {
    guard(c"internal error".as_ptr(), || {
        let (code, detail) = if session_id < 0 { last() } else { of_session(session_id) };
        let detail =
            if detail.is_empty() { code.text().to_string_lossy().into_owned() } else { detail };
        let detail = CString::new(detail.replace('\0', " ")).unwrap_or_default();
        let stored = DETAIL.try_with(|kept| {
            kept.replace(detail);
            kept.borrow().as_ptr()
        });
        stored.unwrap_or(c"".as_ptr())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_perror(prefix: *const c_char) {
    // SAFETY: The same contract.
    let _ = unsafe { grpc_perror_np(prefix) };
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_perror_string() -> *mut c_char {
    grpc_error_detail_np(-1).cast_mut()
}

/// For the C part of the library: see variadic.h.
#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_note_error(code: c_int, detail: *const c_char) -> c_int {
    guard(ErrorCode::Other as c_int, || {
        // SAFETY: The C part gives a literal.
        let detail = unsafe { text(detail) }.unwrap_or_default();
        note(ErrorCode::from_number(code).unwrap_or(ErrorCode::Other), detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn detail() -> String {
        let address = grpc_error_detail_np(-1);
        // SAFETY: It is a text, and nothing else asks for one meanwhile.
        unsafe { CStr::from_ptr(address) }.to_str().unwrap().to_string()
    }

    #[test]
    fn every_thread_has_errors_of_its_own() {
        assert_eq!(note(ErrorCode::Timeout, "after 5 s"), 16);
        std::thread::spawn(|| assert_eq!(grpc_last_error_get_np(), 0)).join().unwrap();
        assert_eq!(grpc_last_error_get_np(), 16);
        assert_eq!(detail(), "after 5 s");
    }

    #[test]
    fn details_are_never_missing() {
        assert_eq!(detail(), "no error");
        note(ErrorCode::Canceled, "");
        assert_eq!(detail(), "the session was cancelled");
        note(ErrorCode::Other, "a\0b");
        assert_eq!(detail(), "a b");
    }

    #[test]
    fn codes_from_c_are_checked() {
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { gridrpc_note_error(12345, std::ptr::null()) }, 18);
    }
}
