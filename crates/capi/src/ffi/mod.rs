//! What C programs call: one file per group of functions in `grpc.h` and `ninf.h`.
//!
//! Nothing that comes from C is trusted: addresses may be NULL, handles may be garbage. No panic
//! crosses into C: every function runs in [`guard`].

mod attributes;
mod calls;
mod functions;
mod information;
mod invoke;
mod library;
mod memory;
mod ninf;
mod objects;
mod report;
mod sessions;
mod stack;
pub mod types;
mod variadic;
mod worker;

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errors::ErrorCode;
use crate::failure::Failure;

/// Runs a function's body. Should it panic, that is noted, and `failed` is returned.
fn guard<T>(failed: T, body: impl FnOnce() -> T) -> T {
    // State that a panic could leave half changed lies behind locks, and those are taken anyway.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        report::note(ErrorCode::Other, format!("internal error: {text}"));
        failed
    })
}

/// Runs a function's body, and returns the code that tells how it went.
fn enter(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guard(ErrorCode::Other as c_int, || match body() {
        Ok(()) => ErrorCode::NoError as c_int,
        Err(failure) => report::note(failure.code, failure.detail),
    })
}

/// The same for functions that return something else, and `failed` for an error.
fn enter_for<T: Clone>(failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    guard(failed.clone(), || {
        body().unwrap_or_else(|failure| {
            report::note(failure.code, failure.detail);
            failed
        })
    })
}

/// A text from C; `None` for NULL.
///
/// # Safety
/// `text` is NULL or the address of a text that ends in a 0 and stays.
unsafe fn text<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    // SAFETY: The caller says so.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Stores something where the caller wants it.
///
/// # Safety
/// `place` is NULL or the address of room for it.
unsafe fn store<T>(place: *mut T, what: &str, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: The caller says so.
    unsafe { place.write(value) };
    Ok(())
}

/// An argument that must not be NULL is.
fn null(what: &str) -> Failure {
    Failure::other(format!("{what} is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let result = guard(ErrorCode::Other as i32, || panic!("because of {}", "something"));
        assert_eq!(result, ErrorCode::Other as i32);
        let (code, detail) = report::last();
        assert_eq!((code, &detail[..]), (ErrorCode::Other, "internal error: because of something"));
    }
}
