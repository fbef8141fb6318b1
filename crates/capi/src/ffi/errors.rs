//! Error functions: codes, texts and details.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

use super::boundary::{guard, text};
use super::last_error::{last, note, print};
use crate::environment;
use crate::errors::{ErrorCode, text_of};

thread_local! {
    /// The last result of `grpc_error_detail_np`.
    static DETAIL: RefCell<CString> = RefCell::default();
}

/// How a session ended, or why that is unknown.
fn of_session(id: c_int) -> (ErrorCode, String) {
    let ended = || {
        let environment = environment::current()?;
        Ok(environment.sessions.get(id)?.settle(&environment.context))
    };
    match ended().map(|ended| ended.map(|ended| ended.result.clone())) {
        Ok(None) => (ErrorCode::NotCompleted, String::new()),
        Ok(Some(Ok(()))) => (ErrorCode::NoError, String::new()),
        Ok(Some(Err(failure))) | Err(failure) => (failure.code, failure.detail),
    }
}

#[unsafe(no_mangle)]
extern "C" fn grpc_error_string(error_code: c_int) -> *mut c_char {
    // The standard declares no const here; the header declares the string read-only.
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
        // SAFETY: The caller passes a string or NULL.
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
        let stored = DETAIL.try_with(|slot| {
            slot.replace(detail);
            slot.borrow().as_ptr()
        });
        stored.unwrap_or(c"".as_ptr())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_perror(prefix: *const c_char) {
    // SAFETY: same contract as this function.
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
        // SAFETY: the C part passes a literal.
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
        // SAFETY: it is a string, and no other thread requests one meanwhile.
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
