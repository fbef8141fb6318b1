//! Initialization and finalization, configuration, and signals.

use std::ffi::{c_char, c_int};

use nix::sys::signal::SigHandler;

use super::boundary::{enter, text};
use crate::environment::{current, finalize, initialize};

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_initialize(config_file_name: *const c_char) -> c_int {
    // SAFETY: The caller passes a string or NULL.
    enter(|| initialize(unsafe { text(config_file_name) }.as_deref()))
}

#[unsafe(no_mangle)]
extern "C" fn grpc_finalize() -> c_int {
    enter(finalize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_config_file_read_np(config_file_name: *const c_char) -> c_int {
    // SAFETY: The caller passes a string or NULL.
    enter(|| current()?.configure(unsafe { text(config_file_name) }.as_deref()))
}

/// SIG_DFL, SIG_IGN or a function: C has one type for them.
#[unsafe(no_mangle)]
extern "C" fn grpc_signal_handler_set_np(signal_number: c_int, signal_handler: usize) -> c_int {
    enter(|| {
        let handler = match signal_handler {
            libc::SIG_DFL => SigHandler::SigDfl,
            libc::SIG_IGN => SigHandler::SigIgn,
            // SAFETY: the caller passes a function that takes the signal's number.
            address => SigHandler::Handler(unsafe {
                std::mem::transmute::<usize, extern "C" fn(c_int)>(address)
            }),
        };
        current()?.signals.set(signal_number, handler)
    })
}
