//! C types of `grpc.h`, `ninf.h` and variadic.h in Rust.

use std::ffi::{c_char, c_int, c_longlong, c_ulonglong, c_void};

/// `grpc_function_handle_t`, `grpc_object_handle_t_np` and both kinds of attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle(pub [c_ulonglong; 4]);

/// `union gridrpc_slot`: one argument as received.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Slot {
    /// Code `i`.
    pub int: c_int,
    /// Code `l`.
    pub long: c_longlong,
    /// Code `d`.
    pub double: f64,
    /// Code `c`: real and imaginary part.
    pub scomplex: [f32; 2],
    /// Code `z`: real and imaginary part.
    pub dcomplex: [f64; 2],
    /// Code `p`.
    pub address: *mut c_void,
}

/// `struct gridrpc_arguments`.
#[repr(C)]
pub struct Arguments {
    /// The codes that Rust supplied.
    pub codes: *const u8,
    /// The arguments.
    pub slots: *const Slot,
    /// Number of arguments.
    pub count: usize,
}

// variadic.h relies on these values.
const _: () = assert!(size_of::<Slot>() == 16 && align_of::<Slot>() == 8);
const _: () = assert!(size_of::<Handle>() == 32);

/// `grpc_parameter_np`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Valid for the life of the process.
    pub name: *const c_char,
    /// `grpc_mode_t_np`.
    pub mode: c_int,
    /// `grpc_type_t_np`.
    pub of: c_int,
    /// 1 if an address of elements is passed.
    pub is_array: c_int,
    /// 1 if a function is passed.
    pub is_callback: c_int,
}
