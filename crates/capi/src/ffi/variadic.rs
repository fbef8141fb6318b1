//! The Rust side of variadic.h: codes of parameters, and calls with their arguments in slots.

use std::ffi::{c_char, c_int, c_void};

use super::types::{Arguments, Handle};
use super::{guard, report};
use crate::errors::ErrorCode;

const FAILED: c_int = ErrorCode::Other as c_int;

fn not_initialized() -> c_int {
    report::note(ErrorCode::NotInitialized, "")
}

/// The same for functions of Ninf.
fn ninf_not_initialized() -> c_int {
    not_initialized();
    -1
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_parameter_codes(
    _handle: *const Handle,
    _codes: *mut *const u8,
    _count: *mut usize,
) -> c_int {
    guard(FAILED, not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_method_codes(
    _handle: *const Handle,
    _method_name: *const c_char,
    _codes: *mut *const u8,
    _count: *mut usize,
) -> c_int {
    guard(FAILED, not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_entry_codes(
    _entry: *const c_char,
    _codes: *mut *const u8,
    _count: *mut usize,
) -> c_int {
    guard(-1, ninf_not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_executable_codes(
    _executable: *const c_void,
    _codes: *mut *const u8,
    _count: *mut usize,
) -> c_int {
    guard(-1, ninf_not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_group_codes(
    _group: c_int,
    _codes: *mut *const u8,
    _count: *mut usize,
) -> c_int {
    guard(-1, ninf_not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_call(
    _handle: *mut Handle,
    _has_attr: c_int,
    _attr: *mut Handle,
    _wait: c_int,
    _session_id: *mut c_int,
    _arguments: *const Arguments,
) -> c_int {
    guard(FAILED, not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_invoke(
    _handle: *mut Handle,
    _method_name: *const c_char,
    _has_attr: c_int,
    _attr: *mut Handle,
    _wait: c_int,
    _session_id: *mut c_int,
    _arguments: *const Arguments,
) -> c_int {
    guard(FAILED, not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_entry_call(
    _entry: *const c_char,
    _wait: c_int,
    _arguments: *const Arguments,
) -> c_int {
    guard(-1, ninf_not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_executable_call(
    _executable: *mut c_void,
    _wait: c_int,
    _arguments: *const Arguments,
) -> c_int {
    guard(-1, ninf_not_initialized)
}

#[unsafe(no_mangle)]
extern "C" fn gridrpc_group_call(_group: c_int, _arguments: *const Arguments) -> c_int {
    guard(-1, ninf_not_initialized)
}
