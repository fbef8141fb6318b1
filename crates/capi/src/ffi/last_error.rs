//! Last error of each thread.

use std::cell::RefCell;
use std::ffi::c_int;
use std::io::Write;

use crate::context::log::Level;
use crate::environment;
use crate::errors::ErrorCode;

thread_local! {
    static LAST: RefCell<(ErrorCode, String)> =
        const { RefCell::new((ErrorCode::NoError, String::new())) };
}

/// Records an error, logs it, and returns its code.
///
/// It is logged because old programs print only `grpc_error_string`, which does not give the cause.
pub fn note(code: ErrorCode, detail: impl Into<String>) -> c_int {
    let detail = detail.into();
    let is_logged = match code {
        // These codes are answers rather than errors.
        ErrorCode::NoError | ErrorCode::NotCompleted | ErrorCode::NoneCompleted => false,
        // The caller requested the first; the session logged the second when it ended.
        ErrorCode::Canceled | ErrorCode::SessionFailed => false,
        _ => !detail.is_empty(),
    };
    if is_logged {
        environment::log(Level::Error, || detail.clone());
    }
    // A thread that is ending has no storage left, and no reader.
    let _ = LAST.try_with(|last| last.replace((code, detail)));
    code as c_int
}

/// Code and detail of the last error.
pub fn last() -> (ErrorCode, String) {
    LAST.try_with(|last| last.borrow().clone()).unwrap_or((ErrorCode::NoError, String::new()))
}

/// Prints an error like `perror`.
pub fn print(text: &str, code: ErrorCode, detail: &str) {
    let message = code.text().to_string_lossy();
    let prefix = if text.is_empty() { String::new() } else { format!("{text}: ") };
    let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    // A closed standard error is ignored.
    let _ = writeln!(std::io::stderr(), "{prefix}{message}{detail}");
}
