//! The program `gridbench-task`; what its tasks do is in the library beside it.
//!
//! The task `null` shows how quickly a round starts and ends, so it is to do nothing. Therefore
//! `main` is that of C: Rust's own would first look at the open files and set up a stack for
//! signals.

#![no_main]

use std::ffi::{CStr, c_char, c_int};

/// Runs the task that the arguments name.
///
/// # Safety
///
/// `argv` has `argc` texts that end with a zero byte, as C hands them over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: there is a text at 1, see above.
    if argc > 1 && unsafe { CStr::from_ptr(*argv.add(1)) } == c"null" {
        // SAFETY: nothing has to be done before the process ends.
        unsafe { libc::_exit(0) };
    }
    gridbench_task::run(std::env::args_os().skip(1)).into()
}
