//! Functions for use inside remote functions.
//!
//! Modules contain their own function of this name, which queries the worker. This one is for programs that
//! run such a function outside a worker.

use std::ffi::c_int;

use super::boundary::guard;
use super::last_error;
use crate::errors::ErrorCode;

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_is_canceled_np(error: *mut c_int) -> c_int {
    guard(0, || {
        let code = last_error::note(ErrorCode::NotInitialized, "this is no worker");
        if !error.is_null() {
            // SAFETY: The caller passes NULL or the address of an int.
            unsafe { error.write(code) };
        }
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_cancelled_outside_of_workers() {
        let mut error = 0;
        // SAFETY: NULL and the address of an int are allowed.
        unsafe {
            assert_eq!(grpc_is_canceled_np(std::ptr::null_mut()), 0);
            assert_eq!(grpc_is_canceled_np(&mut error), 0);
        }
        assert_eq!(error, 1);
    }
}
