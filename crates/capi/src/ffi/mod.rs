//! What C programs call: one file per group of functions in `grpc.h` and `ninf.h`.
//!
//! Nothing that comes from C is trusted: addresses may be NULL, handles may be garbage. No panic
//! crosses into C: every function runs in [`guard`].

mod pending;
mod report;
mod stack;
mod types;
mod variadic;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errors::ErrorCode;

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
