//! Boundary to C: panic guards, and access to the caller's memory.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::last_error;
use crate::c_types::Handle;
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// Runs a function's body. A panic is recorded as an error, and `failed` is returned.
pub fn guard<T>(failed: T, body: impl FnOnce() -> T) -> T {
    // Locks guard all state that a panic can leave inconsistent, and poisoned locks are accepted.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        last_error::note(ErrorCode::Other, format!("internal error: {text}"));
        failed
    })
}

/// Runs a function's body and returns its error code.
pub fn enter(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guard(ErrorCode::Other as c_int, || match body() {
        Ok(()) => ErrorCode::NoError as c_int,
        Err(failure) => last_error::note(failure.code, failure.detail),
    })
}

/// Runs the body of a function that returns a value, or `failed` for an error.
pub fn enter_for<T: Clone>(failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    guard(failed.clone(), || {
        body().unwrap_or_else(|failure| {
            last_error::note(failure.code, failure.detail);
            failed
        })
    })
}

/// A string from C; `None` for NULL.
///
/// # Safety
/// `text` is NULL or the address of a NUL-terminated string that stays valid.
pub unsafe fn text<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Stores a value at the caller's address.
///
/// # Safety
/// `place` is NULL or the address of room for it.
pub unsafe fn store<T>(place: *mut T, what: &str, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { place.write(value) };
    Ok(())
}

/// Error: an argument that must not be NULL is NULL.
pub fn null(what: &str) -> Failure {
    Failure::other(format!("{what} is NULL"))
}

/// Reads a handle from the caller's memory; `None` for NULL.
///
/// # Safety
/// `handle` is NULL or the address of one.
pub unsafe fn read(handle: *const Handle) -> Option<Handle> {
    // SAFETY: guaranteed by the caller.
    (!handle.is_null()).then(|| unsafe { handle.read_unaligned() })
}

/// Address of the caller's handle, to return to the caller later.
pub fn address(handle: *mut Handle) -> usize {
    handle.cast::<c_void>().expose_provenance()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let result = guard(ErrorCode::Other as i32, || panic!("because of {}", "something"));
        assert_eq!(result, ErrorCode::Other as i32);
        let (code, detail) = last_error::last();
        assert_eq!((code, &detail[..]), (ErrorCode::Other, "internal error: because of something"));
    }
}
